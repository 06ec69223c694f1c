"""Inside a write: no account gets more routes, pools, hostnames, records (…) than its quotas allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db.models import Count, Model, QuerySet

from apps.accounts.hostnames.claims import free_now
from apps.accounts.models import Account, Hostname
from apps.accounts.quotas import error_over, lock_quotas
from apps.core.errors import FieldError, Invalid
from apps.definitions.models import (
    AlertChannel,
    AlertRule,
    CapacityTest,
    Certificate,
    KeySet,
    NetworkList,
    Policy,
    Pool,
    Record,
    Route,
    Schedule,
    Server,
    StatusPage,
)
from apps.definitions.shapes.traffic.pool import PoolSpec
from apps.definitions.shapes.traffic.route import RouteSpec
from apps.definitions.writing.change_set import ChangeSet
from apps.fleet.models import StaticIP

# Which quota an object of a kind counts against, and where they are counted.
_COUNTED: dict[str, tuple[str, type[Model]]] = {
    "Route": ("routes", Route),
    "NetworkList": ("network_lists", NetworkList),
    "Policy": ("policies", Policy),
    "KeySet": ("key_sets", KeySet),
    "Pool": ("pools", Pool),
    "Certificate": ("certificates", Certificate),
    "Hostname": ("hostnames", Hostname),
    "Record": ("records", Record),
    "StaticIP": ("static_ips", StaticIP),
    "CapacityTest": ("capacity_tests", CapacityTest),
    "Schedule": ("schedules", Schedule),
    "AlertRule": ("alert_rules", AlertRule),
    "AlertChannel": ("alert_channels", AlertChannel),
    "StatusPage": ("status_pages", StatusPage),
}
# What pools and routes may have: not counted by kind.
OBJECTIVES = "objectives"
SERVERS = "servers"
NAMES = {kind: name for kind, (name, _) in _COUNTED.items()}
_ALL = (*NAMES.values(), SERVERS, OBJECTIVES)


def counts(account: Account) -> Mapping[str, int]:
    """How much of each of these quotas the account uses."""
    return {name: _counted(name, [account.pk]).get(account.pk, 0) for name in _ALL}


def counts_of_all(account_ids: Collection[int]) -> Mapping[str, Mapping[int, int]]:
    """The same of many accounts: quota → account (id) → how much of it. A query for each quota."""
    return {name: _counted(name, account_ids) for name in _ALL}


def expect_growth(changes: ChangeSet, kind: str, owner: Account, pointer: str = "/name") -> None:
    """Before an object is made or a hostname claimed: remember what its account has, so that only growth is refused.

    `pointer` is where it is named, within the object at hand.
    """
    _expect(changes, NAMES.get(kind), owner, [pointer])


def expect_objective(changes: ChangeSet, owner: Account) -> None:
    """The same before a pool or a route gets an objective."""
    _expect(changes, OBJECTIVES, owner, ["/spec/objective"])


def expect_servers(changes: ChangeSet, owner: Account, pointers: Sequence[str] = ()) -> None:
    """The same before servers of a pool are stored."""
    _expect(changes, SERVERS, owner, pointers)


def pointers_of_servers(spec: PoolSpec) -> list[str]:
    """Where each server stands in its pool."""
    backends = enumerate(spec.backends)
    return [f"/spec/backends/{at}/servers/{n}" for at, each in backends for n in range(len(each.servers))]


def _expect(changes: ChangeSet, name: str | None, owner: Account, pointers: Sequence[str]) -> None:
    if not name or owner.is_operator:
        return
    deferred, key = changes.deferred, (name, owner.pk)
    if key not in deferred.quota_before:
        deferred.quota_before[key] = owner, _counted(name, [owner.pk]).get(owner.pk, 0)
    deferred.growing[key] += [changes.field_errors.pointer + pointer for pointer in pointers]


def error_at_once(kind: str, owner: Account, new: Sequence[str], kept: int, *, prune: bool) -> FieldError | None:
    """What is certain before a document of new (pointers) and `kept` objects is worked on: it would end over the quota.

    Each object costs milliseconds, so that a document of thousands would keep its thread for a minute to be refused.
    """
    name = NAMES.get(kind)
    if name is None or owner.is_operator or not new:
        return None
    before = _counted(name, [owner.pk]).get(owner.pk, 0)
    at_least = len(new) + (kept if prune else before)
    names = [f"{pointer}/name" for pointer in new]
    return error_over(owner, name, at_least, names) if at_least > before else None


def error_of_servers(
    owner: Account, pools: Mapping[str, PoolSpec], kept: Collection[int], *, prune: bool
) -> FieldError | None:
    """The same of servers: those of the document's pools, by their pointers, and of pools that it does not name (`kept`
    are its rows)."""
    if owner.is_operator or not pools:
        return None
    rows = Server.objects.filter(account=owner)
    others = 0 if prune else rows.exclude(backend__pool__in=kept).count()
    before = rows.count()
    sent = [pointer + server for pointer, pool in pools.items() for server in pointers_of_servers(pool)]
    after = others + len(sent)
    return error_over(owner, SERVERS, after, sent) if after > before else None


def error_of_hostnames(owner: Account, routes: Mapping[str, RouteSpec], *, prune: bool) -> FieldError | None:
    """The same of hostnames that new routes, by their pointers, would claim."""
    if owner.is_operator or not routes:
        return None
    before = _counted("hostnames", [owner.pk]).get(owner.pk, 0)
    first: dict[str, str] = {}
    for pointer, route in routes.items():
        first.setdefault(route.hostname, f"{pointer}/spec/hostname")
    free = free_now(first)
    new = [pointer for name, pointer in first.items() if name in free]
    return error_over(owner, "hostnames", len(new) + (0 if prune else before), new) if new else None


def reject_over_quota(changes: ChangeSet) -> None:
    """In the end: Invalid for every account that has more than before, and more than it may.

    Counted once per transaction, after deletions: a document may replace a thousand routes by a thousand others, and
    an account whose quota was lowered can still edit what it has.
    """
    if not changes.deferred.quota_before:
        return
    lock_quotas(*(owner for owner, _ in changes.deferred.quota_before.values()))
    field_errors = []
    for name in dict.fromkeys(name for name, _ in changes.deferred.quota_before):
        after = _counted(name, [pk for each, pk in changes.deferred.quota_before if each == name])
        for pk, count in after.items():
            owner, before = changes.deferred.quota_before[name, pk]
            growing = changes.deferred.growing[name, pk]
            if count > before and (field_error := error_over(owner, name, count, growing)):
                field_errors.append(field_error)
    if field_errors:
        raise Invalid(field_errors)


def _counted(name: str, account_ids: Collection[int]) -> dict[int, int]:
    """How many each of the accounts has, by id; accounts that have none are left out."""
    whose = "owner" if name == "static_ips" else "account"
    found: Counter[int] = Counter()
    for rows in _rows(name):
        found.update(
            dict(rows.filter(**{f"{whose}__in": account_ids}).order_by().values_list(whose).annotate(Count("pk")))
        )
    return found


def _rows(name: str) -> list[QuerySet[Any]]:
    if name == "hostnames":
        return [Hostname.objects.filter(released_at=None)]
    if name == SERVERS:
        return [Server.objects.all()]
    if name == OBJECTIVES:
        return [model._default_manager.filter(objective__isnull=False) for model in (Pool, Route)]
    models = dict(_COUNTED.values())
    return [models[name]._default_manager.all()]

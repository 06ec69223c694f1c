"""DEFINE: saves and deletes one object of any kind: compare, check the version, write, record, want a push."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Model, QuerySet

from apps.accounts.actors import Actor
from apps.accounts.claims import drop_unused_claims
from apps.accounts.models import Account, Grant
from apps.audit import services as audit
from apps.core.errors import Conflict, Fault, Forbidden, Invalid, NotFound, Stale
from apps.definitions.describing import Document, Row, describe, settled
from apps.definitions.documents import Object, read_object
from apps.definitions.models import (
    CapacityTest,
    Certificate,
    LoadBalancer,
    Pool,
    Record,
    Route,
    Schedule,
    Zone,
)
from apps.definitions.schedules import actor_of_schedule
from apps.definitions.selectors import (
    capacity_tests,
    certificates,
    grants,
    load_balancers,
    pools,
    records,
    routes,
    schedules,
    zones,
)
from apps.definitions.services import addresses, clouds, places, traffic
from apps.definitions.services.assertions import refuse_broken
from apps.definitions.services.capacity_tests import store_capacity_test
from apps.definitions.services.emptying import refuse_emptying, watch
from apps.definitions.services.field_owners import keep_measured
from apps.definitions.services.grants import refuse_loss, store_grant
from apps.definitions.services.impossible import refuse_impossible
from apps.definitions.services.load_balancers import store_load_balancer
from apps.definitions.services.loops import refuse_loops
from apps.definitions.services.managed import check_manager, managing, reason_of
from apps.definitions.services.quotas import expect_growth, refuse_over_quota
from apps.definitions.services.routes import store_route
from apps.definitions.services.schedules import Booked, store_schedule
from apps.definitions.services.usage import users_of
from apps.definitions.services.work import Work, working
from apps.definitions.services.zones import lock_zone, store_record, store_zone
from apps.fleet.models import AddressPool, CloudAccount, Fleet, Node, Region, Stack, StaticIP
from apps.fleet.selectors import address_pools, cloud_accounts, fleets, nodes, regions, stacks, static_ips


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field that differs: `path` is a JSON pointer into the spec."""

    path: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Change:
    """What happened (or would happen) to one object: create, update, delete or unchanged, field by field."""

    kind: str
    account: str
    name: str
    action: str
    fields: tuple[FieldChange, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """How one kind of object is found and stored; `noun` is its word in URLs and scopes.

    `platform` kinds have names that are unique everywhere; they and those `for_operators` are changed by operators.
    """

    model: type[Any]
    rows: Callable[[Actor], QuerySet[Any]]
    store: Callable[[Work, Account, Any, Any], None]
    noun: str
    platform: bool = False
    for_operators: bool = False

    def may_change(self, actor: Actor) -> None:
        """Raise Forbidden unless the actor may change objects of this kind at all."""
        actor.may_write(self.noun)
        if self.platform or self.for_operators:
            actor.must_operate(self.noun.replace("-", " ").replace("ips", "IPs"))


def _all_accounts(actor: Actor) -> QuerySet[Account]:
    del actor
    return Account.objects.all()


# In the order in which they name each other: nothing refers to a kind further down.
KINDS: dict[str, Kind] = {
    "Account": Kind(Account, _all_accounts, places.store_account, "accounts", platform=True),
    "Region": Kind(Region, regions, places.store_region, "regions", platform=True),
    "Fleet": Kind(Fleet, fleets, places.store_fleet, "fleets", platform=True),
    "Node": Kind(Node, nodes, places.store_node, "nodes", platform=True),
    "CloudAccount": Kind(CloudAccount, cloud_accounts, clouds.store_cloud_account, "cloud-accounts", platform=True),
    "Stack": Kind(Stack, stacks, clouds.store_stack, "stacks", platform=True),
    "AddressPool": Kind(AddressPool, address_pools, addresses.store_address_pool, "address-pools", platform=True),
    "StaticIP": Kind(StaticIP, static_ips, addresses.store_static_ip, "static-ips", platform=True),
    "Grant": Kind(Grant, grants, store_grant, "grants", platform=True),
    "Certificate": Kind(
        Certificate, lambda actor: certificates(actor).defer(None), traffic.store_certificate, "certificates"
    ),
    "Pool": Kind(Pool, pools, traffic.store_pool, "pools"),
    "LoadBalancer": Kind(LoadBalancer, load_balancers, store_load_balancer, "load-balancers", for_operators=True),
    "Route": Kind(Route, routes, store_route, "routes"),
    "Zone": Kind(Zone, zones, store_zone, "zones", for_operators=True),
    "Record": Kind(Record, records, store_record, "records"),
    "CapacityTest": Kind(CapacityTest, capacity_tests, store_capacity_test, "capacity-tests"),
    "Schedule": Kind(Schedule, schedules, store_schedule, "schedules"),
}

# Kinds whose names are unique everywhere: the envelope and the URL need no account.
PLATFORM = frozenset(kind for kind, entry in KINDS.items() if entry.platform)


def save_object(
    *,
    actor: Actor,
    kind: str,
    name: str,
    spec: object,
    account: str | None = None,
    expected_version: int | None = None,
    create_only: bool = False,
    reason: str = "",
) -> Any:
    """Create or replace one object and return its row.

    `spec` is a plain dict (documents.py). Raises Invalid with pointers below `/spec`, Stale (a Conflict) for
    another `expected_version`, Conflict for an existing object with `create_only`, Managed (a Conflict) for an object
    of a pipeline that the caller is not and does not reach past (managed.py), Forbidden.
    """
    found = read_object({"kind": kind, "name": name, "account": account, "spec": spec})
    with working(actor, reason=reason) as work:
        row, _ = save(work, found, expected_version=expected_version, create_only=create_only)
        finish(work)
    return row


def delete_object(
    *,
    actor: Actor,
    kind: str,
    name: str,
    account: str | None = None,
    expected_version: int | None = None,
    reason: str = "",
) -> list[Fleet]:
    """Delete one object; returns the fleets that lose it. Raises NotFound, Conflict (stale, in use), Forbidden."""
    KINDS[kind].may_change(actor)
    with working(actor, reason=reason) as work:
        owner = work.account(account) if not KINDS[kind].platform else actor.account
        row = existing(work, kind, owner, name)
        if row is None:
            raise NotFound("There is no such object, or you may not see it.")
        delete(work, kind, row, expected_version=expected_version)
        finish(work)
    return list(work.touched.values())


def finish(work: Work) -> None:
    """The last act of every transaction: what had to wait is done, claims that nobody uses any more are given up.

    Raises Invalid when an account would then have more than its quotas allow.
    """
    work.catch_up()
    refuse_emptying(work)
    _try_booked(work)
    refuse_broken(work)
    refuse_loops(work)
    refuse_impossible(work)
    if work.released:
        drop_unused_claims(ids=work.released)
    refuse_over_quota(work)


def _try_booked(work: Work) -> None:
    """Make each change that a schedule of this transaction would make, as the schedule will, and undo it."""
    faults: list[Fault] = []
    for booked in work.booked:
        place = f"{booked.pointer}/spec/target/change/object"
        wanted = read_object(booked.object, pointer=place)
        KINDS[wanted.kind].may_change(work.actor)
        try:
            with transaction.atomic():
                change_for_schedule(booked, wanted)
                transaction.set_rollback(True)
        except Invalid as invalid:
            faults.extend(invalid.faults)
        except (Conflict, Forbidden) as error:
            faults.append(Fault(place, "refused", error.detail))
    work.booked.clear()
    if faults:
        raise Invalid(faults)


def change_for_schedule(booked: Booked, wanted: Object, *, reason: str = "") -> tuple[Any, Change, Document | None]:
    """Save what a schedule holds, with the rights of its account; the row, what changed, and what was there before.

    Objects of a pipeline are changed by schedules of the same pipeline only. Call it in a transaction. Raises what
    saving raises.
    """
    actor = actor_of_schedule(booked.owner, booked.schedule)
    wanted = replace(wanted, account=wanted.account or booked.owner.name)
    with managing(), working(actor, reason=reason) as work:  # whatever the request says that stores the schedule
        work.pointer = wanted.pointer
        owner = actor.account if KINDS[wanted.kind].platform else work.account(wanted.account)
        row = existing(work, wanted.kind, owner, wanted.name)
        work.manager = booked.manager if row and row.manager == booked.manager else ""
        before = describe(row) if row else None
        row, change = save(work, wanted)
        finish(work)
    return row, change, before


def existing(work: Work, kind: str, owner: Account, name: str) -> Any:
    """The row of an object by its identity, None when there is none."""
    entry = KINDS[kind]

    def look_up() -> Any:
        rows = entry.rows(work.actor).filter(name=name)
        return (rows if entry.platform else rows.filter(account=owner)).first()

    return work.once(("row", kind, None if entry.platform else owner.pk, name), look_up)


def save(
    work: Work, wanted: Object, *, expected_version: int | None = None, create_only: bool = False
) -> tuple[Any, Change]:
    """Store one object that was read; nothing happens to an object that is already as wanted.

    1. Who owns it, and may the actor do this?
    2. What is there? The version that the sender saw must still be it.
    3. Equal documents: unchanged, no new version, no push.
    4. Take the version (a stale one takes nothing), store, record.
    """
    kind = KINDS[wanted.kind]
    kind.may_change(work.actor)
    owner = work.actor.account if kind.platform else work.account(wanted.account)
    row = existing(work, wanted.kind, owner, wanted.name)
    _check_version(row, wanted, expected_version=expected_version, create_only=create_only)
    wanted = keep_measured(work, row, wanted)
    before = describe(row) if row else None
    after = settled(before, wanted.spec)
    if wanted.kind != "Schedule":  # which keeps the change that it holds as it was sent
        after = _own_names(after, owner)
    check_manager(work, row)
    label = _label(wanted.kind, owner, wanted.name)
    if before == after and not _new_key(wanted):
        return row, Change(wanted.kind, _account_name(wanted.kind, owner), wanted.name, "unchanged")
    if row is None:
        expect_growth(work, wanted.kind, owner)
        row = kind.model(name=wanted.name, manager=work.manager)
    else:
        _take_version(row)
        row.manager = row.manager or work.manager
    kind.store(work, owner, row, wanted.spec)
    watch(work, row, before, after)
    work.saved.setdefault(wanted.kind, {})[row.pk] = work.pointer
    if isinstance(row, StaticIP):
        after = describe(row)  # with what was allotted
    action = "update" if before else "create"
    work.forget("row", wanted.kind, None if kind.platform else owner.pk, wanted.name)
    audit.record(
        actor=work.actor,
        action=action,
        kind=wanted.kind,
        object_id=row.pk,
        label=label,
        account=_concerned(row, owner),
        before=before,
        after=after,
        version=row.version,
        reason=reason_of(work, row),
    )
    fields = tuple(differences(before or {}, after))
    return row, Change(wanted.kind, _account_name(wanted.kind, owner), wanted.name, action, fields)


def _concerned(row: Any, owner: Account) -> Account:
    """In whose audit record the change of an object stands: what is done to a customer stands in the customer's own."""
    if isinstance(row, Account):
        return row
    return row.account if isinstance(row, Grant) else owner


def _account_name(kind: str, owner: Account) -> str:
    return "" if KINDS[kind].platform else owner.name


def _label(kind: str, owner: Account, name: str) -> str:
    return name if KINDS[kind].platform else f"{owner.name}/{name}"


def _new_key(wanted: Object) -> bool:
    # A key is not compared: chain and key belong together, so an equal chain means an equal key.
    del wanted
    return False


def _own_names(after: Document, owner: Account) -> Document:
    """References to the owner's own objects without its name in front, as `describe` writes them."""
    prefix = f"{owner.name}/"

    def own(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: (
                    entry.removeprefix(prefix)
                    if key in ("pool", "default_pool", "zone") and isinstance(entry, str)
                    else [name.removeprefix(prefix) for name in entry]
                    if key == "certificates"
                    else own(entry)
                )
                for key, entry in value.items()
            }
        return [own(entry) for entry in value] if isinstance(value, list) else value

    found: Document = own(after)
    return found


def _check_version(row: Any, wanted: Object, *, expected_version: int | None, create_only: bool) -> None:
    if row is not None and create_only:
        raise Conflict(f"A {wanted.kind} named {wanted.name} already exists.")
    if expected_version is not None and (row is None or row.version != expected_version):
        detail = f"{wanted.kind} {wanted.name} has changed since you read it; read it again and decide again."
        raise Stale(detail, row.version if row else None)


def _take_version(row: Any) -> None:
    """Raise the version in the database if it is still the one that was read: of two writers one gets it."""
    taken = type(row)._default_manager.filter(pk=row.pk, version=row.version).update(version=row.version + 1)
    if not taken:
        raise Stale("Someone changed this object at the same time; read it again and decide again.")
    row.version += 1


def delete(work: Work, kind: str, row: Any, *, expected_version: int | None = None) -> Change:
    """Take one row away, if nobody uses it, and record it."""
    entry = KINDS[kind]
    entry.may_change(work.actor)
    if expected_version is not None and row.version != expected_version:
        raise Stale(f"{kind} {row.name} has changed since you read it; read it again and decide again.", row.version)
    check_manager(work, row)
    work.saw(row)
    users = users_of(work.actor, row)
    if users:
        raise Conflict(f"{kind} {row.name} is in use by {', '.join(users)}.")
    if isinstance(row, Stack):
        clouds.refuse_to_forget(row)
    if isinstance(row, StaticIP) and row.protected:
        raise Conflict(f"Static IP {row.name} is protected: set protected: false first, then delete it.")
    if isinstance(row, Record):
        lock_zone(work, row.zone)
    before, pk = describe(row), row.pk
    owner = work.actor.account if entry.platform else row.account
    _take_version(row)
    work.concern(row)
    if isinstance(row, Route):
        work.released.add(row.hostname_id)
        work.routed.add((row.load_balancer_id, row.hostname.name))
    if isinstance(row, Grant):
        work.later.append(partial(refuse_loss, work, row.account, row.hostname, row.tag))
    row.delete()
    work.forget("row", kind, None if entry.platform else owner.pk, row.name)
    work.forget(kind, row.name)
    work.forget(kind, owner.name, row.name)
    label = _label(kind, owner, row.name)
    audit.record(
        actor=work.actor,
        action="delete",
        kind=kind,
        object_id=pk,
        label=label,
        account=_concerned(row, owner),
        before=before,
        version=row.version,
        reason=reason_of(work, row),
    )
    return Change(kind, _account_name(kind, owner), row.name, "delete")


def differences(before: Any, after: Any, path: str = "") -> list[FieldChange]:
    """The fields that differ, deepest first named: objects field by field, lists entry by entry when equally long."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [*after, *(key for key in before if key not in after)]
        return [change for key in keys for change in differences(before.get(key), after.get(key), f"{path}/{key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [
            change
            for index, (old, new) in enumerate(zip(before, after, strict=True))
            for change in differences(old, new, f"{path}/{index}")
        ]
    return [] if before == after else [FieldChange(path or "/", before, after)]


__all__ = ["KINDS", "PLATFORM", "Change", "FieldChange", "Model", "Row", "delete_object", "save_object"]

"""Writes of policies, whose routes they hold for without being named, and of the lists that they name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial

from django.db import transaction

from apps.accounts.models import Account
from apps.compiler.model.access import ConnectionAccess
from apps.core.called_urls import Refused, read_url
from apps.core.clock import now
from apps.core.outbound import check_target
from apps.core.queue import enqueue_on_commit
from apps.definitions.key_sets.following import FETCH_TASK, followers
from apps.definitions.models import Country, KeySet, LoadBalancer, NetworkList, Policy
from apps.definitions.selectors import fleets_of
from apps.definitions.shapes.base.words import read_instant
from apps.definitions.shapes.base.writing import write
from apps.definitions.shapes.traffic.access import NetworkListSpec
from apps.definitions.shapes.traffic.policy import PolicySpec, Rules
from apps.definitions.writing.actions.key_sets import bring_forward
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.rules.passwords import stored_rules
from apps.definitions.writing.rules.quotas import expect_growth
from apps.fleet.models import Region
from apps.fleet.services import request_push


def store_policy(changes: ChangeSet, owner: Account, row: Policy, spec: PolicySpec) -> None:
    """The settings; a load balancer takes defaults of those alone to whom it belongs."""
    wanted = spec.default_for
    pointers = [f"/spec/default_for/load_balancers/{index}" for index in range(len(wanted.load_balancers))]
    fronts = [changes.named(LoadBalancer, *each) for each in zip(wanted.load_balancers, pointers, strict=True)]
    for front, pointer in zip(fronts, pointers, strict=True):
        if front and front.account_id != owner.pk:
            changes.add_error(
                pointer, "not_yours", f"Load balancer {front.name} belongs to another account; leave it out."
            )
    expect_named(changes, owner, spec.rules)
    follow_key_set(changes, owner, spec.rules)
    rules = stored_rules(changes, spec.rules, row.rules)
    changes.field_errors.raise_any()
    if row.pk is not None:
        changes.mark_affected(row)  # routes that it leaves lose it
    row.account, row.rules = owner, rules
    row.whole_account, row.hostnames = wanted.account, list(wanted.hostnames)
    row.save()
    row.load_balancers.set([front for front in fronts if front])
    changes.lookups.remember(row, "Policy", owner.name, row.name)
    changes.mark_affected(row)


def expect_named(changes: ChangeSet, owner: Account, rules: Rules | None) -> None:
    """Every list that the rules name is one of the owner's, and every region is there."""
    order = rules.overflow.order if rules and rules.overflow else None
    for index, name in enumerate(order or ()):
        changes.named(Region, name, f"/spec/rules/overflow/order/{index}")
    expect_lists(changes, owner, rules.access if rules else None, "/spec/rules/access")


def expect_lists(changes: ChangeSet, owner: Account, access: ConnectionAccess | None, pointer: str) -> None:
    """Every list of networks that the block names is one of the owner's."""
    for field, names in (("allow", access.allow), ("deny", access.deny)) if access else ():
        for index, name in enumerate(names or ()):
            changes.owned(NetworkList, owner, name, f"{pointer}/{field}/{index}")


def follow_key_set(changes: ChangeSet, owner: Account, rules: Rules | None) -> None:
    """The set of the URL that the rules name is fetched after the commit, as one of the owner's."""
    url = rules.jwt.jwks_url if rules and rules.jwt else None
    if url is None:
        return
    try:
        check_target(read_url(url))
    except Refused as refusal:
        changes.add_error("/spec/rules/jwt/jwks_url", "url", str(refusal))
        return
    expect_growth(changes, "KeySet", owner, "/spec/rules/jwt/jwks_url")
    moment = now()
    row, made = KeySet.objects.get_or_create(account=owner, url=url, defaults={"next_at": moment})
    if not made:
        bring_forward(row)
    changes.lookup(("key sets", owner.pk), lambda: changes.deferred.add(partial(_finish_key_sets, owner)))


def _finish_key_sets(owner: Account) -> None:
    """In the end, once for an account: forget those that nobody names any more, and wake a worker for the others."""
    enqueue_on_commit(FETCH_TASK)
    for row in KeySet.objects.filter(account=owner):
        if not any(rows.exists() for rows in followers(row)):
            row.delete()


def store_network_list(changes: ChangeSet, owner: Account, row: NetworkList, spec: NetworkListSpec) -> None:
    """The networks, and when the next of them leaves; or the countries, if the database has them."""
    _expect_countries(changes, spec.countries)
    row.account, row.entries = owner, write(NetworkListSpec, spec)["entries"]
    row.countries = list(spec.countries)
    row.next_expiry = _next_expiry((each.expires_at for each in spec.entries), now())
    row.save()
    changes.lookups.remember(row, "NetworkList", owner.name, row.name)
    changes.mark_affected(row)


def _expect_countries(changes: ChangeSet, wanted: Sequence[str]) -> None:
    known = set(Country.objects.filter(code__in=wanted).values_list("code", flat=True)) if wanted else set()
    sentence = "The database of countries has no {}; use the codes of ISO 3166."
    if not known and not Country.objects.exists():
        sentence = "Write networks instead of {}: the operator has given no database of countries (SPILLWAY_COUNTRIES)."
    for index, code in enumerate(wanted):
        if code not in known:
            changes.add_error(f"/spec/countries/{index}", "unknown_country", sentence.format(code))
    changes.field_errors.raise_any()


def _next_expiry(moments: Iterable[datetime | None], after: datetime) -> datetime | None:
    return min((each for each in moments if each and each > after), default=None)


def push_expired(moment: datetime) -> None:
    """Tell nodes of networks that have left their lists, once for each moment at which one does."""
    for pk in NetworkList.objects.filter(next_expiry__lte=moment).values_list("pk", flat=True):
        with transaction.atomic():
            row = NetworkList.objects.select_for_update(of=("self",)).filter(pk=pk, next_expiry__lte=moment).first()
            if row is not None:
                moments = [read_instant(each["expires_at"]) for each in row.entries if each.get("expires_at")]
                row.next_expiry = _next_expiry(moments, moment)
                row.save(update_fields=["next_expiry"])
                request_push(fleets_of(row))

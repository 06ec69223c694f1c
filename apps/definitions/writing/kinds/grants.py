"""Writes of grants: one row gives an account hostnames (with routes, certificate, load tests) or shared pools.

A hostname or a zone is not pulled from under what uses it: whoever takes it away first moves or deletes that. A shared
pool can be taken back from running routes, which then stop, once that was confirmed (rules/emptying.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db.models import Exists, QuerySet

from apps.accounts.hostnames import claims
from apps.accounts.models import Account, Grant, Hostname
from apps.accounts.rights import claims_under, grants_over, in_force
from apps.audit import services as audit
from apps.core.clock import now
from apps.core.errors import Conflict, Invalid
from apps.definitions.freezing.lost_pools import STATUS
from apps.definitions.models import Pool, Record, Route, RoutePool, Zone
from apps.definitions.shapes.base.words import as_texts
from apps.definitions.shapes.platform.topology import GrantSpec
from apps.definitions.sharing import grants_by_tag, lock_shared, tagged, tagged_zones, taken_back
from apps.definitions.writing.change_set import ChangeSet

SHOWN = 5


def store_grant(changes: ChangeSet, _owner: Account, row: Grant, spec: GrantSpec) -> None:
    """The grant; it verifies waiting claims that it covers, and uses that a former one allowed must stay allowed."""
    account = _grantee(changes, row, spec)
    if spec.hostname and account:
        _reject_taken(changes, row, account, spec.hostname)
    if changes.field_errors or account is None:
        raise Invalid(changes.field_errors.drain())
    if row.pk is not None:
        defer_loss(changes, row)
    mended = _stopped(RoutePool.objects.filter(route__account=account, pool__in=tagged(spec.tag))) if spec.tag else []
    row.account = account
    row.hostname, row.tag = spec.hostname or "", spec.tag or ""
    row.may_load_test, row.expires_at = spec.may_load_test, spec.expires_at
    row.save()
    _record_routes(changes, mended, "share_again")
    if row.hostname and (row.expires_at is None or row.expires_at > now()):
        _verify(changes, row)


def defer_loss(changes: ChangeSet, row: Grant) -> None:
    """In the end, what the grant gave until now must not be missing, but for pools that were taken back on purpose."""
    loss = Taken(changes.field_errors.pointer, f"{row.account.name}/{row.name}", f"grant {row.name}", row.tag)
    changes.deferred.add(partial(_reject_loss, changes, row.account, row.hostname, loss))


def _grantee(changes: ChangeSet, row: Grant, spec: GrantSpec) -> Account | None:
    name = spec.account
    account: Account | None = changes.lookup(("Account", name), lambda: Account.objects.filter(name=name).first())
    if account is None and ("Account", name) not in changes.field_errors.rejected:
        changes.add_error("/spec/account", "unknown", f"There is no account {name}.")
    elif account is not None and account.is_operator:
        changes.add_error("/spec/account", "operator", "Choose a customer's account; operators need no grant.")
    elif account is not None and row.pk is not None and row.account_id != account.pk:
        detail = f"A grant cannot move from {row.account.name}; create another one for {name}."
        changes.add_error("/spec/account", "account", detail)
    return account


def _reject_taken(changes: ChangeSet, row: Grant, account: Account, name: str) -> None:
    claims.lock_hostnames([name])
    claim = Hostname.objects.filter(name=name, released_at=None).exclude(verification="").select_related("account")
    taken = claim.exclude(account=account).exclude(account__kind=Account.Kind.OPERATOR).first()
    if taken:
        detail = f"{name} belongs to {taken.account.name}, who must release it first."
        changes.add_error("/spec/hostname", "hostname_taken", detail)
    others = Grant.objects.filter(in_force(), hostname=name).exclude(account=account).exclude(pk=row.pk)
    if other := others.first():
        changes.add_error("/spec/hostname", "granted", f"Grant {other.name} already gives {name} to another account.")


def _verify(changes: ChangeSet, grant: Grant) -> None:
    waiting = claims_under(grant.account, grant.hostname).filter(verification="", released_at=None)
    for row in waiting.order_by("id"):
        for claim in claims.verify_hostname(row, Hostname.Verification.GRANT):
            changes.affected.add_hostname(claim)
            record_claim(changes, claim, "verify")


@dataclass(frozen=True, slots=True)
class Taken:
    """What may take pools back: where it stands in what was sent, what confirms it, its title, the tag that is gone."""

    pointer: str
    name: str
    title: str
    tag: str


def _reject_loss(changes: ChangeSet, account: Account, hostname: str, loss: Taken) -> None:
    """In the end: Conflict where the account needs what the grant gave and no other grant gives.

    Routes to pools stop. Names that only the grant verified, and that no route uses, wait for verification again.
    """
    if loss.tag:
        lock_shared([account.name])
        reject_users(records_by_tag(account, loss.tag), f"it shares zones by {loss.tag}")
        _stop_routes(changes, loss, RoutePool.objects.filter(route__account=account, pool__in=tagged(loss.tag)))
    elif hostname:
        claims.lock_hostnames([hostname])
        lost = _only_granted(account, hostname)
        reject_users(Route.objects.filter(hostname__in=lost), f"it verifies {hostname}")
        for row in Hostname.objects.filter(pk__in=lost):
            claims.wait_again(row)
            record_claim(changes, row, "lose_verification")


def _stop_routes(changes: ChangeSet, loss: Taken, uses: QuerySet[RoutePool]) -> None:
    """Routes of these uses whose pool is shared no more: they stop, which has to be confirmed."""
    stopped = _stopped(uses)
    if not stopped:
        return
    names = [f"{route.account.name}/{route.name}" for route in stopped]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    accounts = len({route.account_id for route in stopped})
    sentence = (
        f"Without {loss.title}, {_count(len(names), 'route')} of {_count(accounts, 'account')} would lose a shared "
        f"pool, and respond with {STATUS} where it is the only one: {', '.join(names[:SHOWN])}{more}."
    )
    changes.deferred.stopped.append((loss.pointer, loss.name, sentence))
    _record_routes(changes, stopped, "take_back")


def _stopped(uses: QuerySet[RoutePool]) -> list[Route]:
    """Routes that use pools which nobody shares with their account any more."""
    routes = Route.objects.filter(pk__in=taken_back(uses).values("route")).select_related("account")
    return list(routes.order_by("account__name", "name"))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _record_routes(changes: ChangeSet, routes: Iterable[Route], action: str) -> None:
    """Push what the routes do from now on, and tell their owners in the audit log."""
    for route in routes:
        changes.affected.add_load_balancer(route.load_balancer_id)
        audit.record(
            actor=changes.actor,
            action=action,
            kind="Route",
            object_id=route.pk,
            label=route.name,
            account=route.account,
            version=route.version,
            reason=changes.reason,
        )


def records_by_tag(account: Account, tag: str) -> QuerySet[Record]:
    """Records of the account in zones that carry the tag, and that no present grant shares with it by another."""
    zones = tagged_zones(tag).exclude(Exists(grants_by_tag(account)))
    return Record.objects.filter(account=account, zone__in=zones.values("pk"))


def reject_lost_tags(changes: ChangeSet, row: Pool | Zone, before: dict[str, str], pointer: str) -> None:
    """In the end: routes stop that use a pool by a tag which it does not carry any more; a zone is refused then."""
    gone, left = set(as_texts(before)) - set(as_texts(row.tags)), as_texts(row.tags)
    by_gone = Grant.objects.filter(tag__in=gone).values("account")
    by_left = Grant.objects.filter(tag__in=left).values("account")
    lock_shared(Account.objects.filter(pk__in=by_gone).values_list("name", flat=True))
    tags = ", ".join(sorted(gone))
    if isinstance(row, Pool):
        name = f"{row.account.name}/{row.name}"
        loss = Taken(pointer, name, f"tag {tags} of pool {name}", tags)
        _stop_routes(changes, loss, RoutePool.objects.filter(pool=row, route__account__in=by_gone))
        return
    users = Record.objects.filter(zone=row, account__in=by_gone).exclude(account__in=by_left)
    reject_users(users, f"{tags} shares the zone with them")


def note_shared_again(changes: ChangeSet, row: Pool) -> None:
    """In the end: tell the owners of routes that had lost the pool until now, and have it again by a tag of it."""
    uses = RoutePool.objects.filter(pool=row)
    before = _stopped(uses)

    def tell() -> None:
        still = {route.pk for route in _stopped(uses)}
        _record_routes(changes, [route for route in before if route.pk not in still], "share_again")

    if before:
        changes.deferred.add(tell)


def reject_users(users: QuerySet[Any], why: str) -> None:
    """Raise Conflict with the names of the first routes or records, if there are any; `why` says what binds them."""
    word = users.model._meta.model_name
    names = list(users.order_by("account__name", "name").values_list("account__name", "name")[: SHOWN + 1])
    if names:
        shown = ", ".join(f"{account}/{name}" for account, name in names[:SHOWN])
        more = " and others" if len(names) > SHOWN else ""
        raise Conflict(f"In use by {word} {shown}{more}: {why}. Change or delete these {word}s first.")


def _only_granted(account: Account, hostname: str) -> list[int]:
    """Names that were verified by such a grant and that no present grant covers."""
    rows = claims_under(account, hostname).filter(verification=Hostname.Verification.GRANT, released_at=None)
    return [row.pk for row in rows if not grants_over(account, row.name).exists()]


def record_claim(changes: ChangeSet, claim: Hostname, action: str) -> None:
    """The entry of a hostname in the audit log."""
    audit.record(
        actor=changes.actor,
        action=action,
        kind="Hostname",
        object_id=claim.pk,
        label=claim.name,
        account=claim.account,
        after={"name": claim.name, "verification": claim.verification, "released": claim.released_at is not None},
        version=claim.version,
        reason=changes.reason,
    )

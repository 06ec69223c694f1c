"""Writes of grants: one row gives an account hostnames (with routes, certificate, load tests) or shared pools.

What a grant gave is not pulled from under running routes: whoever takes it away first moves or deletes those routes.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db.models import Exists, QuerySet

from apps.accounts.hostnames import claims
from apps.accounts.models import Account, Grant, Hostname
from apps.accounts.rights import claims_under, grants_over, in_force
from apps.audit import services as audit
from apps.core.clock import now
from apps.core.errors import Conflict, Invalid
from apps.definitions.models import Pool, Record, Route, Zone
from apps.definitions.shapes.base.words import as_texts
from apps.definitions.shapes.platform.topology import GrantSpec
from apps.definitions.sharing import grants_by_tag, lock_shared, tagged, tagged_zones
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
    row.account = account
    row.hostname, row.tag = spec.hostname or "", spec.tag or ""
    row.may_load_test, row.expires_at = spec.may_load_test, spec.expires_at
    row.save()
    if row.hostname and (row.expires_at is None or row.expires_at > now()):
        _verify(changes, row)


def defer_loss(changes: ChangeSet, row: Grant) -> None:
    """In the end, what the grant gave until now must not be missing."""
    changes.deferred.add(partial(_reject_loss, changes, row.account, row.hostname, row.tag))


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


def _reject_loss(changes: ChangeSet, account: Account, hostname: str, tag: str) -> None:
    """In the end: Conflict where routes of the account need what the grant gave and no other grant gives.

    Names that only the grant verified, and that no route uses, wait for verification again.
    """
    if tag:
        lock_shared([account.name])
        reject_users(routes_by_tag(account, tag), f"it shares pools by {tag}")
        reject_users(records_by_tag(account, tag), f"it shares zones by {tag}")
    elif hostname:
        claims.lock_hostnames([hostname])
        lost = _only_granted(account, hostname)
        reject_users(Route.objects.filter(hostname__in=lost), f"it verifies {hostname}")
        for row in Hostname.objects.filter(pk__in=lost):
            row.verification, row.verified_at, row.version = Hostname.Verification.NONE, None, row.version + 1
            row.save(update_fields=("verification", "verified_at", "version"))
            record_claim(changes, row, "lose_verification")


def routes_by_tag(account: Account, tag: str) -> QuerySet[Route]:
    """Routes of the account to pools that carry the tag, and that no present grant shares with it by another."""
    pools = tagged(tag).exclude(Exists(grants_by_tag(account)))
    return Route.objects.filter(account=account, pools__pool__in=pools.values("pk")).distinct()


def records_by_tag(account: Account, tag: str) -> QuerySet[Record]:
    """Records of the account in zones that carry the tag, and that no present grant shares with it by another."""
    zones = tagged_zones(tag).exclude(Exists(grants_by_tag(account)))
    return Record.objects.filter(account=account, zone__in=zones.values("pk"))


def reject_lost_tags(row: Pool | Zone, before: dict[str, str]) -> None:
    """In the end: Conflict where others use the pool or zone by a tag that it does not carry any more."""
    gone, left = set(as_texts(before)) - set(as_texts(row.tags)), as_texts(row.tags)
    by_gone = Grant.objects.filter(tag__in=gone).values("account")
    by_left = Grant.objects.filter(tag__in=left).values("account")
    lock_shared(Account.objects.filter(pk__in=by_gone).values_list("name", flat=True))
    why = f"{', '.join(sorted(gone))} shares the {'pool' if isinstance(row, Pool) else 'zone'} with them"
    users: QuerySet[Any] = (
        Route.objects.filter(pools__pool=row) if isinstance(row, Pool) else Record.objects.filter(zone=row)
    )
    reject_users(users.filter(account__in=by_gone).exclude(account__in=by_left).distinct(), why)


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

"""Writes of hostnames: claimed, verified, released; routes go live once their name is verified.

Asking name servers takes seconds, so it happens outside of transactions; what was found is stored by the version of
the claim that was asked about.
"""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Coalesce

from apps.accounts.actors import Actor, platform_actor
from apps.accounts.hostnames import claims, verification
from apps.accounts.models import Hostname
from apps.compiler import grammar
from apps.compiler.matching import names
from apps.core.clock import now
from apps.core.concurrency.fairness import Owners, Seats, in_turns
from apps.core.errors import Conflict, FieldError, Invalid
from apps.core.events import publish_after_commit
from apps.core.queue import enqueue
from apps.definitions import selectors
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.kinds.grants import record_claim
from apps.definitions.writing.rules.quotas import expect_growth
from apps.definitions.writing.rules.usage import users_of
from apps.definitions.writing.transactions import change_set
from apps.members.reading import check_version

NOUN = "hostnames"
CHECK_TASK = "apps.definitions.tasks.check_hostname"
# A claim is looked at again after half of its age, at least and at most after these; a verified one once a day.
SOONEST, LATEST, DAILY = timedelta(minutes=1), timedelta(hours=6), timedelta(days=1)
PATIENCE = timedelta(days=14)
SINCE = Coalesce("waits_since", "created_at")
BETWEEN_ORDERS = timedelta(seconds=5)
SEATS: Seats[int] = Seats()
_looked_at: set[int] = set()  # by this process; two processes that look at one claim do no harm
KEPT = (
    "Another account has also verified this hostname, a wildcard that covers it, or "
    "a name below it. One of them must be released first."
)
VERIFIED_BY_LOOKING = (Hostname.Verification.DNS, Hostname.Verification.HTTP)


def claim(*, actor: Actor, name: object, account: str | None = None, reason: str = "") -> Hostname:
    """Claim a name for the actor's account (operators: for any); verified at once where an operator says so.

    Raises Invalid for what is no canonical host name, and to operators for a name that somebody else has verified.
    """
    actor.may_write(NOUN)
    try:
        canonical = names.hostname_of_claim(name)
    except grammar.GrammarError as error:
        raise Invalid([FieldError("/name", error.code, error.message)]) from error
    with change_set(actor, reason=reason) as changes:
        owner = changes.account(account)
        known = Hostname.objects.filter(name=canonical, account=owner).first()
        method = Hostname.Verification.OPERATOR if actor.is_operator else Hostname.Verification.NONE
        expect_growth(changes, "Hostname", owner)
        try:
            row = claims.claim_hostname(account=owner, name=canonical, verification=method)
        except claims.HostnameTaken as error:
            raise Invalid([FieldError("/name", error.code, str(error))]) from error
        Hostname.objects.filter(pk=row.pk).update(explicit=True)
        if known is None or known.released_at is not None:
            record_claim(changes, row, "claim")
        if row.verification and (known is None or not known.verification):
            changes.affected.add_hostname(row)
        _tell()
    row.refresh_from_db()
    return row


def plan_claim(*, actor: Actor, name: object, account: str | None = None) -> dict[str, object]:
    """What `claim` would do in this moment: done in a transaction that is then rolled back."""
    with transaction.atomic():
        row = claim(actor=actor, name=name, account=account)
        transaction.set_rollback(True)
    return {"stored": False, "name": row.name, "account": row.account.name, "verification": row.verification or None}


def release(*, actor: Actor, hostname_id: int, expected_version: int | None = None, reason: str = "") -> Hostname:
    """Give a name up: after its cooldown anybody may claim it, at once where it was not verified.

    Raises Conflict while routes use it.
    """
    actor.may_write(NOUN)
    with change_set(actor, reason=reason) as changes:
        row = _locked(actor, hostname_id, expected_version)
        if users := users_of(actor, row):
            raise Conflict(f"{row.name} is in use by {', '.join(users)}; delete them first.")
        if row.released_at is None:
            row.released_at = now()
            _save(row, "released_at")
            record_claim(changes, row, "release")
            if not row.verification:
                Hostname.objects.filter(pk=row.pk).delete()
        _tell()
    return row


def end_cooldown(*, actor: Actor, hostname_id: int, reason: str = "") -> None:
    """Let others have a released name at once, by an operator's word. Raises Conflict for one that is not released."""
    actor.must_operate("the cooldown of released hostnames")
    with change_set(actor, reason=reason) as changes:
        row = _locked(actor, hostname_id, None)
        if row.released_at is None:
            raise Conflict(f"{row.name} is not released.")
        record_claim(changes, row, "end_cooldown")
        row.delete()
        _tell()


def verify(*, actor: Actor, hostname_id: int, reason: str) -> Hostname:
    """An operator's word that the name is the account's. Raises Invalid without a reason."""
    actor.must_operate("manual verification of hostnames")
    if not reason.strip():
        raise Invalid([FieldError("/reason", "missing", "Explain how you know that the account owns the hostname.")])
    with change_set(actor, reason=reason) as changes:
        row = _locked(actor, hostname_id, None)
        if not _verified(changes, row, Hostname.Verification.OPERATOR):
            raise Conflict(KEPT)
    row.refresh_from_db()
    return row


def check(*, actor: Actor, hostname_id: int) -> Hostname:
    """Look for the challenge now; returns what was found. A name is checked every five seconds at most."""
    actor.may_write(NOUN)
    row = selectors.only(selectors.hostnames(actor), hostname_id)
    if row.released_at is None and (row.checked_at is None or now() - row.checked_at >= BETWEEN_ORDERS):
        _look(actor, row)
        row.refresh_from_db()
    return row


def check_in_turns() -> int:
    """Look at the claims that are due, account by account, as long as there are seats; the number of claims."""

    def choose(accounts: Owners, done: frozenset[int]) -> tuple[Hashable, int] | None:
        found = [row for row in _due(now(), accounts) if row.pk not in done and row.pk not in _looked_at]
        if not found:
            return None
        _looked_at.add(found[0].pk)
        return found[0].account_id, found[0].pk

    def look(hostname_id: int) -> None:
        try:
            check_by_sweep(hostname_id=hostname_id)
        finally:
            _looked_at.discard(hostname_id)

    return in_turns(SEATS, choose, look)


def check_by_sweep(*, hostname_id: int) -> None:
    """Look at one claim in its turn; a claim that is gone or released meanwhile is passed over."""
    row = Hostname.objects.filter(pk=hostname_id, released_at=None).select_related("account").first()
    if row is not None:
        _look(platform_actor(), row)


def _look(actor: Actor, row: Hostname) -> None:
    found = verification.look(row)
    with change_set(actor, reason=found.message) as changes:
        claims.lock_hostnames([row.name])
        fresh = Hostname.objects.select_for_update().filter(pk=row.pk, challenge=row.challenge).first()
        if fresh is None or fresh.released_at is not None:
            return
        changed = fresh.last_check_message != found.message
        Hostname.objects.filter(pk=row.pk).update(checked_at=now(), last_check_message=found.message[:400])
        if found.verification and not fresh.verification:
            if not _verified(changes, fresh, found.verification):
                Hostname.objects.filter(pk=row.pk).update(last_check_message=KEPT)
        elif changed:
            _tell()


def _verified(changes: ChangeSet, row: Hostname, method: str) -> bool:
    """Whether the claim itself is verified now: it is not while another account has a verified one over or under it."""
    found = claims.verify_hostname(row, method)
    for each in found:
        changes.affected.add_hostname(each)
        record_claim(changes, each, "verify")
    _tell()
    return bool(row.verification)


def due(moment: datetime) -> list[int]:
    """Ids of the claims to look at now, those that wait longest first; two hundred at most."""
    return [row.pk for row in _due(moment)]


def _due(moment: datetime, but_of: Owners = frozenset()) -> list[Hostname]:
    rows = Hostname.objects.filter(released_at=None).exclude(account__in=but_of)
    asked = Q(checked_at=None) | Q(checked_at__lte=moment - SOONEST)
    waiting = rows.alias(since=SINCE).filter(asked, verification="", since__gt=moment - PATIENCE)
    verified = rows.filter(Q(checked_at=None) | Q(checked_at__lte=moment - DAILY), verification__in=VERIFIED_BY_LOOKING)
    found = [row for row in waiting.order_by("checked_at", "id")[:2000] if _is_due(row, moment)]
    return [*found, *verified.order_by("checked_at", "id")[:200]][:200]


def _is_due(row: Hostname, moment: datetime) -> bool:
    if row.checked_at is None:
        return True
    since = row.waits_since or row.created_at
    return moment - row.checked_at >= min(max((row.checked_at - since) / 2, SOONEST), LATEST)


def sweep(moment: datetime) -> None:
    """Wake a worker for each claim that is due; forget claims that nobody verified in two weeks and nobody routes."""
    for hostname_id in due(moment):
        enqueue(CHECK_TASK, hostname_id)
    unused = Hostname.objects.filter(verification="", routes__isnull=True)
    unused.alias(since=SINCE).filter(since__lte=moment - PATIENCE).delete()


def _locked(actor: Actor, hostname_id: int, expected_version: int | None) -> Hostname:
    """The row, held until commit. Raises NotFound, Stale."""
    row = selectors.only(selectors.hostnames(actor), hostname_id)
    claims.lock_hostnames([row.name])
    row = selectors.only(selectors.hostnames(actor).select_for_update(of=("self",)), hostname_id)
    check_version(row.version, expected_version, row.name)
    return row


def _save(row: Hostname, *fields: str) -> None:
    row.version += 1
    row.save(update_fields=(*fields, "version"))


def _tell() -> None:
    publish_after_commit("definitions")

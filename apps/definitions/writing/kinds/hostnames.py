"""DEFINE, writes of hostnames: claimed, proved, released; a proof makes the routes that waited for it live.

Asking name servers takes seconds, so it happens outside of transactions; what was found is stored by the version of
the claim that was asked about.
"""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from apps.accounts.actors import Actor, platform_actor
from apps.accounts.hostnames import claims, verification
from apps.accounts.models import Hostname
from apps.audit import services as audit
from apps.compiler import grammar
from apps.core.clock import now
from apps.core.concurrency.fairness import Owners, Seats, in_turns
from apps.core.errors import Conflict, Fault, Invalid, Stale
from apps.core.events import publish_after_commit
from apps.core.queue import wake
from apps.definitions import selectors
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.rules.quotas import expect_growth
from apps.definitions.writing.transactions import change_set

NOUN = "hostnames"
CHECK_TASK = "apps.definitions.tasks.check_hostname"
# A claim is looked at again after half of its age, at least and at most after these; a proved one once a day.
SOONEST, LATEST, DAILY = timedelta(minutes=1), timedelta(hours=6), timedelta(days=1)
PATIENCE = timedelta(days=14)
BETWEEN_ORDERS = timedelta(seconds=5)
SEATS: Seats[int] = Seats()
_looked_at: set[int] = set()  # by this process; two processes that look at one claim do no harm
KEPT = (
    "Another account has also verified this hostname, a wildcard that covers it, or "
    "a name below it. One of them must be released first."
)
PROVED_BY_LOOKING = (Hostname.Proof.DNS, Hostname.Proof.HTTP)


def claim(*, actor: Actor, name: object, account: str | None = None, reason: str = "") -> Hostname:
    """Claim a name for the actor's account (operators: for any); proved at once where an operator says so.

    Raises Invalid for what is no canonical host name, and to operators for a name that somebody else has verified.
    """
    actor.may_write(NOUN)
    try:
        canonical = grammar.hostname(name)
    except grammar.GrammarError as error:
        raise Invalid([Fault("/name", error.code, error.message)]) from error
    with change_set(actor, reason=reason) as changes:
        owner = changes.account(account)
        known = Hostname.objects.filter(name=canonical, account=owner).first()
        proof = Hostname.Proof.OPERATOR if actor.is_operator else Hostname.Proof.NONE
        expect_growth(changes, "Hostname", owner)
        try:
            row = claims.claim_hostname(account=owner, name=canonical, proof=proof)
        except claims.HostnameTaken as error:
            raise Invalid([Fault("/name", error.code, str(error))]) from error
        Hostname.objects.filter(pk=row.pk).update(explicit=True)
        if known is None or known.released_at is not None:
            _record(changes, row, "claim")
        if row.proof and (known is None or not known.proof):
            changes.affected.add_hostname(row)
        _tell()
    row.refresh_from_db()
    return row


def plan_claim(*, actor: Actor, name: object, account: str | None = None) -> dict[str, object]:
    """What `claim` would do in this moment: done in a transaction that is then rolled back."""
    with transaction.atomic():
        row = claim(actor=actor, name=name, account=account)
        found = {"stored": False, "name": row.name, "account": row.account.name, "proof": row.proof or None}
        transaction.set_rollback(True)
    return found


def release(*, actor: Actor, hostname_id: int, expected_version: int | None = None, reason: str = "") -> Hostname:
    """Give a name up: it rests, then anybody may claim it; at once where nobody verified it.

    Raises Conflict while routes use it.
    """
    actor.may_write(NOUN)
    with change_set(actor, reason=reason) as changes:
        row = _locked(actor, hostname_id, expected_version)
        if routes := row.routes.count():
            raise Conflict(f"{row.name} is in use by {routes} route{'' if routes == 1 else 's'}; delete them first.")
        if row.released_at is None:
            row.released_at = now()
            _save(row, "released_at")
            _record(changes, row, "release")
            if not row.proof:
                Hostname.objects.filter(pk=row.pk).delete()
        _tell()
    return row


def end_rest(*, actor: Actor, hostname_id: int, reason: str = "") -> None:
    """Let others have a released name at once, by an operator's word. Raises Conflict for one that is not released."""
    actor.must_operate("the cooldown of released hostnames")
    with change_set(actor, reason=reason) as changes:
        row = _locked(actor, hostname_id, None)
        if row.released_at is None:
            raise Conflict(f"{row.name} is not released.")
        _record(changes, row, "end_rest")
        row.delete()
        _tell()


def prove(*, actor: Actor, hostname_id: int, reason: str) -> Hostname:
    """An operator's word that the name is the account's. Raises Invalid without a reason."""
    actor.must_operate("manual verification of hostnames")
    if not reason.strip():
        raise Invalid([Fault("/reason", "missing", "Explain how you know that the account owns the hostname.")])
    with change_set(actor, reason=reason) as changes:
        row = _locked(actor, hostname_id, None)
        if not _proved(changes, row, Hostname.Proof.OPERATOR):
            raise Conflict(KEPT)
    row.refresh_from_db()
    return row


def check(*, actor: Actor, hostname_id: int) -> Hostname:
    """Look for the proof now; answers with what was found. A name is looked at once in five seconds at most."""
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
        if found.proof and not fresh.proof:
            if not _proved(changes, fresh, found.proof):
                Hostname.objects.filter(pk=row.pk).update(last_check_message=KEPT)
        elif changed:
            _tell()


def _proved(changes: ChangeSet, row: Hostname, proof: str) -> bool:
    """Whether the claim itself is proved now: it is not while another account has a verified one over or under it."""
    found = claims.prove_hostname(row, proof)
    for each in found:
        changes.affected.add_hostname(each)
        _record(changes, each, "prove")
    _tell()
    return bool(row.proof)


def due(moment: datetime) -> list[int]:
    """Ids of the claims to look at now, those that wait longest first; two hundred at most."""
    return [row.pk for row in _due(moment)]


def _due(moment: datetime, but_of: Owners = frozenset()) -> list[Hostname]:
    rows = Hostname.objects.filter(released_at=None).exclude(account__in=but_of)
    asked = Q(checked_at=None) | Q(checked_at__lte=moment - SOONEST)
    waiting = rows.filter(asked, proof="", created_at__gt=moment - PATIENCE).order_by("checked_at", "id")
    proved = rows.filter(Q(checked_at=None) | Q(checked_at__lte=moment - DAILY), proof__in=PROVED_BY_LOOKING)
    found = [row for row in waiting[:2000] if _is_due(row, moment)]
    return [*found, *proved.order_by("checked_at", "id")[:200]][:200]


def _is_due(row: Hostname, moment: datetime) -> bool:
    if row.checked_at is None:
        return True
    return moment - row.checked_at >= min(max((row.checked_at - row.created_at) / 2, SOONEST), LATEST)


def sweep(moment: datetime) -> None:
    """Wake a worker for each claim that is due, and forget claims that nobody proved in two weeks and nobody routes."""
    for hostname_id in due(moment):
        wake(CHECK_TASK, hostname_id)
    Hostname.objects.filter(proof="", routes__isnull=True, created_at__lte=moment - PATIENCE).delete()


def _locked(actor: Actor, hostname_id: int, expected_version: int | None) -> Hostname:
    """The row, held until commit. Raises NotFound, Stale."""
    row = selectors.only(selectors.hostnames(actor), hostname_id)
    claims.lock_hostnames([row.name])
    row = selectors.only(selectors.hostnames(actor).select_for_update(of=("self",)), hostname_id)
    if expected_version is not None and row.version != expected_version:
        raise Stale(f"{row.name} has changed since you read it; read it again and decide again.")
    return row


def _save(row: Hostname, *fields: str) -> None:
    row.version += 1
    row.save(update_fields=(*fields, "version"))


def _record(changes: ChangeSet, row: Hostname, action: str) -> None:
    audit.record(
        actor=changes.actor,
        action=action,
        kind="Hostname",
        object_id=row.pk,
        label=row.name,
        account=row.account,
        after={"name": row.name, "proof": row.proof, "released": row.released_at is not None},
        version=row.version,
        reason=changes.reason,
    )


def _tell() -> None:
    publish_after_commit("definitions")

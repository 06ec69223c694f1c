"""Keeps automatic certificates fresh, each by the one row of its order (`CertificateOrder`), step by step.

1. The sweep wakes a worker where an order is due; accounts take turns. A worker claims the row with a lease.
2. waiting: the hostnames are verified and can be proved, an authority is chosen. The order is made there; in one
   transaction its URL, the new private key and the challenges are stored, and fleets and zones are asked to answer.
3. answering: once every node and resolver gives the answers, the authority is asked to look.
4. validating: the authority looks. It found them: the certificate is asked for. It did not: the order has failed.
5. finalizing: the chain is fetched, checked as one that somebody brings, and stored in one transaction with the end of
   the order, the push of the certificate and its audit entry.
6. Each step is stored before the next one begins, under the lease's fence. A worker that dies is missed when its lease
   ends; the next one goes on from the stored step, and what it says to the authority again changes nothing there.

An order that failed rests, longer each time, and the next authority is asked after two failures. Meanwhile the
certificate keeps the chain that it has.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Hashable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q

from apps.accounts.actors import platform_actor
from apps.audit import services as audit
from apps.core.clock import database_now, now
from apps.core.concurrency import leases
from apps.core.concurrency.fairness import Owners, in_turns
from apps.core.concurrency.leases import Lease, LeaseLost
from apps.core.events import publish_after_commit
from apps.core.queue import enqueue
from apps.core.secrets.sealing import seal, unseal
from apps.definitions.affected_targets import stacks_of
from apps.definitions.issuing.orders import DNS, HTTP, ISSUE_TASK
from apps.definitions.issuing.storing import put_chain
from apps.definitions.models import Certificate, CertificateAuthority, CertificateOrder, Zone
from apps.definitions.selectors import fleets_of
from apps.definitions.services import request_zone_push
from apps.definitions.values.certificates import read_certificate
from apps.definitions.writing.kinds.hostnames import SEATS
from apps.fleet.models import Fleet
from apps.fleet.services import request_push, request_stack_push
from apps.issuing import asking, deciding, proving
from apps.issuing.asking import Conversation, Refusal

logger = logging.getLogger(__name__)
State = CertificateOrder.State

LEASE = timedelta(minutes=2)
WAKE_EXPIRES_S = 10.0
# How long a worker stays with one order, how often it looks meanwhile, and from when on it leaves it to a later turn.
STAY_S, LOOK_S = 15.0, 0.5
# An order that comes to no end is given up; authorities forget theirs after a day or a week.
LONGEST_ORDER = timedelta(minutes=30)
LOOK_AGAIN = timedelta(seconds=2)
UNREADY_PAUSE = timedelta(minutes=5)
PASSING = timedelta(seconds=5)
LONGEST_BETWEEN_QUESTIONS = timedelta(hours=12)


def sweep(moment: datetime) -> None:
    """Wake a worker where an order is due."""
    if _due(moment).exists():
        enqueue(ISSUE_TASK, expires_s=WAKE_EXPIRES_S)


def issue_in_turns() -> int:
    """Bring forward what is due, account by account, as long as there are seats; the number of orders."""

    def choose(accounts: Owners, done: frozenset[int]) -> tuple[Hashable, int] | None:
        due = _due(database_now()).exclude(certificate__account__in=accounts).exclude(pk__in=done)
        found: tuple[Hashable, int] | None = (
            due.order_by("next_at", "pk").values_list("certificate__account", "pk").first()
        )
        return found

    return in_turns(SEATS, choose, lambda pk: advance(order_id=pk))


def _due(moment: datetime) -> Any:
    free = Q(claimed_until=None) | Q(claimed_until__lt=database_now())
    return CertificateOrder.objects.filter(free, next_at__lte=moment)


def advance(*, order_id: int) -> None:
    """Bring one order as far as it goes in one turn; one that somebody else has, or that is gone, is passed over."""
    if not CertificateOrder.objects.filter(pk=order_id).exists():
        return
    lease = None
    with suppress(IntegrityError):  # deleted meanwhile
        lease = leases.take(CertificateOrder, LEASE, pk=order_id)
    if lease is None:
        return
    ends = time.monotonic() + STAY_S
    try:
        while True:
            lease.renew()
            _step(lease)
            left = _until_next(order_id)
            if left is None or left > ends - time.monotonic():
                return
            time.sleep(max(left, 0.0))
    except LeaseLost as lost:
        logger.warning("%s; somebody else goes on", lost)
    finally:
        lease.release()


def _until_next(order_id: int) -> float | None:
    """Seconds until the order is due again; None where it is gone or has no order under way."""
    row = CertificateOrder.objects.filter(pk=order_id).only("next_at", "state").first()
    return None if row is None or row.state == State.WAITING else (row.next_at - now()).total_seconds()


def _step(lease: Lease[CertificateOrder]) -> None:
    rows = CertificateOrder.objects.select_related("certificate__account", "authority")
    order = rows.filter(pk=lease.pk).first()
    if order is None:
        raise LeaseLost("the order is gone")
    wanted = sorted((order.certificate.automatic or {}).get("hostnames", ()))
    if order.state != State.WAITING and (order.authority is None or order.hostnames != wanted):
        _leave(lease, next_at=now())
        return
    try:
        if order.state == State.WAITING:
            _begin(lease, order, wanted)
        elif order.began_at is None or now() - order.began_at > LONGEST_ORDER:
            raise Refusal(f"The order was given up after {LONGEST_ORDER.seconds // 60} minutes. {_what_lacks(order)}")
        else:
            _STEPS[State(order.state)](lease, order, _conversation(order))
    except Refusal as refusal:
        _note(lease, order, refusal)


def _begin(lease: Lease[CertificateOrder], order: CertificateOrder, wanted: list[str]) -> None:
    """Order, if it is time for it."""
    certificate, moment = order.certificate, now()
    if not _is_due(lease, order, wanted, moment):
        return
    if names := proving.unverified(certificate.account, wanted):
        some = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        _wait(lease, f"Verify {some} first: only the owner of a hostname gets a certificate for it.")
        return
    try:
        ways = proving.ways_of(certificate.account, wanted)
    except proving.NotProvable as reason:
        _wait(lease, str(reason))
        return
    whom = CertificateAuthority.objects.order_by("position", "pk")
    authorities = list(whom if certificate.account.is_operator else whom.filter(for_customers=True))
    authority = deciding.chosen(authorities, order.failures, moment)
    if authority is None:
        wake = deciding.soonest_wake(authorities)
        words = "Every certificate authority asked us to wait." if wake else "There is no certificate authority to ask."
        _wait(lease, words, until=wake)
        return
    CertificateOrder.objects.filter(pk=order.pk, attempt=lease.attempt).update(authority=authority)
    order.authority = authority
    conversation, key = _conversation(order), asking.new_key()
    found, authorizations = conversation.order(wanted, key)
    challenges = [_challenge(each, ways) for each in authorizations if each.status == asking.PENDING]
    with transaction.atomic():
        row = lease.lock()
        row.state, row.authority, row.hostnames, row.order_url = State.ANSWERING, authority, wanted, found.url
        row.sealed_key, row.challenges = seal(key), challenges
        row.began_at, row.next_at, row.error = moment, moment, ""
        row.pushes = _push_challenges(ways, challenges)
        row.save()
        publish_after_commit("definitions")


def _challenge(each: asking.Authorization, ways: dict[str, proving.Way]) -> dict[str, Any]:
    """What is answered for an authorization. Raises Refusal where the authority offers another way only."""
    way = ways.get(f"*.{each.hostname}" if each.wildcard else each.hostname)
    if way is None:
        raise Refusal(f"The authority asks to prove {each.hostname}, which was not ordered.")
    offered = {one.kind: one for one in each.challenges}
    if way.kind not in offered:
        raise Refusal(f"The authority does not offer {way.kind} for {each.hostname}.")
    chosen = offered[way.kind]
    said = {"hostname": each.hostname, "kind": way.kind, "token": chosen.token, "answer": chosen.answer}
    said |= {"url": chosen.url, "authorization": each.url}
    return said | ({"zone": way.zone, "name": way.name} if way.kind == DNS else {})


def _push_challenges(ways: dict[str, proving.Way], challenges: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Let fleets and zones answer from the end of this transaction on; which generation of each has the answers."""
    answered = {each["hostname"] for each in challenges if each["kind"] == HTTP}
    fleets = {key for name, way in ways.items() if name in answered for key in way.fleets}
    zones = {each["zone"] for each in challenges if each["kind"] == DNS}
    request_push(Fleet.objects.filter(pk__in=fleets))
    request_zone_push(Zone.objects.filter(pk__in=zones))
    wanted = {
        "fleets": dict(Fleet.objects.filter(pk__in=fleets).values_list("pk", "desired_generation")),
        "zones": dict(Zone.objects.filter(pk__in=zones).values_list("pk", "desired_generation")),
    }
    return {kind: {str(key): number for key, number in found.items()} for kind, found in wanted.items()}


def _is_due(lease: Lease[CertificateOrder], order: CertificateOrder, wanted: list[str], moment: datetime) -> bool:
    """Whether it is time; else when it is asked again is noted. An authority may bring the renewal forward."""
    certificate = order.certificate
    if order.issued_at is None or order.renew_at is None or order.hostnames != wanted or order.failures:
        return True
    if order.renew_at <= moment:
        return True
    renew_at, again = _suggested(order, certificate)
    renew_at = min(order.renew_at, renew_at or order.renew_at)
    with transaction.atomic():
        row = lease.lock()
        row.renew_at, row.next_at = renew_at, min(renew_at, again)
        row.save(update_fields=("renew_at", "next_at"))
    return renew_at <= moment


def _suggested(order: CertificateOrder, certificate: Certificate) -> tuple[datetime | None, datetime]:
    """What the authority that issued it suggests, and when to ask again; whatever fails there changes nothing."""
    later = now() + LONGEST_BETWEEN_QUESTIONS
    if order.authority is None:
        return None, later
    try:
        at, again = _conversation(order).suggested_renewal(certificate.chain_pem)
    except Refusal:
        return None, later
    return at, max(min(again, later), now() + timedelta(minutes=1))


def _conversation(order: CertificateOrder) -> Conversation:
    """With the order's authority; our account there is made where there is none. Raises Refusal."""
    authority = order.authority
    if authority is None:
        raise Refusal("The certificate authority of the order was deleted.")
    if not authority.sealed_account_key:
        rows = CertificateAuthority.objects.filter(pk=authority.pk, sealed_account_key=None)
        rows.update(sealed_account_key=seal(asking.new_key()))
        authority.refresh_from_db()
    key = authority.sealed_account_key or b""
    hmac_key = unseal(authority.sealed_hmac_key).decode() if authority.sealed_hmac_key else ""
    if not authority.account_url:
        url = Conversation(_account(authority, unseal(key), hmac_key)).register()
        CertificateAuthority.objects.filter(pk=authority.pk, sealed_account_key=key).update(account_url=url)
        authority.account_url = url
    return Conversation(_account(authority, unseal(key), hmac_key))


def _account(row: CertificateAuthority, key: bytes, hmac_key: str) -> asking.Account:
    return asking.Account(
        directory_url=row.directory_url,
        key=key,
        url=row.account_url,
        trusted_ca=row.trusted_ca,
        terms_agreed=row.terms_agreed,
        contacts=tuple(row.contacts),
        external_key_id=row.external_key_id,
        external_hmac_key=hmac_key,
        profile=row.profile,
    )


def _answering(lease: Lease[CertificateOrder], order: CertificateOrder, conversation: Conversation) -> None:
    """Ask the authority to look, once everybody answers; where it looks already, nothing is said twice."""
    if proving.unanswered(order):
        _put_off(lease, timedelta(seconds=LOOK_S))
        return
    for each in order.challenges:
        if conversation.authorization_at(each["authorization"]).status == asking.PENDING:
            conversation.look(each["url"])
    _move(lease, State.VALIDATING)


def _validating(lease: Lease[CertificateOrder], order: CertificateOrder, conversation: Conversation) -> None:
    found = conversation.order_at(order.order_url)
    if found.status == asking.READY:
        conversation.finalize(found, order.hostnames, _key(order))
    elif found.status in (asking.PENDING, asking.INVALID):
        _expect_none_refused(conversation, order, found)
        _put_off(lease, LOOK_AGAIN)
        return
    _move(lease, State.FINALIZING)


def _expect_none_refused(conversation: Conversation, order: CertificateOrder, found: asking.Order) -> None:
    """Raise Refusal for what the authority did not find, with its words."""
    for each in order.challenges:
        seen = conversation.authorization_at(each["authorization"])
        if seen.status not in (asking.PENDING, asking.VALID, asking.PROCESSING):
            raise Refusal(f"{each['hostname']} was not proved. {seen.error}".strip())
    if found.status == asking.INVALID:
        raise Refusal(found.error or "The authority gave the order up.")


def _finalizing(lease: Lease[CertificateOrder], order: CertificateOrder, conversation: Conversation) -> None:
    found = conversation.order_at(order.order_url)
    if found.status == asking.READY:  # whoever asked before was not heard
        conversation.finalize(found, order.hostnames, _key(order))
    elif found.status == asking.INVALID:
        raise Refusal(found.error or "The authority gave the order up.")
    elif found.certificate:
        _store(lease, order, conversation.download(found.certificate))
        return
    _put_off(lease, LOOK_AGAIN)


_STEPS = {State.ANSWERING: _answering, State.VALIDATING: _validating, State.FINALIZING: _finalizing}


def _store(lease: Lease[CertificateOrder], order: CertificateOrder, chain: str) -> None:
    """The new chain with its key, the end of the order, and the push of both. Raises Refusal for a chain of no use."""
    key, wrong = _key(order).decode(), list[str]()
    facts = read_certificate(chain, key, now(), lambda _pointer, _code, message: wrong.append(message))
    if facts is None:
        raise Refusal(f"The authority issued what nodes do not take. {' '.join(wrong)}"[:600])
    if missing := sorted(set(order.hostnames) - set(facts.hostnames)):
        raise Refusal(f"The authority issued a certificate without {', '.join(missing[:3])}.")
    with transaction.atomic():
        row = lease.lock()
        certificate = (
            Certificate.objects.select_for_update(of=("self",)).select_related("account").get(pk=order.certificate_id)
        )
        before = {"fingerprint": certificate.fingerprint, "not_after": str(certificate.not_after or "")}
        put_chain(certificate, chain, key, facts)
        certificate.save()
        row.issued_by, row.issued_at = order.authority.name if order.authority else "", now()
        row.renew_at = deciding.renewal(facts.not_before, facts.not_after, facts.fingerprint)
        row.failures, row.error, row.failed_at = 0, "", None
        hostnames = row.hostnames
        _end(row, next_at=min(row.renew_at, now() + timedelta(minutes=1)))
        row.hostnames = hostnames  # what the certificate was ordered for
        row.save()
        request_push(fleets_of(certificate))
        request_stack_push(stacks_of(certificate))
        audit.record(
            actor=platform_actor(),
            action="rotate",
            kind="Certificate",
            object_id=certificate.pk,
            label=f"{certificate.account.name}/{certificate.name}",
            account=certificate.account,
            before=before,
            after={"fingerprint": facts.fingerprint, "not_after": str(facts.not_after)},
            reason=f"issued by {row.issued_by}",
        )


def _note(lease: Lease[CertificateOrder], order: CertificateOrder, refusal: Refusal) -> None:
    """What came of a refusal: the same again, or a rest and then another order."""
    moment, authority = now(), order.authority
    if authority and refusal.lost_account:
        CertificateAuthority.objects.filter(pk=authority.pk, account_url=authority.account_url).update(account_url="")
    if authority and refusal.asked_too_often:
        until = moment + min(refusal.wish or deciding.FIRST_PAUSE, deciding.LONGEST_WISH)
        CertificateAuthority.objects.filter(pk=authority.pk).update(paused_until=until)
    under_way = order.state != State.WAITING and order.began_at and moment - order.began_at < LONGEST_ORDER
    if refusal.passing and under_way:
        _put_off(lease, max(PASSING, refusal.wish or PASSING))
        return
    with transaction.atomic():
        row = lease.lock()
        row.failures += 1
        row.error, row.failed_at = str(refusal)[:600], moment
        # Whom another authority may serve meanwhile does not wait for the one that wants us to.
        wish = None if refusal.asked_too_often else refusal.wish
        _end(row, next_at=moment + deciding.pause(row.failures, wish))
        row.save()
    logger.warning("certificate order %d failed: %s", order.pk, refusal)


def _wait(lease: Lease[CertificateOrder], words: str, until: datetime | None = None) -> None:
    """Nothing can be ordered yet, for a reason that is none of an authority's."""
    with transaction.atomic():
        row = lease.lock()
        row.error, row.next_at = words[:600], max(until or now(), now() + UNREADY_PAUSE)
        row.failed_at = row.failed_at or now()
        row.save(update_fields=("error", "next_at", "failed_at"))
        publish_after_commit("definitions")


def _leave(lease: Lease[CertificateOrder], next_at: datetime) -> None:
    """Give up what is under way: another certificate is wanted."""
    with transaction.atomic():
        row = lease.lock()
        _end(row, next_at=next_at)
        row.save()


def _end(row: CertificateOrder, next_at: datetime) -> None:
    """Nothing is under way any more, and nobody answers; the caller saves, inside its transaction."""
    fleets, zones = row.pushes.get("fleets", {}), row.pushes.get("zones", {})
    row.state, row.order_url, row.sealed_key, row.challenges, row.pushes = State.WAITING, "", None, [], {}
    row.hostnames, row.began_at, row.next_at = [], None, next_at
    request_push(Fleet.objects.filter(pk__in=fleets))
    request_zone_push(Zone.objects.filter(pk__in=zones))


def _move(lease: Lease[CertificateOrder], state: CertificateOrder.State) -> None:
    with transaction.atomic():
        row = lease.lock()
        row.state, row.next_at = state, now()
        row.save(update_fields=("state", "next_at"))


def _put_off(lease: Lease[CertificateOrder], pause: timedelta) -> None:
    with transaction.atomic():
        row = lease.lock()
        row.next_at = now() + pause
        row.save(update_fields=("next_at",))


def _what_lacks(order: CertificateOrder) -> str:
    return proving.unanswered(order) if order.state == State.ANSWERING else ""


def _key(order: CertificateOrder) -> bytes:
    return unseal(order.sealed_key or b"")

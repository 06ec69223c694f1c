"""Asks resolvers what they really answer, so that a page can show wanted against served.

Each record is asked for at each resolver of its zone every five minutes, sooner while it is not served as wanted.
Nothing is asked while a transaction is open.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta

import dns.exception
import dns.flags
import dns.message
import dns.query
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.resolver
from django.conf import settings
from django.db.models import F, Min, Q

from apps.core.addresses import host_and_port
from apps.core.clock import now
from apps.core.events import publish
from apps.definitions.freezing.zone_records import values_of
from apps.definitions.models import Record, Zone
from apps.dns.models import ServedRecord
from apps.dns.selectors import key_of
from apps.drivers.dns.records import BadValue, canonical, canonical_text

SECONDS = 3.0
AT_ONCE, IN_TURN = 16, 200
AGAIN, SOON = timedelta(minutes=5), timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Question:
    """One record at one resolver."""

    record_id: int
    resolver: str
    name: str
    type: str
    wanted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: sorted values in the form of a zone file, or an error in words."""

    question: Question
    values: tuple[str, ...]
    error: str = ""


def ask_due(*, zone_id: int | None = None) -> int:
    """Ask what is due, of one zone or of all; returns how many answers there are."""
    questions = _due(zone_id)
    if not questions:
        return 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(ask, questions))
    _store(answers)
    return len(answers)


def resolvers_of(zone: Zone) -> list[str]:
    """Whom to ask for the zone's records: its own, else the installation's, else the machine's."""
    return [str(each) for each in zone.resolvers] or list(settings.RESOLVERS) or list(_of_machine())


@functools.cache
def _of_machine() -> tuple[str, ...]:
    try:
        return tuple(str(each) for each in dns.resolver.Resolver().nameservers)[:2]
    except dns.exception.DNSException:
        return ()


def _due(zone_id: int | None) -> list[Question]:
    moment = now()
    fresh = Q(served__asked_at__gt=moment - AGAIN, served__as_wanted=True) | Q(served__asked_at__gt=moment - SOON)
    rows = Record.objects.exclude(pk__in=Record.objects.filter(fresh).values("pk"))
    if zone_id is not None:
        rows = rows.filter(zone=zone_id)
    # Whoever waits longest comes first: where many are not served, the same ones would else be asked again and again.
    rows = rows.annotate(last=Min("served__asked_at")).order_by(F("last").asc(nulls_first=True), "pk")
    rows = rows.select_related("zone", "static_ip", "load_balancer")
    return [question for row in rows[:IN_TURN] for question in _questions(row)]


def _questions(row: Record) -> Iterable[Question]:
    name, kind = key_of(row.zone, row)
    try:
        wanted = tuple(sorted({canonical(kind, value, row.zone.domain) for value in values_of(row)}))
    except BadValue:
        return
    for resolver in resolvers_of(row.zone):
        yield Question(row.pk, resolver, name.replace("*", "spillway-asks", 1), kind, wanted)


def ask(question: Question) -> Answer:
    """Ask one resolver; never raises for what it does or is."""
    address, port = host_and_port(question.resolver, 53)
    message = dns.message.make_query(question.name, question.type)
    try:
        answer, _ = dns.query.udp_with_fallback(message, address, timeout=SECONDS, port=port)
    except (dns.exception.DNSException, OSError, ValueError) as error:
        return Answer(question, (), f"No answer ({type(error).__name__}).")
    if answer.rcode() not in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN):
        return Answer(question, (), f"It answers {dns.rcode.to_text(answer.rcode())}.")
    kind = dns.rdatatype.from_text(question.type)
    found = [rrset for rrset in answer.answer if rrset.rdtype == kind and rrset.rdclass == dns.rdataclass.IN]
    return Answer(question, tuple(sorted({canonical_text(each) for rrset in found for each in rrset})))


def _store(answers: list[Answer]) -> None:
    moment, moved = now(), False
    alive = set(
        Record.objects.filter(pk__in={each.question.record_id for each in answers}).values_list("pk", flat=True)
    )
    for each in answers:
        if each.question.record_id not in alive:
            continue
        as_wanted = not each.error and each.values == each.question.wanted
        row, made = ServedRecord.objects.update_or_create(
            record_id=each.question.record_id,
            resolver=each.question.resolver,
            defaults={
                "values": list(each.values),
                "as_wanted": as_wanted,
                "error": each.error,
                "asked_at": moment,
            },
        )
        moved = moved or made or not row.as_wanted
    # All resolvers of a record are asked together: what is older is of one that its zone does not name any more.
    ServedRecord.objects.filter(record__in=alive, asked_at__lt=moment).delete()
    if moved:
        publish("zones")

"""The writes: what nodes said, in the rows that pages and rollouts read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from heapq import nlargest
from operator import itemgetter
from typing import Any

from django.db.models import QuerySet

from apps.core.clock import now
from apps.core.events import publish_after_commit
from apps.definitions.previewing.node_words import in_words
from apps.drivers.proxy.contract import CounterReading, NodeState
from apps.observe.bulk import instant_value, replace_rows
from apps.observe.collect.deltas import COUNTERS, Counts, Key
from apps.observe.collect.percentiles import from_json
from apps.observe.evaluate.conditions import Type, Verdict
from apps.observe.models import Condition, NodeReport, Sample

REPORT_FIELDS = (
    "seen_at", "generation", "digest", "on_disk", "haproxy_version", "http3", "features", "tls_library", "protocols",
    "agent_version", "boot_id", "workers", "serving", "reloads", "drift", "addresses", "ticket_secrets",
    "certificate_sha256", "certificate_ends_at", "error", "last_contact_error",
)  # fmt: skip

COUNTED_FIELDS = ("admitted", "peers", "counted_at")
# Of so many keys the largest are kept: nobody compares thousands of small ones.
MOST_ADMITTED = 2000

ONE_SAMPLE = ("resolution", "at", "node_id", "kind", "object_id")
SAMPLE_COUNTS = (*COUNTERS, "seconds", "connections_now", "queue_now", "latency_ms")
# In the order of the fields of Counts.
_OTHER_NAMES = {"latency": "latency_buckets", "check": "check_text"}
_COUNTS = tuple(_OTHER_NAMES.get(each.name, each.name) for each in fields(Counts))


def report_of(node_id: int, state: NodeState, seen_at: datetime) -> NodeReport:
    """The row, not stored, that says what the node said at `seen_at`."""
    return NodeReport(
        node_id=node_id,
        seen_at=seen_at,
        generation=state.generation,
        digest=state.digest[:64],
        on_disk=state.on_disk[:64],
        haproxy_version=state.haproxy_version[:40],
        http3=state.http3 is True,
        features=list(state.features),
        tls_library=state.tls_library[:80],
        protocols=list(state.protocols),
        agent_version=state.agent_version[:40],
        boot_id=state.boot_id[:64],
        workers=state.workers,
        serving=state.serving,
        reloads=state.reloads,
        drift=[in_words(word) for word in state.drift],
        addresses=dict(state.addresses),
        ticket_secrets=state.ticket_secrets[:64],
        certificate_sha256=state.certificate_sha256,
        certificate_ends_at=certificate_ends_at(state),
        error=in_words(state.last_error)[:1000],
        last_contact_error="",
    )


def certificate_ends_at(state: NodeState) -> datetime | None:
    """When the certificate ends that the node showed; None where it showed none."""
    return None if state.certificate_ends is None else datetime.fromtimestamp(state.certificate_ends, UTC)


def note_report(*, node_id: int, state: NodeState) -> None:
    """Store what a node said just now, as after a push; pages are told after commit."""
    store_reports([report_of(node_id, state, now())])
    publish_after_commit("nodes", node=node_id)


def store_reports(reports: Iterable[NodeReport]) -> None:
    """Store what many nodes said, in one statement."""
    NodeReport.objects.bulk_create(reports, update_conflicts=True, unique_fields=["node"], update_fields=REPORT_FIELDS)


def store_contact_errors(errors: Mapping[int, str]) -> None:
    """Store why nodes (by primary key) could not be read; what they said before stays."""
    NodeReport.objects.bulk_create(
        [NodeReport(node_id=node_id, last_contact_error=in_words(text)[:400]) for node_id, text in errors.items()],
        update_conflicts=True,
        unique_fields=["node"],
        update_fields=["last_contact_error"],
    )


def store_counted(readings: Mapping[int, CounterReading], at: datetime) -> None:
    """Store what nodes (by primary key) count together with their peers, in one statement."""
    NodeReport.objects.bulk_create(
        [
            NodeReport(node_id=node_id, admitted=_largest(reading.admitted), peers=dict(reading.peers), counted_at=at)
            for node_id, reading in readings.items()
        ],
        update_conflicts=True,
        unique_fields=["node"],
        update_fields=COUNTED_FIELDS,
    )


def _largest(admitted: Mapping[str, int]) -> dict[str, int]:
    busy = ((key, count) for key, count in admitted.items() if count)
    return dict(nlargest(MOST_ADMITTED, busy, key=itemgetter(1)))


def store_buckets(resolution: int, rows: Iterable[tuple[int, int, Key, Counts]]) -> None:
    """Store rows `(at in Unix seconds, node id, key, counts)`; a row that is there already is replaced."""
    replace_rows(Sample, ONE_SAMPLE, (_sample(resolution, *row) for row in rows))


def _sample(resolution: int, at: int, node_id: int, key: Key, counts: Counts) -> dict[str, Any]:
    return {
        "at": instant_value(at),
        "resolution": resolution,
        "node_id": node_id,
        "kind": key[0],
        "object_id": key[1],
        "parent_id": counts.parent_id,
        "latency_buckets": counts.latency,
        "status": counts.status[:20],
        "check_text": counts.check[:200],
        **{name: getattr(counts, name) for name in SAMPLE_COUNTS},
    }


def counts_of(rows: QuerySet[Sample], *columns: str) -> Iterator[tuple[tuple[Any, ...], Counts]]:
    """The values of these columns with what `store_buckets` stored, row by row.

    An object of the model for each would take half as long again, and there are hundreds of thousands.
    """
    latency = len(columns) + _COUNTS.index("latency_buckets")
    for row in rows.values_list(*columns, *_COUNTS).iterator():
        counts = Counts(*row[len(columns) :])
        counts.latency = from_json(row[latency])
        yield row[: len(columns)], counts


def store_verdicts(verdicts: Iterable[Verdict], instant: datetime) -> list[Verdict]:
    """Store the verdicts that differ from what is stored, and return them; `since` moves with status or reason only."""
    verdicts = list(verdicts)
    rows_of_kinds = Condition.objects.filter(object_kind__in={each.kind for each in verdicts}, type__in=list(Type))
    stored = {(row.object_kind, row.object_id, row.type): row for row in rows_of_kinds}
    moved, rows = [], []
    for verdict in verdicts:
        old = stored.get((verdict.kind, verdict.object_id, verdict.type))
        same = old is not None and (old.status, old.reason) == (verdict.status, verdict.reason)
        if old is None or not same or old.message != verdict.message[:1000]:
            rows.append(_condition(verdict, old.since if old is not None and same else instant))
            moved.append(verdict)
    Condition.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["object_kind", "object_id", "type"],
        update_fields=["status", "reason", "message", "generation", "since"],
    )
    return moved


def _condition(verdict: Verdict, since: datetime) -> Condition:
    return Condition(
        object_kind=verdict.kind,
        object_id=verdict.object_id,
        type=verdict.type,
        status=verdict.status,
        reason=verdict.reason,
        message=verdict.message[:1000],
        generation=verdict.generation,
        since=since,
    )


def forget_verdicts(kind: str, existing: Collection[int]) -> None:
    """Delete our verdicts on objects of a kind that are no more; `existing` are the primary keys that are."""
    ours = Condition.objects.filter(object_kind=kind, type__in=[each.value for each in Type])
    known = set(ours.values_list("object_id", flat=True).distinct())
    if gone := known - set(existing):
        ours.filter(object_id__in=sorted(gone)[:500]).delete()

"""The numbers: time series of Cloud Monitoring as whole minutes of groups and listeners.

Metrics are those of https://cloud.google.com/monitoring/api/metrics_gcp: counts are deltas that are summed over a
minute, latencies are distributions of which Google computes the percentile. A series is grouped by what it is about:
the `backend_name` (group of endpoints) or the `url_map_name` (one for each listener of ours).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from apps.drivers.clouds.contract import Numbers
from apps.drivers.clouds.google_session import GoogleSession

_PERCENTILES = (("p50_ms", "ALIGN_PERCENTILE_50"), ("p95_ms", "ALIGN_PERCENTILE_95"), ("p99_ms", "ALIGN_PERCENTILE_99"))
_BASE = "loadbalancing.googleapis.com"


@dataclass(frozen=True, slots=True)
class Query:
    """One question: a metric, what it is grouped by, how it is aligned, and the word of Numbers that it fills."""

    metric: str
    group: str
    word: str
    aligner: str = "ALIGN_SUM"
    reducer: str = "REDUCE_SUM"
    by_status: bool = False


@dataclass(slots=True)
class _Minute:
    """The numbers of one group in one minute while they come in."""

    counts: dict[str, int] = field(default_factory=dict)
    percentiles: dict[str, float] = field(default_factory=dict)

    def as_numbers(self, group: str, object_id: str, at: datetime) -> Numbers:
        """As the contract has it."""
        words: dict[str, Any] = {**self.counts, **self.percentiles}
        return Numbers(group, object_id, at, **words)


def queries() -> Iterator[Query]:
    """All that is asked."""
    for group, counts, latencies in (
        ("backend_name", "backend_request_count", "backend_latencies"),
        ("url_map_name", "request_count", "total_latencies"),
    ):
        yield Query(f"https/{counts}", group, "requests", by_status=True)
        for word, aligner in _PERCENTILES:
            # One series for each group and minute: the percentile is taken over all of them together.
            yield Query(f"https/{latencies}", group, word, "ALIGN_DELTA", aligner.replace("ALIGN", "REDUCE"))
    yield Query("tcp_ssl_proxy/new_connections", "backend_name", "connections")


def read_numbers(session: GoogleSession, since: datetime, object_of: Callable[[str], str]) -> list[Numbers]:
    """Whole minutes that end after `since`, oldest first. Raises CloudError."""
    until = datetime.now(UTC).replace(second=0, microsecond=0)
    start = since.astimezone(UTC).replace(second=0, microsecond=0)
    found: dict[tuple[datetime, str], _Minute] = {}
    for query in queries() if start < until else ():
        for series in _series(session, query, start, until):
            _add(found, query, series)
    return [
        minute.as_numbers(group, object_of(group), at)
        for (at, group), minute in sorted(found.items())
        if object_of(group)
    ]


def _series(session: GoogleSession, query: Query, start: datetime, until: datetime) -> Iterator[Any]:
    """The series of one question, page by page, as google-cloud-monitoring reads them."""
    from google.cloud.monitoring_v3.types import ListTimeSeriesResponse

    words = [
        ("filter", f'metric.type = "{_BASE}/{query.metric}"'),
        ("interval.startTime", _stamp(start)),
        ("interval.endTime", _stamp(until)),
        ("aggregation.alignmentPeriod", "60s"),
        ("aggregation.perSeriesAligner", query.aligner),
        ("aggregation.crossSeriesReducer", query.reducer),
        ("aggregation.groupByFields", f"resource.label.{query.group}"),
    ]
    if query.by_status:
        words.append(("aggregation.groupByFields", "metric.label.response_code_class"))
    token = ""
    while True:
        path = f"/v3/projects/{session.access.project}/timeSeries"
        page = session.get_json(path, [*words, ("pageToken", token)] if token else words)
        answer = ListTimeSeriesResponse.from_json(json.dumps(page), ignore_unknown_fields=True)
        yield from answer.time_series
        token = answer.next_page_token
        if not token:
            return


def _add(found: dict[tuple[datetime, str], _Minute], query: Query, series: Any) -> None:
    group = series.resource.labels.get(query.group, "")
    status = str(series.metric.labels.get("response_code_class", ""))[:1]
    for point in series.points:
        at = _whole(point.interval.end_time)
        minute = found.setdefault((at, group), _Minute())
        value = float(point.value.double_value or point.value.int64_value)
        if query.word.endswith("_ms"):
            minute.percentiles[query.word] = value
            continue
        minute.counts[query.word] = minute.counts.get(query.word, 0) + round(value)
        if query.by_status and status and status in "2345":
            word = f"status_{status}xx"
            minute.counts[word] = minute.counts.get(word, 0) + round(value)


def _whole(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(second=0, microsecond=0)


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

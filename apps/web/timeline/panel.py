"""The card of an object's traffic over time: charts of a range that one chooses, and what happened in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from apps.accounts.actors import Actor
from apps.fleet.models import Fleet, Region
from apps.observe.selectors import series_of_all
from apps.web.drawing.charts import latency_chart, traffic_chart
from apps.web.kit.figures import amount
from apps.web.timeline.events import Event, events_of, nodes_of
from apps.web.timeline.ranges import RANGES, Range, range_of


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart of the card; `data` as `components/chart.html` takes it, None where nothing was measured."""

    key: str
    title: str
    data: dict[str, Any] | None
    label: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """The card; `requests` is whether the object's requests can be looked for by time."""

    range: Range
    charts: tuple[Chart, ...]
    events: tuple[Event, ...]
    ranges: tuple[Range, ...] = RANGES


def timeline_of_nodes(actor: Actor, row: Region | Fleet, asked: str) -> Timeline:
    """The same of a region or a fleet: what clients asked of its nodes that the console could look at."""
    return timeline_of(actor, row, asked, kind="node", ids=nodes_of(row).values_list("pk", flat=True))


def timeline_of(
    actor: Actor, row: Any, asked: str, *, kind: str, ids: Iterable[int] | None = None, latency: bool = False
) -> Timeline:
    """What the page of `row` shows of its time; `kind` and `ids` are those of `observe.selectors`, else its own id."""
    chosen = range_of(asked)
    own = [row.pk] if ids is None else ids
    series = series_of_all(actor, kind, own, minutes=chosen.minutes, points=chosen.points, latency=latency)
    events = tuple(events_of(actor, row, datetime.fromtimestamp(series.x[0], UTC)))
    marks = [event.mark() for event in events]
    what, failed = "Requests", "5xx of servers" if kind == "route" else "5xx"
    if getattr(row, "protocol", "") == "tcp":
        what, failed, latency = "Connections", "", False
    said = f"{what} and {failed} per second" if failed else f"{what} per second"
    drawn = [("requests", what, said, traffic_chart(series, what, failed), series.requests)]
    if latency:
        drawn.append(
            ("latency", "Latency", "95th percentile of the latency in ms", latency_chart(series), series.p95_ms)
        )
    return Timeline(
        chosen,
        tuple(
            Chart(
                key,
                title,
                data | {"marks": marks} if peak else None,
                f"{said} in the last {chosen.words}, at most {peak}",
            )
            for key, title, said, data, values in drawn
            for peak in [amount(max((value for value in values if value is not None), default=None))]
        ),
        events,
    )

"""What the first pages and the wall show of now: states, numbers with their hour, the flow, the fullest pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from apps.accounts.actors import Actor
from apps.alerts.selectors import own_alerts
from apps.observe import selectors as observe
from apps.overflow import selectors as overflow
from apps.overflow.flows import Flow, PoolUse, RegionUse
from apps.web.changes.rows import ChangeRow
from apps.web.drawing.runs import Drawing
from apps.web.drawing.trends import Marker, draw_trend
from apps.web.kit.figures import figures_of
from apps.web.overflow.parts import shown
from apps.web.overview.figures import figures
from apps.web.overview.incidents import Incident, alerts_alone, incidents, slower, vanished
from apps.web.overview.strip import states, tint

MINUTES = 60


@dataclass(frozen=True, slots=True)
class Trend:
    """The hour of one pool in one region."""

    pool_id: int
    pool: str
    region: str
    drawing: Drawing
    out: bool
    lost: bool


@dataclass(frozen=True, slots=True)
class Now:
    """What was read once for all parts of a page."""

    flow: Flow
    incidents: list[Incident]
    context: dict[str, Any]


def now_of(actor: Actor, fleets: dict[int, str], standing: Sequence[Incident], summary: str) -> Now:
    """The strip, the numbers and the flow; `fleets` says how each stands, `standing` what is to say of that."""
    flow = overflow.flow_overall(actor)
    numbers = observe.live_numbers(actor)
    series = observe.overall_series(actor, minutes=MINUTES, points=MINUTES, latency=True)
    every = incidents(observe.problems(actor), flow, [*standing, *vanished(numbers, series)], slower(numbers, series))
    every = every or alerts_alone(own_alerts(actor).filter(resolved_at=None).count())
    found = states(flow, every, fleets, summary)
    known = {each.id: each for each in figures(numbers, series, overflow.moved(actor, MINUTES), flow)}
    context = {
        "states": found,
        "tint": tint(found),
        "troubles": len(every),
        "figures": known,
        "now": figures_of(numbers),
        "flow": shown(flow, "traffic"),
        "at": flow.at,
    }
    return Now(flow, every, context)


def trend_of(actor: Actor, flow: Flow, changes: Sequence[ChangeRow] = ()) -> Trend | None:
    """The hour of the pool that is nearest to its limit, else of the busiest, where that is; None without traffic."""
    found = _nearest(flow)
    if found is None:
        return None
    region, pool = found
    points = overflow.history_in_region(actor, int(pool.pool_id.removeprefix("pool-")), region.region_id, MINUTES)
    markers = [Marker(row.entry.at.timestamp(), row.short) for row in changes]
    said = f"{pool.pool} in {region.name}, requests per second in the last hour"
    drawing = draw_trend(points, limit=pool.use.capacity_rps or None, markers=markers, prefix="trend", sentence=said)
    if drawing is None:
        return None
    out = any((point.overflow_out_rps or 0.0) > 0 for point in points)
    lost = any((point.rejected_rps or 0.0) > 0 for point in points)
    return Trend(int(pool.pool_id.removeprefix("pool-")), pool.pool, region.name, drawing, out, lost)


def uses_of(flow: Flow) -> list[tuple[RegionUse, PoolUse]]:
    """Every pool in every region; a flow of one pool has it as the region's own row."""
    return [
        (region, each)
        for region in flow.regions
        for each in (region.pools or [PoolUse(pool, "", region) for pool in flow.pools])
    ]


def _nearest(flow: Flow) -> tuple[RegionUse, PoolUse] | None:
    if flow.at is None:
        return None
    rows = [row for row in uses_of(flow) if row[1].use.demand_rps or row[1].use.served_rps]
    return max(rows, key=lambda row: (row[1].use.used or 0.0, row[1].use.demand_rps), default=None)

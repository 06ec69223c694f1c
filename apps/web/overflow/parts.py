"""What pages need to show a flow: its drawing, its table twin, the reasons, how old it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import QuerySet

from apps.definitions.models import Pool
from apps.overflow.comparison import prediction_error
from apps.overflow.flows import Flow, Lane, RegionUse
from apps.overflow.reasons import urgency
from apps.web.drawing.flows import Drawing, draw
from apps.web.kit.figures import rate, share
from apps.web.overflow.words import TwinRow, table_twin, use_kind, use_words


@dataclass(frozen=True, slots=True)
class Shown:
    """A flow for `pages/overflow/flow_body.html`; `age` is set only when it is too old to be live.

    What was `counted` has request lines, what is only predicted has none. Of the regions in `unread` not all nodes
    could be read.
    """

    known: bool
    drawing: Drawing
    rows: Sequence[TwinRow]
    sentences: Sequence[str]
    age: str
    past: bool
    counted: bool
    unread: str = ""


def shown(flow: Flow, prefix: str, *, past: bool = False, counted: bool = True) -> Shown:
    """What the page shows of a flow; `prefix` keeps the ids of several flows on a page apart."""
    age = f"{flow.age_s:.0f} s" if flow.stale and flow.age_s is not None and not past else ""
    sentences = [sentence for use in flow.regions for sentence in use.sentences]
    unread = ", ".join(flow.unread)
    return Shown(flow.at is not None, draw(flow, prefix), table_twin(flow), sentences, age, past, counted, unread)


@dataclass(frozen=True, slots=True)
class BesideRow:
    """One region, predicted and actual, as text."""

    id: str
    region: str
    offered: str
    served: tuple[str, str]
    out: tuple[str, str]
    refused: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Predicted beside actual; `error` is the share that went elsewhere, `kind` the verdict's colour."""

    rows: Sequence[BesideRow]
    error: str
    kind: str


def compare(predicted: Flow, actual: Flow) -> Comparison | None:
    """The two side by side; None without traffic."""
    error = prediction_error(predicted, actual)
    if error is None:
        return None
    plans = {use.region_id: use for use in predicted.regions}
    rows = [
        BesideRow(
            use.region_id,
            use.name,
            rate(use.demand_rps),
            (rate(plan.served_rps), rate(use.served_rps)),
            (rate(plan.overflow_out_rps), rate(use.overflow_out_rps)),
            (rate(plan.rejected_rps), rate(use.rejected_rps)),
        )
        for use in actual.regions
        if (plan := plans.get(use.region_id))
    ]
    return Comparison(rows, share(error), "good" if error <= 0.02 else "warn" if error <= 0.1 else "bad")


@dataclass(frozen=True, slots=True)
class TightPool:
    """A pool in a region that is over, at or near its limit there, or down; what it does there as text."""

    pool: Pool
    use: RegionUse
    words: str
    out: str
    refused: str
    why: str


TIGHT_SHOWN = 12


def tight_pools(flow: Flow, pools: QuerySet[Pool]) -> list[TightPool]:
    """Where pools of a flow of several are tight, worst first; `pools` are those that the page may name."""
    rows = [each for region in flow.regions for each in region.pools]
    tight = [each for each in rows if urgency(each.use)[0] > 1 or use_kind(each.use)]
    tight.sort(key=lambda each: urgency(each.use), reverse=True)
    keys = {each.pool_id: int(each.pool_id.removeprefix("pool-")) for each in tight[:TIGHT_SHOWN]}
    known = {pool.pk: pool for pool in pools.filter(pk__in=keys.values())}
    return [
        TightPool(
            known[keys[each.pool_id]],
            each.use,
            use_words(each.use),
            rate(each.use.overflow_out_rps),
            rate(each.use.rejected_rps),
            " ".join(each.use.sentences) or _guests(each.use),
        )
        for each in tight[:TIGHT_SHOWN]
        if keys[each.pool_id] in known
    ]


def _guests(use: RegionUse) -> str:
    return f"{rate(use.overflow_in_rps)}/s come from other regions." if use.overflow_in_rps else ""


def lanes_out(flow: Flow, region_id: str) -> list[Lane]:
    """What a region sends elsewhere, most first."""
    found = [lane for lane in flow.lanes if lane.source_id == region_id != lane.target_id and lane.rps > 0]
    return sorted(found, key=lambda lane: -lane.rps)


def lanes_in(flow: Flow, region_id: str) -> list[Lane]:
    """What a region takes from elsewhere, most first."""
    found = [lane for lane in flow.lanes if lane.target_id == region_id != lane.source_id and lane.rps > 0]
    return sorted(found, key=lambda lane: -lane.rps)

"""The hour or day of one pool as a chart for each region beside its limit, as it was or as it would have been."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from apps.overflow.flows import Flow, RegionUse, WhatIf
from apps.overflow.replay import Fates, RegionReplay, Replay
from apps.web.kit.figures import amount, share

Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class LimitChart:
    """One region: its chart, what it says in words, and what it would have been instead once something is asked.

    `set_link` leads to the form with the limit that is asked for.
    """

    id: str
    name: str
    chart: dict[str, Any]
    label: str
    words: str
    asked: str
    set_link: str = ""


def stack(local: Values, out: Values, refused: Values, waiting: Values = ()) -> list[dict[str, Any]]:
    """The parts of a demand, requests/s, as areas that lie on each other; what is never there has none."""
    parts = (
        ("Local", "accent-fill", local),
        ("Waiting", "line-strong", waiting),
        ("Overflow", "flow-guest", out),
        ("Rejected", "bad", refused),
    )
    return [
        {"label": label, "tone": tone, "values": list(values), "unit": "/s", "area": True}
        for label, tone, values in parts
        if label != "Waiting" or any(values)
    ]


def limit_charts(
    found: Replay,
    flow: Flow,
    question: WhatIf | None,
    marks: Sequence[dict[str, Any]],
    links: Mapping[str, str],
) -> list[LimitChart]:
    """The charts, most demand first; `flow` is of now and has the limits, `links` are where to set others."""
    uses = {use.region_id: use for use in flow.regions}
    charts = [
        replace(_chart(found, each, uses.get(each.region_id), question, marks), set_link=links.get(each.region_id, ""))
        for each in found.regions
    ]
    ordered = sorted(zip(found.regions, charts, strict=True), key=lambda pair: -_demand(pair[0].actual))
    return [chart for _, chart in ordered]


def _chart(
    found: Replay, region: RegionReplay, use: RegionUse | None, question: WhatIf | None, marks: Sequence[dict[str, Any]]
) -> LimitChart:
    fates = region.asked if question else region.actual
    limit = _limit(use, question)
    line = _line(region, limit, len(found.at), _name_of(question))
    chart = {"x": found.at, "series": [*_areas(fates), *line], "marks": marks}
    out = amount(max((fate.out for fate in fates if fate), default=None))
    beside = "no limit" if limit is None else f"{_name_of(question).lower()} {amount(limit)}"
    simulated = ", simulated" if question else ""
    return LimitChart(
        id=region.region_id,
        name=region.name,
        chart=chart,
        label=f"Requests per second of {region.name}{simulated}: overflow at most {out}, {beside}",
        words=_words(region.actual, found.step_s),
        asked=_words(region.asked, found.step_s) if question else "",
    )


def _areas(fates: Fates) -> list[dict[str, Any]]:
    parts = [[None if fate is None else getattr(fate, name) for fate in fates] for name in ORDER]
    return stack(*parts)


ORDER = ("local", "out", "refused", "waiting")


def _name_of(question: WhatIf | None) -> str:
    """The line stands over times in which another limit may have held."""
    return "Limit" if question else "Limit now"


def _line(region: RegionReplay, limit: float | None, points: int, label: str) -> list[dict[str, Any]]:
    """The limit, which is dragged by way of its field in the form."""
    if limit is None:
        return []
    field = f"if-limit-{region.region_id}"
    return [{"label": label, "values": [limit] * points, "unit": "/s", "dashed": True, "field": field}]


def _limit(use: RegionUse | None, question: WhatIf | None) -> float | None:
    """What the region may take now, or in the question."""
    if use is None:
        return None
    if question and use.region_id in (*question.failed_regions, *question.drained_regions):
        return 0.0
    asked = question.limits.get(use.region_id) if question else None
    return use.capacity_rps if asked is None else asked


def _words(fates: Fates, step_s: int) -> str:
    """`81,000 requests, 3,210 overflowed (4.0 %), 12 rejected (0.01 %).`"""
    known = [fate for fate in fates if fate]
    if not known:
        return "No data for this time range."
    demand = round(_demand(fates) * step_s)
    if not demand:
        return "No requests."
    found = [
        _count(sum(fate.out for fate in known) * step_s, demand, "overflowed"),
        _count(sum(fate.refused for fate in known) * step_s, demand, "rejected"),
        _count(sum(fate.waiting for fate in known) * step_s, demand, "waited"),
    ]
    told = ", ".join(part for part in found if part) or "all served locally"
    return f"{demand:,} request{'' if demand == 1 else 's'}, {told}."


def _count(number: float, demand: int, verb: str) -> str:
    count = round(number)
    return f"{count:,} {verb} ({share(count / demand)})" if count else ""


def _demand(fates: Fates) -> float:
    """Requests/s of all steps, added up."""
    return sum(fate.demand for fate in fates if fate)

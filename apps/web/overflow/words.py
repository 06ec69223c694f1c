"""A flow in words and as the rows of its table twin, for those who do not see drawings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from apps.logs.filters import word_of
from apps.overflow.flows import Flow, Lane, RegionUse
from apps.web.kit.figures import rate, share

WHY = {
    "rate": "{source} reached its limit",
    "connections": "{source} reached its limit of requests in flight",
    "down": "{source} has no usable server",
    "drained": "{source} is drained",
    "kept": "clients of {source} stay with the servers that they know",
    "full": "every region is at its limit, so the excess is spread over all regions",
}


@dataclass(frozen=True, slots=True)
class TwinRow:
    """One lane of the table twin, all as text; `kind` is own, guest or refused, `asks` the filter for its lines."""

    id: str
    source: str
    target: str
    rps: str
    share: str
    added: str
    why: str
    kind: str
    asks: str


def why(lane: Lane) -> str:
    """The reason of a lane as part of a sentence; the region's own traffic needs none."""
    text = WHY.get(lane.reason, "")
    return text.format(source=lane.source) if text else ""


def lane_title(lane: Lane) -> str:
    """A crossing lane as a sentence."""
    added = f", +{lane.added_ms:.0f} ms" if lane.added_ms is not None else ""
    because = why(lane)
    return f"{rate(lane.rps)}/s of {lane.source} go to {lane.target}{added}" + (f": {because}" if because else "")


def use_words(use: RegionUse) -> str:
    """What a region serves beside its limit; of several pools how the fullest does, and how many are full or down."""
    if use.drained:
        return "drained, serves no traffic" if not use.served_rps else f"drained, still {rate(use.served_rps)}/s"
    if not use.healthy:
        return "no usable server" + (f", still {rate(use.served_rps)}/s" if use.served_rps else "")
    if use.pools:
        return _pools_words(use)
    if use.capacity_rps is not None:
        percent = f" ({100 * use.served_rps / use.capacity_rps:.0f} %)" if use.capacity_rps else ""
        return f"{rate(use.served_rps)} of {rate(use.capacity_rps)} {use.unit}{percent}"
    if use.flight_limit is not None and use.in_flight is not None:
        return f"{use.in_flight:,} of {use.flight_limit:,} in flight"
    return f"{rate(use.served_rps)} {use.unit}" + (", no limit" if use.unlimited else "")


def _pools_words(use: RegionUse) -> str:
    fullest = use.fullest
    said = [f"{fullest.pool} {use_words(fullest.use)}"] if fullest else []
    if use.pools_full:
        said.append(f"{use.pools_full} of {_pools(use)} at the limit")
    if use.pools_down:
        said.append(f"{use.pools_down} of {_pools(use)} without a usable server")
    return "; ".join(said) or f"{rate(use.served_rps)} requests/s" + (", no limit" if use.unlimited else "")


def use_note(use: RegionUse) -> str:
    """The same for a spot where a name of a pool has no room."""
    if not use.pools or not use.usable:
        return use_words(use)
    if use.pools_down:
        return f"{use.pools_down} of {_pools(use)} down"
    if use.pools_full:
        return f"{use.pools_full} of {_pools(use)} at the limit"
    if use.fullest:
        return f"fullest pool at {100 * (use.fullest.use.used or 0.0):.0f} %"
    return use_words(use)


def _pools(use: RegionUse) -> str:
    return f"{len(use.pools)} pool{'' if len(use.pools) == 1 else 's'}"


def use_kind(use: RegionUse) -> str:
    """How full the region, or its worst pool, is: bad, warn from 90 % of its limit on, else nothing."""
    if use.drained or not use.healthy:
        return "warn" if use.drained else "bad"
    if use.pools:
        kinds = {use_kind(each.use) for each in use.pools}
        return next((kind for kind in ("bad", "warn") if kind in kinds), "")
    if use.used is None:
        return ""
    return "bad" if use.used > 1.05 else "warn" if use.used >= 0.9 else ""


def flow_sentence(flow: Flow) -> str:
    """The whole flow in one sentence per region with client traffic."""
    said = [_of_region(flow, use) for use in flow.regions if use.demand_rps > 0]
    return " ".join(said) or "No traffic."


def _of_region(flow: Flow, use: RegionUse) -> str:
    parts = [f"{rate(use.local_rps)} served there"] if use.local_rps else []
    for lane in flow.lanes:
        if lane.source_id == use.region_id != lane.target_id:
            added = f", +{lane.added_ms:.0f} ms" if lane.added_ms is not None else ""
            parts.append(f"{rate(lane.rps)} in {lane.target}{added}")
    if use.rejected_rps:
        parts.append(f"{rate(use.rejected_rps)} refused")
    return f"{use.name} gets {rate(use.demand_rps)} {use.unit}: {'; '.join(parts) or 'none are served'}."


def table_twin(flow: Flow) -> list[TwinRow]:
    """The drawing as rows: own traffic, what crosses over, what is refused, by client region."""
    rows = []
    for use in flow.regions:
        if use.local_rps > 0:
            rows.append(_twin(use, use.region_id, use.name, use.local_rps, "own"))
        for lane in flow.lanes:
            if lane.source_id == use.region_id != lane.target_id and lane.rps > 0:
                added = f"+{lane.added_ms:.0f} ms" if lane.added_ms is not None else "unknown"
                rows.append(_twin(use, lane.target_id, lane.target, lane.rps, "guest", added=added, why=why(lane)))
        if use.rejected_rps > 0:
            because = _refused_why(use)
            rows.append(_twin(use, "nobody", "nobody: refused", use.rejected_rps, "refused", added="–", why=because))
    return rows


def mostly_capped(uses: Iterable[RegionUse], rejected_rps: float) -> bool:
    """Whether ceilings of accounts keep out most of what is rejected; they do where regions have room."""
    return sum(use.capped_rps for use in uses) > rejected_rps / 2


def _refused_why(use: RegionUse) -> str:
    """What keeps most of it out."""
    if mostly_capped([use], use.rejected_rps):
        return "the account has used its share of a node"
    if use.drained:
        return f"{use.name} is drained, and no other region takes it"
    return (
        "every region is at its limit"
        if use.healthy
        else f"{use.name} has no usable server, and no other region takes it"
    )


def _twin(
    use: RegionUse, target_id: str, target: str, rps: float, kind: str, *, added: str = "0 ms", why: str = ""
) -> TwinRow:
    part = share(rps / use.demand_rps) if use.demand_rps else "–"
    served = "why:over_limit" if kind == "refused" else word_of("region", target)
    return TwinRow(
        id=f"{use.region_id}-{target_id}",
        source=use.name,
        target=target,
        rps=rate(rps),
        share=part,
        added=added,
        why=why or "local traffic has priority",
        kind=kind,
        asks=f"{word_of('home', use.name)} {served}",
    )

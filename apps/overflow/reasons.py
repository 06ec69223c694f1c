"""SHOW, pure: why traffic goes where it goes, in one sentence per fact."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from apps.overflow.flows import Lane, RegionUse

# From so much of its limit on a region counts as full when something leaves it.
NEARLY = 0.05


def number(value: float) -> str:
    """`9.9`, `10`, `1,250`."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}".removesuffix(".0")


def sentences(
    use: RegionUse, lanes: Iterable[Lane], since: datetime | None, *, of_one_pool: bool = True
) -> tuple[str, ...]:
    """What there is to say of one region; empty when it simply serves its own traffic.

    Of several pools together nobody can say that there is no room: one may be full everywhere and another not.
    """
    out = sorted((lane for lane in lanes if lane.source_id == use.region_id), key=lambda lane: -lane.per_s)
    found = []
    if out or use.refused_per_s > NEARLY or use.queued_per_s > NEARLY:
        found.append(f"{_state(use, out, since)}; {_where(use, out, of_one_pool=of_one_pool)}.")
    elif use.drained:
        found.append(f"{use.name} is drained and takes nothing.")
    elif not use.healthy:
        found.append(f"{use.name} has no usable server.")
    elif use.unlimited and use.in_per_s > NEARLY:
        found.append(f"{use.name} has no limit: it takes whatever comes.")
    return tuple(found)


def _state(use: RegionUse, out: Sequence[Lane], since: datetime | None) -> str:
    clock = f" since {since:%H:%M}" if since else ""
    reasons = {lane.reason for lane in out}
    if use.drained:
        return f"{use.name} is drained{clock}"
    if reasons == {"down"} or not use.healthy:
        return f"{use.name} has no usable server{clock}"
    if use.capacity_per_s is not None:
        return f"{use.name} is at {number(use.served_per_s)} of {number(use.capacity_per_s)} requests/s{clock}"
    if use.flight_limit is not None:
        now = "" if use.in_flight is None else f" ({use.in_flight:,} now)"
        return f"{use.name} is at its limit of {use.flight_limit:,} requests in flight{now}{clock}"
    return f"{use.name} sends traffic away{clock}"


def _where(use: RegionUse, out: Sequence[Lane], *, of_one_pool: bool) -> str:
    parts = [f"{number(lane.per_s)}/s {'go' if index == 0 else 'and'} to {lane.target}{_added(lane)}"
             for index, lane in enumerate(out)]  # fmt: skip
    text = ", ".join(parts).replace("/s and to", "/s to")
    if of_one_pool and any(lane.reason == "full" for lane in out):
        text += ", spread by capacity because there is no room anywhere"
    if use.refused_per_s > NEARLY:
        refused = f"{number(use.refused_per_s)}/s are refused because there is no room anywhere"
        text = f"{text}, {refused}" if text else refused
    if use.queued_per_s > NEARLY:
        waiting = f"{number(use.queued_per_s)}/s wait for a free slot because there is no room anywhere"
        text = f"{text}, {waiting}" if text else waiting
    return text


def _added(lane: Lane) -> str:
    return "" if lane.added_ms is None else f", +{lane.added_ms:.0f} ms"


def differences(before: Sequence[RegionUse], after: Sequence[RegionUse]) -> tuple[str, ...]:
    """What a what-if changes, region by region, and whether it fits."""
    old = {use.region_id: use for use in before}
    found = []
    for use in after:
        was = old.get(use.region_id)
        if was is not None and abs(use.served_per_s - was.served_per_s) > NEARLY:
            limit = "" if use.capacity_per_s is None else f" (limit {number(use.capacity_per_s)})"
            words = f"{use.name} serves {number(use.served_per_s)} instead of {number(was.served_per_s)} requests/s"
            found.append(f"{words}{limit}.")
    refused = sum(use.refused_per_s for use in after)
    over = [use for use in after if use.capacity_per_s is not None and use.served_per_s > use.capacity_per_s + NEARLY]
    queued = sum(use.queued_per_s for use in after)
    if refused > NEARLY:
        found.append(f"{number(refused)} requests/s are refused: no region has room for them.")
    if queued > NEARLY:
        found.append(f"{number(queued)} requests/s wait for a free slot: no region has room for them.")
    for use in over:
        extra = number(use.served_per_s - (use.capacity_per_s or 0))
        found.append(f"{use.name} is {extra} requests/s over its limit, because every region is full.")
    if found and not over and max(refused, queued) <= NEARLY:
        found.append("Everything fits.")
    return tuple(found) or ("Nothing changes.",)


def longer_way(before_ms: float, after_ms: float) -> tuple[str, ...]:
    """How much longer or shorter the mean request's way is, when that is a millisecond or more."""
    if abs(after_ms - before_ms) < 1:
        return ()
    return (f"The way to other regions adds {after_ms:.0f} ms to the mean request instead of {before_ms:.0f} ms.",)


def overloads(before: Sequence[RegionUse], after: Sequence[RegionUse], *, pool: str = "") -> tuple[str, ...]:
    """Regions that a change would put over a pool's limits, or further over; what more would be refused or wait.

    `pool` is named in each sentence where several could be meant.
    """
    old = {use.region_id: use for use in before}
    of_pool = f" of {pool}" if pool else ""
    found = []
    for use in after:
        was = old.get(use.region_id)
        if _excess(use) > (_excess(was) if was else 0.0) + NEARLY:
            limit = number(use.capacity_per_s or 0.0)
            found.append(f"{use.name} would be at {number(use.served_per_s)} of {limit} requests/s{of_pool}.")
    refused = sum(use.refused_per_s for use in after) - sum(use.refused_per_s for use in before)
    if refused > NEARLY:
        found.append(f"{number(refused)} requests/s more{of_pool} would be refused.")
    queued = sum(use.queued_per_s for use in after) - sum(use.queued_per_s for use in before)
    if queued > NEARLY:
        found.append(f"{number(queued)} requests/s more{of_pool} would wait for a free slot.")
    return tuple(found)


def _excess(use: RegionUse) -> float:
    return 0.0 if use.capacity_per_s is None else max(0.0, use.served_per_s - use.capacity_per_s)

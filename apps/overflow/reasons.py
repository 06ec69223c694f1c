"""Why traffic goes where it goes, in one sentence per fact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from apps.overflow.flows import FULL, Lane, RegionUse

# Less than so many requests/s is the wavering of a ten-second window.
NEARLY = 0.05
DAY = timedelta(hours=20)
MISFITS_TOLD = 12
POOLS_TOLD = 4  # sentences about the pools of one region; the others are counted
# Why a pool's traffic leaves a region; "full", where it is spread over full regions, is no cause of the region's own.
OWN_REASONS = ("rate", "connections", "down", "drained")


def number(value: float) -> str:
    """`9.9`, `10`, `1,250`."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}".removesuffix(".0")


def _rps(value: float) -> str:
    return f"{number(value)} request{'' if number(value) == '1' else 's'}/s"


def _be(value: float) -> str:
    return "is" if number(value) == "1" else "are"


def clock(since: datetime | None, now: datetime) -> str:
    """` since 08:22`, with the day where that was not within a day; empty where nobody knows."""
    if since is None:
        return ""
    return f" since {since:%H:%M}" if now - since < DAY else f" since {since:%d %b %H:%M}"


def is_quiet(use: RegionUse) -> bool:
    """Whether there is nothing to say of a pool in a region from which nothing goes elsewhere."""
    moved = use.rejected_rps > NEARLY or use.queued_rps > NEARLY or (use.unlimited and use.overflow_in_rps > NEARLY)
    return use.usable and not moved


def sentences(use: RegionUse, lanes: Sequence[Lane], since: Mapping[str, str], *, pool: str = "") -> tuple[str, ...]:
    """What there is to say of one pool in one region; empty when it simply serves its own traffic there.

    `since` has the words of `clock` by reason: what is said stands beside the time of that cause and of no other.
    `pool` is named where several could be meant.
    """
    out = sorted(lanes, key=lambda lane: -lane.rps)
    found = []
    if out or use.rejected_rps > NEARLY or use.queued_rps > NEARLY:
        found.append(f"{_state(use, out, since, pool)}; {_where(use, out)}.")
    elif use.drained:
        found.append(f"{use.name} is drained{since.get('drained', '')} and serves no traffic.")
    elif not use.healthy:
        found.append(f"{use.name} has no usable server{_of(pool)}{since.get('down', '')}.")
    elif use.unlimited and use.overflow_in_rps > NEARLY:
        found.append(f"{use.name} has no limit{_of(pool)} and accepts all traffic.")
    return tuple(found)


def together(use: RegionUse, lanes: Sequence[Lane], drained: str) -> tuple[str, ...]:
    """What there is to say of several pools in one region, worst first: one sentence for a cause that is all pools'."""
    if use.drained:
        out = sorted(lanes, key=lambda lane: -lane.rps)
        moved = _where(use, out)
        return (f"{use.name} is drained{drained}" + (f"; {moved}." if moved else " and serves no traffic."),)
    said = [sentence for each in use.pools for sentence in each.use.sentences]
    more = len(said) - POOLS_TOLD
    return (*said[:POOLS_TOLD], *([f"{use.name} has {more} more such pools."] if more > 0 else []))


def urgency(use: RegionUse) -> tuple[int, float, float]:
    """How badly one pool fares in a region, for sorting: refused, down, over its limit or sent away, then by use."""
    worst = (
        4 if use.rejected_rps > NEARLY
        else 3 if not use.healthy
        else 2 if (use.used or 0.0) > FULL or use.overflow_out_rps > NEARLY or use.queued_rps > NEARLY
        else 1
    )  # fmt: skip
    return worst, use.used or 0.0, use.served_rps


def _of(pool: str) -> str:
    return f" of {pool}" if pool else ""


def _state(use: RegionUse, out: Sequence[Lane], since: Mapping[str, str], pool: str) -> str:
    reasons = {lane.reason for lane in out}
    if use.drained:
        return f"{use.name} is drained{since.get('drained', '')}"
    if reasons == {"down"} or not use.healthy:
        return f"{use.name} has no usable server{_of(pool)}{since.get('down', '')}"
    if reasons == {"drained"} or use.capacity_rps == 0:
        return f"{use.name} is set to serve no traffic{_of(pool)}{since.get('drained', '')}"
    if not out and use.capped_rps > NEARLY and use.rejected_rps - use.capped_rps <= NEARLY:
        return f"{use.name} is full{_of(pool)}"
    if use.capacity_rps is not None:
        at = f"{number(use.served_rps)} of {number(use.capacity_rps)} {use.unit}"
        return f"{use.name} is at {at}{_of(pool)}{since.get('rate', '') or since.get('connections', '')}"
    if use.flight_limit is not None:
        now = "" if use.in_flight is None else f" ({use.in_flight:,} now)"
        limit = f"its limit{_of(pool)} of {use.flight_limit:,} requests in flight"
        return f"{use.name} is at {limit}{now}{since.get('connections', '')}"
    return f"{use.name} overflows traffic{_of(pool)}"


def _where(use: RegionUse, out: Sequence[Lane]) -> str:
    parts = [f"{number(lane.rps)}/s {'go' if index == 0 else 'and'} to {lane.target}{_added(lane)}"
             for index, lane in enumerate(out)]  # fmt: skip
    text = ", ".join(parts).replace("/s and to", "/s to")
    if not use.pools and any(lane.reason == "full" for lane in out):
        text += ", spread by capacity because no region has capacity"
    no_room = use.rejected_rps - use.capped_rps
    if no_room > NEARLY:
        refused = f"{number(no_room)}/s are rejected because no region has capacity"
        text = f"{text}, {refused}" if text else refused
    for capped, why in (
        (use.capped_rps - use.rate_capped_rps, "has used its share of a node's connections"),
        (use.rate_capped_rps, "has reached its requests per second on a node"),
    ):
        if capped > NEARLY:
            refused = f"{number(capped)}/s are rejected because the account {why}"
            text = f"{text}, {refused}" if text else refused
    if use.queued_rps > NEARLY:
        waiting = f"{number(use.queued_rps)}/s wait for a free slot because no region has capacity"
        text = f"{text}, {waiting}" if text else waiting
    return text


def _added(lane: Lane) -> str:
    return "" if lane.added_ms is None else f", +{lane.added_ms:.0f} ms"


def differences(before: Sequence[RegionUse], after: Sequence[RegionUse]) -> tuple[str, ...]:
    """What a what-if changes, region by region, and whether every pool fits."""
    old = {use.region_id: use for use in before}
    found = []
    for use in after:
        was = old.get(use.region_id)
        if was is not None and abs(use.served_rps - was.served_rps) > NEARLY:
            limit = "" if use.capacity_rps is None else f" (limit {number(use.capacity_rps)})"
            words = f"{use.name} serves {number(use.served_rps)} instead of {number(was.served_rps)} {use.unit}"
            found.append(f"{words}{limit}.")
    errors = misfits(after)
    if found and not errors:
        found.append("Every pool fits." if any(use.pools for use in after) else "Everything fits.")
    return (*found, *errors) or ("Nothing changes.",)


def misfits(after: Sequence[RegionUse]) -> tuple[str, ...]:
    """What does not fit, pool by pool: the room of one pool is of no use to another."""
    found = [sentence for pool, uses in of_each_pool(after) for sentence in _misfits(uses, pool)]
    more = len(found) - MISFITS_TOLD
    return (*found[:MISFITS_TOLD], *([f"The same applies in {more} more cases."] if more > 0 else []))


def of_each_pool(uses: Sequence[RegionUse]) -> list[tuple[str, list[RegionUse]]]:
    """The rows of each pool by itself, with its name; a flow of one pool has one, which needs no name."""
    if not any(use.pools for use in uses):
        return [("", list(uses))]
    found: dict[str, list[RegionUse]] = {}
    for use in uses:
        for each in use.pools:
            found.setdefault(each.pool, []).append(each.use)
    return sorted(found.items())


def _misfits(after: Sequence[RegionUse], pool: str) -> list[str]:
    of_pool = _of(pool)
    refused, queued = (sum(getattr(use, name) for use in after) for name in ("rejected_rps", "queued_rps"))
    found = []
    if refused > NEARLY:
        found.append(f"{_rps(refused)}{of_pool} {_be(refused)} rejected: no region has capacity.")
    if queued > NEARLY:
        found.append(f"{_rps(queued)}{of_pool} {_be(queued)} waiting for a free slot: no region has capacity.")
    for use in after:
        if _excess(use) > NEARLY:
            limit = f"its limit for {pool}" if pool else "its limit"
            found.append(f"{use.name} is {_rps(_excess(use))} over {limit}, because every region is full.")
        if use.usable and use.capacity_rps is None and use.flight_limit is not None and use.served_rps > NEARLY:
            room = f"{use.name} has capacity" + (f" for {pool}" if pool else "")
            found.append(f"It is unknown whether {room}: the duration of its requests is unknown.")
    return found


def longer_way(before_ms: float, after_ms: float) -> tuple[str, ...]:
    """How much longer or shorter the mean request's way is, when that is a millisecond or more."""
    if abs(after_ms - before_ms) < 1:
        return ()
    return (f"Average added latency changes from {before_ms:.0f} to {after_ms:.0f} ms.",)


def overloads(before: Sequence[RegionUse], after: Sequence[RegionUse], *, pool: str = "") -> tuple[str, ...]:
    """Regions that a change would put over a pool's limits, or further over; what more would be refused or wait.

    `pool` is named in each sentence where several could be meant; rows of several pools are asked pool by pool.
    """
    old = dict(of_each_pool(before))
    return tuple(
        sentence for name, uses in of_each_pool(after) for sentence in _overloads(old.get(name, []), uses, name or pool)
    )


def _overloads(before: Sequence[RegionUse], after: Sequence[RegionUse], pool: str) -> list[str]:
    old = {use.region_id: use for use in before}
    of_pool = _of(pool)
    found = []
    for use in after:
        was = old.get(use.region_id)
        if _excess(use) > (_excess(was) if was else 0.0) + NEARLY:
            limit = number(use.capacity_rps or 0.0)
            found.append(f"{use.name} would be at {number(use.served_rps)} of {limit} {use.unit}{of_pool}.")
    refused = sum(use.rejected_rps for use in after) - sum(use.rejected_rps for use in before)
    if refused > NEARLY:
        found.append(f"{number(refused)} more requests/s{of_pool} would be rejected.")
    queued = sum(use.queued_rps for use in after) - sum(use.queued_rps for use in before)
    if queued > NEARLY:
        found.append(f"{number(queued)} more requests/s{of_pool} would wait for a free slot.")
    return found


def _excess(use: RegionUse) -> float:
    return 0.0 if use.capacity_rps is None else max(0.0, use.served_rps - use.capacity_rps)

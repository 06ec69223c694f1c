"""The shapes in which overflow reaches pages and the API; plain data.

Regions are named by model ids (`rgn-2`) and by their names; rates are requests/s (connections/s for tcp pools).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

REQUESTS, CONNECTIONS = "requests/s", "connections/s"
# From this part of its limit on a pool is at it; the rest is the wavering of a ten-second window.
FULL = 0.95


@dataclass(frozen=True, slots=True)
class Lane:
    """Traffic of one region's clients that another region serves.

    `added_ms` is the round trip between the two, None where nobody knows; `reason` says why the traffic left: rate,
    connections, down, drained, or full where every region was full and the rest was spread.
    """

    source_id: str
    source: str
    target_id: str
    target: str
    rps: float
    added_ms: float | None
    reason: str


@dataclass(frozen=True)  # no slots: what is worked out from it is worked out once
class RegionUse:
    """One region: what its clients want (`offered`), what became of it (`own`, `out`, `refused`), what came (`in`).

    `served` is own + in; `queued` waits at home for a free slot (only the planner says so: nodes count it when it is
    served). Limits are a pool's: with one pool `capacity_rps` is its rate limit times its scaler (0 when drained),
    None where it has none, and then `unlimited` says whether nothing else bounds it; `measured_by` names the capacity
    run that the limit came from; `in_flight` and `flight_limit` count requests under way where limits count those.
    `capped_rps` is the part of what is refused that the account's ceilings refuse, `rate_capped_rps` what of that
    came too fast.
    With several pools there is no such number, because the room of one is of no use to another: `pools` has each by
    itself, worst first. Connections of tcp pools (`unit`) are no requests, so they are not added up.
    """

    region_id: str
    name: str
    title: str
    demand_rps: float
    local_rps: float
    served_rps: float
    overflow_out_rps: float
    overflow_in_rps: float
    rejected_rps: float
    capacity_rps: float | None
    unlimited: bool
    capacity_set_by: str
    capacity_set_at: datetime | None
    measured_by: str
    in_flight: int | None
    flight_limit: int | None
    drained: bool
    healthy: bool
    sentences: tuple[str, ...] = ()
    queued_rps: float = 0.0
    capped_rps: float = 0.0
    rate_capped_rps: float = 0.0
    unit: str = REQUESTS
    pools: tuple[PoolUse, ...] = ()

    @cached_property
    def used(self) -> float | None:
        """The part of its limit that a pool uses (1 is all of it); None without a limit that could be compared."""
        parts = [self.served_rps / self.capacity_rps] if self.capacity_rps else []
        if self.flight_limit and self.in_flight is not None:
            parts.append(self.in_flight / self.flight_limit)
        return max(parts, default=None)

    @property
    def usable(self) -> bool:
        """Whether anything is served here: neither drained nor without a server."""
        return self.healthy and not self.drained

    @cached_property
    def fullest(self) -> PoolUse | None:
        """Of several pools the one that uses most of its limit."""
        limited = [each for each in self.pools if each.use.used is not None and each.use.usable]
        return max(limited, key=lambda each: each.use.used or 0.0, default=None)

    @cached_property
    def pools_full(self) -> int:
        """How many of several pools are at their limits."""
        return sum(each.use.usable and (each.use.used or 0.0) >= FULL for each in self.pools)

    @cached_property
    def pools_down(self) -> int:
        """How many of several pools have no usable server here."""
        return sum(not each.use.healthy for each in self.pools)


@dataclass(frozen=True, slots=True)
class PoolUse:
    """One pool in one region; `use` counts that pool alone, so that it may be compared with its limits."""

    pool_id: str
    pool: str
    use: RegionUse


@dataclass(frozen=True, slots=True)
class Flow:
    """Who is served where at `at`; `at` None means that nothing was measured. `stale` numbers are not live any more.

    What silent nodes of the regions in `unread` (names) serve is not in it.
    """

    lanes: tuple[Lane, ...]
    regions: tuple[RegionUse, ...]
    rejected_rps: float
    at: datetime | None
    age_s: float | None
    stale: bool
    pools: tuple[str, ...] = ()  # ids of those that it is of
    unread: tuple[str, ...] = ()

    def served(self) -> dict[tuple[str, str], float]:
        """Requests/s by (region of the clients, region that serves them), what stays at home included."""
        found = {(use.region_id, use.region_id): use.local_rps for use in self.regions}
        for lane in self.lanes:
            if lane.source_id != lane.target_id:
                way = (lane.source_id, lane.target_id)
                found[way] = found.get(way, 0.0) + lane.rps
        return found


@dataclass(frozen=True, slots=True)
class Point:
    """One step of the history: Unix seconds, and what was wanted, left its region, was refused; None: not observed."""

    at: int
    demand_rps: float | None
    overflow_out_rps: float | None
    rejected_rps: float | None


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A question to the planner: regions (`rgn-2`) failed or drained, all traffic times `factor`, other limits per s.

    A failed region takes nothing, and its clients arrive at the nearest other one; a drained one keeps its clients.
    Limits are those of one pool: they are ignored where several are asked of.
    """

    failed_regions: tuple[str, ...] = ()
    drained_regions: tuple[str, ...] = ()
    factor: float = 1.0
    limits: Mapping[str, float] = field(default_factory=dict)

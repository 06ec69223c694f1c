"""Offered traffic, limits, orders and a policy go in; where every request goes comes out.

It says what the data plane does in a steady state, so that it can be compared with what the samples say, and asked what
would be if.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

SPREAD, QUEUE = "spread", "queue"
OWN, FULL = "own", "full"
# Below a millionth of a request per second nothing is left to be placed.
NOTHING = 1e-6

Rates = Mapping[str, float]
Lane = tuple[str, str]  # client region, serving region


@dataclass(frozen=True, slots=True)
class Question:
    """What is wanted and what can be taken; regions are any strings.

    `offered` is requests/s by client region; `capacity` requests/s by serving region, None without a limit and 0 for a
    region that takes nothing (a region that is missing has no servers). `orders` names for each client region the other
    regions in the order of spilling. `when_full` is spread, queue or refuse.
    """

    offered: Rates
    capacity: Mapping[str, float | None]
    orders: Mapping[str, Sequence[str]]
    when_full: str = SPREAD


@dataclass(frozen=True, slots=True)
class Plan:
    """Requests/s by (client region, serving region), and what of each client region waits or is refused.

    `spread` are the parts of `lanes` that found no room and were spread over full regions.
    """

    lanes: Mapping[tuple[str, str], float]
    spread: Mapping[tuple[str, str], float]
    queued: Rates
    refused: Rates

    def served(self, region: str) -> float:
        """Everything that a region serves."""
        return sum(rate for (_, target), rate in self.lanes.items() if target == region)


def plan(question: Question) -> Plan:
    """Place all offered traffic.

    1. Every region serves its own clients up to its limit; nobody pushes them out.
    2. In rounds, what is left of each region knocks at the nearest region of its order that still has room. Those who
       knock at the same door share its room in proportion to how much they bring. A round fills a region or places
       somebody's rest, so it ends after at most as many rounds as there are regions and sources.
    3. What found no room anywhere is spread, by capacity, over its own region and those of its order that take
       something, or waits, or is refused.
    """
    lanes: dict[tuple[str, str], float] = defaultdict(float)
    room = {region: inf if capacity is None else capacity for region, capacity in question.capacity.items()}
    left: dict[str, float] = {}
    for region, offered in question.offered.items():
        own = min(offered, room.get(region, 0.0))
        _put(lanes, room, region, region, own)
        left[region] = offered - own
    while knocking := _doors(question, room, left):
        for door, sources in knocking.items():
            brought = sum(left[source] for source in sources)
            share = min(1.0, room[door] / brought)
            for source in sources:
                placed = left[source] * share
                _put(lanes, room, source, door, placed)
                left[source] -= placed
            if share < 1.0:
                room[door] = 0.0
    return _with_rest(question, lanes, {source: rest for source, rest in left.items() if rest > NOTHING})


def _put(lanes: dict[tuple[str, str], float], room: dict[str, float], source: str, target: str, rate: float) -> None:
    if rate > 0:
        lanes[source, target] += rate
        room[target] -= rate


def _doors(question: Question, room: Rates, left: Rates) -> dict[str, list[str]]:
    """The region with room at which each source knocks next → the sources."""
    doors: dict[str, list[str]] = defaultdict(list)
    for source, rest in left.items():
        if rest > NOTHING:
            order = (region for region in question.orders.get(source, ()) if region != source)
            door = next((region for region in order if room.get(region, 0.0) > NOTHING), None)
            if door is not None:
                doors[door].append(source)
    return doors


def _with_rest(question: Question, lanes: dict[tuple[str, str], float], left: dict[str, float]) -> Plan:
    """What nobody has room for, as the policy says."""
    taking = {region: capacity or 0.0 for region, capacity in question.capacity.items() if capacity != 0}
    if question.when_full == QUEUE:
        at_home = {source: rest for source, rest in left.items() if source in taking}
        return Plan(lanes, {}, at_home, {source: rest for source, rest in left.items() if source not in taking})
    if question.when_full != SPREAD:
        return Plan(lanes, {}, {}, left)
    spread: dict[tuple[str, str], float] = {}
    refused: dict[str, float] = {}
    for source, rest in left.items():
        reached = {source, *question.orders.get(source, ())}
        open_to = {region: capacity for region, capacity in taking.items() if region in reached}
        whole = sum(open_to.values())
        if not whole:
            refused[source] = rest
        for region, capacity in open_to.items() if whole else ():
            spread[source, region] = rest * capacity / whole
            lanes[source, region] += spread[source, region]
    return Plan(lanes, spread, {}, refused)


def mean_added_ms(lanes: Mapping[Lane, float], latencies: Mapping[Lane, float]) -> float:
    """What the way to other regions adds to the mean request that is served, ms; unknown ways add nothing."""
    served = sum(lanes.values())
    added = sum(rate * latencies.get(lane, 0.0) for lane, rate in lanes.items() if lane[0] != lane[1])
    return added / served if served else 0.0


def capacity_of_flight(in_flight: float, mean_ms: float | None) -> float | None:
    """Requests/s that a limit of requests in flight stands for (Little's law); None where no time was measured."""
    return in_flight * 1000 / mean_ms if mean_ms else None

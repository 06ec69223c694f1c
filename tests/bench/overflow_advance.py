"""How exactly limits are kept while nodes count in advance (ADR 0027), in a model of HAProxy's counters.

`python -m tests.bench.overflow_advance`: three nodes with 6:3:1 of Poisson traffic; what one counts the others know
5 ms later. Each row is the same traffic with each request counted by itself and with counting in advance.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from apps.compiler.limits import LONG_WINDOW_S, short_bound
from apps.compiler.targets.haproxy.overflow.advance import BUSY, COUNTS, MUCH
from tests.bench.frequency import Frequency
from tests.bench.tables import table

WEIGHTS = (6, 3, 1)
DELAY_MS = 5
Phases = Sequence[tuple[float, float]]  # seconds, share of the limit that is offered
TRAFFIC: dict[str, Phases] = {
    "95 %": [(14, 0.95)],
    "30 %, then 200 %": [(12, 0.3), (12, 2)],
    "60 %, then 200 %": [(12, 0.6), (12, 2)],
    "50 %, 20 s of nearly nothing, 200 %": [(12, 0.5), (20, 0.0003), (6, 2)],
    "20 and 150 % by turns of a second": [(1, 0.2), (1, 1.5)] * 10,
    "20 and 150 % by turns of three": [(3, 0.2), (3, 1.5)] * 4,
}
LIMITS = (4000, 20_000)


@dataclass
class Node:
    """What one node knows of each node, itself among them, and how many it has counted in advance."""

    known: list[tuple[Frequency, Frequency]] = field(default_factory=lambda: [_windows() for _ in WEIGHTS])
    left: int = 0

    def sums(self, at: int) -> tuple[int, int]:
        """Of the long and of the short window."""
        return sum(long.rate(at) for long, _ in self.known), sum(short.rate(at) for _, short in self.known)

    def learn(self, number: int, at: int, count: int) -> None:
        """That a node counted so many at once."""
        for window in self.known[number]:
            window.count(at)
            window.now += count - 1


def _windows() -> tuple[Frequency, Frequency]:
    return Frequency(LONG_WINDOW_S * 1000), Frequency(1000)


def offered(limit: int, phases: Phases, draw: random.Random) -> Iterator[tuple[float, int]]:
    """When a request comes, and to which node."""
    now = end = 0.0
    for seconds, share in phases:
        end += seconds
        while (now := now + draw.expovariate(share * limit)) < end:
            yield now, draw.choices(range(len(WEIGHTS)), WEIGHTS)[0]
        now = end


def at_once(node: Node, number: int, at: int, room: int) -> int:
    """How many are counted for a request that is admitted."""
    own = node.known[number][0].rate(at)
    fitting = [each for each in COUNTS if MUCH * each * len(WEIGHTS) < room and own >= BUSY * each]
    return fitting[-1] if fitting else 1


def admitted(limit: int, phases: Phases, *, in_advance: bool) -> tuple[list[float], int, int]:
    """When requests were admitted, how many were refused, and how often peers were told."""
    long, short = LONG_WINDOW_S * limit, short_bound(limit)
    nodes, times = [Node() for _ in WEIGHTS], list[float]()
    messages: deque[tuple[int, int, int]] = deque()
    refused = told = 0
    for time, number in offered(limit, phases, random.Random(1)):
        at, node = int(time * 1000), nodes[number]
        while messages and messages[0][0] + DELAY_MS <= at:
            counted_at, teller, count = messages.popleft()
            for each in nodes[:teller] + nodes[teller + 1 :]:
                each.learn(teller, counted_at, count)
        if not node.left:
            used, burst = node.sums(at)
            room = min(long - used, short - burst)
            if room <= 0:
                refused += 1
                continue
            node.left = at_once(node, number, at, room) if in_advance else 1
            node.learn(number, at, node.left)
            messages.append((at, number, node.left))
            told += 1
        node.left -= 1
        times.append(time)
    return times, refused, told


def most(times: Sequence[float], seconds: float) -> int:
    """In any so many seconds."""
    begin = found = 0
    for end, time in enumerate(times):
        while times[begin] <= time - seconds:
            begin += 1
        found = max(found, end - begin + 1)
    return found


def row(limit: int, name: str, *, in_advance: bool) -> list[str]:
    """What became of one kind of traffic."""
    times, refused, told = admitted(limit, TRAFFIC[name], in_advance=in_advance)
    windows = (most(times, 1) / short_bound(limit), most(times, LONG_WINDOW_S) / (LONG_WINDOW_S * limit))
    figures = (f"{windows[0]:.3f} ×", f"{windows[1]:.3f} ×", f"{refused / (refused + len(times)):.2%}")
    return [str(limit), name, "yes" if in_advance else "no", *figures, f"{told / len(times):.2f}"]


def main() -> None:
    """Print the table."""
    head = ("limit/s", "offered", "in advance", "most in 1 s", "most in 10 s", "refused", "messages/request")
    print(
        table(head, [row(limit, name, in_advance=now) for limit in LIMITS for name in TRAFFIC for now in (False, True)])
    )


if __name__ == "__main__":
    main()

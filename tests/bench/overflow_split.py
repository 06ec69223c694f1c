"""How exactly a region takes what its limit says and sends the rest on, at one node and at three.

`python -m tests.bench.overflow_split [--only 20 200] [--setups 1 3 guests]`: offered 20 to 5 000 requests/s, at twice
the limit and at 80 % of it, constant and Poisson, through compiled configurations; with three nodes they share the
traffic 6:3:1. `guests` is how exactly the second of three regions, a quarter of the traffic its limit, takes overflow.
Cells of small rates run together, each in a pool of its own. The first 11 s are the warm-up.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

from apps.compiler.model.shared import Limit
from tests.bench.backends import instant_backends
from tests.bench.open_loop import (
    CONSTANT,
    POISSON,
    Outcome,
    Way,
    arrivals,
    merged,
    most_in_one_second,
    offer,
    percentile,
    schedule,
)
from tests.bench.overflow_env import Node, PoolPlan, host, rate, running_env
from tests.bench.tables import facts, percent, table

# The counters' first period, and a second more: regions further down the line begin theirs a little later.
WARM_UP_S = 11
SHARES = {1: (1,), 3: (6, 3, 1)}
GUESTS = "guests"
SETUPS = ("1", "3", GUESTS)
# Cells of one row are offered together: 20/s and 200/s in one go, 1 000/s in pairs, 5 000/s alone.
TOGETHER = ({20, 200}, {1000}, {5000})
MOST_TOGETHER = 2000


@dataclass(frozen=True, slots=True)
class Cell:
    """One row: offered requests/s, the limit, and how they arrive."""

    offered: int
    limit: int
    kind: str
    region: str = "rgn-1"

    @property
    def over(self) -> bool:
        """Whether more is offered than the limit."""
        return self.offered > self.limit


@dataclass(frozen=True, slots=True)
class Result:
    """What one cell measured: shares as parts of one."""

    setup: str
    offered: int
    limit: int
    kind: str
    really_offered: float
    error: float
    spilled: float
    worst_second: float
    failed: int
    late_p99_ms: float
    p99_ms: float


def all_cells() -> list[Cell]:
    """Rates × twice the limit and 80 % of it × constant and Poisson."""
    rates, kinds = (20, 200, 1000, 5000), (CONSTANT, POISSON)
    return [Cell(offered, limit, kind) for offered, kind in product(rates, kinds) for limit in _limits(offered)]


def _limits(offered: int) -> tuple[int, int]:
    return offered // 2, offered * 10 // 8


def guest_cells() -> list[Cell]:
    """A quarter stays at home, a quarter is what the second region takes, half goes on to the third."""
    return [
        Cell(offered, offered // 4, kind, "rgn-2") for offered in (20, 200, 1000, 5000) for kind in (CONSTANT, POISSON)
    ]


def batches(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Cells that may run at the same time."""
    found: list[list[Cell]] = []
    for rates in TOGETHER:
        batch: list[Cell] = []
        for cell in (each for each in cells if each.offered in rates):
            if batch and sum(each.offered for each in batch) + cell.offered > MOST_TOGETHER:
                found.append(batch)
                batch = []
            batch.append(cell)
        found += [batch] if batch else []
    return found


def seconds_of(batch: Sequence[Cell]) -> int:
    """Small rates need longer for their percents."""
    return WARM_UP_S + (20 if any(cell.offered < 100 for cell in batch) else 10)


def measure(batch: Sequence[Cell], pools: dict[Cell, int], nodes: Sequence[Node]) -> list[Result]:
    """Offer the cells together; one result for each."""
    seconds, shares = seconds_of(batch), SHARES[len(nodes)]
    ways = [Way(node.port, host(pools[cell])) for cell in batch for node in nodes]
    plans = []
    for index, cell in enumerate(batch):
        times = arrivals(cell.kind, cell.offered, seconds, seed=cell.offered + cell.limit)
        own = range(index * len(nodes), (index + 1) * len(nodes))
        plans.append(schedule(times, own, shares, seed=cell.limit))
    outcomes = offer(ways, merged(*plans), patience=15)
    split: list[list[Outcome]] = [[] for _ in batch]
    for each in outcomes:
        split[each.way // len(nodes)].append(each)
    return [evaluate(cell, found, str(len(nodes)), seconds) for cell, found in zip(batch, split, strict=True)]


def evaluate(cell: Cell, outcomes: Sequence[Outcome], setup: str, seconds: int) -> Result:
    """Compare what the cell's region took, after the warm-up, with its limit; what left home, over the entire run."""
    window = [each for each in outcomes if WARM_UP_S <= each.sent < seconds]
    home = [each.sent for each in window if each.region == cell.region]
    away = sum(each.region != "rgn-1" and each.status == 200 for each in outcomes)
    length = seconds - WARM_UP_S
    return Result(
        setup=setup if cell.region == "rgn-1" else GUESTS,
        offered=cell.offered,
        limit=cell.limit,
        kind=cell.kind,
        really_offered=len(window) / length,
        error=len(home) / (cell.limit * length) - 1 if cell.over else 0.0,
        spilled=away / max(1, len(outcomes)),
        worst_second=most_in_one_second(home) / cell.limit,
        failed=sum(each.status != 200 for each in outcomes),
        late_p99_ms=percentile([each.sent - each.at for each in outcomes], 0.99) * 1000,
        p99_ms=percentile([each.took for each in outcomes], 0.99) * 1000,
    )


def misses(result: Result) -> str:
    """What is wrong with a result against the goals; empty when it reaches them."""
    if result.failed:
        return f"{result.failed} failed"
    if result.offered > result.limit:
        goal = 0.01 if result.offered >= 200 else 0.02
        return "" if round(abs(result.error), 4) <= goal else "split"
    return "spilled" if result.spilled and result.offered >= 100 else ""


def rows(results: Sequence[Result]) -> list[list[str]]:
    """Cells of the table."""
    return [
        [
            each.setup,
            each.kind,
            str(each.offered),
            f"{each.really_offered:.0f}",
            str(each.limit),
            percent(each.error) if each.offered > each.limit else "–",
            percent(each.spilled) if each.offered <= each.limit else "–",
            f"{each.worst_second:.2f} ×",
            f"{each.p99_ms:.1f}",
            f"{each.late_p99_ms:.1f}",
            misses(each) or "yes",
        ]
        for each in results
    ]


HEADS = (
    "nodes of A", "arrivals", "offered/s", "really", "limit/s", "error of the split", "wrongly spilled", "worst second",
    "p99 ms", "sent late p99 ms", "goal",
)  # fmt: skip


def run(cells: Sequence[Cell], setup: str, directory: Path) -> list[Result]:
    """All cells on one setup: the limited region, or two, and another one without limits behind."""
    guests = setup == GUESTS
    nodes = (1, 1, 1) if guests else (int(setup), 1)
    names = [f"rgn-{number}" for number in range(1, len(nodes) + 1)]
    with instant_backends(directory, names) as ports:
        limited = len(nodes) - 1
        plans = [
            PoolPlan((*(rate(cell.limit),) * limited, Limit()), tuple((port,) for port in ports)) for cell in cells
        ]
        pools = {cell: number for number, cell in enumerate(cells, 1)}
        found = []
        with running_env(directory, plans, nodes) as regions:
            for batch in batches(cells):
                found += measure(batch, pools, regions[0])
                print(f"{setup}: {len(found)} of {len(cells)} cells", file=sys.stderr, flush=True)
    return found


def main() -> int:
    """Print a table and one line of JSON; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=int, nargs="*", default=[20, 200, 1000, 5000], help="offered rates")
    parser.add_argument("--setups", nargs="*", default=list(SETUPS), choices=SETUPS)
    given = parser.parse_args()
    print(facts(), flush=True)
    results = []
    for setup in given.setups:
        cells = [cell for cell in (guest_cells() if setup == GUESTS else all_cells()) if cell.offered in given.only]
        with tempfile.TemporaryDirectory() as folder:
            results += run(cells, setup, Path(folder))
    print(table(HEADS, rows(results)))
    print(facts())
    print(json.dumps([asdict(each) for each in results]))
    return int(any(map(misses, results)))


if __name__ == "__main__":
    sys.exit(main())

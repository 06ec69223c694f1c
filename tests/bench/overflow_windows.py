"""Which windows a rate limit is counted in; the table behind the decision of the ADR.

`python -m tests.bench.overflow_windows [--parts simulated real slow] [--quick]`:

1. *simulated*: every rule for limits of 10 to 5 000/s on simulated counters, minutes of traffic in a second;
2. *real*: some of those cells on compiled configurations, beside the simulation of the very same arrivals;
3. *slow*: what clients of slow servers feel (three machines of two lanes of 384 ms in each of two regions, limit 10/s,
   offered 20/s from quiet), with every rule and with a limit of requests in flight.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from apps.compiler.model.shared import Limit
from tests.bench.backends import instant_backends, slow_machines
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
from tests.bench.overflow_env import Node, PoolPlan, host, in_flight, rate, running_env, set_bounds
from tests.bench.tables import facts, percent, table
from tests.bench.windows import (
    BURST_AT_S,
    BURST_S,
    COMPILED,
    LIMITS,
    QUICK_S,
    RULES,
    Rule,
    Tried,
    burst_times,
    spilled,
    try_rule,
)

# Rules that real nodes are asked to confirm, and how far the simulation may be off.
CONFIRMED = ("1 s alone", "10 s alone", "10 s and 1 s × 1.5", COMPILED)
MOST_OFF = 0.02
SLOW_LIMIT, SLOW_OFFERED, MACHINES = 10, 20, 3
RUN_S = 25
SECONDS = {10: 3000, 100: 600, 1000: 120, 5000: 40}
TRIED_HEADS = (
    "limit/s", "rule", "bounds", "80 %, Poisson: spilled", "100 %, constant", "100 %, Poisson", "200 %: error",
    "most in 1 s", "first 5 s", "burst of 100 ms stays",
)  # fmt: skip
REAL_HEADS = (
    "limit/s", "rule", "offered", "spilled", "simulated", "most in 1 s", "first 5 s", "burst stays", "simulated",
)  # fmt: skip
SLOW_HEADS = (
    "limit",
    "arrivals",
    "mean ms",
    "p95 ms",
    "p99 ms",
    "longest ms",
    "served at home/s",
    "first 25 s mean ms",
    "refused",
    "sent late p99 ms",
)


@dataclass(frozen=True, slots=True)
class RealCell:
    """A rule on real nodes: load as a multiple of the limit, or a burst upon half of it."""

    limit: int
    rule: Rule
    load: float
    burst: bool = False

    def times(self, seconds: int) -> list[float]:
        """When requests arrive."""
        if self.burst:
            return burst_times(self.limit)[0]
        return arrivals(POISSON, self.limit * self.load, seconds, seed=self.limit + int(self.load * 10))


@dataclass(frozen=True, slots=True)
class Seen:
    """What real nodes did, and what the simulation says about the arrivals as they were."""

    limit: int
    rule: str
    load: float
    spilled: float
    simulated: float
    worst_second: float
    first_seconds: float
    burst: bool


@dataclass(frozen=True, slots=True)
class Felt:
    """What clients of slow servers felt; ms."""

    limit: str
    kind: str
    mean: float
    p95: float
    p99: float
    longest: float
    local_rps: float
    first_mean: float
    refused: int
    late_p99: float


def real_cells(limits: Sequence[int]) -> list[RealCell]:
    """Rules to confirm × loads, and bursts; at 1 000/s only what is compiled."""
    rules = [rule for rule in RULES if rule.name in CONFIRMED]
    cells = []
    for limit in limits:
        for rule in rules if limit <= 100 else rules[-1:]:
            loads = (0.8, 1.0, 2.0) if limit <= 100 else (1.0, 2.0)
            cells += [RealCell(limit, rule, load) for load in loads]
            cells += [RealCell(limit, rule, 0.5, burst=True)] if limit == 100 else []
    return cells


def run_real(cells: Sequence[RealCell], seconds: int, directory: Path) -> list[Seen]:
    """All cells at once, each in a pool of its own whose bounds are set as the rule says."""
    with instant_backends(directory, ("rgn-1", "rgn-2")) as (here, there):
        plans = [PoolPlan((rate(cell.limit), Limit()), ((here,), (there,))) for cell in cells]
        with running_env(directory, plans, (1, 1)) as env:
            for number, cell in enumerate(cells, 1):
                set_bounds(env, number, "rgn-1", cell.rule.word(cell.limit))
            ways = [Way(env[0][0].port, host(number)) for number in range(1, len(cells) + 1)]
            shots = merged(*(schedule(cell.times(seconds), [way]) for way, cell in enumerate(cells)))
            outcomes = offer(ways, shots)
    split: list[list[Outcome]] = [[] for _ in cells]
    for each in sorted(outcomes, key=lambda each: each.sent):
        split[each.way].append(each)
    return [see(cell, found) for cell, found in zip(cells, split, strict=True)]


def see(cell: RealCell, outcomes: Sequence[Outcome]) -> Seen:
    """Figures of one cell; of a burst only the burst counts."""
    home = [each for each in outcomes if each.region == "rgn-1"]
    share = 1 - len(home) / len(outcomes)
    simulated = spilled([each.sent for each in outcomes], cell.rule, cell.limit)
    if cell.burst:
        # Nothing but the burst spills at half the limit, so that its share follows from the whole.
        share, simulated = (part * len(outcomes) / cell.limit for part in (share, simulated))
    settled = [each.sent for each in home if each.sent >= 10]
    return Seen(
        limit=cell.limit,
        rule=cell.rule.name,
        load=cell.load,
        spilled=share,
        simulated=simulated,
        worst_second=most_in_one_second(settled) / cell.limit,
        first_seconds=sum(each.sent < QUICK_S for each in home) / cell.limit / QUICK_S,
        burst=cell.burst,
    )


def slow_limits() -> list[tuple[str, Limit, Rule | None]]:
    """Every rule, and requests in flight: one and a half for each lane, one, two."""
    found: list[tuple[str, Limit, Rule | None]] = [
        (f"{SLOW_LIMIT}/s, {rule.name}", rate(SLOW_LIMIT), rule) for rule in RULES
    ]
    return [*found, *((f"{value} in flight", in_flight(value), None) for value in (6, 9, 12))]


def run_slow(seconds: int, directory: Path) -> list[Felt]:
    """Every limit with constant and with Poisson arrivals, all at once, each with six machines of its own."""
    cells = [(*each, kind) for each in slow_limits() for kind in (CONSTANT, POISSON)]
    names = [f"rgn-{1 + (each // MACHINES) % 2}" for each in range(2 * MACHINES * len(cells))]
    with slow_machines(names) as ports:
        groups = [tuple(ports[first : first + MACHINES]) for first in range(0, len(ports), MACHINES)]
        plans = [
            PoolPlan((limit, limit), (groups[2 * number], groups[2 * number + 1]))
            for number, (_, limit, _, _) in enumerate(cells)
        ]
        with running_env(directory, plans, (1, 1)) as env:
            _set_rules(env, [rule for _, _, rule, _ in cells])
            ways = [Way(env[0][0].port, host(number)) for number in range(1, len(cells) + 1)]
            times = {kind: arrivals(kind, SLOW_OFFERED, seconds, seed=9) for kind in (CONSTANT, POISSON)}
            outcomes = offer(ways, merged(*(schedule(times[cell[3]], [way]) for way, cell in enumerate(cells))))
    return [
        feel(name, kind, [each for each in outcomes if each.way == way], seconds)
        for way, (name, _, _, kind) in enumerate(cells)
    ]


def _set_rules(env: Sequence[Sequence[Node]], rules: Sequence[Rule | None]) -> None:
    for number, rule in enumerate(rules, 1):
        for region in ("rgn-1", "rgn-2") if rule else ():
            set_bounds(env, number, region, rule.word(SLOW_LIMIT) if rule else "")


def feel(name: str, kind: str, outcomes: Sequence[Outcome], seconds: int) -> Felt:
    """Latencies of one cell."""
    took = [each.took * 1000 for each in outcomes if each.status == 200]
    early = [each.took * 1000 for each in outcomes if each.status == 200 and each.at < RUN_S]
    return Felt(
        limit=name,
        kind=kind,
        mean=sum(took) / len(took),
        p95=percentile(took, 0.95),
        p99=percentile(took, 0.99),
        longest=max(took),
        local_rps=sum(each.region == "rgn-1" for each in outcomes) / seconds,
        first_mean=sum(early) / len(early),
        refused=len(outcomes) - len(took),
        late_p99=percentile([each.sent - each.at for each in outcomes], 0.99) * 1000,
    )


def tried_row(each: Tried) -> list[str]:
    """Cells of the first table."""
    shares = (each.spilled_80_poisson, each.spilled_100_constant, each.spilled_100_poisson, each.error_200)
    times = (each.worst_second, each.first_seconds)
    words = [percent(share) for share in shares] + [f"{factor:.2f} ×" for factor in times]
    return [str(each.limit), each.rule, each.bounds, *words, f"{each.burst:.0%}"]


def seen_row(each: Seen) -> list[str]:
    """Cells of the second table."""
    load = f"{each.load:.0%}" + (f" + {BURST_S * 1000:.0f} ms burst" if each.burst else "")
    if each.burst:
        middle, burst = ["–"] * 4, [f"{1 - each.spilled:.0%}", f"{1 - each.simulated:.0%}"]
    else:
        shares = [percent(each.spilled), percent(each.simulated)]
        middle, burst = [*shares, f"{each.worst_second:.2f} ×", f"{each.first_seconds:.2f} ×"], ["–", "–"]
    return [str(each.limit), each.rule, load, *middle, *burst]


def felt_row(each: Felt) -> list[str]:
    """Cells of the third table."""
    times = [f"{value:.0f}" for value in (each.mean, each.p95, each.p99, each.longest)]
    return [
        each.limit,
        each.kind,
        *times,
        f"{each.local_rps:.1f}",
        f"{each.first_mean:.0f}",
        str(each.refused),
        f"{each.late_p99:.1f}",
    ]


def simulate(quick: bool) -> list[Tried]:
    """Every rule for every limit."""
    seconds = {limit: max(25, length // 10) if quick else length for limit, length in SECONDS.items()}
    return [try_rule(rule, limit, seconds[limit]) for limit in LIMITS for rule in RULES]


def confirm(quick: bool) -> list[Seen]:
    """Small limits together, then 1 000/s."""
    assert int(BURST_AT_S) < 40
    found = []
    for limits, seconds in (((10, 100), 40 if quick else 90), ((1000,), 20)):
        with tempfile.TemporaryDirectory() as folder:
            found += run_real(real_cells(limits), seconds, Path(folder))
    return found


def main() -> int:
    """Print the tables and one line of JSON; 1 when real nodes and simulation disagree, or a spreading pool refuses."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="*", default=["simulated", "real", "slow"])
    parser.add_argument("--quick", action="store_true", help="less traffic for each figure")
    given = parser.parse_args()
    numbers: dict[str, object] = {}
    off, refused = 0.0, 0
    print(facts())
    if "simulated" in given.parts:
        tried = simulate(given.quick)
        print("\nSimulated counters:\n\n" + table(TRIED_HEADS, [*map(tried_row, tried)]), flush=True)
        numbers["simulated"] = [asdict(each) for each in tried]
    if "real" in given.parts:
        seen = confirm(given.quick)
        off = max(abs(each.spilled - each.simulated) for each in seen)
        print(f"\nReal nodes, {facts()}:\n\n" + table(REAL_HEADS, [*map(seen_row, seen)]), flush=True)
        print(f"\nSimulation and nodes differ by at most {percent(off)} of the requests.")
        numbers["real"] = [asdict(each) for each in seen]
    if "slow" in given.parts:
        with tempfile.TemporaryDirectory() as folder:
            felt = run_slow(25 if given.quick else 50, Path(folder))
        print(f"\nSlow servers, real nodes, {facts()}:\n\n" + table(SLOW_HEADS, [*map(felt_row, felt)]))
        refused = sum(each.refused for each in felt)
        numbers["slow"] = [asdict(each) for each in felt]
    print(json.dumps(numbers))
    return int(off > MOST_OFF or refused > 0)


if __name__ == "__main__":
    sys.exit(main())

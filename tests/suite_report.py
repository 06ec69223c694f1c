"""What a run of the suite cost: a table by folder, its slowest tests, and whether it kept to its budget.

`python -m tests.suite_report` prints the table of the last run again, from `var/suite/`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.ledger import Cost, Entry, read

# Seconds on two quiet cores with everything installed, as fast as `tests.processor` says; a run that needs a fifth more
# has failed, unless other programs took more than this share of the processors meanwhile.
QUIET = 0.15
BUDGETS = {"quick": 20.0, "test": 600.0}
OVERDRAFT = 1.2
SLOW_S = 1.0
# A noisy machine doubles what a test costs, so only what is beyond that fails; all above SLOW_S are named.
NOISE = 2.0
SLOWEST = 10


@dataclass(frozen=True, slots=True)
class Run:
    """How one phase ended: the exit code of pytest, seconds on the clock, where its ledger is, workers per core."""

    name: str
    code: int
    seconds: float
    ledger: Path
    crowd: float = 1.0


@dataclass(frozen=True, slots=True)
class Machine:
    """What a run had: the share of all processor time, 0 to 1, that other programs took; how slow its processors are.

    `slowness` is 1 where the budgets were set, and 2 where the same work takes twice the processor time.
    """

    others: float = 0.0
    slowness: float = 1.0


def report(suite: str, runs: Sequence[Run], seconds: float, machine: Machine) -> int:
    """Print where the time went and what was wrong with it; the exit code of the whole suite."""
    ledgers = [read(run.ledger) for run in runs]
    entries = {name: entry for _, tests in ledgers for name, entry in tests.items()}
    # What other threads and processes of a test wait for a processor nobody counts: they wait as long as it is crowded.
    slow = [(tests, SLOW_S * machine.slowness * run.crowd) for run, (_, tests) in zip(runs, ledgers, strict=True)]
    for run, (starts, tests) in zip(runs, ledgers, strict=True):
        print(f"== {run.name}: {run.seconds:.0f} s, {len(tests)} tests, start of a worker {_start(starts)}")
    print("\n".join(["== its slowest tests, seconds", *_lines(slowest(entries))]))
    over = overdrawn(suite, seconds, machine.slowness)
    beside = f"other programs took {machine.others:.0%} of the processors; work took {machine.slowness:.1f} × the usual"
    complaints = [line for tests, above in slow for line in unexplained(tests, above)]
    print("\n".join([*complaints, *over, f"== {suite}: {seconds:.0f} s in total, {beside}"]), flush=True)
    beyond = any(unexplained(tests, above * NOISE) for tests, above in slow)
    return max(*(run.code for run in runs), 1 if machine.others <= QUIET and (over or beyond) else 0)


def slowest(entries: Mapping[str, Entry]) -> list[tuple[str, Entry]]:
    """The tests that took most of the clock, the longest first."""
    return sorted(entries.items(), key=lambda each: -each[1].total.wall)[:SLOWEST]


def unexplained(entries: Mapping[str, Entry], above: float = SLOW_S) -> list[str]:
    """A sentence for each test outside e2e that is slow by itself and has no reason beside it."""
    return [
        f"TOO SLOW {name}: {entry.call.own:.1f} s; make it faster, or say why: @pytest.mark.slow(reason=...)"
        for name, entry in entries.items()
        if entry.call.own > above and not entry.reason
    ]


def overdrawn(suite: str, seconds: float, slowness: float = 1.0) -> list[str]:
    """A complaint where the suite took too long."""
    budget = BUDGETS.get(suite, float("inf")) * slowness
    if seconds <= budget * OVERDRAFT:
        return []
    return [f"OVER BUDGET: {seconds:.0f} s of {budget:.0f} s"]


def by_folder(entries: Mapping[str, Entry]) -> dict[str, tuple[int, Cost]]:
    """Number of tests and their cost for each folder below tests/."""
    found: dict[str, tuple[int, Cost]] = defaultdict(lambda: (0, Cost()))
    for name, entry in entries.items():
        folder = name.split("/")[1]
        count, cost = found[folder]
        found[folder] = (count + 1, cost + entry.total)
    return dict(sorted(found.items(), key=lambda each: -each[1][1].wall))


def _start(starts: Sequence[Cost]) -> str:
    if not starts:
        return "unknown"
    return f"{max(start.wall for start in starts):.1f} s ({max(start.cpu for start in starts):.1f} s of processor)"


def _lines(entries: Iterable[tuple[str, Entry]]) -> list[str]:
    return [f"{entry.total.wall:7.1f}  {name}" for name, entry in entries]


def main() -> None:
    """Tables of Markdown for every ledger that the last runs left."""
    for path in sorted(Path("var/suite").glob("*.json")):
        starts, entries = read(path)
        print(f"\n**{path.stem}**, start of a worker {_start(starts)}\n")
        print("| folder | tests | wall s | processor s | of ended children s | waiting for a processor s |")
        print("|---|---:|---:|---:|---:|---:|")
        for folder, (count, cost) in by_folder(entries).items():
            print("|", " | ".join([folder, str(count), *(f"{seconds:.0f}" for seconds in cost.seconds)]), "|")


if __name__ == "__main__":
    main()

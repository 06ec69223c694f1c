"""Google's tutorial on capacity and overflow, replayed with httperf through compiled configurations.

`python -m tests.bench.overflow_replay [--runs 5]`: machines of two lanes of 384 ms each (5.2 requests/s), three in a
region, limit 10 requests/s, constant arrivals for 25 s at a time. First everything in one region, then two regions that
overflow into each other, 500 requests at 20/s several times from quiet. `theirs` are the tutorial's own numbers.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from apps.compiler.model.shared import Limit
from tests.bench.backends import SERVICE_MS, slow_machines
from tests.bench.overflow_env import PoolPlan, host, rate, running_env
from tests.bench.tables import facts, table

SECONDS = 25
LIMIT = 10
MACHINES = 3
GOAL = 1.15
# A machine this much slower than its work when nothing else is asked of it was starved: the numbers are void.
STARVED = 1.1
# Mean ms of the runs at 20/s in the tutorial; where it has fewer, the last stands.
THEIRS_AT_TWENTY = (6397, 3783, 860, 701, 702)
UNLOADED, TEN = "one machine, 4.5/s", "two regions, 10/s"


@dataclass(frozen=True, slots=True)
class Run:
    """One go of httperf; `theirs` is the tutorial's mean in ms."""

    name: str
    per_s: float
    pool: int
    theirs: str


@dataclass(frozen=True, slots=True)
class Measured:
    """What httperf said; ms from connecting to the end of the answer."""

    name: str
    theirs: str
    mean: float
    median: float
    longest: float
    answers: int
    failed: int


# Pools 1–3 have one machine each, 4 and 5 one region, 6 and 7 two regions.
FIRST = (
    Run(UNLOADED, 4.5, 1, "384"),
    Run("one machine, 7/s", 7, 2, "11 076"),
    Run("one machine, 10/s", 10, 3, "18 336"),
    Run("one region, 10/s", 10, 4, "≈ 500"),
    Run("one region, 20/s", 20, 5, "≈ 5 000"),
    Run(TEN, 10, 6, "585"),
)


def second(runs: int) -> list[Run]:
    """The overflow at 20/s, one run after the other."""
    theirs = [f"{each:,}".replace(",", " ") for each in THEIRS_AT_TWENTY]
    return [
        Run(f"two regions, 20/s, run {number}", 20, 7, theirs[min(number, len(theirs)) - 1])
        for number in range(1, runs + 1)
    ]


def plans(ports: Sequence[int]) -> list[PoolPlan]:
    """The seven pools over the machines, of which the last nine are in the second region or stand idle there."""
    left = iter(ports)

    def some(count: int) -> tuple[int, ...]:
        return tuple(islice(left, count))

    alone = [PoolPlan((Limit(), Limit()), (some(count), ())) for count in (1, 1, 1, MACHINES, MACHINES)]
    both = [PoolPlan((rate(LIMIT), rate(LIMIT)), (some(MACHINES), some(MACHINES))) for _ in range(2)]
    return [*alone, *both]


def machines() -> int:
    """How many machines `plans` takes."""
    return 3 + 2 * MACHINES + 2 * 2 * MACHINES


def start(run: Run, port: int) -> subprocess.Popen[str]:
    """httperf at a constant rate, a new connection for each request."""
    words = ["httperf", "--hog", "--server", "127.0.0.1", "--port", str(port), "--server-name", host(run.pool)]
    words += ["--uri", "/", "--rate", str(run.per_s), "--num-conns", str(int(run.per_s * SECONDS))]
    return subprocess.Popen([*words, "--timeout", "90"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def read(run: Run, said: str) -> Measured:
    """Take the figures out of httperf's report."""
    times = re.search(r"Connection time \[ms\]: min \S+ avg (\S+) max (\S+) median (\S+)", said)
    good = re.search(r"Reply status: .*2xx=(\d+)", said)
    if times is None or good is None:
        raise ValueError(f"httperf said nothing to be read: {said[:400]}")
    mean, longest, median = map(float, times.groups())
    wanted = int(run.per_s * SECONDS)
    return Measured(run.name, run.theirs, mean, median, longest, int(good[1]), wanted - int(good[1]))


def replay(runs: int, directory: Path) -> list[Measured]:
    """First what stands alone, all at once, each on machines of its own; then the runs at 20/s one by one."""
    with slow_machines(["rgn"] * machines()) as ports, running_env(directory, plans(ports), (1, 1)) as env:
        port = env[0][0].port
        started = [(run, start(run, port)) for run in FIRST]
        found = [read(run, process.communicate()[0]) for run, process in started]
        found += [read(run, start(run, port).communicate()[0]) for run in second(runs)]
    return found


def report(found: Sequence[Measured]) -> tuple[str, dict[str, float]]:
    """The table, and for each run at 20/s its mean as a multiple of the unloaded one."""
    unloaded = next(each.mean for each in found if each.name == UNLOADED)
    ratios = {each.name: each.mean / unloaded for each in found if "20/s, run" in each.name}
    heads = ("", "theirs, mean ms", "ours, mean ms", "× unloaded", "median", "longest", "answers", "failed")
    rows = []
    for each in found:
        figures = (f"{each.mean:.0f}", f"{each.mean / unloaded:.2f} ×", f"{each.median:.0f}", f"{each.longest:.0f}")
        rows.append([each.name, each.theirs, *figures, str(each.answers), str(each.failed)])
    return table(heads, rows), ratios


def starved(found: Sequence[Measured]) -> bool:
    """Whether this computer had no time for the machines."""
    return next(each.mean for each in found if each.name == UNLOADED) > STARVED * SERVICE_MS


def main() -> int:
    """Print the tutorial's table beside ours and one line of JSON; 1 when the goal is missed or nothing counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="runs of 500 requests at 20/s")
    given = parser.parse_args()
    print(facts(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        found = replay(given.runs, Path(folder))
    text, ratios = report(found)
    print(text)
    print(facts())
    if starved(found):
        print("This computer was too busy with other things; nothing above counts.")
    print(json.dumps({"runs": [asdict(each) for each in found], "ratios": ratios}))
    return int(starved(found) or max(ratios.values()) > GOAL or any(each.failed for each in found))


if __name__ == "__main__":
    sys.exit(main())

"""One line for each attack and each fault: what was tried, what happened, whether it held.

`make attacks` prints them at its end. Durations are judged here and nowhere else in the suite: as what was promised
times two, or times the processes that wait for each processor of a busy machine.
"""

from __future__ import annotations

import os
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

SLACK = 2.0
ROOT = Path(__file__).resolve().parents[2]
LINES: list[str] = []


@dataclass
class Trial:
    """What has been seen so far of one attack."""

    tried: str
    seen: list[str] = field(default_factory=list)

    def saw(self, what: str) -> None:
        """A few words for the line."""
        self.seen.append(what)

    def took(self, what: str, seconds: float, promised: float) -> None:
        """Seconds that something needed, judged."""
        slack = max(SLACK, os.getloadavg()[0] / (os.cpu_count() or 1))
        self.saw(f"{what} after {seconds:.1f} s (promised: {promised:g} s, judged × {slack:.1f})")
        assert seconds <= promised * slack, f"{what} took {seconds:.1f} s; {promised:g} s are promised"


@contextmanager
def trial(tried: str, control: str) -> Iterator[Trial]:
    """An attack; it has held when the block ends.

    `control` is the test, or the planted defect (`mutant:NAME`), that takes the safeguard away and sees it succeed;
    or `none: …` where there is nothing to take away, and why.
    """
    assert control_exists(control), f"there is no control {control}"
    found = Trial(tried)
    verdict = "NOT HELD"
    try:
        yield found
        verdict = "held"
    except BaseException as error:
        found.saw(str(error).partition("\n")[0][:200] or type(error).__name__)
        raise
    finally:
        LINES.append(f"{verdict}: {tried}: {'; '.join(found.seen)} (control: {control.rpartition('/')[2]})")
        print(LINES[-1])


def control_exists(control: str) -> bool:
    """Whether the suite has this test, or `make mutants` this defect."""
    if control.startswith("none: "):
        return True
    if control.startswith("mutant:"):
        files = (ROOT / "tests" / "mutants").glob("*.toml")
        names = {each["name"] for file in files for each in tomllib.loads(file.read_text())["mutant"]}
        return control.removeprefix("mutant:") in names
    path, _, name = control.partition("::")
    return f"def {name}(" in (ROOT / path).read_text()


def elapsed(since: float) -> float:
    """Seconds since a moment of the monotonic clock."""
    return time.monotonic() - since

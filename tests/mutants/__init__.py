"""CHECK: defects planted on purpose, one for each class of safety, so that we know what the tests would see.

Each file beside this one is a table of an area. `before` stands exactly once in `file`; with `after` in its place a
safety is gone, and one of `tests` has to fail. `only = "exhaustive"` says that no less than `make test-all` sees it.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FEWEST, MOST_EXHAUSTIVE = 40, 8


@dataclass(frozen=True, slots=True)
class Mutant:
    """One defect: the safety that it takes away, where, and the tests that can reach it."""

    name: str
    safety: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]
    only: str = ""

    def planted(self, text: str) -> str:
        """The text of the file with the defect in it; raises ValueError unless there is one place for it."""
        if text.count(self.before) != 1 or self.before == self.after:
            raise ValueError(f"{self.name}: `before` stands {text.count(self.before)} times in {self.file}.")
        return text.replace(self.before, self.after)


def read_mutants() -> list[Mutant]:
    """All of them, area by area."""
    tables = [tomllib.loads(path.read_text()) for path in sorted(HERE.glob("*.toml"))]
    return [Mutant(**{**row, "tests": tuple(row["tests"])}) for table in tables for row in table["mutant"]]

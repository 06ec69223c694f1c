"""Plants each defect in a copy of the project and asks the tests that should see it: `python -m tests.mutants`.

First all those tests have to pass without any defect, else their failing would prove nothing. Everything runs on the
database of SPILLWAY_DATABASE_URL, or else on a private PostgreSQL as in `make test`: SQLite has one writer at a time,
so locks that are forgotten do not show there.
"""

from __future__ import annotations

import argparse
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.mutants import MOST_EXHAUSTIVE, ROOT, Mutant, read_mutants
from tests.servers import postgresql, redis
from tests.tables import make_tables

AT_ONCE = 2
PAGE = ROOT / "docs" / "develop" / "mutants.md"
INSTALLED = (".venv", "frontend/static/vendor", "frontend/node_modules")
WORDS = {0: "SURVIVED", 1: "caught"}  # other codes of pytest say that it ran no test: the table is wrong
_FAILURE = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+)", re.MULTILINE)
_INTRODUCTION = f"""# What the tests would see

Each row is a defect that somebody could make and that takes one safety away. `make mutants` plants them one after the
other in a copy of the project and expects a test to fail; at most {MOST_EXHAUSTIVE} may need `make test-all`.
They stand in `tests/mutants/*.toml`; this page is written by `python -m tests.mutants --write`.

| defect | safety that is gone | planted in | seen by | first test to fail |
|---|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of the files that git knows or would know, beside what is installed."""

    folder: Path
    environment: Mapping[str, str]

    def fill(self) -> None:
        """Copy everything as it is in the working tree."""
        listed = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
        names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
        for name in filter(None, names):
            if (ROOT / name).is_file():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.folder / name)
        for name in INSTALLED:
            if (ROOT / name).exists():
                (self.folder / name).symlink_to(ROOT / name)

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run pytest here."""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *words]
        where, env = self.folder, self.environment
        return subprocess.run(command, cwd=where, env=env, capture_output=True, text=True, check=False)

    def evaluate(self, mutant: Mutant) -> tuple[int, str]:
        """Plant it and ask its tests until one fails: the code of pytest, and that test or all that was said.

        Afterwards the file is as it was, its time included, by which Python knows what it has compiled.
        """
        file = self.folder / mutant.file
        text, was = file.read_text(), file.stat()
        file.write_text(mutant.planted(text))
        try:
            ran = self.ask("-x", "-n", "0", "--timeout", "300", *_marks(mutant.only), *mutant.tests)
        finally:
            file.write_text(text)
            os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
        failure = _FAILURE.search(ran.stdout)
        return ran.returncode, failure[1] if failure else ran.stdout[-3000:] + ran.stderr


def _marks(only: str) -> Sequence[str]:
    return () if only else ("-m", "not exhaustive")


def _refuse_failing(copy: Copy, mutants: Sequence[Mutant]) -> None:
    """End here when a test fails without any defect."""
    for only in sorted({mutant.only for mutant in mutants}):
        files = sorted({test for mutant in mutants if mutant.only == only for test in mutant.tests})
        ran = copy.ask("-n", str(AT_ONCE), "--dist", "loadfile", *_marks(only), *files)
        if ran.returncode:
            sys.exit(f"{ran.stdout[-9000:]}{ran.stderr}\nTests fail without any defect, so they prove nothing.")


@contextmanager
def _environment() -> Iterator[Mapping[str, str]]:
    """Where the tests find a database, new ones of which are born with all tables, and a Redis."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    with ExitStack() as stack:
        if "SPILLWAY_DATABASE_URL" not in environment:
            folders = [Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="spillway-"))) for _ in range(2)]
            environment["SPILLWAY_REDIS_URL"] = stack.enter_context(redis(folders[0]))
            url = environment["SPILLWAY_DATABASE_URL"] = stack.enter_context(postgresql(folders[1], small=True))
            make_tables(url.removesuffix("postgres") + "template1", folders[0])
        yield environment


def evaluate_all(mutants: Sequence[Mutant]) -> list[tuple[int, str]]:
    """Plant all of them, some at once, each in a copy of its own; says each verdict as it comes."""
    free: queue.SimpleQueue[Copy] = queue.SimpleQueue()

    def evaluate(mutant: Mutant) -> tuple[int, str]:
        copy = free.get()
        try:
            code, said = copy.evaluate(mutant)
        finally:
            free.put(copy)
        print(f"{mutant.name}: {WORDS.get(code, f'ERROR {code}')} {said if code else ''}", file=sys.stderr, flush=True)
        return code, said

    with ExitStack() as stack:
        environment = stack.enter_context(_environment())
        for _ in range(AT_ONCE):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="spillway-mutants-"))
            copy = Copy(Path(folder), environment)
            copy.fill()
            free.put(copy)
        _refuse_failing(copy, mutants)
        return list(stack.enter_context(ThreadPoolExecutor(AT_ONCE)).map(evaluate, mutants))


def _row(mutant: Mutant, test: str) -> str:
    command = "make test-all" if mutant.only else "make test"
    return f"| {mutant.name} | {mutant.safety} | `{mutant.file}` | `{command}` | `{test}` |\n"


def main() -> int:
    """0 when every defect is seen, and few enough need `make test-all`."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these defects alone")
    parser.add_argument("--list", action="store_true", help="name the defects and plant none")
    parser.add_argument("--table", action="store_true", help="print the page in the end")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    asked = parser.parse_args()
    mutants = [each for each in read_mutants() if not asked.only or each.name in asked.only]
    if asked.list:
        print(*(f"{each.name}: {each.safety}" for each in mutants), sep="\n")
        return 0
    verdicts = dict(zip(mutants, evaluate_all(mutants), strict=True))
    missed = [mutant.name for mutant, (code, _) in verdicts.items() if code != 1]
    page = _INTRODUCTION + "".join(_row(mutant, said) for mutant, (_, said) in verdicts.items())
    if asked.table:
        print(page)
    if asked.write and not asked.only and not missed:
        PAGE.write_text(page)
    late = sum(bool(mutant.only) for mutant in mutants)
    print(f"{len(mutants)} defects, {late} for `make test-all` only; not seen: {', '.join(missed) or 'none'}.")
    return int(not mutants or bool(missed) or late > MOST_EXHAUSTIVE)


if __name__ == "__main__":
    sys.exit(main())

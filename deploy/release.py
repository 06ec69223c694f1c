"""What a release writes down: `python -m deploy.release` keeps the digest of every migration that goes out with it.

From then on a test compares them: a database of that release has run exactly these. Digests of earlier releases stay.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RELEASED = Path(__file__).with_name("released_migrations.txt")
HEADING = "# SHA-256 of each migration of a released version; `python -m deploy.release` adds to it before a tag.\n"


class Rewritten(Exception):
    """A migration that a release had is not what it was; the message names it."""


def migrations(root: Path = ROOT) -> dict[str, str]:
    """Path below the root → SHA-256 (hex) of every migration."""
    found = sorted(root.glob("apps/*/migrations/[0-9]*.py"))
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def released(file: Path = RELEASED) -> dict[str, str]:
    """The same of those that a release had; empty until there is one."""
    lines = [line.split() for line in file.read_text().splitlines() if line and not line.startswith("#")]
    return {path: digest for digest, path in lines}


def rewritten(was: dict[str, str], now: dict[str, str]) -> list[str]:
    """The released migrations that were edited or removed."""
    return sorted(path for path, digest in was.items() if now.get(path) != digest)


def release(root: Path = ROOT, file: Path = RELEASED) -> int:
    """Add today's migrations to the file, and return how many there are. Raises Rewritten, and then writes nothing."""
    was, now = released(file), migrations(root)
    if wrong := rewritten(was, now):
        raise Rewritten(f"These migrations were released and must stay as they were: {', '.join(wrong)}.")
    file.write_text(HEADING + "".join(_lines(now)))
    return len(now)


def _lines(found: dict[str, str]) -> Iterable[str]:
    return (f"{digest} {path}\n" for path, digest in sorted(found.items()))


if __name__ == "__main__":
    try:
        print(f"{release()} migrations are released and stay as they are.")
    except Rewritten as error:
        sys.exit(str(error))

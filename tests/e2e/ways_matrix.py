"""`make ways-in`: every way in that this machine can try, as the table of docs/operate/ways-in.md."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from functools import partial

from tests.e2e import ways_compose
from tests.e2e.booted import SUITES
from tests.e2e.ways_in import Tried, debian


def main() -> int:
    """Print the rows as they come, of all ways or of those that are named; exit code 1 where one has not ended well."""
    ways: dict[str, Callable[[], Tried]] = {release: partial(debian, release) for release in SUITES}
    if why := ways_compose.missing():
        print(f"compose is left out: {why}", file=sys.stderr)
    else:
        ways["compose"] = ways_compose.compose
    print("| platform | way | step | result |\n|---|---|---|---|")
    ended = [_rows(ways[name]) for name in sys.argv[1:] or ways]
    return 0 if all(ended) else 1


def _rows(way: Callable[[], Tried]) -> bool:
    try:
        print(*way().rows(), sep="\n", flush=True)
    except AssertionError:
        traceback.print_exc()
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())

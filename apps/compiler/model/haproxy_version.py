"""Which HAProxy versions can take a bundle, by the version that a node reports, never assumed."""

from __future__ import annotations

import re
from collections.abc import Iterable

OLDEST = (2, 6)
_VERSION = re.compile(r"([0-9]+)\.([0-9]+)")


def parse_version(text: str) -> tuple[int, int]:
    """`2.6.12-1+deb12u4` → `(2, 6)`. Raises ValueError when the text begins with no version."""
    found = _VERSION.match(text)
    if found is None:
        raise ValueError(f"{text!r} begins with no version.")
    return int(found[1]), int(found[2])


def oldest_of(versions: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """The oldest of these versions that can take a bundle; OLDEST where none can."""
    return min((each for each in versions if each >= OLDEST), default=OLDEST)

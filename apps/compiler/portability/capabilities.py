"""COMPILE + PUSH: what a HAProxy version can do, looked up by the version that a node reports, never assumed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

OLDEST = (2, 6)
_VERSION = re.compile(r"([0-9]+)\.([0-9]+)")


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Abilities by the first version that has them, from HAProxy's release notes and management guide."""

    supported: bool
    dynamic_servers: bool
    """`add server` and `del server` on the Runtime API without the experimental flag."""
    transactional_maps: bool
    """`prepare map` and `commit map`."""
    variable_cut: bool
    """`bytes()` takes variables, so prefix rewrites would need no rule per length."""


def capabilities_of(version: tuple[int, int]) -> Capabilities:
    """The abilities of `(major, minor)`."""
    return Capabilities(
        supported=version >= OLDEST,
        dynamic_servers=version >= (2, 6),
        transactional_maps=version >= (2, 4),
        variable_cut=version >= (2, 9),
    )


def parse_version(text: str) -> tuple[int, int]:
    """`2.6.12-1+deb12u4` → `(2, 6)`. Raises ValueError when the text begins with no version."""
    found = _VERSION.match(text)
    if found is None:
        raise ValueError(f"{text!r} begins with no version.")
    return int(found[1]), int(found[2])


def oldest_of(texts: Iterable[str]) -> tuple[int, int]:
    """The oldest of these versions that can take a bundle; OLDEST where none can."""
    versions = (parse_version(text) for text in texts if _VERSION.match(text))
    return min((each for each in versions if capabilities_of(each).supported), default=OLDEST)

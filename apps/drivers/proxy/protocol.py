"""Which versions of the agents' protocol this console speaks, and what agents of an older one lack."""

from __future__ import annotations

OLDEST, NEWEST = 1, 2
SPOKEN = (OLDEST, NEWEST)
SILENT = (1, 1)
"""Of an agent that names no versions: it is older than they are."""

# What a console does without where an agent speaks no more than this version.
LACKING = {1: "does not say what its HAProxy was built with, and tells all its counters again at each reading"}
TELLS_CHANGES = 2


def understood(theirs: tuple[int, int]) -> bool:
    """Whether there is a version that both speak."""
    return theirs[1] >= OLDEST and theirs[0] <= NEWEST


def lacking(theirs: tuple[int, int]) -> str:
    """What an agent cannot tell or do that this console could use, as the end of a sentence; empty for nothing."""
    return " and ".join(words for version, words in LACKING.items() if theirs[1] <= version)

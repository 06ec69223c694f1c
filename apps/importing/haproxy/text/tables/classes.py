"""The classes of keywords, and how a table says them: a class with its keywords, separated by spaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a keyword is for.

    traffic: it says what happens to requests, so a reader of ours must say what became of it. node: a setting of the
    machine. ours: Spillway does it itself, or has its own. never: it cannot be said here.
    """

    TRAFFIC = "traffic"
    NODE = "node"
    OURS = "ours"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of one keyword; `why` is the end of a report's line."""

    keyword: str
    kind: Kind
    why: str = ""


Group = tuple[Kind, str, str]
"""Kind, why, and the keywords; those of several words are joined by underscores that begin with a tilde (`stats~uri`).
"""


def facts(*groups: Group) -> Mapping[str, Fact]:
    """Keyword → fact."""
    return {fact.keyword: fact for fact in _facts(groups)}


def _facts(groups: tuple[Group, ...]) -> Iterator[Fact]:
    for kind, why, keywords in groups:
        for word in keywords.split():
            keyword = word.replace("~", " ")
            yield Fact(keyword, kind, why)

"""The promise of every export: files by path, which of them hold keys, and what they do not say, with reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

LOOKED_UP = "The servers of these pools are those that were found until now; nobody looks them up there:"


@dataclass(frozen=True, slots=True)
class NotSaid:
    """Something that the format cannot say, why and what follows from it, and the objects that it concerns."""

    why: str
    objects: tuple[str, ...]

    def __str__(self) -> str:
        """On one line: reasons of checks may repeat what they refuse."""
        return " ".join(f"{self.why} {', '.join(self.objects)}.".split())


@dataclass(slots=True)
class Notes:
    """What is not said, as it is found: each reason once, with its objects in their order."""

    _found: dict[str, dict[str, None]] = field(default_factory=dict)

    def add(self, why: str, label: str) -> None:
        """`why` is a sentence that ends with a colon."""
        self._found.setdefault(why, {})[label] = None

    def lines(self) -> tuple[NotSaid, ...]:
        """All of it."""
        return tuple(NotSaid(why, tuple(labels)) for why, labels in self._found.items())


@dataclass(frozen=True, slots=True)
class Export:
    """A folder. Of `files`, those in `private` hold keys, so that only their owner may read them."""

    files: Mapping[str, bytes]
    private: frozenset[str] = frozenset()
    not_said: tuple[NotSaid, ...] = ()


class NotExportable(Exception):
    """This load balancer cannot be written in this format; the sentence names one that can."""

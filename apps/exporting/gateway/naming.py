"""Names of objects of Kubernetes, and patterns in the syntax that both sides read."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

GROUP = "gateway.networking.k8s.io"
LONGEST = 52  # a name of a Service has at most 63 signs, and a number may follow
_ESCAPED = frozenset(".^$|?*+()[]{}\\")


def slug(text: str) -> str:
    """Letters, digits and hyphens, with a letter first, as Services want it."""
    found = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "any"
    return (found if found[0].isalpha() else f"x-{found}")[:LONGEST].rstrip("-")


@dataclass(slots=True)
class Taken:
    """Names of one kind, each once."""

    _names: set[str] = field(default_factory=set)

    def name(self, text: str) -> str:
        """A name that nothing else of the kind has."""
        base, number = slug(text), 1
        found = base
        while found in self._names:
            number += 1
            found = f"{base}-{number}"
        self._names.add(found)
        return found


def literal(text: str) -> str:
    """A pattern that takes exactly this text."""
    return "".join(f"\\{sign}" if sign in _ESCAPED else sign for sign in text)

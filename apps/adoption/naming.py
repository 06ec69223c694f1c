"""Names: what people called things in the cloud as names of ours, each once."""

from __future__ import annotations

import re

from apps.compiler.grammar import GrammarError
from apps.compiler.grammar import name as checked

LONGEST = 63
_OTHER = re.compile(r"[^a-z0-9]+")


class Names:
    """Names that were given; `prefix` begins those that would otherwise be reserved."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._given: set[str] = set()

    def of(self, *words: str) -> str:
        """A name made of these words, with a number where it was given before."""
        wanted = _slug("-".join(words))
        try:
            checked(wanted)
        except GrammarError:
            wanted = _slug(f"{self._prefix}-{wanted}")
        found, number = wanted, 1
        while found in self._given:
            number += 1
            found = f"{wanted[: LONGEST - 1 - len(str(number))].rstrip('-')}-{number}"
        self._given.add(found)
        return found


def _slug(text: str) -> str:
    return _OTHER.sub("-", text.lower()).strip("-")[:LONGEST].rstrip("-")

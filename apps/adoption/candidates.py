"""Routes to be: what a rule of a cloud takes and does, in our words, before it has a name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# A condition on a header as pairs of words and values, in the order of the words.
Header = tuple[tuple[str, str], ...]


class Unsaid(Exception):
    """The rule says something that a route of ours cannot; `reason` is a sentence."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Candidate:
    """A route to be, with what is lost by it."""

    path: str
    exact: bool
    methods: tuple[str, ...]
    headers: tuple[Header, ...]
    action: tuple[Any, ...]
    rewrite: str | None
    loss: str = ""
    mirror: str | None = None


def scheme_of(action: Mapping[str, Any]) -> dict[str, str]:
    """The scheme of a route whose redirect changes the scheme alone: for both it would lead to itself."""
    redirect = action.get("redirect") or {}
    changes_more = any(redirect.get(part) for part in ("host", "path", "port", "prefix"))
    others = {"https": {"scheme": "http"}, "http": {"scheme": "https"}}
    return {} if changes_more else others.get(str(redirect.get("scheme")), {})

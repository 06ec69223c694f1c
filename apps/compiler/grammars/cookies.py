"""Words by which a client stays on its side of a split, and attributes of the cookie for it."""

from __future__ import annotations

from apps.compiler.grammar import GrammarError

STICK_BY = frozenset({"cookie", "address", "header"})
SAME_SITE = frozenset({"lax", "strict", "none"})


def stick_by(value: object) -> str:
    """By what a client stays on its side of a split. Raises GrammarError."""
    return _one_of(value, STICK_BY)


def same_site(value: object) -> str:
    """Whether requests from other sites carry a cookie. Raises GrammarError."""
    return _one_of(value, SAME_SITE)


def _one_of(value: object, words: frozenset[str]) -> str:
    if isinstance(value, str) and value in words:
        return value
    raise GrammarError("choice", f"Use one of {', '.join(sorted(words))}.")

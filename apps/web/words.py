"""SHOW: observed numbers in words, the same on every page; nothing that was not measured gets a number."""

from __future__ import annotations

from apps.observe.numbers import Numbers


def age_words(numbers: Numbers) -> str:
    """How old stale numbers are ("48 s", "3 min"); empty while they are live."""
    if not numbers.stale or numbers.age_s is None:
        return ""
    return f"{numbers.age_s:.0f} s" if numbers.age_s < 120 else f"{numbers.age_s / 60:.0f} min"

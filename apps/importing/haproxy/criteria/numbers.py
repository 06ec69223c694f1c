"""Comparisons with numbers: `gt 0`, `443`, `8000:8010`."""

from __future__ import annotations

from operator import eq, ge, gt, le, lt

OPERATORS = {"eq": eq, "ge": ge, "gt": gt, "le": le, "lt": lt}


def compared(values: list[str], number: int) -> bool:
    """Whether a number is one that an operator and numbers behind it take; without one they are equal."""
    operator = OPERATORS.get(values[0] if values else "eq", eq)
    return any(operator(number, int(value)) for value in values if value.lstrip("-").isdecimal())


def asks_any(values: list[str]) -> bool | None:
    """Of a count: True where every number above 0 holds, False where 0 alone does; None for another question."""
    return {(False, True): True, (True, False): False}.get((compared(values, 0), compared(values, 1)))


def number_holds(values: tuple[str, ...], number: int) -> bool:
    """Whether a number is one that `gt 0`, `443` or `8000:8010` take."""
    for value in values:
        low, mark, high = value.partition(":")
        if mark and low.isdecimal() and high.isdecimal() and int(low) <= number <= int(high):
            return True
    return compared(list(values), number)

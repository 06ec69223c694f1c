"""Filters of templates for observed numbers, in the words of kit/figures.py; what was not measured is a dash."""

from __future__ import annotations

from django import template

from apps.observe.numbers import Numbers
from apps.web.kit import figures

register = template.Library()
DASH = "–"


@register.filter
def amount(value: float | None) -> str:
    """A measured amount."""
    return figures.amount(value) or DASH


@register.filter
def rate(value: float | None) -> str:
    """A measured rate, per second."""
    return DASH if value is None else figures.rate(value)


@register.filter
def age(numbers: Numbers | None) -> str:
    """How old the numbers are; empty while they are live."""
    return figures.figures_of(numbers).age


@register.filter
def share(value: float | None) -> str:
    """A share (0–1) in per cent."""
    return figures.share(value) or DASH

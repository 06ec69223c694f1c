"""SHOW: filters of templates for observed numbers; None is a dash, never a zero."""

from __future__ import annotations

from django import template

register = template.Library()
DASH = "–"


@register.filter
def rate(value: float | None) -> str:
    """Per second: `9,400`, `41.2`, `0.3`; a dash when nothing was measured."""
    if value is None:
        return DASH
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"


@register.filter
def share(value: float | None) -> str:
    """A share from 0 to 1 in per cent with two digits, without the sign."""
    return DASH if value is None else f"{100 * value:.2f}"


@register.filter
def milliseconds(value: float | None) -> str:
    """Milliseconds without the unit; three significant digits are all that buckets give."""
    if value is None:
        return DASH
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


@register.filter
def whole(value: int | None) -> str:
    """A count, a dash when nothing was counted."""
    return DASH if value is None else f"{value:,}"

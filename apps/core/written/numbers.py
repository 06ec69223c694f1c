"""Numbers as people read them, alike on pages, in sentences and messages: 12,345, 0.5, 5 %, 1,000 ms, 1 day."""

from __future__ import annotations


def plain(value: float, digits: int = 4) -> str:
    """A number in so many digits, thousands apart; no whole digit is left out, and none hides in an exponent."""
    text = f"{value:.{digits}g}"
    if abs(float(text)) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:.15f}".rstrip("0") if "e" in text else text


def measured(value: float, unit: str, digits: int = 4) -> str:
    """The same with its unit, which loses the s of its plural for one."""
    text = plain(value, digits)
    if text == "1" and unit in ("times", "days"):
        unit = unit.removesuffix("s")
    return f"{text} {unit}".strip()

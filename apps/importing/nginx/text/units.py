"""Times of nginx.conf: `60`, `30s`, `1m30s`, `500ms`."""

from __future__ import annotations

import re

from apps.importing.haproxy.text.durations import LONGEST_MS
from apps.importing.nginx.text.directives import Directive, value_of
from apps.importing.verdicts import Ledger

_DAY_MS = 86_400_000
_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": _DAY_MS, "w": 7 * _DAY_MS, "M": 30 * _DAY_MS,
       "y": 365 * _DAY_MS, "": 1000}  # fmt: skip
_TIME = re.compile(r"(?:[0-9]+(?:ms|[smhdwMy]) ?)*[0-9]+(?:ms|[smhdwMy])?")


def milliseconds(text: str) -> int | None:
    """None for no time."""
    if not _TIME.fullmatch(text):
        return None
    return sum(int(number) * _MS[unit] for number, unit in re.findall(r"([0-9]+)(ms|[smhdwMy]|)", text))


def time_of(directive: Directive | None, ledger: Ledger) -> int | None:
    """The time that a directive says, from a millisecond to an hour."""
    if directive is None:
        return None
    found = milliseconds(value_of(directive))
    if found is None:
        ledger.impossible(directive.line, "This is no time, such as 30s.")
        return None
    ledger.mapped(directive.line)
    if found > LONGEST_MS:
        ledger.differs(directive.line, "An hour is the longest time.")
    return min(max(1, found), LONGEST_MS)

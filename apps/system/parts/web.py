"""How the console answers people and programs."""

from __future__ import annotations

from apps.system import http_times
from apps.system.http_times import Counts
from apps.system.parts.part import Answer, Detail, State, worst

FEW = 20  # requests, below which a share says nothing
MANY_ERRORS = 0.05
SLOW_S = 2.5


def answers() -> Answer:
    """Errors and times of the last five minutes."""
    details = tuple(_kind(kind, counts) for kind, counts in http_times.lately().items())
    state = worst(each.state for each in details if each.state != State.UNKNOWN)
    if state == State.UNKNOWN:
        return Answer(state, "Nothing was asked in the last five minutes.", details=details)
    said = "; ".join(f"{each.name}: {each.text}" for each in details if each.state != State.UNKNOWN)
    remedy = "" if state == State.OK else "Look at the newest errors below, and at the database."
    return Answer(state, f"{said}.", remedy, details)


def _kind(kind: str, counts: Counts) -> Detail:
    if not counts.requests:
        return Detail(_NAMES[kind], State.UNKNOWN, "nothing was asked")
    errors, p95 = counts.classes["5xx"], counts.percentile_s(0.95) or 0.0
    bad = counts.requests >= FEW and errors > MANY_ERRORS * counts.requests
    slow = counts.requests >= FEW and p95 > SLOW_S
    within = f"95 % within {p95:g} s" if p95 != float("inf") else "more than 5 % took over 10 s"
    text = f"{counts.requests} requests, {errors} errors, {within}"
    return Detail(_NAMES[kind], State.WARNING if bad or slow else State.OK, text)


_NAMES = {"page": "pages", "api": "API"}

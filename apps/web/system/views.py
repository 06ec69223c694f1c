"""The page of the system: each part with its state, since when, and what to do; the worst first."""

from __future__ import annotations

from django.http import HttpResponse

from apps.system import selectors
from apps.system.parts.part import WORST_FIRST, Part, State
from apps.web.kit.pages import PageRequest, operators_only, page, show

# Kind, shape and word of components/mark.html.
MARKS = {
    State.OK: ("good", "good", "OK"),
    State.WARNING: ("warn", "warn", "Warning"),
    State.FAILED: ("bad", "bad", "Failed"),
    State.UNKNOWN: ("idle", "unknown", "Unknown"),
}


@page
def index(request: PageRequest) -> HttpResponse:
    """All parts and the newest errors."""
    operators_only(request.actor, "system")
    parts = sorted(selectors.parts_since(), key=lambda each: WORST_FIRST.index(each.state))
    context = {
        "counts": [(MARKS[state], sum(part.state == state for part in parts)) for state in WORST_FIRST],
        "parts": [_row(part) for part in parts],
        "errors": selectors.errors(),
    }
    return show(request, "pages/system/list.html", context)


def _row(part: Part) -> dict[str, object]:
    details = [{"name": each.name, "mark": MARKS[each.state], "text": each.text} for each in part.details]
    remedy = "" if part.state == State.OK else part.remedy
    return {"part": part, "mark": MARKS[part.state], "remedy": remedy, "details": details}

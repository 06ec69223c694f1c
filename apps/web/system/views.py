"""The page of the system: each part with its state, since when, and what to do; where definitions are published."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.core.errors import Conflict, NotFound
from apps.definitions.server_sources.registries import Unreadable
from apps.exporting.publishing import services, showing
from apps.system import selectors
from apps.system.parts.part import WORST_FIRST, Part, State
from apps.system.parts.publications import STATES
from apps.web.kit.pages import PageRequest, operators_only, page, post_page, show

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
        "publications": _publications(request),
        "errors": selectors.errors(),
    }
    return show(request, "pages/system/list.html", context)


@post_page
def overwrite(request: PageRequest, pk: int) -> HttpResponse:
    """Overwrite keys of a publication that somebody else changed, as they were shown."""
    operators_only(request.actor, "system")
    request.actor.may_write()
    try:
        services.overwrite(actor=request.actor, publication_id=pk, conflict=request.POST.get("conflict", ""))
    except (Conflict, NotFound) as error:
        messages.error(request, error.detail)
    else:
        messages.success(request, "The keys are overwritten in a moment, unless they changed again.")
    return redirect("web:system")


def _publications(request: PageRequest) -> list[dict[str, object]]:
    """Where definitions are published; that the file cannot be read, the part says."""
    try:
        found = showing.publications(request.actor)
    except Unreadable:
        return []
    return [{"it": each, "mark": MARKS[STATES[each.state]][:2], "word": each.state.capitalize()} for each in found]


def _row(part: Part) -> dict[str, object]:
    details = [{"name": each.name, "mark": MARKS[each.state], "text": each.text} for each in part.details]
    remedy = "" if part.state == State.OK else part.remedy
    return {"part": part, "mark": MARKS[part.state], "remedy": remedy, "details": details}

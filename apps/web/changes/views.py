"""Changes: the list, one with all that it did, and taking it back."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from apps.audit.models import Entry
from apps.audit.selectors import entries, entries_beside
from apps.core.errors import Conflict, NotFound
from apps.definitions.services import revert_change
from apps.web.accounts.audit_objects import pages_of_objects
from apps.web.accounts.audit_words import action_of
from apps.web.changes.rows import latest_changes, rows_of, title_of
from apps.web.kit import differences
from apps.web.kit.pages import PageRequest, back_to, page, post_page, show
from apps.web.kit.saving import telling
from apps.web.kit.undoing import WHOLE

PER_PAGE = 30
OBJECTS_SHOWN = 100


@page
def index(request: PageRequest) -> HttpResponse:
    """Newest first, a page at a time (`?before=`)."""
    before = request.GET.get("before", "")
    rows, next_before = latest_changes(request.actor, PER_PAGE, before)
    return show(request, "pages/changes/list.html", {"rows": rows, "before": before, "next_before": next_before})


@page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """One change: who made it, and what it did to each object."""
    found = _entries(request, pk)
    row = rows_of(request.actor, [found])[0]
    pages = pages_of_objects(request.actor, found[:OBJECTS_SHOWN])
    shown = [
        {
            "entry": entry,
            "title": title_of(entry),
            "lines": differences.of_json(entry.before, entry.after),
            "url": pages.get(entry.pk, ""),
        }
        for entry in found[:OBJECTS_SHOWN]
    ]
    context = {"row": row, "objects": shown, "more": max(0, len(found) - OBJECTS_SHOWN)}
    context["action"] = action_of(row.entry.action)
    return show(request, "pages/changes/detail.html", context)


@post_page
def revert(request: PageRequest, pk: int) -> HttpResponse:
    """Every object of the change as it was before; refused as a whole where one has changed since."""
    request.actor.may_write()
    entry = _entry(request, pk)
    reason = request.POST.get("reason", "").strip()[:400]
    with telling(request):
        if not entry.request_id or entry.object_kind not in WHOLE:
            raise Conflict("This cannot be reverted by itself. Change the object by hand.")
        revert_change(actor=request.actor, change=entry.request_id, made_by=entry, reason=reason)
        messages.success(request, f"Reverted: {title_of(entry)}. The nodes follow in a moment.")
        return redirect(_back(request, entry, reverse("web:changes")))
    return redirect(_back(request, entry, reverse("web:change", args=[pk])))


def _back(request: PageRequest, entry: Entry, default: str) -> str:
    """The page on which somebody pressed Undo; that of an object that was made may be gone."""
    return default if entry.action == "create" else back_to(request, default)


def _entry(request: PageRequest, pk: int) -> Entry:
    row = entries(request.actor).filter(pk=pk).first() if pk < 2**63 else None
    if row is None:
        raise NotFound("There is no such change, or you may not see it.")
    return row


def _entries(request: PageRequest, pk: int) -> list[Entry]:
    """All entries of the change that the entry is of, as far as they may be seen, the asked one first."""
    entry = _entry(request, pk)
    every = entries_beside(request.actor, entry)
    return [entry, *(each for each in every if each.object_kind in WHOLE and each.pk != pk)]

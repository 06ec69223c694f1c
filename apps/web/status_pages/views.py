"""Status pages: the list, one as visitors see it with what can be done about it, and its form."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect

from apps.core.clock import now
from apps.definitions.models import Route, StatusPage
from apps.definitions.selectors import status_pages
from apps.status import selectors
from apps.status.showing import show_page
from apps.web.drawing.days import drawn
from apps.web.kit.object_forms import Way, copy_of, edit_object, form_for
from apps.web.kit.pages import PageRequest, page, post_page, show
from apps.web.kit.saving import deleted_by_name
from apps.web.status_pages.forms import StatusPageForm

SHOWN = 200


@page
def index(request: PageRequest) -> HttpResponse:
    """Every page that the actor sees."""
    rows = list(status_pages(request.actor)[:SHOWN])
    return show(request, "pages/status_pages/list.html", {"rows": rows})


@page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """The page as visitors see it, whether it is public or not."""
    row = selectors.page(request.actor, pk)
    shown = show_page(row, now())
    context: dict[str, Any] = {"row": row, "shown": shown, "drawn": drawn(shown), "missing": _missing(row)}
    return show(request, "pages/status_pages/detail.html", context)


def _missing(row: StatusPage) -> list[str]:
    """Names of routes that are not there any more."""
    named = {name for component in row.components for name in component["routes"]}
    there = Route.objects.filter(account=row.account_id, name__in=named).values_list("name", flat=True)
    return sorted(named - set(there))


@page
def new(request: PageRequest) -> HttpResponse:
    """A new page."""
    request.actor.may_write("status-pages")
    return _edit(request, None)


@page
def edit(request: PageRequest, pk: int) -> HttpResponse:
    """Change a page."""
    request.actor.may_write("status-pages")
    return _edit(request, selectors.page(request.actor, pk))


def _edit(request: PageRequest, stored: StatusPage | None) -> HttpResponse:
    form = form_for(request, stored, status_pages(request.actor), partial(StatusPageForm, actor=request.actor))
    way = Way.of("web:status-pages", "Status pages", "web:status-page")
    return edit_object(request, form, way, copy_of("status-page", stored))


@post_page
def delete(request: PageRequest, pk: int) -> HttpResponse:
    """Delete a page with its incidents once its name was typed."""
    request.actor.may_write("status-pages")
    row = selectors.page(request.actor, pk)
    done = deleted_by_name(request, "StatusPage", row, f"Status page {row.name} is deleted.")
    return redirect("web:status-pages") if done else redirect("web:status-page", pk)

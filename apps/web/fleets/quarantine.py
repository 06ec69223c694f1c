"""What nodes refuse in any fleet, why, and trying one of them again."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from apps.rollouts import selectors, services
from apps.rollouts.models import Quarantine
from apps.web.kit.pages import PageRequest, operators_only, page, post_page, show
from apps.web.kit.worst_first import first_of

SHOWN = 500
PAGES = {"pool": "web:pool", "route": "web:route"}


@page
def index(request: PageRequest) -> HttpResponse:
    """Every object that is kept apart, the newest first; there are few, so there is one page."""
    operators_only(request.actor, "quarantine")
    rows, context = first_of(selectors.quarantined(request.actor), SHOWN)
    context["rows"] = [(row, _kind(row), _link(row)) for row in rows]
    return show(request, "pages/fleets/quarantine.html", context)


def _kind(row: Quarantine) -> str:
    return selectors.kind_in_quarantine(row).lower()


def _link(row: Quarantine) -> str:
    """The page of what people know it by: a server stands on its pool's."""
    word, _, number = row.part_of.rpartition("-")
    return (
        reverse(PAGES[word], args=[number]) if word in PAGES else f"{reverse('web:certificates')}#certificate-{number}"
    )


@post_page
def try_again(request: PageRequest, pk: int) -> HttpResponse:
    """Give one object back to the next push; nodes that refuse it again put it back here."""
    label = services.try_again(actor=request.actor, quarantine_id=pk)
    messages.success(request, f"Retrying {label}. If nodes reject it again, it reappears here in a moment.")
    return redirect("web:quarantine")

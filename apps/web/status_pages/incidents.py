"""What people write for visitors: a new incident, planned maintenance, and how it goes."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from apps.core.clock import now
from apps.status import selectors, services
from apps.status.models import Incident
from apps.web.kit.field_errors import refusals_in
from apps.web.kit.object_forms import Way, show_form
from apps.web.kit.pages import PageRequest, page, post_page, show
from apps.web.kit.saving import confirmed
from apps.web.status_pages.forms import IncidentForm, UpdateForm


@page
def new(request: PageRequest, pk: int) -> HttpResponse:
    """Tell visitors of a page; `?planned=1` is maintenance."""
    request.actor.may_write(services.NOUN)
    row = selectors.page(request.actor, pk)
    form = IncidentForm(request.POST or None, row, planned=request.GET.get("planned") == "1")
    if form.is_bound and form.is_valid():
        with refusals_in(form):
            services.open_incident(actor=request.actor, page_id=pk, spec=form.spec())
            messages.success(request, "Visitors read it within ten seconds.")
            return redirect("web:status-page", pk)
    crumbs = ((reverse("web:status-pages"), "Status pages"), (reverse("web:status-page", args=[pk]), row.title))
    return show_form(request, form, Way(crumbs, ""), stored=None, name="")


@page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """One incident with all that was written, and the form of the next update."""
    row = selectors.incident(request.actor, pk)
    if request.method == "POST":
        request.actor.may_write(services.NOUN)
    form = UpdateForm(request.POST if request.method == "POST" else None, row)
    if form.is_bound and form.is_valid() and _written(request, form, row):
        messages.success(request, "Visitors read it within ten seconds.")
        return redirect("web:status-page", row.page_id)
    moment = now()
    context = {"row": row, "form": form, "word": row.word_at(moment), "over": row.over_at(moment)}
    return show(request, "pages/status_pages/incident.html", context, status=422 if form.is_bound else 200)


def _written(request: PageRequest, form: UpdateForm, row: Incident) -> bool:
    with refusals_in(form):
        services.write_update(actor=request.actor, incident_id=row.pk, spec=form.spec())
        return True
    return False


@post_page
def delete(request: PageRequest, pk: int) -> HttpResponse:
    """Take an incident off its page once its title was typed."""
    request.actor.may_write(services.NOUN)
    row = selectors.incident(request.actor, pk)
    if not confirmed(request, row.title):
        return redirect("web:incident", pk)
    services.delete_incident(actor=request.actor, incident_id=pk)
    messages.success(request, f"{row.title} is deleted.")
    return redirect("web:status-page", row.page_id)

"""The report of a month, for paper too, and the way to it."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect

from apps.core.clock import now
from apps.core.errors import there
from apps.web.kit.pages import PageRequest, page, show
from apps.web.reports.month import Month, incident_rows, objective_rows, pool_rows


@page
def index(_request: PageRequest) -> HttpResponse:
    """This month's."""
    return redirect("web:report", f"{now():%Y-%m}")


@page
def detail(request: PageRequest, name: str) -> HttpResponse:
    """One month of the actor's account, as far as it has come. Raises NotFound for one that is still to come."""
    month = there(Month.of(name), "There is no such month, or it is still to come. Write it as 2026-11.")
    incidents, more = incident_rows(request.actor, month)
    context = {
        "month": month,
        "is_over": month.end == month.after,
        "made_at": now(),
        "pools": pool_rows(request.actor, month),
        "objectives": objective_rows(request.actor, month),
        "incidents": incidents,
        "more_incidents": more,
    }
    return show(request, "pages/reports/month.html", context)

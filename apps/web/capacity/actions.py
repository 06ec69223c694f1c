"""What a person does about runs: starts, stops, approves them, and makes what they found a limit."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.capacity import selectors
from apps.capacity.models import Run
from apps.capacity.services import approve_run, request_run, stop_run
from apps.capacity.use.limits import Proposal, proposal, set_as_limit
from apps.core.errors import Conflict, Invalid
from apps.web.kit.pages import PageRequest, page, post_page, show
from apps.web.kit.saving import telling


@post_page
def start(request: PageRequest, pk: int) -> HttpResponse:
    """Ask for a run; a refusal is a run as well, with its reason."""
    run = request_run(actor=request.actor, test_id=pk)
    if run.state == Run.State.REFUSED:
        messages.error(request, run.message)
    return redirect("web:capacity-run", pk=run.pk)


@post_page
def stop(request: PageRequest, pk: int) -> HttpResponse:
    """End a run; everybody who sees it may."""
    run = stop_run(actor=request.actor, run_id=pk)
    if run.state in Run.ACTIVE:
        messages.success(request, "The load drops to zero within two seconds.")
    return redirect("web:capacity-run", pk=pk)


@post_page
def approve(request: PageRequest, pk: int) -> HttpResponse:
    """An operator lets a run begin that waits for it."""
    with telling(request, "The run starts within a minute."):
        approve_run(actor=request.actor, run_id=pk)
    return redirect("web:capacity-run", pk=pk)


@page
def limit(request: PageRequest, pk: int) -> HttpResponse:
    """The exact change of the limit for `?margin=` (per cent), and making it."""
    if request.method == "POST":
        return _set(request, pk)
    selectors.run(request.actor, pk)
    return show(
        request, "pages/capacity_runs/limit_page.html", limit_context(request, selectors.run(request.actor, pk))
    )


def _set(request: PageRequest, pk: int) -> HttpResponse:
    try:
        backend = set_as_limit(
            actor=request.actor,
            run_id=pk,
            margin=margin_of(request.POST.get("margin", "")),
            reason=request.POST.get("reason", "").strip()[:300],
        )
    except (Invalid, Conflict) as error:
        messages.error(request, error.detail if isinstance(error, Conflict) else error.field_errors[0].detail)
        return redirect("web:capacity-run", pk=pk)
    messages.success(
        request,
        f"The limit in {backend.region.name} is now {backend.limit_value:,}. "
        f"The change is being rolled out to every node.",
    )
    return redirect("web:capacity-run", pk=pk)


def limit_context(request: PageRequest, run: Run) -> dict[str, Any]:
    """What “set as limit” would do, with the margin as it was typed; an error where it is none."""
    typed = request.GET.get("margin", "").strip()[:12]
    found: Proposal | None = None
    field_error = ""
    try:
        found = proposal(request.actor, run.pk, margin_of(typed))
    except Conflict as error:
        field_error = error.detail
    except Invalid as error:
        field_error = error.field_errors[0].detail
    margin = typed or (f"{100 * found.margin:g}" if found else "10")
    writes = request.actor.role != "viewer" and run.pool is not None
    own = request.actor.owns(run)
    return {"run": run, "proposal": found, "limit_error": field_error, "margin": margin, "may_set": writes and own}


def margin_of(text: str) -> object:
    """A margin in per cent as a share; None for the policy's own, the text where it is no number."""
    text = text.strip()
    if not text:
        return None
    try:
        return round(float(text) / 100, 6)
    except ValueError:
        return text

"""Blackouts, in which no capacity test may run; operators set and end them, everybody reads them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.capacity import selectors, services
from apps.core.clock import now
from apps.web.kit.field_errors import refusals_in
from apps.web.kit.pages import PageRequest, page, post_page, show

SHOWN = 200


class BlackoutForm(forms.Form):
    """From when until when (UTC), and why."""

    use_required_attribute = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, label in (("/starts_at", "From (UTC)"), ("/ends_at", "Until (UTC)")):
            self.fields[name] = forms.DateTimeField(
                label=label, widget=forms.DateTimeInput(attrs={"type": "datetime-local", "step": "1"})
            )
        self.fields["/reason"] = forms.CharField(
            label="Reason", max_length=200, help_text="Shown to anyone who tries to run a test in this period."
        )


@page
def index(request: PageRequest) -> HttpResponse:
    """What is in force and what is to come first; the form below is for operators."""
    if request.method == "POST":
        request.actor.must_operate("blackouts of capacity tests")
    form = BlackoutForm(request.POST or None)
    if request.method == "POST" and form.is_valid() and _made(request, form):
        return redirect("web:blackouts")
    moment = now()
    rows = list(selectors.blackouts(request.actor).order_by("-ends_at", "-id")[:SHOWN])
    context = {"rows": [(row, *_state(row.starts_at, row.ends_at, moment)) for row in rows], "form": form}
    return show(request, "pages/blackouts/list.html", context, status=422 if form.is_bound else 200)


def _made(request: PageRequest, form: BlackoutForm) -> bool:
    found = form.cleaned_data
    with refusals_in(form):
        services.set_blackout(
            actor=request.actor, starts_at=found["/starts_at"], ends_at=found["/ends_at"], reason=found["/reason"]
        )
        messages.success(request, "No capacity test runs in this period.")
        return True
    return False


def _state(starts_at: datetime, ends_at: datetime, moment: datetime) -> tuple[str, str]:
    if ends_at <= moment:
        return "superseded", "Over"
    return ("waiting", "Upcoming") if starts_at > moment else ("held", "In force")


@post_page
def end(request: PageRequest, pk: int) -> HttpResponse:
    """Tests may run again."""
    services.end_blackout(actor=request.actor, blackout_id=pk)
    messages.success(request, "The blackout is removed. Tests may run again.")
    return redirect("web:blackouts")

"""Canaries of a route: beginning one, watching it, and deciding when it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.canaries import selectors, services
from apps.canaries.models import Canary
from apps.canaries.plan import ALL, CanaryPlan
from apps.definitions.models import Route
from apps.definitions.selectors import describe, only, routes
from apps.definitions.shapes.base.fields import field_at
from apps.web.kit.field_errors import refusals_in
from apps.web.kit.pages import PageRequest, page, post_page, show
from apps.web.kit.saving import telling
from apps.web.kit.shape_fields import Text, form_field, plain_fields, typed

Mark = tuple[str, str, str]
SHOWN = 20
MARKS: Mapping[str, Mark] = {
    "running": ("busy", "busy", "Running"),
    "held": ("warn", "stop", "Held"),
    "promoted": ("good", "check", "Promoted"),
    "aborted": ("idle", "stop", "Aborted"),
    "ended": ("idle", "stop", "Ended"),
}
# What forms decide, and what is said when it is done.
ACTS: Mapping[str, tuple[Callable[..., Canary], str]] = {
    "hold": (services.hold_canary, "The canary keeps its share until you decide."),
    "resume": (services.resume_canary, "The canary goes on; its step begins anew."),
    "promote": (services.promote_canary, "The canary gets all requests moments later."),
    "abort": (services.abort_canary, "The canary gets no requests moments later."),
}
# Percent and minutes that the form begins with; empty lines are no steps.
OFFERED = (("5", "10"), ("25", "30"), ("50", "30"), ("", ""), ("", ""))
MINUTE_S = 60


class PlanForm(forms.Form):
    """Which pool, in what steps, and what it must not do."""

    use_required_attribute = False

    def __init__(self, pools: list[str], data: Any = None) -> None:
        super().__init__(data)
        self.fields["/pool"] = form_field(
            field_at(CanaryPlan, "pool"), forms.Select(choices=[(name, name) for name in pools])
        )
        for number, (percent, minutes) in enumerate(OFFERED):
            self.fields[f"/steps/{number}/percent"] = _number(f"Share of step {number + 1}", "%", percent)
            self.fields[f"/steps/{number}/for_s"] = _number(f"Time of step {number + 1}", "min", minutes)
        guards = plain_fields(CanaryPlan, "")
        self.fields.update({name: field for name, field in guards.items() if name not in ("/pool", "/steps")})
        self.fields["reason"] = forms.CharField(label="Reason", required=False, max_length=400)

    def pool(self) -> forms.BoundField:
        """Whose share grows."""
        return self["/pool"]

    def steps(self) -> list[tuple[forms.BoundField, forms.BoundField]]:
        """The two fields of each line."""
        return [(self[f"/steps/{each}/percent"], self[f"/steps/{each}/for_s"]) for each in range(len(OFFERED))]

    def rest(self) -> list[forms.BoundField]:
        """The fields below the lines."""
        return [self[name] for name in self.fields if name != "/pool" and not name.startswith("/steps/")]

    def plan(self) -> dict[str, Any]:
        """The document of what was typed."""
        found = {name: typed(field, self.cleaned_data.get(name, "")) for name, field in self.fields.items()}
        every = range(len(OFFERED))
        lines = [(found.pop(f"/steps/{each}/percent"), found.pop(f"/steps/{each}/for_s")) for each in every]
        steps = [{"percent": percent, "for_s": _seconds(minutes)} for percent, minutes in lines if percent or minutes]
        return {"steps": steps} | {name[1:]: value for name, value in found.items() if name.startswith("/")}


def _number(label: str, unit: str, initial: str) -> Text:
    widget = forms.TextInput(attrs={"inputmode": "numeric", "size": 5})
    field = Text(label=label, initial=initial, required=False, widget=widget)
    field.type, field.unit = "integer", unit
    return field


def _seconds(minutes: object) -> object:
    return minutes * MINUTE_S if isinstance(minutes, int | float) else minutes


@page
def of_route(request: PageRequest, pk: int) -> HttpResponse:
    """The form, the last canaries of the route, and beginning one."""
    request.actor.may_write()
    route = only(routes(request.actor), pk)
    pools = _smallest_first(route)
    form = PlanForm(pools, request.POST or None)
    if request.method == "POST" and form.is_valid():
        with refusals_in(form):
            made = services.request_canary(
                actor=request.actor, route_id=pk, plan=form.plan(), reason=form.cleaned_data["reason"]
            )
            return redirect("web:canary", pk=made.pk)
    context = {
        "route": route,
        "form": form,
        "several": len(pools) > 1,
        "rows": [(row, MARKS[row.state]) for row in selectors.canaries(request.actor).filter(route=pk)[:SHOWN]],
        "current": selectors.open_on(request.actor, pk),
    }
    return show(request, "pages/canaries/form.html", context, status=422 if form.is_bound else 200)


def _smallest_first(route: Route) -> list[str]:
    """The pools of the route; the canary is most likely the one with the smallest share."""
    shares = sorted(describe(route)["action"].get("pools", []), key=lambda each: int(each["weight"]))
    return [each["pool"] for each in shares]


@page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """One canary: how far it is, how both sides do, and what can be decided."""
    row = selectors.canary(request.actor, pk)
    own = request.actor.owns(row)
    context = {
        "canary": row,
        "mark": MARKS[row.state],
        "stages": stages(row),
        "next_at": next_at(row),
        "last": row.step + 1 == len(row.plan["steps"]),
        "may_decide": own and request.actor.role != "viewer" and row.state in Canary.OPEN,
    }
    return show(request, "pages/canaries/detail.html", context)


@post_page
def decide(request: PageRequest, pk: int, act: str) -> HttpResponse:
    """Hold, resume, promote or abort it."""
    service, done = ACTS[act]
    with telling(request, done):
        service(actor=request.actor, canary_id=pk, reason=request.POST.get("reason", "")[:400])
    return redirect("web:canary", pk=pk)


def stages(row: Canary) -> list[tuple[str, str]]:
    """The shares in their order, as `components/steps.html` shows them."""
    shares = [each["percent"] for each in row.plan["steps"]] + [ALL]
    current = "now" if row.state == Canary.State.RUNNING else "failed" if row.state == Canary.State.HELD else ""
    words = ["done"] * row.step + [current] + [""] * len(shares)
    if row.state == Canary.State.PROMOTED:
        words = ["done"] * len(shares)
    return [(word, f"{share} %") for word, share in zip(words, shares, strict=False)]


def next_at(row: Canary) -> datetime | None:
    """When the step is over, as soon as it is live."""
    if row.state != Canary.State.RUNNING or row.live_at is None:
        return None
    return row.live_at + timedelta(seconds=row.plan["steps"][row.step]["for_s"])

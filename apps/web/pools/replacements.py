"""Replacing servers of a pool: asking for it, watching it, and deciding when it has stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.core.errors import Conflict, Invalid
from apps.definitions import selectors as definitions
from apps.definitions.models import Pool
from apps.definitions.sharing import must_own
from apps.replacements import selectors, services
from apps.replacements.models import ReplacedServer, Replacement
from apps.replacements.plan import ReplacementPlan
from apps.web.kit.field_errors import attach_errors
from apps.web.kit.pages import PageRequest, page, post_page, show
from apps.web.kit.saving import telling
from apps.web.kit.shape_fields import plain_fields, typed

Mark = tuple[str, str, str]
SHOWN = 20
MARKS: Mapping[str, Mark] = {
    "running": ("busy", "busy", "Running"),
    "stopped": ("warn", "stop", "Stopped"),
    "done": ("good", "check", "Done"),
    "ended": ("idle", "stop", "Ended"),
}
SERVER_MARKS: Mapping[str, Mark] = {
    "waiting": ("idle", "behind", "Waiting"),
    "out": ("busy", "busy", "In progress"),
    "done": ("good", "check", "Done"),
    "failed": ("bad", "bad", "Failed"),
    "left": ("idle", "stop", "Not replaced"),
    "gone": ("idle", "stop", "No longer in the pool"),
}
# What forms decide, and what is said when it is done.
ACTS: Mapping[str, tuple[Callable[..., Replacement], str]] = {
    "stop": (services.stop_replacement, "The replacement has stopped."),
    "resume": (services.resume_replacement, "The replacement goes on."),
    "reverse": (services.reverse_replacement, "The replacement goes back: replaced servers are handed over again."),
    "end": (services.end_replacement, "The replacement is over."),
}


class PlanForm(forms.Form):
    """What is to be replaced, and how carefully."""

    use_required_attribute = False

    def __init__(self, pool: Pool, data: Any = None) -> None:
        super().__init__(data)
        self.fields.update(plain_fields(ReplacementPlan, ""))
        regions = [backend.region.name for backend in pool.backends.all()]
        self.fields["/region"].widget = forms.Select(
            choices=[("", "Every region"), *((each, each) for each in regions)]
        )
        self.fields["reason"] = forms.CharField(label="Reason", required=False, max_length=400)

    def plan(self) -> dict[str, Any]:
        """The document of what was typed."""
        fields = {name: field for name, field in self.fields.items() if name.startswith("/")}
        return {name[1:]: typed(field, self.cleaned_data.get(name, "")) for name, field in fields.items()}


@page
def of_pool(request: PageRequest, pk: int) -> HttpResponse:
    """The form, the last replacements of the pool, and asking for one."""
    request.actor.may_write()
    pool = definitions.only(definitions.pools(request.actor), pk)
    must_own(request.actor, pool)
    form = PlanForm(pool, request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            made = services.request_replacement(
                actor=request.actor, pool_id=pk, plan=form.plan(), reason=form.cleaned_data["reason"]
            )
            return redirect("web:replacement", pk=made.pk)
        except Conflict as error:
            messages.error(request, error.detail)
        except Invalid as error:
            attach_errors(form, error)
    rows = selectors.replacements(request.actor).filter(pool=pk)[:SHOWN]
    context = {
        "pool": pool,
        "form": form,
        "rows": [(row, MARKS[row.state]) for row in rows],
        "current": selectors.open_in(request.actor, pk),
    }
    return show(request, "pages/replacements/form.html", context, status=422 if form.is_bound else 200)


@page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """One replacement: how far it is, server by server, and what can be decided."""
    row = selectors.replacement(request.actor, pk)
    servers = list(row.servers.all())
    over = [each for each in servers if each.state not in (ReplacedServer.State.WAITING, ReplacedServer.State.OUT)]
    own = request.actor.owns(row)
    context = {
        "replacement": row,
        "mark": MARKS[row.state],
        "servers": [(each, SERVER_MARKS[each.state]) for each in servers],
        "percent": round(100 * len(over) / len(servers)) if servers else 100,
        "over": len(over),
        "stages": _stages(row),
        "out": [each.name for each in servers if each.state == ReplacedServer.State.OUT],
        "waits_for_owner": row.state == Replacement.State.RUNNING and row.step == Replacement.Step.REPLACE,
        "may_decide": own and request.actor.role != "viewer" and row.state in Replacement.OPEN,
    }
    return show(request, "pages/replacements/detail.html", context)


@post_page
def decide(request: PageRequest, pk: int, act: str) -> HttpResponse:
    """Stop, resume, turn back or end it."""
    service, done = ACTS[act]
    with telling(request, done):
        service(actor=request.actor, replacement_id=pk, reason=request.POST.get("reason", "")[:400])
    return redirect("web:replacement", pk=pk)


@post_page
def carry_on(request: PageRequest, pk: int) -> HttpResponse:
    """The servers of this batch are replaced."""
    text = request.POST.get("batch", "")
    batch = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
    with telling(request, "The batch is being checked."):
        services.continue_replacement(actor=request.actor, replacement_id=pk, batch=batch)
    return redirect("web:replacement", pk=pk)


def _stages(row: Replacement) -> list[tuple[str, str]]:
    """The steps of the batch at hand, as `components/steps.html` shows them; none where no batch is under way."""
    left_out = (Replacement.Step.CHOOSE, Replacement.Step.ADMIT, Replacement.Step.REST)
    steps: list[Replacement.Step] = [each for each in Replacement.Step if each not in left_out]
    if row.state not in Replacement.OPEN or row.step == Replacement.Step.CHOOSE:
        return []
    shown_as = {Replacement.Step.ADMIT: Replacement.Step.CHECK, Replacement.Step.REST: Replacement.Step.RETURN}
    step = Replacement.Step(row.step)
    at = steps.index(shown_as.get(step, step))
    current = "now" if row.state == Replacement.State.RUNNING else "failed"
    words = ["done"] * at + [current] + [""] * len(steps)
    return [(word, str(each.label)) for word, each in zip(words, steps, strict=False)]

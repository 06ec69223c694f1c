"""One run of a capacity test: live while it goes on, with its result afterwards."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.http import HttpResponse
from django.urls import reverse
from django.utils.http import urlencode

from apps.capacity import selectors
from apps.capacity.models import Run, Step
from apps.capacity.run.generator_capacity import sentence_of
from apps.core.clock import now
from apps.core.written.numbers import plain
from apps.web.capacity.actions import limit_context
from apps.web.capacity.live import abort_conditions, asked, figures_now, phase, seconds_of, timeline, words_of
from apps.web.capacity.result import result_context
from apps.web.capacity.words import PURPOSES, address_of, load_words, mark_of, objective_words, spoken, through
from apps.web.kit.figures import share
from apps.web.kit.pages import PageRequest, page, show

MARGIN = timedelta(minutes=1)
LEGEND = (
    *(("target", "target"), ("offered", "offered"), ("answered", "answered"), ("errors", "errors")),
    *(("p50", "p50"), ("p95", "p95"), ("p99", "p99"), ("objective", "objective")),
)
VERDICTS = {
    "good": ("good", "good", "Good"),
    "bad": ("bad", "bad", "Overloaded"),
    "void": ("idle", "unknown", "Discarded"),
}


@page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """One run; `?partial=body` is what changes while it goes on."""
    run = selectors.run(request.actor, pk)
    return show(request, "pages/capacity_runs/detail.html", run_context(request, run))


def run_context(request: PageRequest, run: Run) -> dict[str, Any]:
    """Everything that the page of a run shows."""
    steps = list(run.steps.defer("histogram").order_by("ordinal"))
    seconds = seconds_of(run)
    going = run.state in Run.OPEN
    plan = run.plan
    context: dict[str, Any] = {
        "run": run,
        "going": going,
        "mark": mark_of(run),
        "target": plan.get("target", {}),
        "address": address_of(plan.get("target", {}), plan.get("load", {})),
        "through": through(plan.get("target", {})),
        "load": load_words(plan.get("load", {})),
        "objective": objective_words(plan.get("objective", {})),
        "took": _took(run),
        "generator": sentence_of(run.generator),
        "now": figures_now(run, seconds),
        "drawing": timeline(run, seconds, steps),
        "legend": LEGEND,
        "steps": [_step(step) for step in steps],
        "requests": _requests(run),
    }
    if going:
        waits = run.state == Run.State.WAITING and run.begin_by is None
        going_on = {"phase": phase(run, seconds, steps), "abort_conditions": abort_conditions(run, seconds)}
        return context | going_on | {"needs_approval": run.phase if waits else ""}
    limit = limit_context(request, run) if run.result else {}
    return context | result_context(run) | limit


def _requests(run: Run) -> str:
    """Where its requests are, empty where no node saw them.

    Lines come a second after them, and the clock of a node may differ by some.
    """
    if run.started_at is None or run.plan.get("target", {}).get("server"):
        return ""
    window = {"last": "1h"}
    if run.ended_at:
        window = {
            "from": f"{run.started_at - MARGIN:%Y-%m-%dT%H:%M}",
            "to": f"{run.ended_at + 2 * MARGIN:%Y-%m-%dT%H:%M}",
        }
    words = {"q": f"test_run:{run.name}", "account": run.account.name, **window}
    return f"{reverse('web:requests')}?{urlencode(words)}"


def _took(run: Run) -> str:
    if run.started_at is None:
        return ""
    return spoken(((run.ended_at or now()) - run.started_at).total_seconds())


def _step(step: Step) -> dict[str, Any]:
    """A row of the table of steps."""
    return {
        "ordinal": step.ordinal,
        "purpose": PURPOSES.get(step.purpose, step.purpose),
        "asked": asked(step),
        "offered": plain(step.offered),
        "answered": plain(step.answered),
        "errors": share(step.error_rate),
        "kinds": ", ".join(f"{count:,} {kind}" for kind, count in sorted(step.errors.items())),
        "p50": words_of(step.p50_ms),
        "p95": words_of(step.p95_ms),
        "p99": words_of(step.p99_ms),
        "worst": words_of(step.max_ms),
        "seconds": f"{step.seconds:.0f} s",
        "since": step.started_at,
        "until": step.started_at + timedelta(seconds=step.seconds),
        "mark": VERDICTS.get(step.status, VERDICTS["void"]),
        "message": step.message,
    }

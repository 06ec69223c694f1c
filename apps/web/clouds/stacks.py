"""Stacks: what stands in each cloud, the plan that waits, its runs live, states, the lock."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect

from apps.definitions.selectors import load_balancers
from apps.stacks import selectors, services
from apps.stacks.cloud import health
from apps.stacks.models import StackRun
from apps.stacks.selectors import StackState
from apps.web.kit.pages import PageRequest, operators_only, page, post_page, show
from apps.web.kit.saving import confirmed, deleted_by_name, telling
from apps.web.kit.worst_first import by_word

RUNS_SHOWN, REVISIONS_SHOWN, STATES_SHOWN, EVENTS_SHOWN = 20, 20, 20, 200
MOST_REASON = 400
# Word of a stack → state and word of components/status.html.
STACKS = {
    "in_sync": ("in_sync", "In sync"),
    "behind": ("behind", "Behind"),
    "planning": ("pushing", "Planning"),
    "plan_waits": ("awaiting_approval", "Plan needs approval"),
    "applying": ("pushing", "Applying"),
    "failed": ("failed", "Failed"),
    "drifted": ("drifted", "Drifted"),
    "refused": ("refused", "Rejected"),
    "discarded": ("superseded", "Plan discarded"),
    "destroyed": ("superseded", "Destroyed"),
    "empty": ("draft", "Empty"),
}
WORST = ("failed", "refused", "drifted", "plan_waits", "behind", "planning", "applying", "in_sync")
RUNS = {
    "waiting": ("waiting", "Waiting"),
    "planning": ("pushing", "Planning"),
    "planned": ("awaiting_approval", "Needs approval"),
    "approved": ("validated", "Approved"),
    "applying": ("pushing", "Applying"),
    "done": ("done", "Applied"),
    "unchanged": ("done", "No changes"),
    "failed": ("failed", "Failed"),
    "discarded": ("superseded", "Discarded"),
    "superseded": ("superseded", "Superseded"),
}
STEPS = (("waiting", "Compiled"), ("planning", "Planned"), ("approved", "Approved"), ("applying", "Applied"))
ORDER = ("waiting", "planning", "planned", "approved", "applying", "done")


@page
def index(request: PageRequest) -> HttpResponse:
    """Every stack with how it stands, worst first."""
    operators_only(request.actor, "stacks")
    states = by_word([(state.status, state) for state in selectors.stack_states(request.actor)], WORST)
    rows = [(state, STACKS[state.status]) for state in states]
    return show(request, "pages/stacks/list.html", {"rows": rows})


@page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """One stack: how it stands, the plan that waits, what its cloud says, its history."""
    operators_only(request.actor, "stacks")
    state = selectors.stack_state(request.actor, pk)
    run = state.run if state.run is not None and state.run.finished_at is None else None
    context: dict[str, Any] = {"state": state, "stack": state.stack, "mark": STACKS[state.status], "run": run}
    partial = request.GET.get("partial", "")
    if partial != "health":
        context |= _plan(request, run) if run else {}
    if partial != "now":
        context |= _health(request, pk)
    if not partial:
        context |= _around(request, state)
    return show(request, "pages/stacks/detail.html", context)


def _health(request: PageRequest, pk: int) -> dict[str, Any]:
    """What the cloud's own checks and counts say."""
    rows = health.backends_of(request.actor, pk)
    return {"backends": rows, "reading": health.reading_of(request.actor, pk)}


def _around(request: PageRequest, state: StackState) -> dict[str, Any]:
    """What stands in it, its runs, revisions and states."""
    actor, pk = request.actor, state.stack.pk
    return {
        "balancers": load_balancers(actor).filter(stacks=pk),
        "addresses": state.stack.static_ips.order_by("name"),
        "outputs": sorted(selectors.outputs(actor, pk).items()),
        "runs": [(run, RUNS[run.state]) for run in selectors.runs(actor, pk)[:RUNS_SHOWN]],
        "revisions": selectors.revisions(actor, pk)[:REVISIONS_SHOWN],
        "states": selectors.states(actor, pk)[:STATES_SHOWN],
    }


def _plan(request: PageRequest, run: StackRun) -> dict[str, Any]:
    """What a run would do, in our words, and how far it is."""
    changes, drift = selectors.plan_of(request.actor, run.pk)
    reached = ORDER.index(run.state) if run.state in ORDER else len(ORDER)
    failed = _failed_at(run) if run.state == StackRun.State.FAILED else ""
    steps = [(_step(name, failed, reached), word) for name, word in STEPS]
    events = list(selectors.events(request.actor, run.pk).order_by("-number")[:EVENTS_SHOWN])
    return {
        "changes": changes,
        "drift": drift,
        "steps": steps,
        "run_mark": RUNS[run.state],
        "events": events,
        "working": run.finished_at is None and run.state in ("planning", "applying"),
    }


def _failed_at(run: StackRun) -> str:
    """The step that did not come to its end: what was never planned was never approved, nor applied."""
    if run.planned_at is None:
        return "planning"
    return "applying" if run.approved_at is not None else "approved"


def _step(name: str, failed: str, reached: int) -> str:
    """done, now, failed or nothing, for components/steps.html; `failed` is the step that did."""
    index = ORDER.index(name)
    if failed:
        end = ORDER.index(failed)
        return "failed" if name == failed else "done" if index < end else ""
    if reached == len(ORDER):
        return ""
    return "done" if reached > index else "now" if reached == index else ""


@page
def run(request: PageRequest, pk: int) -> HttpResponse:
    """One run: its plan in our words, what Terraform says while it works, and what can be done with it."""
    operators_only(request.actor, "runs of stacks")
    found = selectors.run(request.actor, pk)
    context = {"run": found, "stack": found.stack, **_plan(request, found)}
    return show(request, "pages/stacks/run.html", context)


@page
def state(request: PageRequest, pk: int, number: int) -> HttpResponse:
    """One version of a stack's state without what is secret; that somebody read it is in the audit log."""
    operators_only(request.actor, "states of stacks")
    found = services.read_state(actor=request.actor, stack_id=pk, number=number)
    text = json.dumps(found, indent=2, sort_keys=True, ensure_ascii=False)
    stack = selectors.stack_state(request.actor, pk).stack
    return show(request, "pages/stacks/state.html", {"stack": stack, "number": number, "text": text})


def _reason(request: PageRequest) -> str:
    return request.POST.get("reason", "").strip()[:MOST_REASON]


@post_page
def plan(request: PageRequest, pk: int) -> HttpResponse:
    """Plan now what is wanted."""
    operators_only(request.actor, "plan of stacks")
    with telling(request, "Planning has started. This page shows the plan when it is ready."):
        services.plan_now(actor=request.actor, stack_id=pk, reason=_reason(request))
    return redirect("web:stack", pk)


@post_page
def check(request: PageRequest, pk: int) -> HttpResponse:
    """Look for what somebody changed in the cloud."""
    operators_only(request.actor, "check of stacks")
    with telling(request, "The drift check has started. This page shows the result."):
        services.check_drift(actor=request.actor, stack_id=pk)
    return redirect("web:stack", pk)


@post_page
def destroy(request: PageRequest, pk: int) -> HttpResponse:
    """Plan to delete everything, once the name was typed; nothing happens before that plan is approved."""
    operators_only(request.actor, "destroy of stacks")
    request.actor.may_write()
    name = selectors.stack_state(request.actor, pk).stack.name
    if not confirmed(request, name, "plan the destroy"):
        return redirect("web:stack", pk)
    with telling(
        request, "Planning to destroy all resources of this stack. Nothing is deleted until the plan is approved."
    ):
        services.destroy(actor=request.actor, stack_id=pk, reason=_reason(request) or "From the stack page.")
    return redirect("web:stack", pk)


@post_page
def delete(request: PageRequest, pk: int) -> HttpResponse:
    """Delete a stack in whose cloud nothing stands any more, once its name was typed."""
    operators_only(request.actor, "delete of stacks")
    request.actor.may_write()
    stack = selectors.stack_state(request.actor, pk).stack
    gone = deleted_by_name(
        request, "Stack", stack, f"Stack {stack.name} is deleted; its history stays in the audit log."
    )
    return redirect("web:stacks") if gone else redirect("web:stack", pk)


@post_page
def unlock(request: PageRequest, pk: int) -> HttpResponse:
    """Take the lock of the state away from whoever holds it."""
    operators_only(request.actor, "lock of stacks")
    lock_id = request.POST.get("lock", "")[:64]
    with telling(request, "The lock is removed. Its previous holder can no longer write the state."):
        services.force_unlock(actor=request.actor, stack_id=pk, lock_id=lock_id, reason=_reason(request))
    return redirect("web:stack", pk)


@post_page
def approve(request: PageRequest, pk: int) -> HttpResponse:
    """Let exactly the plan be applied that was on the page."""
    operators_only(request.actor, "approval of runs")
    digest = request.POST.get("plan", "")[:64]
    with telling(request, "Approved. Terraform now applies exactly this plan."):
        services.approve(actor=request.actor, run_id=pk, plan_digest=digest, reason=_reason(request))
    return redirect("web:stack-run", pk)


# What is decided about a run without looking at its plan, and what the next page says then.
DECISIONS: dict[str, tuple[Callable[..., StackRun], str]] = {
    "discard": (services.discard, "Discarded. The next change starts a new plan."),
    "cancel": (services.cancel, "Terraform finishes the operation in progress and stops."),
    "retry": (services.retry, "Planning again."),
}


@post_page
def decide(request: PageRequest, pk: int, decision: str) -> HttpResponse:
    """Say no to a plan that waits, stop a run that is under way, or try a failed one again."""
    operators_only(request.actor, "runs of stacks")
    service, done = DECISIONS[decision]
    with telling(request, done):
        service(actor=request.actor, run_id=pk, reason=_reason(request))
    return redirect("web:stack-run", pk)

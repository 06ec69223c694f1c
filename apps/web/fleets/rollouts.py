"""Rollouts, live, with what changed, how each wave does, and the way back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.core.clock import now
from apps.core.errors import Conflict, Invalid
from apps.rollouts import selectors, services
from apps.rollouts.models import Rollout, Step
from apps.rollouts.push.states import TERMINAL, TURNED_BACK, UNDER_WAY, RolloutState, StepState
from apps.rollouts.settings import settings_of
from apps.rollouts.waves.planning import soaks_until
from apps.web.kit.differences import files_of
from apps.web.kit.pages import PageRequest, operators_only, page, post_page, show
from apps.web.kit.saving import telling
from apps.web.kit.worst_first import newest_page

PER_PAGE = 50
REVISIONS_SHOWN = 20
STAGES = (RolloutState.COMPILED, RolloutState.VALIDATED, RolloutState.PUSHING, RolloutState.DONE)
WORDS = {"compiled": "Compiled", "validated": "Checked", "pushing": "Pushed to nodes", "done": "Live"}
FINISHED_STEPS = {StepState.DONE, StepState.REFUSED, StepState.ROLLED_BACK}


@page
def index(request: PageRequest) -> HttpResponse:
    """Newest first, a keyset page at a time; `?fleet=` narrows."""
    operators_only(request.actor, "rollouts")
    rows = selectors.rollouts(request.actor)
    fleet = request.GET.get("fleet", "")
    if fleet:
        rows = rows.filter(fleet__name=fleet) if fleet.isprintable() else rows.none()
    found, context = newest_page(rows.prefetch_related("steps"), request.GET.get("before", ""), PER_PAGE)
    context |= {
        "rows": [_row(each) for each in found],
        "fleet": fleet,
        "fleets": [sync.fleet.name for sync in selectors.fleet_syncs(request.actor)],
    }
    return show(request, "pages/rollouts/list.html", context)


def _row(rollout: Rollout) -> dict[str, Any]:
    steps = list(rollout.steps.all())
    ways = {step.how for step in steps if step.how}
    told = sorted(ways - {"nothing"}) or (["nothing to do"] if ways else ["no node yet"])
    return {
        "rollout": rollout,
        "took": _seconds((rollout.finished_at or now()) - rollout.created_at),
        "running": rollout.state not in TERMINAL,
        "percent": 100 if rollout.state in TERMINAL else percent_done(steps),
        "ways": ", ".join(told),
        "nodes": len(steps),
    }


def percent_done(steps: list[Step]) -> int:
    """Share of steps that came to an end, in per cent."""
    return round(100 * sum(step.state in FINISHED_STEPS for step in steps) / len(steps)) if steps else 100


def _seconds(span: timedelta) -> str:
    seconds = max(span.total_seconds(), 0.0)
    if seconds < 10:
        return f"{seconds:.2f} s"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _step(rollout: Rollout, step: Step) -> dict[str, Any]:
    """One node: its step, how long it took, and the word for a node that was not reached any more."""
    took = _seconds(step.finished_at - step.started_at) if step.started_at and step.finished_at else ""
    spared = rollout.state in TERMINAL and step.state == StepState.WAITING
    return {"step": step, "took": took, "word": "Not reached" if spared else ""}


@page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """One rollout: stages, nodes, what it changed, and the way back."""
    operators_only(request.actor, "rollout")
    rollout = selectors.rollout(request.actor, pk)
    steps = list(rollout.steps.all())
    context = {
        **_row(rollout),
        "stages": stages_of(rollout),
        "steps": [_step(rollout, step) for step in steps],
        "what": rollout.object_label if rollout.line or rollout.object_label not in rollout.message else "",
        "headline": headline_of(rollout, steps),
        "waves": waves_of(rollout, steps) if rollout.waves > 1 or rollout.awaits else [],
        "soak_s": settings_of(rollout.fleet).soak_seconds,
        "sync": selectors.fleet_syncs(request.actor).filter(fleet=rollout.fleet_id).first(),
        "errors": [],
    }
    if not request.GET.get("partial"):
        context |= _difference(request, rollout) | _earlier(request, rollout)
    return show(request, "pages/rollouts/detail.html", context)


def stages_of(rollout: Rollout) -> list[tuple[str, str]]:
    """The stages as (state, word) for `components/steps.html`: done, now, failed or still to come."""
    state = RolloutState(rollout.state)
    if state in TURNED_BACK:
        last = {"rolling_back": "now", "rolled_back": "failed", "failed": "failed"}[state]
        word = "Failed" if state == RolloutState.FAILED else "Rolled back"
        return [("done", "Compiled"), ("done", "Checked"), ("failed", "Pushed to nodes"), (last, word)]
    if state == RolloutState.SUPERSEDED:
        return [("done", "Compiled"), ("done", "Checked"), ("", "Pushed to nodes"), ("failed", "Superseded")]
    index = STAGES.index(state) if state in STAGES else STAGES.index(RolloutState.PUSHING)
    marks = ["done" if at < index or state == RolloutState.DONE else "" for at in range(len(STAGES))]
    if state != RolloutState.DONE:
        marks[index] = "now"
    words = WORDS | ({"pushing": f"Wave {rollout.wave} of {rollout.waves}"} if rollout.waves > 1 else {})
    if rollout.waits_for_stage:
        words |= {"pushing": "Waits for an earlier stage"}
    return [(mark, words[stage]) for mark, stage in zip(marks, STAGES, strict=True)]


def headline_of(rollout: Rollout, steps: list[Step]) -> str:
    """What the message of a rollout is about."""
    if rollout.state == RolloutState.SUPERSEDED:
        return "No node got the revision." if rollout.wave == 0 else "Superseded by a newer rollout."
    if rollout.state in UNDER_WAY:
        return "The first wave waits." if rollout.waits_for_stage else "The next wave waits."
    if not steps:
        return "The revision was not pushed."
    if any(not gate["passed"] for gate in rollout.gates):
        return f"The revision failed its check after wave {rollout.gates[-1]['wave']}."
    return "A node rejected the revision."


def waves_of(rollout: Rollout, steps: Iterable[Step]) -> list[dict[str, Any]]:
    """Each wave with its number of nodes, its state as `components/status.html` knows it, and the verdict on it."""
    nodes, gates = Counter(step.wave for step in steps), {gate["wave"]: gate for gate in rollout.gates}
    return [
        {"number": number, "nodes": nodes[number], "verdict": gates.get(number, {}).get("message", "")}
        | _state_of_wave(rollout, number, gates.get(number))
        for number in range(1, rollout.waves + 1)
        if nodes[number]
    ]


def _state_of_wave(rollout: Rollout, number: int, gate: dict[str, Any] | None) -> dict[str, Any]:
    if gate is not None:
        return {"state": "done", "word": "Passed"} if gate["passed"] else {"state": "failed", "word": "Failed"}
    if rollout.state == RolloutState.DONE:
        return {"state": "done", "word": "Done"}
    if rollout.state in TERMINAL or number > rollout.wave:
        return {"state": "waiting", "word": "Not reached" if rollout.state in TERMINAL else "Waiting"}
    if number < rollout.wave:
        return {"state": "done", "word": "Not watched"}
    until = soaks_until(rollout)
    return {"state": rollout.state, "word": "", "until": until if until and until > now() else None}


def _difference(request: PageRequest, rollout: Rollout) -> dict[str, Any]:
    if rollout.previous_id is None or rollout.previous_id == rollout.revision_id:
        return {"sentences": (), "files": []}
    found = selectors.difference(request.actor, rollout.previous_id, rollout.revision_id)
    return {"sentences": found.sentences, "files": files_of(found.files)}


def _earlier(request: PageRequest, rollout: Rollout) -> dict[str, Any]:
    """Revisions to go back to, newest first; `?older=` goes on below that number."""
    rows = selectors.revisions(request.actor).filter(fleet=rollout.fleet_id).order_by("-number")
    older = request.GET.get("older", "")
    if older.isascii() and older.isdecimal() and len(older) < 10:
        rows = rows.filter(number__lt=int(older))
    found = list(rows[: REVISIONS_SHOWN + 1])
    more = len(found) > REVISIONS_SHOWN
    shown = found[:REVISIONS_SHOWN]
    return {"earlier": shown, "older": older, "next_older": shown[-1].number if more else None}


@post_page
def push_to_all(request: PageRequest, pk: int) -> HttpResponse:
    """Give the rest of the nodes what those of the first waves have."""
    with telling(request, "The remaining nodes get the revision now."):
        services.push_to_all(actor=request.actor, rollout_id=pk, reason=request.POST.get("reason", ""))
    return redirect("web:rollout", pk=pk)


@post_page
def roll_back(request: PageRequest, pk: int) -> HttpResponse:
    """Push an earlier revision again and hold the fleet there."""
    try:
        rollout = services.roll_back(actor=request.actor, revision_id=pk, reason=request.POST.get("reason", ""))
    except (Invalid, Conflict) as error:
        messages.error(request, error.detail)
        return redirect("web:rollouts")
    messages.success(
        request, f"Fleet {rollout.fleet.name} rolls back and is held at that revision until someone resumes it."
    )
    return redirect("web:rollout", pk=rollout.pk)

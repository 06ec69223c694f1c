"""Schedules: the list, one schedule with its history, and what can be done with it at once."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import yaml
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from apps.calendars import CalendarError
from apps.core.clock import now
from apps.core.errors import Invalid
from apps.definitions.freezing.timing import timing_of
from apps.definitions.models import Schedule
from apps.definitions.selectors import only
from apps.definitions.selectors import schedules as visible_schedules
from apps.definitions.shapes.operations.schedule import TARGETS
from apps.schedules import selectors, services
from apps.schedules.models import ScheduleRun, Trigger
from apps.schedules.triggers.services import GRACE_S
from apps.web.bulk.selecting import Noun, each_selected, reason_of, rejected
from apps.web.kit.pages import PageRequest, page, post_page, show
from apps.web.kit.saving import deleted_by_name, telling
from apps.web.kit.undoing import url_with
from apps.web.schedules.rows import FILTERS, STATES, chips_of, last_runs, listed, narrowed, page_of, page_of_runs
from apps.web.schedules.triggers import GRACES
from apps.web.schedules.words import (
    CAUSES,
    SCHEDULE_RUNS,
    next_instants,
    sentence,
    span,
    state_of,
    target_of,
    zone_of,
)

PER_PAGE = 50
RUNS_SHOWN = 25
SCHEDULES = Noun("schedule", "web:schedule", "web:schedules")
# What `result` of a run may name, and the page that shows it.
RESULTS = {"run": "web:capacity-run", "rollout": "web:rollout"}
CHANGED = {
    "Pool": "web:pool",
    "Route": "web:route",
    "LoadBalancer": "web:load-balancer",
    "CapacityTest": "web:capacity-test",
}


@page
def index(request: PageRequest) -> HttpResponse:
    """Schedules by name, narrowed by the query of the page, a keyset page at a time."""
    actor, chosen = request.actor, request.GET
    context: dict[str, Any] = {
        "chosen": chosen,
        "filtered": any(chosen.get(name) for name in FILTERS),
        "chips": chips_of(chosen),
        "states": [(value, word) for value, (word, _) in STATES.items()],
        "targets": TARGETS.items(),
    }
    try:
        rows = narrowed(visible_schedules(actor), chosen.dict())
        found, context["next_after"] = page_of(rows, chosen.get("after", ""), PER_PAGE)
    except Invalid as error:
        return show(request, "pages/schedules/list.html", context | {"field_errors": error.field_errors}, status=422)
    total = rows.count()
    context["rows"] = listed(found)
    context["count"] = f"{len(found)} of {total:,} schedule{'' if total == 1 else 's'}"
    return show(request, "pages/schedules/list.html", context)


@post_page
def bulk(request: PageRequest) -> HttpResponse:
    """Pause or resume the selected schedules; undo changes those back that this changed."""
    request.actor.may_write()
    if request.POST.get("do") not in ("pause", "resume"):
        return rejected(request, SCHEDULES, "Choose an action.")
    pausing, changed = request.POST["do"] == "pause", list[int]()

    def change(row: Schedule) -> None:
        do = services.pause if pausing else services.resume
        after = do(actor=request.actor, schedule_id=row.pk, reason=reason_of(request))
        changed.extend([row.pk] if after.paused != row.paused else [])

    def undo() -> str:
        return url_with("web:schedules-bulk", do="resume" if pausing else "pause", schedule=changed) if changed else ""

    rows, done = visible_schedules(request.actor), "paused" if pausing else "resumed"
    return each_selected(request, SCHEDULES, rows, change, done, undo)


@page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """One schedule: what it does, its next instants, its history, what gave up, and its triggers."""
    actor = request.actor
    row = only(visible_schedules(actor), pk)
    context = {"row": row, "state": state_of(row)}
    partial = request.GET.get("partial", "")
    if partial != "history":
        context |= _facts(row)
    if partial != "facts":
        context |= _history(request, row)
    if not partial:
        context |= _around(request, row)
    return show(request, "pages/schedules/detail.html", context)


def _facts(row: Schedule) -> dict[str, Any]:
    """What it does, when next, and how the last time went."""
    timing = timing_of(row)
    context: dict[str, Any] = {"sentence": sentence(row), "target": target_of(row.target_kind, row.target)}
    context["kind_word"] = TARGETS[row.target_kind]
    context["spans"] = {name: span(getattr(row, f"{name}_s")) for name in ("window", "jitter", "backoff", "timeout")}
    context["spans"]["catch_up"] = span(row.catch_up_window_s)
    context["change_text"] = yaml.safe_dump(row.target, sort_keys=False, allow_unicode=True)
    last = last_runs([row.pk]).get(row.pk)
    context |= {"last": last, "last_mark": SCHEDULE_RUNS[ScheduleRun.State(last.state)] if last else None}
    try:
        context["instants"] = next_instants(timing, now())
    except CalendarError as error:
        context["unreadable"] = error.detail
    return context


def _history(request: PageRequest, row: Schedule) -> dict[str, Any]:
    """Runs, newest first; `?state=` narrows, `?before=` goes on."""
    rows, zone = selectors.runs(request.actor).filter(schedule=row), zone_of(row.zone)
    state, before = request.GET.get("state", ""), request.GET.get("before", "")
    state = state if state in ScheduleRun.State.values else ""
    found, next_before = page_of_runs(rows, state, before, RUNS_SHOWN)
    gave_up = list(rows.filter(state=ScheduleRun.State.DEAD).order_by("-scheduled_at")[: RUNS_SHOWN + 1])
    return {
        "runs": [_run(each, zone) for each in found],
        "run_states": [(value, SCHEDULE_RUNS[value].word) for value in ScheduleRun.State],
        "chosen_state": state,
        "before": before,
        "next_before": next_before,
        "gave_up": len(gave_up),
        "more_gave_up": len(gave_up) > RUNS_SHOWN,
    }


def _run(run: ScheduleRun, zone: ZoneInfo) -> dict[str, Any]:
    """A run as a line: state, why it came about, how late it began, how long it took, where it led."""
    return {
        "run": run,
        "mark": SCHEDULE_RUNS[ScheduleRun.State(run.state)],
        "cause": CAUSES[ScheduleRun.Cause(run.cause)],
        "local": f"{run.scheduled_at.astimezone(zone):%a %Y-%m-%d %H:%M:%S}",
        "lag": _seconds((run.started_at - run.due_at).total_seconds()) if run.started_at else "",
        "took": _took(run),
        "links": _links(run.result),
    }


def _links(result: dict[str, Any]) -> list[tuple[str, int, str]]:
    """Pages of what a run led to: the page's name, its id, and words for it."""
    links = [
        (page_name, result[name], f"{name} {result[name]}") for name, page_name in RESULTS.items() if name in result
    ]
    if result.get("kind") in CHANGED and "id" in result:
        links.append((CHANGED[result["kind"]], result["id"], str(result.get("name", ""))))
    return links


def _took(run: ScheduleRun) -> str:
    if run.started_at is None or run.finished_at is None:
        return ""
    return _seconds((run.finished_at - run.started_at).total_seconds())


def _seconds(value: float) -> str:
    return f"{max(value, 0.0):.2f} s" if value < 10 else f"{value:,.0f} s"


def _around(request: PageRequest, row: Schedule) -> dict[str, Any]:
    """What does not change while somebody looks: triggers and the audit log."""
    return {
        "triggers": list(selectors.triggers(request.actor).filter(schedule=row)),
        "senders": [(value, Trigger.Sender(value).label) for value in Trigger.Sender.values],
        "graces": GRACES,
        "grace": GRACE_S,
    }


def _done(request: PageRequest, pk: int, do: Any, said: str, undo: str = "", **more: Any) -> HttpResponse:
    """Call a service for one schedule and go back to its page with what came of it."""
    with telling(request, said, undo):
        do(actor=request.actor, **more)
    return redirect("web:schedule", pk=pk)


@post_page
def run(request: PageRequest, pk: int) -> HttpResponse:
    """Let it happen now, once, whatever the calendar says."""
    said = "The run starts now. Its result appears in the history below."
    return _done(request, pk, services.run_now, said, schedule_id=pk, reason=reason_of(request))


@post_page
def pause(request: PageRequest, pk: int) -> HttpResponse:
    """Nothing happens any more until somebody resumes it."""
    undo = reverse("web:schedule-resume", args=[pk])
    return _done(
        request, pk, services.pause, "The schedule is paused.", undo, schedule_id=pk, reason=reason_of(request)
    )


@post_page
def resume(request: PageRequest, pk: int) -> HttpResponse:
    """On again from the next instant; what fell into the pause is not made up for."""
    undo = reverse("web:schedule-pause", args=[pk])
    said = "The schedule is active again."
    return _done(request, pk, services.resume, said, undo, schedule_id=pk, reason=reason_of(request))


@post_page
def retry(request: PageRequest, pk: int) -> HttpResponse:
    """Try once more what gave up; `pk` is the run's."""
    run = only(selectors.runs(request.actor), pk)
    return _done(request, run.schedule_id, services.retry_run, "The run is retried.", run_id=pk)


@post_page
def delete(request: PageRequest, pk: int) -> HttpResponse:
    """Take it away with its history, once its name was typed."""
    row = only(visible_schedules(request.actor), pk)
    request.actor.may_write()
    done = f"Schedule {row.name} is deleted."
    gone = deleted_by_name(request, "Schedule", row, done, reason=reason_of(request))
    return redirect("web:schedules") if gone else redirect("web:schedule", pk=pk)

"""Commands about schedules: list, show, run, pause, resume, their runs; plan and apply make and change them."""

from __future__ import annotations

import argparse
from typing import Any

from .. import texts
from ..api import Api
from ..finding import every, one
from ..numbers import number
from ..words import add_managed

Done = tuple[Any, str, int]
NOUN = "schedules"
STATES = ("waiting", "running", "done", "dead", "skipped", "missed")
NO_RUNS = "No runs yet."
RUN_FIELDS = ("id", "schedule", "scheduled_at", "state", "attempt", "cause", "message")


def add_to(commands: Any, every: argparse.ArgumentParser) -> None:
    """The words of schedule."""
    schedule = commands.add_parser("schedule", help="recurring, scheduled and triggered actions")
    actions = schedule.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=type(schedule))

    listed = actions.add_parser("list", parents=[every], help="list schedules with their next runs")
    listed.add_argument("--account", metavar="NAME", help="only of this account (operators)")
    listed.set_defaults(run=list_schedules)

    for name, run, words in (
        ("show", show_schedule, "show one schedule, its definition and its last runs"),
        ("run", run_now, "run it now, even if it is paused"),
        ("pause", pause, "pause it: no more runs"),
        ("resume", resume, "resume it"),
    ):
        action = actions.add_parser(name, parents=[every], help=words)
        action.add_argument("schedule", metavar="SCHEDULE", help="name, account/name or id")
        if name != "show":
            action.add_argument("--reason", help="reason, for the audit log")
        if run in (pause, resume):
            add_managed(action)
        action.set_defaults(run=run)

    runs = actions.add_parser("runs", parents=[every], help="list runs, newest first")
    runs.add_argument("schedule", metavar="SCHEDULE", nargs="?", help="of one schedule; default: all")
    runs.add_argument("--state", choices=STATES)
    runs.add_argument("--limit", type=number, default=50)
    runs.set_defaults(run=list_runs)

    retry = actions.add_parser("retry", parents=[every], help="retry a failed run with the same key")
    retry.add_argument("schedule_run", metavar="RUN", type=number, help="id of the schedule run")
    retry.add_argument("--reason", help="reason, for the audit log")
    retry.set_defaults(run=retry_run)


def list_schedules(api: Api, asked: argparse.Namespace) -> Done:
    """A line per schedule."""
    items = every(api, NOUN, {"account": asked.account} if asked.account else {})
    rows = [
        (each["id"], f"{each['account']}/{each['name']}", each["sentence"], _target(each), _next(each))
        for each in items
    ]
    return items, texts.table(rows, ("ID", "SCHEDULE", "WHEN", "TARGET", "NEXT")), 0


def _target(schedule: Any) -> str:
    return next(iter(schedule["spec"]["target"]), "")


def _next(schedule: Any) -> str:
    return "paused" if schedule["spec"].get("paused") else schedule["next_at"] or "when it is called"


def show_schedule(api: Api, asked: argparse.Namespace) -> Done:
    """The definition, what it has missed, and its last ten runs."""
    found = one(api, NOUN, asked.schedule)
    runs = api("GET", f"{NOUN}/{found['id']}/runs", query={"limit": "10"})["items"]
    head = f"Schedule {found['account']}/{found['name']} ({found['id']}): {found['sentence']}"
    parts = [texts.plain(head), texts.plain(f"Next: {_next(found)}")]
    if found["missed"]:
        parts.append(f"Missed: {found['missed']}")
    parts += ["", texts.outline(found["spec"]), "", _runs(runs)]
    return found | {"runs": runs}, "\n".join(parts), 0


def run_now(api: Api, asked: argparse.Namespace) -> Done:
    """Run it once more; what comes of it is a run as any other."""
    return _made(api("POST", f"{NOUN}/{one(api, NOUN, asked.schedule)['id']}/run"))


def retry_run(api: Api, asked: argparse.Namespace) -> Done:
    """Give a run that gave up its attempts back."""
    return _made(api("POST", f"schedule-runs/{asked.schedule_run}/retry"))


def _made(run: Any) -> Done:
    message = f" {run['message']}" if run["message"] else ""
    return run, texts.plain(f"Schedule run {run['id']} of {run['schedule']} is {run['state']}.{message}"), 0


def pause(api: Api, asked: argparse.Namespace) -> Done:
    """Runs that are booked already still happen."""
    return _switched(api, asked, "pause", "is paused: no more runs are scheduled")


def resume(api: Api, asked: argparse.Namespace) -> Done:
    """From the next instant on."""
    return _switched(api, asked, "resume", "is resumed")


def _switched(api: Api, asked: argparse.Namespace, verb: str, words: str) -> Done:
    body = api("POST", f"{NOUN}/{one(api, NOUN, asked.schedule)['id']}/{verb}")
    ahead = f"; next {body['next_at']}" if verb == "resume" and body["next_at"] else ""
    return body, texts.plain(f"Schedule {body['account']}/{body['name']} {words}{ahead}."), 0


def list_runs(api: Api, asked: argparse.Namespace) -> Done:
    """A line per run, newest first."""
    path = f"{NOUN}/{one(api, NOUN, asked.schedule)['id']}/runs" if asked.schedule else "schedule-runs"
    query = {"limit": str(asked.limit)} | ({"state": asked.state} if asked.state else {})
    items = api("GET", path, query=query)["items"]
    return items, _runs(items), 0


def _runs(items: list[Any]) -> str:
    rows = [[item.get(name) for name in RUN_FIELDS] for item in items]
    return texts.table(rows, ("RUN", "SCHEDULE", "INSTANT", "STATE", "ATTEMPT", "CAUSE", "SAYS")) if rows else NO_RUNS

"""Commands about capacity tests: list, show, start, stop, their runs, and making what was found the limit."""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

from .. import texts
from ..api import Api, Failure
from ..finding import every, one
from ..numbers import number
from ..words import add_managed

Done = tuple[Any, str, int]
NOUN = "capacity-tests"
POLL_S = 30
CURVE = ("rate", "answered", "p50_ms", "p95_ms", "p99_ms", "error_rate", "status")


def add_to(commands: Any, every: argparse.ArgumentParser) -> None:
    """The words of capacity."""
    capacity = commands.add_parser("capacity", help="capacity tests, their runs and the resulting limits")
    actions = capacity.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=type(capacity))

    listed = actions.add_parser("list", parents=[every], help="list capacity tests")
    listed.add_argument("--account", metavar="NAME", help="only of this account (operators)")
    listed.set_defaults(run=list_tests)

    show = actions.add_parser("show", parents=[every], help="show one test and its pre-flight checks")
    show.add_argument("test", metavar="TEST", help="name, account/name or id")
    show.set_defaults(run=show_test)

    start = actions.add_parser("start", parents=[every], help="request a run")
    start.add_argument("test", metavar="TEST", help="name, account/name or id")
    start.add_argument("--approve", action="store_true", help="also approve it (operators)")
    start.add_argument("--wait", action="store_true", help="wait until the run ends; exit code 1 if it found nothing")
    start.add_argument("--reason", help="reason, for the audit log")
    start.set_defaults(run=start_test)

    runs = actions.add_parser("runs", parents=[every], help="runs, newest first")
    runs.add_argument("test", metavar="TEST", nargs="?", help="of one test; default: all")
    runs.add_argument("--limit", type=number, default=50)
    runs.set_defaults(run=list_runs)
    _add_for_runs(actions, every)


def _add_for_runs(actions: Any, every: argparse.ArgumentParser) -> None:
    run = actions.add_parser("run", parents=[every], help="show one run and its result")
    run.add_argument("--wait", action="store_true", help="wait until it ends; exit code 1 if it found nothing")
    run.set_defaults(run=show_run)
    stop = actions.add_parser("stop", parents=[every], help="stop the load within two seconds")
    stop.set_defaults(run=stop_run)
    approve = actions.add_parser("approve", parents=[every], help="approve a run that waits for approval (operators)")
    approve.set_defaults(run=approve_run)
    limit = actions.add_parser("set-limit", parents=[every], help="set the limit of the pool to the measured capacity")
    limit.add_argument("--margin", type=_margin, help="share to subtract first, 0 to 0.9; default: that of the test")
    add_managed(limit)
    limit.set_defaults(run=set_limit)
    for action in (run, stop, approve, limit):
        action.add_argument("id", metavar="RUN", type=number, help="id of the run")
        if action is not run:
            action.add_argument("--reason", help="reason, for the audit log")


def _margin(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found <= 0.9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share from 0 to 0.9")
    return found


def list_tests(api: Api, asked: argparse.Namespace) -> Done:
    """A line per test."""
    items = every(api, NOUN, {"account": asked.account} if asked.account else {})
    rows = [(each["id"], f"{each['account']}/{each['name']}", *_plan(each["spec"])) for each in items]
    return items, texts.table(rows, ("ID", "TEST", "POOL", "REGION", "LOAD", "LIMIT FOLLOWS")), 0


def _plan(spec: Any) -> tuple[object, ...]:
    target = spec["target"]
    return target["pool"], target["region"], spec["load"]["kind"], spec["policy"]["apply"]


def show_test(api: Api, asked: argparse.Namespace) -> Done:
    """The definition, and each question that is asked before a run."""
    found = one(api, NOUN, asked.test)
    checks = api("GET", f"{NOUN}/{found['id']}/checks")
    says = "It can run now." if checks["may_run"] else "It cannot run now:"
    parts = [texts.plain(f"Capacity test {found['account']}/{found['name']} ({found['id']})")]
    parts += [texts.outline(found["spec"]), "", says]
    parts += [f"    {'yes' if each['ok'] else 'no '}  {texts.plain(each['message'])}" for each in checks["checks"]]
    return found | checks, "\n".join(parts), 0


def start_test(api: Api, asked: argparse.Namespace) -> Done:
    """Ask for a run; one that may not begin is refused with its reason, and the exit code is 1."""
    test = one(api, NOUN, asked.test)
    run = api("POST", f"{NOUN}/{test['id']}/run", body={"approve": True} if asked.approve else None)
    return _ended(_waited(api, run) if asked.wait else run)


def show_run(api: Api, asked: argparse.Namespace) -> Done:
    """One run; with --wait its end."""
    run = api("GET", f"capacity-runs/{asked.id}")
    return _ended(_waited(api, run) if asked.wait else run)


def _waited(api: Api, run: Any) -> Any:
    while not run["terminal"]:
        began = time.monotonic()
        run = api("GET", f"capacity-runs/{run['id']}", query={"wait": str(POLL_S)})
        if not run["terminal"] and time.monotonic() - began < 1:
            time.sleep(1)  # too many wait at the server: it answers at once
    return run


def _ended(run: Any) -> Done:
    return run, _told(run), 1 if run["terminal"] and run["state"] != "done" else 0


def _told(run: Any) -> str:
    """What the run does or found, with the curve."""
    where = f"{run['pool'] or 'a deleted pool'} in {run['region'] or 'a deleted region'}"
    parts = [f"Run {run['id']} of {run['name']} on {where}: {run['state']}"]
    parts += [run[name] for name in ("phase", "message") if run[name]]
    if run["waits_for_approval"]:
        parts.append(f"It needs an operator's approval: spillway capacity approve {run['id']}")
    result = run["result"] or {}
    if result.get("message"):
        parts.append(result["message"])
    found = [texts.plain(part) for part in parts]
    if result.get("curve"):
        rows = [[_rounded(point.get(name)) for name in CURVE] for point in result["curve"]]
        found += ["", texts.table(rows, [name.upper() for name in CURVE])]
    if run["limit_set_at"]:
        found.append(texts.plain(f"Its limit was set by {run['limit_set_by']} at {run['limit_set_at']}."))
    return "\n".join(found)


def _rounded(value: object) -> object:
    return round(value, 3) if isinstance(value, float) else value


def list_runs(api: Api, asked: argparse.Namespace) -> Done:
    """A line per run, newest first."""
    query = {"limit": str(asked.limit)}
    if asked.test:
        test = one(api, NOUN, asked.test)
        query |= {"test": test["name"], "account": test["account"]}
    items = api("GET", "capacity-runs", query=query)["items"]
    rows = [
        (
            each["id"],
            f"{each['account']}/{each['name']}",
            each["region"],
            each["created_at"],
            each["state"],
            _found(each),
        )
        for each in items
    ]
    text = texts.table(rows, ("RUN", "TEST", "REGION", "ASKED AT", "STATE", "SAYS")) if rows else "No runs yet."
    return items, text, 0


def _found(run: Any) -> str:
    return str((run["result"] or {}).get("message") or run["message"] or run["phase"])


def stop_run(api: Api, asked: argparse.Namespace) -> Done:
    """End the load."""
    run = api("POST", f"capacity-runs/{asked.id}/stop")
    return run, texts.plain(f"Run {run['id']} of {run['name']} is stopping; it is {run['state']}."), 0


def approve_run(api: Api, asked: argparse.Namespace) -> Done:
    """Let it begin."""
    run = api("POST", f"capacity-runs/{asked.id}/approve")
    return run, texts.plain(f"Run {run['id']} of {run['name']} is approved."), 0


def set_limit(api: Api, asked: argparse.Namespace) -> Done:
    """Make the number the limit of the pool in the region, less the margin."""
    body = None if asked.margin is None else {"margin": asked.margin}
    run = api("POST", f"capacity-runs/{asked.id}/set-limit", body=body)
    if run["limit_set_at"] is None:
        raise Failure(f"Run {asked.id} set no limit: {_found(run)}")
    return run, texts.plain(f"What run {run['id']} found is now the limit of {run['pool']} in {run['region']}."), 0

"""Commands that bring the console to what a file says: plan, apply, on to all nodes, and back again with rollback."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from .. import texts
from ..api import Api, Failure
from ..numbers import number
from ..words import add_glass, add_take_over

WAIT_S = 60
Done = tuple[Any, str, int]


def add_to(commands: Any, every: argparse.ArgumentParser) -> None:
    """The words of plan, apply, rollback and push-to-all."""
    plan = commands.add_parser("plan", parents=[every], help="show what apply would change; exit code 2 for changes")
    _file(plan, required=True)
    add_glass(plan)
    add_take_over(plan)
    plan.set_defaults(run=plan_file)
    next(action for action in plan._actions if action.dest == "output").choices = ("text", "json", "markdown")

    apply = commands.add_parser("apply", parents=[every], help="apply a file, or a plan exactly")
    _file(apply, required=False)
    apply.add_argument("--plan", metavar="ID", help="apply exactly this plan, or nothing if objects have changed since")
    apply.add_argument(
        "--refuse-overload", action="store_true", help="reject a change that puts a region over its limit"
    )
    apply.add_argument(
        "--confirm",
        action="append",
        default=[],
        metavar="ACCOUNT/NAME",
        help="object that this may empty, as named in the rejection",
    )
    add_glass(apply)
    add_take_over(apply)
    _wait(apply)
    _origin(apply)
    apply.set_defaults(run=apply_file)

    back = commands.add_parser(
        "rollback", parents=[every], help="roll a fleet back to an earlier revision and hold it there"
    )
    back.add_argument("revision", metavar="REVISION", type=number, help="id of the revision")
    _origin(back)
    back.set_defaults(run=roll_back)

    rest = commands.add_parser("push-to-all", parents=[every], help="push a rollout to all nodes without further waves")
    rest.add_argument("rollout", metavar="ROLLOUT", type=number, help="id of the rollout")
    _origin(rest)
    rest.set_defaults(run=push_to_all)


def _file(words: argparse.ArgumentParser, *, required: bool) -> None:
    words.add_argument("-f", "--file", required=required, help="YAML or JSON with {objects: […]}; - for standard input")
    words.add_argument("--manager", default="", metavar="NAME", help="manager of these objects; with --prune")
    words.add_argument("--prune", action="store_true", help="delete objects of this manager that are not in the file")


def _wait(words: argparse.ArgumentParser) -> None:
    words.add_argument("--wait", action="store_true", help="wait until the change is live on every node")


def _origin(words: argparse.ArgumentParser) -> None:
    words.add_argument("--reason", help="reason, for the audit log")
    words.add_argument("--commit", help="commit that the change comes from")
    words.add_argument("--pipeline-url", metavar="URL", help="URL of the pipeline run that makes the change")


def plan_file(api: Api, asked: argparse.Namespace) -> Done:
    """Ask what an apply of the file would do."""
    body = api("PUT", "apply", query=_query(asked) | {"dry_run": "plan"}, text=_read(asked))
    shown = texts.markdown if asked.output == "markdown" else texts.plan
    return body, shown(body), 2 if texts.has_changes(body) else 0


def apply_file(api: Api, asked: argparse.Namespace) -> Done:
    """Apply the file, or the plan with this id."""
    query = {"wait": str(WAIT_S)} if asked.wait else {}
    query |= {"confirm": ",".join(asked.confirm)} if asked.confirm else {}
    if bool(asked.plan) == bool(asked.file):
        raise Failure("Pass either -f FILE or --plan ID.")
    if asked.plan:
        body = _apply_plan(api, asked, query)
    else:
        if asked.refuse_overload:
            query["refuse_overload"] = "true"
        body = api("PUT", "apply", query=_query(asked) | query, text=_read(asked))
    late = asked.wait and not body.get("live")
    if late:
        missing = [f"  {texts.plain(each['message'])}" for each in body.get("waits_for", ())]
        said = ["spillway: it is stored, and not live everywhere yet.", *missing]
        print("\n".join(said), file=sys.stderr)
    return body, texts.applied(body), 1 if late else 0


def _apply_plan(api: Api, asked: argparse.Namespace, query: dict[str, str]) -> Any:
    if asked.prune or asked.manager or asked.refuse_overload or asked.take_over:
        raise Failure("A plan already has its manager and what it prunes and takes over; leave out those options.")
    if not re.fullmatch(r"[0-9a-f]{32}", asked.plan, re.ASCII):
        raise Failure("The id of a plan has 32 hexadecimal digits, as plan prints it.")
    return api("POST", f"plans/{asked.plan}/apply", query=query)


def _query(asked: argparse.Namespace) -> dict[str, str]:
    if asked.prune and not asked.manager:
        raise Failure("Pass --manager to name whose objects may be pruned.")
    return {"prune": "true"} if asked.prune else {}


def _read(asked: argparse.Namespace) -> bytes:
    """The file as it is; its text is kept so that errors can name their line."""
    try:
        content = sys.stdin.buffer.read() if asked.file == "-" else Path(asked.file).read_bytes()
    except OSError as error:
        raise Failure(f"The file cannot be read: {error}") from None
    asked.source = content.decode("utf-8", "replace")
    return content


def roll_back(api: Api, asked: argparse.Namespace) -> Done:
    """Begin the way back to a revision."""
    body = api("POST", f"revisions/{asked.revision}/roll-back")
    return body, texts.outline(body), 0


def push_to_all(api: Api, asked: argparse.Namespace) -> Done:
    """End the waves of a rollout."""
    body = api("POST", f"rollouts/{asked.rollout}/push-to-all")
    return body, texts.outline(body), 0

"""Commands about one change that was made with this token: how far it has come, and taking it back."""

from __future__ import annotations

import argparse
import re
import time
from typing import Any

from .. import texts
from ..api import Api, Failure
from ..words import add_managed

Done = tuple[Any, str, int]
POLL_S, WAIT_S = 30, 600


def add_to(commands: Any, every: argparse.ArgumentParser) -> None:
    """The words of wait and revert."""
    wait = commands.add_parser(
        "wait", parents=[every], help="wait until a change of this token is live; exit code 1 if it is not"
    )
    wait.add_argument(
        "--for",
        dest="seconds",
        type=int,
        default=WAIT_S,
        metavar="SECONDS",
        help="maximum number of seconds; default 600",
    )
    wait.set_defaults(run=wait_for)
    revert = commands.add_parser("revert", parents=[every], help="revert a change of this token")
    revert.add_argument(
        "--confirm", action="append", default=[], metavar="ACCOUNT/NAME", help="object that this may empty"
    )
    revert.add_argument("--reason", help="reason, for the audit log")
    add_managed(revert)
    revert.set_defaults(run=take_back)
    for command in (wait, revert):
        command.add_argument("change", metavar="CHANGE", help="ID that apply prints: the X-Request-ID of the write")


def wait_for(api: Api, asked: argparse.Namespace) -> Done:
    """Say how the change stands when it is live, or when the time is over, with all that it waits for."""
    path, end = f"changes/{_id(asked)}", time.monotonic() + asked.seconds
    body = api("GET", path, query={"wait": "0"})
    while not body["live"] and not _hopeless(body) and time.monotonic() < end:
        began = time.monotonic()
        body = api("GET", path, query={"wait": str(min(POLL_S, asked.seconds))})
        if not body["live"] and time.monotonic() - began < 1:
            time.sleep(1)  # too many wait at the server: it answers at once
    said = ["It is live on every node."] if body["live"] else ["It is stored, and not live everywhere yet."]
    said += [f"  {texts.plain(each['message'])}" for each in body["waits_for"]]
    rows = [(each["fleet"], each["state"], f"{each['nodes_done']} of {each['nodes']}") for each in body["rollouts"]]
    if rows:
        said.append(texts.table(rows, ("FLEET", "ROLLOUT", "NODES")))
    return body, "\n".join(said), 0 if body["live"] else 1


def _hopeless(body: Any) -> bool:
    """Whether everything that is missing was refused: waiting changes nothing about it."""
    return bool(body["waits_for"]) and all(each["reason"] == "quarantined" for each in body["waits_for"])


def take_back(api: Api, asked: argparse.Namespace) -> Done:
    """Every object as it was before the change."""
    query = {"confirm": ",".join(asked.confirm)} if asked.confirm else {}
    body = api("POST", f"changes/{_id(asked)}/revert", query=query)
    return body, texts.applied(body), 0


def _id(asked: argparse.Namespace) -> str:
    if not re.fullmatch(r"[A-Za-z0-9-]{8,64}", asked.change, re.ASCII):
        raise Failure("The id of a change has 8 to 64 letters, digits and hyphens, as apply prints it.")
    return str(asked.change)

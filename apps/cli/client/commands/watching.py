"""The command that shows requests of clients as nodes answered them, found by a filter, and follows them."""

from __future__ import annotations

import argparse
import time
from typing import Any

from .. import texts
from ..api import Api
from ..numbers import number

Done = tuple[Any, str, int]
HEADS = ("TIME", "CLIENT", "REQUEST", "STATUS", "MS", "ROUTE", "SERVER", "WHY")
FOLLOWED = 200
PAUSE_S = 1.0


def add_to(commands: Any, every: argparse.ArgumentParser) -> None:
    """The words of requests."""
    found = commands.add_parser("requests", parents=[every], help="requests of clients, newest first")
    found.add_argument("filter", metavar="FILTER", nargs="*", help="such as status>=500 route:shop; default: all")
    found.add_argument("-f", "--follow", action="store_true", help="go on showing new ones, oldest first")
    for name in ("since", "until", "account"):
        found.add_argument(f"--{name}")
    found.add_argument("--limit", type=number, default=50)
    found.set_defaults(run=show_requests)


def show_requests(api: Api, asked: argparse.Namespace) -> Done:
    """The last hour's, unless another time is given."""
    query = {name: getattr(asked, name) for name in ("since", "until", "account") if getattr(asked, name)}
    query["filter"] = " ".join(asked.filter)
    if asked.follow:
        follow(api, query)
    items = api("GET", "request-logs", query=query | {"limit": str(asked.limit)})["items"]
    return items, texts.table([_cells(each) for each in items], HEADS), 0


def follow(api: Api, query: dict[str, str]) -> None:
    """Print each new request once, until interrupted; those of the same instant are asked for again and left out."""
    seen: set[str] = set()
    since = query.get("since", "")
    while True:
        given = {name: value for name, value in query.items() if name != "until"} | ({"since": since} if since else {})
        items = api("GET", "request-logs", query=given | {"limit": str(FOLLOWED)})["items"]
        for each in reversed([each for each in items if each["id"] not in seen]):
            print("  ".join(texts.plain(cell) for cell in _cells(each)), flush=True)
        if items:
            # Nodes are a moment behind each other: what comes late is within the last lines that are asked for again.
            since, seen = items[-1]["time"], {each["id"] for each in items}
        time.sleep(PAUSE_S)


def _cells(line: dict[str, Any]) -> list[object]:
    request = f"{line['method']} {line['host']}{line['path']}" if line["kind"] == "request" else "(connection)"
    shown = (line["status"], line["total_ms"])
    numbers = ["-" if each is None else each for each in shown]
    return [line["time"], line["client"], request, *numbers, line["route"], line["server"], line["why"]]

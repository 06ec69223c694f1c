"""The command that shows requests of clients as nodes answered them, found by a filter, and follows them."""

from __future__ import annotations

import argparse
import sys
import time
from datetime import datetime, timedelta
from typing import Any

from .. import texts
from ..api import Api
from ..numbers import number

Done = tuple[Any, str, int]
HEADS = ("TIME", "CLIENT", "REQUEST", "STATUS", "MS", "ROUTE", "SERVER", "WHY")
PAUSE_S = 1.0
# What is shown before anything is new, how much one question gets, and how many questions are asked in a turn.
BEFORE, PAGE, PAGES = 200, 500, 10
# Nodes are a moment behind each other: what comes late is among the last seconds, which are asked for again.
LATE = timedelta(seconds=3)


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
    page = api("GET", "request-logs", query=query | {"limit": str(asked.limit)})
    items = page["items"]
    _tell(page.get("missing", ""))
    return items, texts.table([_cells(each) for each in items], HEADS), 0


def follow(api: Api, query: dict[str, str]) -> None:
    """Print each new request once, until interrupted; how many were too many for a turn is said as an error is."""
    query = {name: value for name, value in query.items() if name != "until"}
    seen: dict[str, datetime] = {}
    told = ""
    while True:
        items, more, missing = _newest(api, query)
        if missing != told:
            told = missing
            _tell(missing)
        for each in reversed([each for each in items if each["id"] not in seen]):
            print("  ".join(texts.plain(cell) for cell in _cells(each)), flush=True)
        if items:
            if more and "since" in query and (left_out := _left_out(api, query, items, seen)):
                _tell(_too_many(left_out))
            seen |= {each["id"]: _time(each) for each in items}
            late = max(seen.values()) - LATE
            since = max(late, _time(items[-1])) if more else late
            seen = {name: at for name, at in seen.items() if at >= since}
            query["since"] = since.isoformat()
        time.sleep(PAUSE_S)


def _tell(words: str) -> None:
    """Beside the requests, so that what reads them reads nothing else."""
    if words:
        print(texts.plain(words), file=sys.stderr, flush=True)


def _newest(api: Api, query: dict[str, str]) -> tuple[list[Any], bool, str]:
    """The newest requests since then, or a few where no time is given yet; whether there are more; what is missing."""
    limit, pages = (PAGE, PAGES) if "since" in query else (BEFORE, 1)
    found: list[Any] = []
    asked = query | {"limit": str(limit)}
    for _ in range(pages):
        page = api("GET", "request-logs", query=asked)
        found += page["items"]
        if not page["next_cursor"]:
            return found, False, page.get("missing", "")
        asked["cursor"] = page["next_cursor"]
    return found, True, page.get("missing", "")


def _time(line: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(line["time"])


def _left_out(api: Api, query: dict[str, str], items: list[Any], seen: dict[str, datetime]) -> int:
    """How many requests before the oldest of these are neither among them nor were printed before."""
    oldest = _time(items[-1])
    since = datetime.fromisoformat(query["since"])
    if oldest <= since:
        return 0
    window = query | {"until": items[-1]["time"], "bins": "1"}
    bins = api("GET", "request-logs/histogram", query=window)["bins"]
    return sum(sum(each["counts"].values()) for each in bins) - sum(since <= at < oldest for at in seen.values())


def _too_many(count: int) -> str:
    noun = "request is" if count == 1 else "requests are"
    return f"{count:,} {noun} left out: more came than can be shown. Use a narrower filter, or take an archive."


def _cells(line: dict[str, Any]) -> list[object]:
    request = f"{line['method']} {line['host']}{line['path']}" if line["kind"] == "request" else "(connection)"
    shown = (line["status"], line["total_ms"])
    numbers = ["-" if each is None else each for each in shown]
    return [line["time"], line["client"], request, *numbers, line["route"], line["server"], line["why"]]

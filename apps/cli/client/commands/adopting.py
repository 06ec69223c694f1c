"""The command adopt: what stands in a cloud, and one of it as a file that plan and apply take; nothing is changed."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from .. import texts
from ..api import Api, Failure
from ..finding import name_in_path

Done = tuple[Any, str, int]
ORDER = ("left_out", "lossy", "mapped")
FIELDS = ("verdict", "found", "kind", "name", "reason")


def add_to(commands: Any, every: argparse.ArgumentParser) -> None:
    """The words of adopt."""
    adopt = commands.add_parser("adopt", parents=[every], help="import a cloud load balancer as definitions")
    adopt.add_argument("cloud_account", metavar="CLOUD_ACCOUNT")
    adopt.add_argument("id", metavar="ID", nargs="?", help="ID of the load balancer; default: list the load balancers")
    adopt.add_argument("--region", required=True, help="the cloud's name of the region; global on Google")
    adopt.add_argument("--name", help="name of the load balancer in Spillway")
    adopt.add_argument("--account", help="account that owns the routes and pools; default: your own")
    adopt.add_argument("--stack", help="stack of the load balancer")
    for word, theirs in (("regions", "region or zone"), ("certificates", "certificate"), ("addresses", "address")):
        option = {"regions": "--our-region", "certificates": "--certificate", "addresses": "--address"}[word]
        adopt.add_argument(
            option,
            dest=word,
            action="append",
            default=[],
            metavar="THEIRS=OURS",
            help=f"map a {theirs}; repeat for more",
        )
    adopt.add_argument("-f", "--file", help="write the definitions to this new file, for plan and apply")
    adopt.set_defaults(run=adopt_one)


def adopt_one(api: Api, asked: argparse.Namespace) -> Done:
    """Ask what stands there; or read one of it, say what became of each thing, and write the file."""
    account = name_in_path(asked.cloud_account)
    if not asked.id:
        return _listed(api("GET", f"cloud-accounts/{account}/load-balancers", query={"region": asked.region}))
    if not asked.name:
        raise Failure("Set the name of the load balancer with --name.")
    body = api("POST", f"cloud-accounts/{account}/adopt", body=_order(asked))
    parts = [_report(body["report"])]
    if asked.file:
        _write(asked.file, {"objects": body["objects"]})
        parts.append(texts.plain(f"Review it with: spillway plan -f {asked.file}"))
    else:
        parts.append("Nothing was written; use -f FILE to save the definitions.")
    return body, "\n".join(parts), 0


def _listed(body: Any) -> Done:
    found = body["load_balancers"]
    rows = [(each["kind"], each["name"], each["id"]) for each in found]
    text = texts.table(rows, ("KIND", "NAME", "ID")) if rows else "There is no load balancer in this region."
    return found, text, 0


def _order(asked: argparse.Namespace) -> dict[str, Any]:
    order = {word: getattr(asked, word) for word in ("region", "id", "name", "account", "stack")}
    order |= {word: _pairs(getattr(asked, word)) for word in ("regions", "certificates", "addresses")}
    return {word: value for word, value in order.items() if value}


def _pairs(given: list[str]) -> dict[str, str]:
    """`THEIRS=OURS`; theirs may have signs of equality, ours has none. Raises Failure."""
    found: dict[str, str] = {}
    for text in given:
        theirs, _, ours = text.rpartition("=")
        if not theirs or not ours:
            raise Failure(f"Write THEIRS=OURS, not {text!r}.")
        if theirs in found:
            raise Failure(f"Name {theirs!r} once.")
        found[theirs] = ours
    return found


def _report(lines: list[Any]) -> str:
    """What is gone first, then what differs."""
    ordered = sorted(lines, key=lambda line: ORDER.index(line["verdict"]))
    counts = Counter(line["verdict"] for line in lines)
    total = ", ".join(f"{counts[word]} {word.replace('_', ' ')}" for word in ORDER if counts[word])
    rows = [[line[name] for name in FIELDS] for line in ordered]
    return f"{texts.table(rows, [name.upper() for name in FIELDS])}\n{total or 'Nothing was found'}."


def _write(path: str, document: Any) -> None:
    """JSON, which every reader of YAML takes; a file that is there stays as it is. Raises Failure."""
    try:
        with Path(path).open("x", encoding="utf-8") as file:
            json.dump(document, file, indent=2, ensure_ascii=False)
            file.write("\n")
    except OSError as error:
        raise Failure(f"The file cannot be written: {error}") from None

"""The command by which a load balancer leaves: an archive that goes on without Spillway."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .. import texts
from ..api import Api, Failure
from ..finding import one

FORMATS = ("haproxy", "gateway-api", "documents", "terraform")


def add_to(commands: Any, every: argparse.ArgumentParser) -> None:
    """The word export."""
    export = commands.add_parser(
        "export", parents=[every], help="write a load balancer as a zip that needs no Spillway"
    )
    export.add_argument("load_balancer", metavar="LOAD_BALANCER", help="name or id")
    export.add_argument("--format", choices=FORMATS, default="haproxy", help="default: haproxy")
    export.add_argument("--fleet", help="fleet whose servers are written; default: its only one")
    export.add_argument("--stack", help="stack that is written as Terraform; default: its only one")
    export.add_argument("--to", type=Path, metavar="FILE", help="a new file; default: NAME-FORMAT.zip")
    export.set_defaults(run=export_load_balancer)


def export_load_balancer(api: Api, asked: argparse.Namespace) -> tuple[Any, str, int]:
    """The archive as it came; a file that is there is not overwritten."""
    found = one(api, "load-balancers", asked.load_balancer)
    within = {"fleet": asked.fleet, "stack": asked.stack}
    query = {"format": asked.format, **{word: name for word, name in within.items() if name}}
    content = api.file(f"load-balancers/{found['account']}/{found['name']}/export", query)
    to: Path = asked.to or Path(f"{found['name']}-{asked.format}.zip")
    try:
        with to.open("xb") as file:
            file.write(content)
    except OSError as error:
        raise Failure(f"Name a new file with --to: {error}") from None
    body = {"file": str(to), "bytes": len(content), "format": asked.format}
    return body, texts.plain(f"Wrote {to}. README.md in it says what is left out."), 0

"""Commands that put a client into a list of networks and take it out: a ban by hand, and its end."""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from .. import texts
from ..api import Api, Failure
from ..words import add_managed

Done = tuple[Any, str, int]
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def add_to(commands: Any, every: argparse.ArgumentParser) -> None:
    """The words of ban and unban."""
    ban = commands.add_parser("ban", parents=[every], help="put an address or network into a list of networks")
    ban.add_argument("--for", dest="lasting", metavar="TIME", help="such as 90s, 15m, 12h or 7d; default: no end")
    ban.set_defaults(run=ban_network)
    unban = commands.add_parser("unban", parents=[every], help="take it out again")
    unban.set_defaults(run=lift_ban)
    for command in (ban, unban):
        command.add_argument("network", metavar="ADDRESS")
        command.add_argument("--list", dest="name", required=True, metavar="NAME", help="the list of networks")
        command.add_argument("--account", metavar="ACCOUNT", help="whose list; for operators")
        command.add_argument("--reason", help="why, for the list and the audit log")
        add_managed(command)


def ban_network(api: Api, asked: argparse.Namespace) -> Done:
    """Say until when."""
    body: dict[str, Any] = {"network": asked.network}
    if asked.lasting:
        body["expires_at"] = _moment(asked.lasting)
    if asked.reason:
        body["reason"] = asked.reason
    found = api("POST", f"network-lists/{_list(api, asked)}/ban", body=body)
    until = f" until {body['expires_at']}" if asked.lasting else ""
    return found, texts.plain(f"{asked.network} is in {asked.name}{until}."), 0


def lift_ban(api: Api, asked: argparse.Namespace) -> Done:
    """Say that it is gone."""
    found = api("POST", f"network-lists/{_list(api, asked)}/lift", body={"network": asked.network})
    return found, texts.plain(f"{asked.network} is no longer in {asked.name}."), 0


def _list(api: Api, asked: argparse.Namespace) -> Any:
    query = {"name": asked.name} | ({"account": asked.account} if asked.account else {})
    items = api("GET", "network-lists", query=query)["items"]
    if len(items) != 1:
        raise Failure(
            f"There is no list of networks named {asked.name}." if not items else "Say whose list with --account."
        )
    return items[0]["id"]


def _moment(text: str) -> str:
    found = re.fullmatch(r"([1-9][0-9]{0,5})([smhd])", text, re.ASCII)
    if found is None:
        raise Failure("Write a time as a number and s, m, h or d, such as 15m.")
    until = datetime.now(UTC) + timedelta(seconds=int(found[1]) * _UNITS[found[2]])
    return until.strftime("%Y-%m-%dT%H:%M:%SZ")

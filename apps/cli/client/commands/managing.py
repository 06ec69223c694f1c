"""Commands about tokens: list, create and revoke; the text of a new one is printed once."""

from __future__ import annotations

import argparse
from typing import Any

from .. import texts
from ..api import Api
from ..numbers import number

Done = tuple[Any, str, int]


def add_to(commands: Any, every: argparse.ArgumentParser) -> None:
    """The words of token."""
    token = commands.add_parser("token", help="tokens of your account")
    actions = token.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=type(token))

    listed = actions.add_parser("list", parents=[every], help="list active tokens")
    listed.set_defaults(run=list_tokens)

    create = actions.add_parser("create", parents=[every], help="create a token; it is shown only once")
    create.add_argument("name", metavar="NAME")
    create.add_argument("--role", required=True, help="viewer, editor or owner (operators: viewer, operator, admin)")
    create.add_argument("--scope", action="append", default=[], help="such as routes:write; repeat for more")
    create.add_argument("--network", action="append", default=[], help="CIDR that may use it; repeat for more")
    create.add_argument("--days", type=int, help="days until it expires; default 90")
    create.add_argument("--reason")
    create.set_defaults(run=create_token)

    revoke = actions.add_parser("revoke", parents=[every], help="revoke a token immediately")
    revoke.add_argument("id", metavar="ID", type=number)
    revoke.add_argument("--reason")
    revoke.set_defaults(run=revoke_token)


def list_tokens(api: Api, _asked: argparse.Namespace) -> Done:
    """A line per token."""
    items = api("GET", "tokens", query={"limit": "500"})["items"]
    fields = ("id", "name", "role", "scopes", "networks", "expires_at", "last_used_at")
    rows = [[_words(item.get(name)) for name in fields] for item in items]
    return items, texts.table(rows, [name.upper() for name in fields]), 0


def _words(value: object) -> object:
    return " ".join(map(str, value)) or "all" if isinstance(value, list) else value


def create_token(api: Api, asked: argparse.Namespace) -> Done:
    """Make one and print its text alone, so that a script can take it."""
    wanted: dict[str, Any] = {"name": asked.name, "role": asked.role, "scopes": asked.scope, "networks": asked.network}
    if asked.days is not None:
        wanted["expires_in_days"] = asked.days
    body = api("POST", "tokens", body=wanted)
    return body, texts.plain(body["token"]), 0


def revoke_token(api: Api, asked: argparse.Namespace) -> Done:
    """End one."""
    api("DELETE", f"tokens/{asked.id}")
    return {"revoked": asked.id}, f"Token {asked.id} is revoked.", 0

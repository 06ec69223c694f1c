"""Objects that the words of a command name: one by its id or name, or all of a list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .api import Api, Failure

PAGE = "500"
NOUNS = {
    "schedules": "schedule",
    "capacity-tests": "capacity test",
    "zones": "zone",
    "load-balancers": "load balancer",
}


def every(api: Api, path: str, query: Mapping[str, str]) -> list[Any]:
    """All items of a list, a page after the other. Raises Failure."""
    found: list[Any] = []
    asked = {"limit": PAGE, **query}
    while True:
        page = api("GET", path, query=asked)
        found += page["items"]
        if not page["next_cursor"]:
            return found
        asked["cursor"] = page["next_cursor"]


def one(api: Api, noun: str, text: str) -> Any:
    """The object that `shop`, `acme/shop` or its id names; digits alone are an id. Raises Failure."""
    if text.isascii() and text.isdecimal():
        return api("GET", f"{noun}/{text}")
    account, _, name = text.rpartition("/")
    query = {"name": name, "limit": "10"} | ({"account": account} if account else {})
    found = api("GET", noun, query=query)["items"]
    if not found:
        raise Failure(f"There is no {NOUNS[noun]} {text}, or this token may not see it.")
    if len(found) > 1:
        names = ", ".join(f"{each['account']}/{each['name']}" for each in found)
        raise Failure(f"Several accounts have a {NOUNS[noun]} {name}; choose one: {names}.")
    return found[0]


def name_in_path(name: str) -> str:
    """A name that may stand in a path. Raises Failure."""
    if not name.isascii() or not all(sign.isalnum() or sign == "-" for sign in name):
        raise Failure(f"{name!r} is not a valid object name.")
    return name

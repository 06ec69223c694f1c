"""Clients that limits banned: entries of HAProxy's own tables, read in fair shares of limits, and taken out."""

from __future__ import annotations

import re
from collections import Counter
from ipaddress import IPv6Address
from typing import Any

from apps.agent.errors import Malformed
from apps.agent.process.proxy import Proxy

MOST = 1000
# Of all tables together: 31 500 lines are 2 MB and 21 ms of HAProxy.
MOST_READ = 50_000
LONGEST_LINE = 160
# The last four bytes of a key are of its limit, whatever is before them.
LIMIT_FROM = 12
TABLE = re.compile(r"st_banned_[0-9]{1,9}")
USED = re.compile(r"# table: (st_banned_[0-9]{1,9}), .*used:([0-9]+)")
# A whole line: the last one may be cut off.
ENTRY = re.compile(r"key=(\S+) .*?exp=([0-9]+).*\n")


def read(proxy: Proxy) -> dict[str, Any]:
    """GET /v1/bans: at most MOST entries, and whether there are more; raises OSError when no worker answers.

    Each limit has its share of them: one that bans thousands hides no ban of another.
    """
    told: Counter[bytes] = Counter()
    ranked: list[tuple[int, dict[str, Any]]] = []
    tables = [name for name, used in USED.findall(proxy.worker("show table")) if int(used)]
    for name in tables:
        text = proxy.worker(f"show table {name}", most=MOST_READ // len(tables) * LONGEST_LINE)
        for found in ENTRY.finditer(text):
            limit = IPv6Address(found[1]).packed[LIMIT_FROM:]
            if told[limit] < MOST:
                entry = {"table": name, "key": found[1], "ends_in_s": int(found[2]) / 1000}
                ranked.append((told[limit], entry))
            told[limit] += 1
    ranked.sort(key=lambda each: each[0])
    return {"entries": [entry for _, entry in ranked[:MOST]], "more": sum(told.values()) > MOST}


def lift(proxy: Proxy, table: str, key: str) -> dict[str, Any]:
    """DELETE /v1/bans: the entry goes; nothing happens where there is none. Raises Malformed, OSError."""
    try:
        named = str(IPv6Address(key))
    except ValueError:
        raise Malformed("A ban has a key that is written like an IPv6 address.") from None
    if not TABLE.fullmatch(table):
        raise Malformed("A ban is in a table called st_banned_ and a number.")
    proxy.worker(f"clear table {table} key {named}")
    return {}

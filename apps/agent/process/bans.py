"""Clients that limits banned: entries of HAProxy's own tables, read so far as they are few, and taken out."""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from typing import Any

from apps.agent.errors import Malformed
from apps.agent.process.proxy import Proxy

MOST = 1000
LONGEST_LINE = 160
TABLE = re.compile(r"st_banned_[0-9]{1,9}")
USED = re.compile(r"# table: (st_banned_[0-9]{1,9}), .*used:([0-9]+)")
ENTRY = re.compile(r"key=(\S+) .*?exp=([0-9]+)")


def read(proxy: Proxy) -> dict[str, Any]:
    """GET /v1/bans: at most MOST entries, and whether there are more; raises OSError when no worker answers."""
    entries: list[dict[str, Any]] = []
    for name, used in USED.findall(proxy.worker("show table")):
        if int(used) and len(entries) <= MOST:
            text = proxy.worker(f"show table {name}", most=(MOST + 2) * LONGEST_LINE)
            # The last line may be cut off.
            for line in text.splitlines(keepends=True):
                found = ENTRY.search(line) if line.endswith("\n") else None
                if found:
                    entries.append({"table": name, "key": found[1], "ends_in_s": int(found[2]) / 1000})
    return {"entries": entries[:MOST], "more": len(entries) > MOST}


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

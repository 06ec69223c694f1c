"""PUSH, what a reload must not forget: which servers were down, as a state file for the new worker.

A new worker believes that every server is up until its checks say otherwise, so each reload would send requests to
servers that are known to be dead. Of HAProxy's `show servers state` only the rows of servers that are down are handed
on, and of them only that they are down: weights, maintenance and addresses are the configuration's alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

HEADER = "# be_id be_name"
BACKEND = re.compile(r"^(?:backend|listen|frontend|defaults|global|resolvers)\b\s*(\S*)")
STOPPED = "0"
WAS_DISABLED = 4  # stays on a server that the file disabled, also after it was made ready: it says nothing of now


def state_file(shown: str, config: str) -> str:
    """Text for `server-state-file`: `shown` is the running worker's `show servers state`, `config` the new file.

    A server is left out, and starts as up, when the new file does not check it or has it at another address.
    """
    checked = dict(_checked_servers(config))
    lines = shown.splitlines()
    head = [line for line in lines if line.startswith(HEADER)]
    if not head:
        return "1\n"
    names = head[0].lstrip("# ").split()
    rows = []
    for line in lines:
        row = dict(zip(names, line.split()))
        if len(row) == len(names) and _is_down(row) and checked.get(_key(row)) in _addresses(row):
            row.update(srv_uweight=row["srv_iweight"], srv_admin_state="0")
            rows.append(" ".join(row[name] for name in names))
    return "\n".join(["1", head[0], *rows]) + "\n"


def _key(row: dict[str, str]) -> tuple[str, str]:
    return row["be_name"], row["srv_name"]


def _is_down(row: dict[str, str]) -> bool:
    """Down by its checks; maintenance and drain are somebody's word, and the configuration has the last one."""
    return row["srv_op_state"] == STOPPED and int(row["srv_admin_state"]) & ~WAS_DISABLED == 0


def _addresses(row: dict[str, str]) -> tuple[str, ...]:
    hosts = [row["srv_addr"], f"[{row['srv_addr']}]", row["srv_fqdn"]]
    return tuple(f"{host}:{row['srv_port']}" for host in hosts)


def _checked_servers(config: str) -> Iterator[tuple[tuple[str, str], str]]:
    """(backend, server) → `host:port` of servers that the file has checked and not disabled."""
    backend, all_checked = "", False
    for line in config.splitlines():
        found = BACKEND.match(line)
        if found:
            backend, all_checked = found.group(1), False
            continue
        words = [word.strip("\"'") for word in line.split()]
        if words[:1] == ["default-server"]:
            all_checked = all_checked or "check" in words
        is_server = words[:1] == ["server"] and len(words) > 2
        if is_server and "disabled" not in words and (all_checked or "check" in words):
            yield (backend, words[1]), words[2]

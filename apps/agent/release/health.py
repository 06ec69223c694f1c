"""What a reload must not forget: which servers were down and what names led to, as a state file.

A new worker believes that every server is up until its checks say otherwise, so each reload would send requests to
servers that are known to be dead; and it has no address for a server with a name until a name server has answered, so
each reload would lose requests. Of HAProxy's `show servers state` only the rows of such servers are handed on, and of
them only that: weights, maintenance and the addresses of others are the configuration's alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from apps.agent.release.releases import stamp_of

HEADER = "# be_id be_name"
BACKEND = re.compile(r"^(?:backend|listen|frontend|defaults|global|resolvers)\b\s*(\S*)")
STOPPED, RUNNING = "0", "2"
WAS_DISABLED = 4  # stays on a server that the file disabled, also after it was made ready: it says nothing of now
UNRESOLVED = 0x20  # in maintenance, because its name leads nowhere
NONE = "-"


@dataclass(frozen=True)
class Server:
    """What a file says of a server: `address` is `host:port`."""

    address: str
    checked: bool

    @property
    def host(self) -> str:
        """Its name or address."""
        return self.address.rpartition(":")[0].strip("[]")


def state_file(shown: str, config: str, may_stay: Callable[[str], bool] = bool) -> str:
    """Text for `server-state-file`: `shown` is the running worker's `show servers state`, `config` the new file.

    A server is left out, and starts as up, when the new file does not check it or has it at another address. Of names
    those addresses are handed on that `may_stay`.
    """
    servers = dict(_servers_of(config))
    lines = shown.splitlines()
    head = [line for line in lines if line.startswith(HEADER)]
    if not head:
        return "1\n"
    columns = head[0].lstrip("# ").split()
    rows = []
    for line in lines:
        row = dict(zip(columns, line.split()))
        server = servers.get((row.get("be_name", ""), row.get("srv_name", "")))
        if len(row) == len(columns) and server and _is_handed_on(row, server, may_stay):
            down = server.checked and _is_down(row)
            row.update(srv_uweight=row["srv_iweight"], srv_admin_state="0", srv_op_state=STOPPED if down else RUNNING)
            rows.append(" ".join(row[name] for name in columns))
    return "\n".join(["1", head[0], *rows]) + "\n"


def _is_handed_on(row: dict[str, str], server: Server, may_stay: Callable[[str], bool]) -> bool:
    port = row["srv_port"]
    if server.address == f"{row['srv_fqdn']}:{port}":
        return row["srv_addr"] != NONE and not int(row["srv_admin_state"]) & UNRESOLVED and may_stay(row["srv_addr"])
    at_home = server.address in (f"{row['srv_addr']}:{port}", f"[{row['srv_addr']}]:{port}")
    return at_home and server.checked and _is_down(row)


def _is_down(row: dict[str, str]) -> bool:
    """Down by its checks; maintenance and drain are somebody's word, and the configuration has the last one."""
    return row["srv_op_state"] == STOPPED and int(row["srv_admin_state"]) & ~WAS_DISABLED == 0


def servers_in(release: Path) -> dict[tuple[str, str], Server]:
    """(backend, server) → what a release says; samples ask it for each server without an address. Raises OSError."""
    path = release / "haproxy.cfg"
    return _read(path, stamp_of(path))


@lru_cache(maxsize=1)
def _read(path: Path, _stamp: tuple[int, int, int]) -> dict[tuple[str, str], Server]:
    return dict(_servers_of(path.read_text()))


def _servers_of(config: str) -> Iterator[tuple[tuple[str, str], Server]]:
    """(backend, server) → what the file says, of servers that it has not disabled."""
    backend, all_checked = "", False
    for line in config.splitlines():
        found = BACKEND.match(line)
        if found:
            backend, all_checked = found.group(1), False
            continue
        words = [word.strip("\"'") for word in line.split()]
        if words[:1] == ["default-server"]:
            all_checked = all_checked or "check" in words
        if words[:1] == ["server"] and len(words) > 2 and "disabled" not in words:
            yield (backend, words[1]), Server(words[2], all_checked or "check" in words)

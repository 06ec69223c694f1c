"""PostgreSQL: connections to a host that fell silent are refused at once for a moment, and then tried again.

libpq gives a connection no less than two seconds, and Django opens a second one where the first is broken: whoever asks
while the host is silent would wait for both.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from django.db.backends.postgresql.psycopg_any import is_psycopg3

from controlplane.database import CONNECT_S, LIMITS, PATIENCE

REMEMBERED_S = 1.0
SILENT = "the host of the database is silent"


class Silence:
    """Until when nobody asks a host; `now` is a clock that goes forward only."""

    def __init__(self) -> None:
        self._until: dict[tuple[str, int], float] = {}
        self._lock = threading.Lock()

    def note(self, address: tuple[str, int], now: float) -> None:
        """It has just said nothing for longer than anybody here waits."""
        with self._lock:
            self._until[address] = now + REMEMBERED_S

    def holds(self, address: tuple[str, int], now: float) -> bool:
        """Whether to leave it alone."""
        return now < self._until.get(address, 0.0)


silence = Silence()


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's, which is told by Django itself when to connect and whether a kept connection is good."""

    def get_connection_params(self) -> dict[str, Any]:
        """As Django does, without what is said to each transaction."""
        found: dict[str, Any] = super().get_connection_params()
        found.pop(LIMITS, None)
        return found

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """As Django does, where a host answers; of several those that are silent are asked last."""
        hosts = _hosts(conn_params)
        silent = _silent(hosts)
        if silent:
            if len(silent) == len(hosts):
                raise psycopg.OperationalError(f"{SILENT}: " + ", ".join(f"{host} port {port}" for host, port in hosts))
            ordered = sorted(hosts, key=silent.__contains__)
            names, ports = (",".join(str(each[at]) for each in ordered) for at in (0, 1))
            conn_params = {**conn_params, "host": names, "port": ports}
        return super().get_new_connection(conn_params)

    def is_usable(self) -> bool:
        """As Django does; a host that says nothing is not asked for another connection."""
        began = time.monotonic()
        usable = bool(super().is_usable())
        said_nothing = time.monotonic() - began >= _patience() / 2  # who is there says no at once
        hosts = _hosts(self.get_connection_params())
        if not usable and said_nothing and len(hosts) == 1:
            silence.note(hosts[0], time.monotonic())
        return usable

    def _set_autocommit(self, autocommit: bool) -> None:
        """As Django does; in a session of a pooler each transaction begins with its limits."""
        super()._set_autocommit(autocommit)  # type: ignore[misc] # its types leave it out
        limits: dict[str, str] = self.settings_dict["OPTIONS"].get(LIMITS, {})
        if limits and not autocommit:
            said = "; ".join(f"SET LOCAL {name} = '{value}'" for name, value in limits.items())
            with self.wrap_database_errors:
                self.connection.execute(said)


def _silent(hosts: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Those before the first that takes a connection; one that is closed unused leaves no line in a log."""
    found = []
    for host in hosts:
        if not silence.holds(host, time.monotonic()):
            try:
                socket.create_connection(host, _patience() if len(hosts) == 1 else min(_patience(), CONNECT_S)).close()
            except TimeoutError:
                silence.note(host, time.monotonic())
            except OSError:
                continue  # somebody answered, or nobody can: libpq has the words for it
            else:
                break
        found.append(host)
    return found


def _hosts(params: dict[str, Any]) -> list[tuple[str, int]]:
    """Those of the connection, where all are reached by TCP; else none."""
    hosts = str(params.get("host") or "").split(",")
    ports = str(params.get("port") or 5432).split(",")
    if "service" in params or not all(host and not host.startswith(("/", "@")) for host in hosts):
        return []
    with contextlib.suppress(ValueError):
        return list(zip(hosts, map(int, ports if len(ports) > 1 else ports * len(hosts)), strict=True))
    return []


def _patience() -> float:
    return PATIENCE[os.environ.get("SPILLWAY_PROCESS", "command")].silent_s


assert is_psycopg3  # noqa: S101 - what is raised above has to be the class that Django translates

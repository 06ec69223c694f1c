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

from controlplane.database import PATIENCE

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

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """As Django does, where the host answers."""
        address = _address(conn_params)
        if address is not None:
            self._knock(address)
        return super().get_new_connection(conn_params)

    def is_usable(self) -> bool:
        """As Django does; a host that says nothing is not asked for another connection."""
        began = time.monotonic()
        usable = bool(super().is_usable())
        said_nothing = time.monotonic() - began >= _patience() / 2  # who is there says no at once
        address = _address(self.get_connection_params())
        if not usable and said_nothing and address is not None:
            silence.note(address, time.monotonic())
        return usable

    def _knock(self, address: tuple[str, int]) -> None:
        """Raise OperationalError where nobody takes a connection; one that is closed unused leaves no line in a log."""
        if not silence.holds(address, time.monotonic()):
            try:
                socket.create_connection(address, _patience()).close()
            except TimeoutError:
                silence.note(address, time.monotonic())
            except OSError:
                return  # somebody answered, or nobody can: libpq has the words for it
            else:
                return
        raise psycopg.OperationalError(f"{SILENT}: {address[0]} port {address[1]}")


def _address(params: dict[str, Any]) -> tuple[str, int] | None:
    """The host where it is one host that is reached by TCP."""
    host, port = str(params.get("host") or ""), str(params.get("port") or 5432)
    one_by_tcp = host and "," not in host and not host.startswith(("/", "@")) and "service" not in params
    with contextlib.suppress(ValueError):
        return (host, int(port)) if one_by_tcp else None
    return None


def _patience() -> float:
    return PATIENCE[os.environ.get("SPILLWAY_PROCESS", "command")].silent_s


assert is_psycopg3  # noqa: S101 - what is raised above has to be the class that Django translates

"""Ports for the tests: free, below those that the kernel gives to outgoing connections, never given twice."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import socket
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import pytest

# The kernel hands 32 768 and above to outgoing connections (ip_local_port_range): a port up there that is free
# now may be somebody's source port a second later, and then the program under test cannot bind it.
RANGE = range(10_000, 32_000)
_held: list[IO[str]] = []


def spare_port(offsets: Iterable[int] = (0,)) -> int:
    """A port that is free with every offset added, and that no other test process gets while this one lives."""
    offsets = tuple(offsets)
    while True:
        port = random.choice(RANGE)
        with contextlib.suppress(OSError):
            _take([port + offset for offset in offsets])
            return port


def fleet_ports(offsets: Iterable[int] = (0,)) -> dict[str, int]:
    """Ports between the nodes of a fleet on this machine, as its specification has them; a node adds its offset."""
    offsets = tuple(offsets)
    return {name: spare_port(offsets) for name in ("peer_port", "overflow_port", "overflow_tcp_port")}


def _take(ports: list[int]) -> None:
    """Hold a lock for each port; raises OSError when one is locked or in use."""
    with contextlib.ExitStack() as undo:
        locks = [undo.enter_context(_locked(port)) for port in ports]
        for port in ports:
            socket.create_server(("127.0.0.1", port)).close()
        undo.pop_all()
    _held.extend(locks)


def _locked(port: int) -> IO[str]:
    folder = Path(tempfile.gettempdir()) / f"spillway-test-ports-{os.geteuid()}"
    folder.mkdir(exist_ok=True)
    lock = (folder / str(port)).open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise
    return lock


def address_of_this_machine() -> str:
    """An address of this machine that is not loopback; skips the test where there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking, contextlib.suppress(OSError):
        asking.connect(("192.0.2.1", 9))  # nothing is sent
        return str(asking.getsockname()[0])
    pytest.skip("this machine has no address but loopback")

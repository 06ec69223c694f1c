"""Sockets: one command to HAProxy and the whole answer back; which addresses are here, and where it listens."""

from __future__ import annotations

import itertools
import socket
import struct
from collections.abc import Set as AbstractSet
from pathlib import Path

_LISTENS = "0A"
Ends = AbstractSet[tuple[bytes, int]]
"""Addresses as bytes, each with a port."""


def ask(path: Path, command: str, timeout: float = 3.0, *, half_close: bool = False, most: int = 0) -> str:
    """Send one line (or one line and its payload) and read the answer to its end; raises OSError.

    The master only ends its answer when we have ended our question: `half_close`.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        stream.settimeout(timeout)
        stream.connect(str(path))
        stream.sendall(command.encode() + b"\n")
        if half_close:
            stream.shutdown(socket.SHUT_WR)
        parts: list[bytes] = []
        while True:
            part = stream.recv(65536)
            if not part or (most and sum(map(len, parts)) >= most):
                return b"".join(parts).decode("utf-8", "replace")
            parts.append(part)


def is_here(address: str) -> bool:
    """Whether this machine has the address now: only then would it speak to it from itself."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as trial:
        try:
            trial.connect((address, 9))
        except OSError:
            return False
        return bool(trial.getsockname()[0] == address)


def listening() -> Ends:
    """Where sockets of this machine's network accept connections; raises OSError where nobody can tell.

    Those that listen stand before all others in the kernel's table, which may have a hundred thousand of them.
    """
    found: set[tuple[bytes, int]] = set()
    for path in filter(Path.exists, (Path("/proc/self/net/tcp"), Path("/proc/self/net/tcp6"))):
        with path.open() as table:
            next(table)
            rows = (line.split(None, 4) for line in table)
            ends = (row[1].split(":") for row in itertools.takewhile(lambda row: row[3] == _LISTENS, rows))
            found.update((_packed(address), int(port, 16)) for address, port in ends)
    return found


def listens(address: str, port: int, there: Ends) -> bool:
    """Whether one of these sockets takes connections to the address."""
    family, anywhere = (socket.AF_INET6, "::") if ":" in address else (socket.AF_INET, "0.0.0.0")  # noqa: S104
    return any((socket.inet_pton(family, each), port) in there for each in (address, anywhere))


def _packed(written: str) -> bytes:
    """An address as the kernel writes it: words of 32 bits, each as this processor reads it."""
    words = [int(written[at : at + 8], 16) for at in range(0, len(written), 8)]
    return struct.pack(f"={len(words)}I", *words)

"""Sockets: one command to HAProxy and the whole answer back; which addresses are here, and where it listens."""

from __future__ import annotations

import itertools
import socket
import struct
from pathlib import Path

_LISTENS = "0A"


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


def listens(address: str, port: int) -> bool:
    """Whether a socket of this machine's network accepts connections there; raises OSError where nobody can tell.

    Sockets that listen stand before all others in the kernel's table, which may have a hundred thousand of them.
    """
    family, anywhere, name = (
        (socket.AF_INET6, "::", "tcp6") if ":" in address else (socket.AF_INET, "0.0.0.0", "tcp")  # noqa: S104
    )
    here = {socket.inet_pton(family, each) for each in (address, anywhere)}
    with Path("/proc/self/net", name).open() as table:
        next(table)
        rows = (line.split(None, 4) for line in table)
        ends = (row[1].split(":") for row in itertools.takewhile(lambda row: row[3] == _LISTENS, rows))
        return any(int(number, 16) == port and _packed(written) in here for written, number in ends)


def _packed(written: str) -> bytes:
    """An address as the kernel writes it: words of 32 bits, each as this processor reads it."""
    words = [int(written[at : at + 8], 16) for at in range(0, len(written), 8)]
    return struct.pack(f"={len(words)}I", *words)

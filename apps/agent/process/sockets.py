"""Sockets: one command to HAProxy and the whole answer back; which addresses are this machine's."""

from __future__ import annotations

import socket
from pathlib import Path


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

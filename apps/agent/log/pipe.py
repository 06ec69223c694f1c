"""The pipe between HAProxy and the agent: HAProxy's standard output, a FIFO that outlives both of them.

HAProxy writes a line without waiting and counts it as dropped when the pipe is full. A ring of HAProxy would lose what
an old worker writes after a reload: it closes its connection as soon as it is told to stop (docs/decisions/0026).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from pathlib import Path

SET_SIZE, GET_SIZE = 1031, 1032  # F_SETPIPE_SZ, F_GETPIPE_SZ: the fcntl module names them since Python 3.10
# What waits here while the agent is away: root may have it all, others what the machine allows (usually 1 MB).
WANTED, USUAL = 16 * 1024 * 1024, 1024 * 1024
ALLOWED = Path("/proc/sys/fs/pipe-max-size")


class Pipe:
    """A FIFO by its path."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self) -> int:
        """A descriptor of its own that reads and writes, so that nobody ever finds the other end closed."""
        try:
            is_pipe = stat.S_ISFIFO(self.path.lstat().st_mode)
        except FileNotFoundError:
            is_pipe = False
        if not is_pipe:
            self.path.unlink(missing_ok=True)
            os.mkfifo(self.path, 0o600)
        descriptor = os.open(self.path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)
        for size in (WANTED, min(WANTED, allowed()), USUAL):
            with contextlib.suppress(OSError):
                if fcntl.fcntl(descriptor, GET_SIZE) < size:
                    fcntl.fcntl(descriptor, SET_SIZE, size)
                break
        return descriptor

    def is_output_of(self, pid: int) -> bool:
        """True when the process writes its standard output here."""
        try:
            there, here = os.stat(f"/proc/{pid}/fd/1"), self.path.stat()  # noqa: PTH116 — it is no path of a file
        except OSError:
            return False
        return stat.S_ISFIFO(here.st_mode) and (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def allowed() -> int:
    """The most bytes that a pipe of anybody may have here."""
    try:
        return int(ALLOWED.read_text())
    except (OSError, ValueError):
        return USUAL

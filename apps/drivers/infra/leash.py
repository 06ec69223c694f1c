"""PUSH, the leash: starts a program that is interrupted, as by a person, as soon as its worker is gone.

    python -I leash.py <pid of the worker> <program> <argument> …

Terraform then finishes what it has begun, writes the state and gives the lock back: nothing that the cloud made is
forgotten because a worker died. Linux only; elsewhere the program just starts.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Become the program."""
    worker, program, arguments = int(sys.argv[1]), sys.argv[2], sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
        if os.getppid() != worker:
            sys.exit(1)
    os.execvp(program, arguments)  # noqa: S606 - becoming the program is what this is for


if __name__ == "__main__":
    main()

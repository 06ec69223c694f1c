"""The process guard: starts Terraform so that it survives its worker where it must, and only there.

    python -I process_guard.py plan <pid of the worker> <program> <argument> …
    python -I process_guard.py apply <address of the state> <program> <argument> …

A plan makes nothing: it is interrupted as soon as its worker is gone (Linux; elsewhere it just ends by itself). An
apply is never interrupted by a death: a provider that is stopped forgets what the cloud was just making. It goes on to
its end, writes the state and gives the lock back; meanwhile this process says to whoever keeps the state that it lives.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import http.client
import os
import signal
import subprocess
import sys
import urllib.request

PR_SET_PDEATHSIG = 1
BEAT_S = 2.0
PATIENCE_S = 10.0


def with_its_worker(worker: int, command: list[str]) -> None:
    """Become the program, which is interrupted when the worker dies."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
        if os.getppid() != worker:
            sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606 - becoming the program is what this is for


def to_its_end(address: str, command: list[str]) -> int:
    """Run the program whatever happens to the worker; the exit code is its own. Interrupts are passed on."""
    program = subprocess.Popen(command)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: program.send_signal(signal.SIGINT))
    while True:
        try:
            return program.wait(timeout=BEAT_S)
        except subprocess.TimeoutExpired:
            beat(address)


def beat(address: str) -> None:
    """Say that Terraform lives, with the password of its state; a console that is away hears it the next time."""
    user, password = os.environ.get("TF_HTTP_USERNAME", ""), os.environ.get("TF_HTTP_PASSWORD", "")
    secret = base64.b64encode(f"{user}:{password}".encode()).decode()
    headers = {"Authorization": f"Basic {secret}"}
    asking = urllib.request.Request(f"{address}/alive", data=b"", headers=headers)  # noqa: S310 - our own URL
    unheard = contextlib.suppress(OSError, http.client.HTTPException)
    with unheard, urllib.request.urlopen(asking, timeout=PATIENCE_S):  # noqa: S310
        pass


def main() -> None:
    """One program."""
    kind, about, command = sys.argv[1], sys.argv[2], sys.argv[3:]
    if kind == "plan":
        with_its_worker(int(about), command)
    code = to_its_end(about, command)
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()

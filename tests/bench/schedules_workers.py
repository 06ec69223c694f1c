"""Workers of the bench of schedules: a process that has loaded the product and forks a scheduler or worker when asked.

A killed process comes back within a fraction of a second, as under a supervisor on a machine with cores to spare; each
runs exactly what `manage.py schedule` and the worker's command line run. Celery beat and its workers, which ours are
compared with, begin in the same way. Reads a word per line, answers with a pid.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys

LOG = "SPILLWAY_BENCH_LOG"
STORE = "SPILLWAY_BENCH_STORE"
WORKER = ["worker", "--pool", "threads", "--concurrency", "2", "-l", "ERROR"]
WORKER += ["--without-mingle", "--without-gossip", "--without-heartbeat"]

PRELOADED = (
    "controlplane.celery",
    "celery.apps.worker",
    "celery.bin.worker",
    "apps.cli.management.commands.schedule",
    "apps.schedules.tasks",
)


def _become(word: str) -> None:
    """Run until killed."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    said = os.open(os.environ.get(LOG, os.devnull), os.O_RDWR | os.O_CREAT | os.O_APPEND)
    for number in (0, 1, 2):
        os.dup2(said, number)
    if word == "scheduler":
        from django.core.management import call_command

        call_command("schedule")
    elif word == "worker":
        from controlplane.celery import app

        app.worker_main([*WORKER, "-Q", "schedules", "-n", f"w{os.getpid()}@bench"])
    else:
        _become_beat(word)


def _become_beat(word: str) -> None:
    """`beat`, `beat-2` … with a store each, or `beat-worker`."""
    from tests.bench.schedules_beat import QUEUE, app

    if word == "beat-worker":
        app.worker_main([*WORKER, "-Q", QUEUE, "-n", f"w{os.getpid()}@bench"])
    else:
        store = f"{os.environ[STORE]}/{word}"
        app.start(["beat", "-l", "ERROR", "-s", store, "--pidfile", ""])


def main() -> None:
    """Load everything once, then fork."""
    import django

    django.setup()
    for name in PRELOADED:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            try:
                _become(line.strip())
            finally:
                os._exit(0)
        print(pid, flush=True)


if __name__ == "__main__":
    main()

"""The environment of the bench of schedules: PostgreSQL that syncs to disk, Redis, processes that die and come back."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from tests import servers
from tests.servers import as_user, postgresql, postgresql_bin

ROOT = Path(__file__).resolve().parents[2]
WORKERS = [sys.executable, "-m", "tests.bench.schedules_workers"]
LONGEST_REST_S = 3.0


class Keeper:
    """Keeps so many schedulers and workers alive, however they end; they are children of the workers' process."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._workers = subprocess.Popen(
            WORKERS, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._running: list[tuple[str, int]] = []
        self.kills = 0

    def start(self, *words: str) -> None:
        """Start a `scheduler` or `worker` for each word."""
        self._running += [(word, self._spawn(word)) for word in words]

    def kill_one(self, dice: random.Random) -> None:
        """`kill -9` for one of them, whatever it does at the moment; another takes its place at once."""
        self._kill(dice.randrange(len(self._running)))

    def kill_a(self, word: str, dice: random.Random) -> None:
        """`kill -9` for one that was started for this word; another takes its place at once."""
        self._kill(dice.choice([index for index, (each, _) in enumerate(self._running) if each == word]))

    def _kill(self, index: int) -> None:
        word, pid = self._running[index]
        os.kill(pid, signal.SIGKILL)
        self._running[index] = (word, self._spawn(word))
        self.kills += 1

    def end(self) -> None:
        """End all of them."""
        for _, pid in self._running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._running.clear()
        assert self._workers.stdin is not None
        self._workers.stdin.close()
        self._workers.wait(10)

    def _spawn(self, word: str) -> int:
        assert self._workers.stdin is not None
        assert self._workers.stdout is not None
        self._workers.stdin.write(f"{word}\n")
        self._workers.stdin.flush()
        return int(self._workers.stdout.readline())


def _control(database: Path, *words: str) -> None:
    """Tell PostgreSQL to end without a checkpoint, and perhaps to begin again. Raises CalledProcessError."""
    prefix, _ = as_user()
    command = [*prefix, str(postgresql_bin() / "pg_ctl"), "-D", str(database / "data"), "-w", "-m", "immediate"]
    subprocess.run([*command, *words], check=True, stdout=subprocess.DEVNULL, cwd=database)


@dataclass
class Env:
    """Where it is played: the URLs, and the directory of the database."""

    database: Path
    redis_url: str
    environment: dict[str, str]

    def crash_database(self) -> None:
        """End PostgreSQL as a power cut would, and start it again, which recovers from its log."""
        _control(self.database, "restart", "-l", str(self.database / "restarted.log"))

    def waiting(self) -> int:
        """How many workers wait for wake-ups."""
        clients: Any = redis.Redis.from_url(self.redis_url).client_list()
        return sum(each["cmd"] == "brpop" for each in clients)

    def wait_until_ready(self, schedulers: int, workers: int, seconds: float = 120.0) -> None:
        """Wait until so many schedulers ask the database, and so many workers wait for wake-ups."""
        from django.db import connection

        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            waiting = self.waiting()
            with connection.cursor() as cursor:
                cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")
                asking = cursor.fetchone()[0] - 1
            if waiting >= workers and asking >= schedulers:
                return
            time.sleep(0.5)
        raise SystemExit(f"Only {waiting} of {workers} workers and {asking} of {schedulers} schedulers came up.")

    @contextmanager
    def processes(self, schedulers: int, workers: int) -> Iterator[Keeper]:
        """So many schedulers and workers, until the block ends."""
        keeper = Keeper(self.environment)
        try:
            keeper.start(*["scheduler"] * schedulers, *["worker"] * workers)
            self.wait_until_ready(schedulers, workers)
            yield keeper
        finally:
            keeper.end()


@contextmanager
def open_env() -> Iterator[Env]:
    """A database with its tables and an empty Redis; Django in this process uses both."""
    with ExitStack() as stack:
        directories = [Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="spillway-"))) for _ in range(3)]
        url = stack.enter_context(postgresql(directories[0], durable=True))
        stack.callback(_control, directories[0], "stop")  # what a crash started again is no child of ours
        redis_url = stack.enter_context(servers.redis(directories[1]))
        ours = {"SPILLWAY_DATABASE_URL": url, "SPILLWAY_REDIS_URL": redis_url, "SPILLWAY_VAR": str(directories[2])}
        os.environ |= ours | {"DJANGO_SETTINGS_MODULE": "controlplane.settings"}
        environment = dict(os.environ)
        migrate = [sys.executable, "manage.py", "migrate", "-v", "0"]
        subprocess.run(migrate, check=True, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
        import django

        django.setup()
        yield Env(directories[0], redis_url, environment)


def kill_for(keeper: Keeper, scene: Env, *, seconds: float, kills: int, crashes: int, done: Callable[[], int]) -> None:
    """Spread the kills evenly over the time, and the crashes of the database between them.

    Each kill waits until something was `done` since the last one, so that it meets work and not only beginnings.
    """
    dice, began = random.Random(5), time.monotonic()
    crash_after = {round(kills * (number + 1) / (crashes + 1)) for number in range(crashes)}
    for number in range(kills):
        before, patience = done(), time.monotonic() + LONGEST_REST_S
        time.sleep(max(0.0, began + seconds * (number + 0.5) / kills - time.monotonic()))
        while done() <= before and time.monotonic() < patience:
            time.sleep(0.05)
        keeper.kill_one(dice)
        if number in crash_after:
            scene.crash_database()
    time.sleep(max(0.0, began + seconds - time.monotonic()))


def sleep_until(moment: float) -> None:
    """Sleep until this Unix time; not at all when it is over."""
    time.sleep(max(0.0, moment - time.time()))

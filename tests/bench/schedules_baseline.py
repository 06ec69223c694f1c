"""Celery beat in the bench of schedules: as many entries as we have schedules, the same effects and kills.

One beat, as its documentation asks for ("you have to ensure only a single scheduler is running for a schedule at a
time, otherwise you'd end up with duplicate tasks"), with its own store and six workers. A message of beat does not say
which instant it is for, so an effect belongs to the last instant before it: until the next there should be exactly one.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import redis

from tests.bench import schedules_checker as checker
from tests.bench.schedules_beat import STREAM
from tests.bench.schedules_checker import Lags, lags_of
from tests.bench.schedules_env import Env, Keeper, sleep_until
from tests.bench.schedules_workers import LOG, STORE

WORKERS = 6
# Until the first instant; beat needs some of it to build and store ten thousand entries.
START_S = 20.0
# After the last instant, for what was sent late.
DRAIN_S = 5.0


@dataclass(frozen=True)
class Kept:
    """What became of the instants of schedules that are due each second."""

    who: str
    expected: int
    kills: int
    missed: int
    doubled: int


def burst(scene: Env, count: int, longest_s: float) -> Lags:
    """All due at one instant; lags of the effects within the longest time that is waited."""
    first = checker.next_whole(START_S)
    with _beats(scene, f"{count} 86400 {int(first.timestamp())} 0 0", first):
        ends = time.monotonic() + longest_s
        while _client(scene).xlen(STREAM) < count and time.monotonic() < ends:
            time.sleep(0.25)
        return lags_of([at - first.timestamp() for at, _ in _effects(scene)])


def spread(scene: Env, count: int, *, per_second: int, seconds: int) -> Lags:
    """So many due each second for so many seconds; lags of the effects, of each entry's the first.

    What is late is waited for, at most as long again.
    """
    first, every_s = checker.next_whole(START_S), count // per_second
    seconds = min(seconds, every_s)
    with _beats(scene, f"{count} {every_s} {int(first.timestamp())} {every_s} 0", first):
        began, ends = first.timestamp(), first.timestamp() + 2 * seconds
        sleep_until(began + seconds)
        lags: dict[int, float] = {}
        while len(lags) < per_second * seconds and time.time() < ends:
            time.sleep(0.25)
            found = {number: at - began - number % every_s for at, number in reversed(_effects(scene))}
            lags = {number: lag for number, lag in found.items() if number % every_s < seconds}
        return lags_of(list(lags.values()))


def killing(
    scene: Env, who: str, *, entries: int, seconds: int, kills: int, beats: int = 1, sync_every: int = 0
) -> Kept:
    """Entries due each second; beat is killed some times and starts again at once."""
    first = checker.next_whole(START_S)
    words = f"{entries} 1 {int(first.timestamp())} 0 {sync_every}"
    with _beats(scene, words, first, beats=beats) as keeper:
        kill_schedulers(keeper, "beat", first, seconds=seconds, kills=kills)
        time.sleep(DRAIN_S)
        found = Counter((number, int(at - first.timestamp())) for at, number in _effects(scene))
    inside = {key: times for key, times in found.items() if key[1] < seconds}
    expected = entries * seconds
    doubled = sum(times - 1 for times in inside.values())
    return Kept(who, expected, kills, missed=expected - len(inside), doubled=doubled)


def kill_schedulers(keeper: Keeper, word: str, first: datetime, *, seconds: int, kills: int) -> None:
    """Spread the kills evenly over the time, at random within their turns; returns when the time is over."""
    dice, turn = random.Random(5), seconds / (kills or 1)
    for number in range(kills):
        sleep_until(first.timestamp() + turn * (number + dice.uniform(0.1, 0.9)))
        keeper.kill_a(word, dice)
    sleep_until(first.timestamp() + seconds)


@contextmanager
def _beats(scene: Env, words: str, first: datetime, *, beats: int = 1) -> Iterator[Keeper]:
    """Beat and its workers from the first instant on; stops the bench when they were late or any of them complained."""
    _client(scene).flushall()
    with tempfile.TemporaryDirectory(prefix="spillway-") as directory:
        log, names = Path(directory) / "log", ["beat", *(f"beat-{number + 2}" for number in range(beats - 1))]
        keeper = Keeper(scene.environment | {"SPILLWAY_BEAT": words, LOG: str(log), STORE: directory})
        try:
            keeper.start(*names, *["beat-worker"] * WORKERS)
            while scene.waiting() < WORKERS or not all(_stored(Path(directory), name) for name in names):
                if time.time() > first.timestamp() - 2:
                    raise SystemExit(f"Celery beat was not ready in {START_S - 2:.0f} s. {_said(log)}")
                time.sleep(0.25)
            sleep_until(first.timestamp())
            yield keeper
        finally:
            keeper.end()
        if "Traceback" in _said(log):
            raise SystemExit(f"Celery beat or a worker complained:\n{_said(log)[-2000:]}")


def _stored(directory: Path, name: str) -> bool:
    """Whether this beat has its entries: it stores them once, in a file whose ending depends on the system."""
    return any((directory / f"{name}{ending}").exists() for ending in ("", ".db", ".dat"))


def _said(log: Path) -> str:
    return log.read_text() if log.exists() else ""


def _client(scene: Env) -> redis.Redis:
    return redis.Redis.from_url(scene.redis_url)


def _effects(scene: Env) -> list[tuple[float, int]]:
    """When (Unix seconds, by Redis) and which entry."""
    rows: Any = _client(scene).xrange(STREAM)
    return [(int(directory.split(b"-")[0]) / 1000, int(fields[b"number"])) for directory, fields in rows]

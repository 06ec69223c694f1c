"""Bench of schedules: how many, how late, and whether any is missed or doubled while everything is killed.

`python -m tests.bench.schedules [--quick]`, `make bench-schedules`: PostgreSQL that syncs to disk, Redis, three
`manage.py schedule` and six workers. First all schedules fall due at one instant, then a hundred each second, with
1 000, 10 000 and 100 000 schedules; beside them Celery beat, its worker and a task that does the same. Then `kill -9`
for a random process, 200 times, and two crashes of the database, with every schedule due each second. Lags count from
the instant to the effect, a message in a stream. Exit code 1 when an instant was missed or done twice.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import redis

from tests.bench import schedules_judge as judge
from tests.bench.schedules_judge import Lags, Verdict, lags_of
from tests.bench.schedules_stage import ROOT, Stage, kill_for, stage
from tests.bench.tables import facts, table

SCHEDULERS, WORKERS = 3, 6
PER_SECOND, SPREAD_S = 100, 12
LONGEST_BURST_S = 30.0
START_S = 2.0
BEAT_START_S = 15.0
DRAIN_S = 120.0


def burst(scene: Stage, count: int) -> Lags:
    """All due at one instant; lags of the effects within the longest time that is waited."""
    judge.clear(scene.redis_url)
    first = judge.next_whole(START_S + count / 4000)
    judge.fill(count, every_s=86_400, first=first)
    _sleep_until(first)
    judge.wait_for(count, LONGEST_BURST_S)
    return lags_of(judge.effects(scene.redis_url))


def spread(scene: Stage, count: int) -> Lags:
    """A hundred due each second; lags of the effects of some seconds."""
    judge.clear(scene.redis_url)
    first, every_s = judge.next_whole(START_S + count / 4000), count // PER_SECOND
    judge.fill(count, every_s=every_s, first=first, spread_s=every_s)
    _sleep_until(first + timedelta(seconds=min(SPREAD_S, every_s)))
    return lags_of(judge.effects(scene.redis_url))


def beat(scene: Stage, count: int, *, spread_out: bool) -> Lags:
    """The same with Celery beat: one process, because a second one would do everything twice, and six workers."""
    client = redis.Redis.from_url(scene.redis_url)
    client.flushall()
    first = judge.next_whole(BEAT_START_S)
    every_s = count // PER_SECOND if spread_out else 86_400
    with _beat(scene, f"{count} {every_s} {int(first.timestamp())} {every_s if spread_out else 0}"):
        _sleep_until(first + timedelta(seconds=min(SPREAD_S, every_s) if spread_out else 0))
        ends = time.monotonic() + LONGEST_BURST_S
        while not spread_out and client.xlen("beat") < count and time.monotonic() < ends:
            time.sleep(0.25)
        return _lags_of_beat(client, first, every_s if spread_out else 0)


def _lags_of_beat(client: redis.Redis, first: datetime, spread_s: int) -> Lags:
    rows: Any = client.xrange("beat")
    seen: set[int] = set()
    lags = []
    for place, fields in rows:
        number = int(fields[b"number"])
        if number not in seen:
            seen.add(number)
            due = first.timestamp() + (number % spread_s if spread_s else 0)
            lags.append(int(place.split(b"-")[0]) / 1000 - due)
    return lags_of(lags)


@contextmanager
def _beat(scene: Stage, words: str) -> Iterator[None]:
    environment = scene.environment | {"SPILLWAY_BEAT": words}
    celery = [sys.executable, "-m", "celery", "-A", "tests.bench.schedules_beat"]
    worker = [*celery, "worker", "--pool", "threads", "--concurrency", "2", "-Q", "beat", "-l", "ERROR"]
    worker += ["--without-mingle", "--without-gossip", "--without-heartbeat"]
    with tempfile.TemporaryDirectory() as place:
        leader = [*celery, "beat", "-l", "ERROR", "-s", str(Path(place) / "beat"), "--pidfile", ""]
        commands = [leader, *[worker] * WORKERS]
        children = [
            subprocess.Popen(each, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for each in commands
        ]
        try:
            yield
        finally:
            for child in children:
                child.kill()
            for child in children:
                child.wait()


def killing(scene: Stage, *, schedules: int, seconds: int, kills: int, crashes: int, crew: tuple[int, int]) -> Verdict:
    """Every schedule due each second while processes and the database die; judged when all is quiet again."""
    judge.clear(scene.redis_url)
    with scene.processes(*crew) as keeper:
        first = judge.next_whole(START_S)
        judge.fill(schedules, every_s=1, first=first, ends_at=first + timedelta(seconds=seconds))
        _close()
        _sleep_until(first)
        done = partial(judge.sent, scene.redis_url)
        kill_for(keeper, scene, seconds=seconds, kills=kills, crashes=crashes, done=done)
        meanwhile = done()
        judge.wait_for(schedules * seconds, DRAIN_S)
    return replace(judge.judge(scene.redis_url, first, seconds), sent_while_killing=meanwhile)


def control(scene: Stage) -> Verdict:
    """The same judge, on a few schedules, where the key of the rows was taken away."""
    judge.clear(scene.redis_url)
    first = judge.next_whole(-6)
    judge.fill(5, every_s=1, first=first, ends_at=first + timedelta(seconds=4))
    from apps.schedules import working
    from apps.schedules.booking import book

    while book().more:
        continue
    working.work_off()
    assert judge.judge(scene.redis_url, first, 4).clean, "before the key is taken away all is well"
    return judge.without_the_key(scene.redis_url, first, 4)


def _close() -> None:
    """This process' own connection would not survive a crash of the database."""
    from django import db

    db.connections.close_all()


def _sleep_until(moment: datetime) -> None:
    time.sleep(max(0.0, moment.timestamp() - time.time()))


def rates(scene: Stage) -> list[dict[str, Any]]:
    """Every table row: who, how many, due at once or spread, and the lags."""
    rows: list[dict[str, Any]] = []

    def note(who: str, count: int, how: str, lags: Lags) -> None:
        per_second = lags.count / lags.last if how == "at once" and lags.last > 0 else None
        rows.append({"who": who, "schedules": count, "due": how, "per_second": per_second, **vars(lags)})
        print(f"  {who} {count:,} {how}: {' '.join(lags.cells())}", file=sys.stderr, flush=True)

    with scene.processes(SCHEDULERS, WORKERS):
        for count in (1000, 10_000, 100_000):
            note("Spillway", count, "at once", burst(scene, count))
            note("Spillway", count, "100/s", spread(scene, count))
    for count in (1000, 10_000):
        note("Celery beat", count, "at once", beat(scene, count, spread_out=False))
        note("Celery beat", count, "100/s", beat(scene, count, spread_out=True))
    return rows


def _show(rows: list[dict[str, Any]]) -> None:
    heads = ("who", "schedules", "due", "effects", "effects/s", "lag p50", "lag p99", "last")
    cells = []
    for row in rows:
        rate = f"{row['per_second']:,.0f}" if row["per_second"] else ""
        lags = [f"{row[each]:.2f} s" for each in ("p50", "p99", "last")]
        cells.append([row["who"], f"{row['schedules']:,}", row["due"], f"{row['count']:,}", rate, *lags])
    print(table(heads, cells))


def _show_verdict(verdict: Verdict, kills: int, crashes: int) -> None:
    numbers = (verdict.expected, kills, crashes, verdict.missed, verdict.doubled)
    more = (verdict.unfinished, verdict.second_attempts, verdict.sent_again, verdict.sent_while_killing)
    heads = (
        "instants",
        "kill -9",
        "database crashes",
        "missed",
        "doubled",
        "not done",
        "second attempts",
        "sent again",
        "sent while killing",
    )
    print(table(heads, [[f"{each:,}" for each in (*numbers, *more)]]))


def main() -> int:
    """Measure, judge, print; the last line is JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few kills of few processes, no rates, below a minute")
    parser.add_argument("--only", choices=("rates", "kills"), help="one half of it")
    options = parser.parse_args()
    plan = {"schedules": 70, "seconds": 150, "kills": 200, "crashes": 2, "crew": (SCHEDULERS, WORKERS)}
    if options.quick:
        plan = {"schedules": 20, "seconds": 12, "kills": 12, "crashes": 1, "crew": (2, 2)}
    found: dict[str, Any] = {}
    clean = True
    print(facts(), flush=True)
    with stage() as scene:
        if not options.quick and options.only != "kills":
            found["rates"] = rates(scene)
            _show(found["rates"])
        if options.only != "rates":
            verdict = killing(scene, **plan)  # type: ignore[arg-type]  # a plan of these very words
            _show_verdict(verdict, int(str(plan["kills"])), int(str(plan["crashes"])))
            doubled = control(scene).doubled
            print(f"Without the key (schedule, instant), {doubled} of 20 instants are done twice.")
            found |= {"kills": vars(verdict), "control_doubled": doubled}
            clean = verdict.clean and doubled > 0
        _close()
    print(f"load in the end {os.getloadavg()[0]:.1f}")
    print(json.dumps(found))
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())

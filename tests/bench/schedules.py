"""Bench of schedules: how many, how late, and whether any is missed or doubled while everything is killed.

`python -m tests.bench.schedules [--quick]`, `make bench-schedules`: PostgreSQL that syncs to disk, Redis, three
`manage.py schedule` and six workers. First all schedules fall due at one instant, then a hundred each second, with
1 000, 10 000 and 100 000 schedules; beside them Celery beat, six workers and a task that does the same. Then both are
killed alike: `kill -9` for a scheduler, six times, started again at once. Last `kill -9` for a random process, 200
times, and two crashes of the database, with every schedule due each second. Lags count from the instant to the effect,
a message in a stream. Exit code 1 when we missed an instant or did it twice.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from tests.bench import schedules_baseline as baseline
from tests.bench import schedules_checker as checker
from tests.bench.schedules_baseline import Kept
from tests.bench.schedules_checker import Lags, Verdict, lags_of
from tests.bench.schedules_env import Env, kill_for, open_env, sleep_until
from tests.bench.tables import facts, table

SCHEDULERS, WORKERS = 3, 6
PER_SECOND, SPREAD_S = 100, 12
LONGEST_BURST_S = 30.0
START_S = 2.0
# Schedules, seconds and kills of schedulers where both are killed alike.
BESIDE, BESIDE_S, BESIDE_KILLS = 70, 30, 6
DRAIN_S = 120.0


def burst(scene: Env, count: int) -> Lags:
    """All due at one instant; lags of the effects within the longest time that is waited."""
    checker.clear(scene.redis_url)
    first = checker.next_whole(START_S + count / 4000)
    checker.fill(count, every_s=86_400, first=first)
    sleep_until(first.timestamp())
    checker.wait_for(count, LONGEST_BURST_S)
    return lags_of(checker.effects(scene.redis_url))


def spread(scene: Env, count: int) -> Lags:
    """A hundred due each second; lags of the effects of some seconds."""
    checker.clear(scene.redis_url)
    first, every_s = checker.next_whole(START_S + count / 4000), count // PER_SECOND
    checker.fill(count, every_s=every_s, first=first, spread_s=every_s)
    sleep_until(first.timestamp() + min(SPREAD_S, every_s))
    return lags_of(checker.effects(scene.redis_url))


def killing(
    scene: Env, *, schedules: int, seconds: int, kills: int, crashes: int, processes: tuple[int, int]
) -> Verdict:
    """Every schedule due each second while processes and the database die; judged when all is quiet again."""
    checker.clear(scene.redis_url)
    with scene.processes(*processes) as keeper:
        first = checker.next_whole(START_S)
        checker.fill(schedules, every_s=1, first=first, ends_at=first + timedelta(seconds=seconds))
        _close()
        sleep_until(first.timestamp())
        done = partial(checker.sent, scene.redis_url)
        kill_for(keeper, scene, seconds=seconds, kills=kills, crashes=crashes, done=done)
        meanwhile = done()
        checker.wait_for(schedules * seconds, DRAIN_S)
    return replace(checker.check(scene.redis_url, first, seconds), sent_while_killing=meanwhile)


def control(scene: Env) -> Verdict:
    """The same check, on a few schedules, where the key of the rows was taken away."""
    checker.clear(scene.redis_url)
    first = checker.next_whole(-6)
    checker.fill(5, every_s=1, first=first, ends_at=first + timedelta(seconds=4))
    from apps.schedules.run import working
    from apps.schedules.run.booking import book

    while book().more:
        continue
    working.work_off()
    assert checker.check(scene.redis_url, first, 4).clean, "before the key is taken away all is well"
    return checker.without_the_key(scene.redis_url, first, 4)


def _close() -> None:
    """This process' own connection would not survive a crash of the database."""
    from django import db

    db.connections.close_all()


def rates(scene: Env) -> list[dict[str, Any]]:
    """Every table row: who, how many, due at once or spread, and the lags."""
    rows: list[dict[str, Any]] = []

    def note(who: str, count: int, how: str, lags: Lags) -> None:
        expected = count if how == "at once" else PER_SECOND * min(SPREAD_S, count // PER_SECOND)
        per_second = lags.count / lags.last if how == "at once" and lags.last > 0 else None
        rows.append(
            {"who": who, "schedules": count, "due": how, "expected": expected, "per_second": per_second, **vars(lags)}
        )
        print(f"  {who} {count:,} {how}: {' '.join(lags.cells())}", file=sys.stderr, flush=True)

    with scene.processes(SCHEDULERS, WORKERS):
        for count in (1000, 10_000, 100_000):
            note("Spillway", count, "at once", burst(scene, count))
            note("Spillway", count, "100/s", spread(scene, count))
    for count in (1000, 10_000):
        note("Celery beat", count, "at once", baseline.burst(scene, count, LONGEST_BURST_S))
        lags = baseline.spread(scene, count, per_second=PER_SECOND, seconds=SPREAD_S)
        note("Celery beat", count, "100/s", lags)
    return rows


def killed_alike(scene: Env) -> list[Kept]:
    """Spillway and Celery beat with the same schedules, each due each second, and the same kills of schedulers."""
    numbers = {"entries": BESIDE, "seconds": BESIDE_S}
    checker.clear(scene.redis_url)
    with scene.processes(SCHEDULERS, WORKERS) as keeper:
        first = checker.next_whole(START_S)
        checker.fill(BESIDE, every_s=1, first=first, ends_at=first + timedelta(seconds=BESIDE_S))
        baseline.kill_schedulers(keeper, "scheduler", first, seconds=BESIDE_S, kills=BESIDE_KILLS)
        checker.wait_for(BESIDE * BESIDE_S, DRAIN_S)
    ours = checker.check(scene.redis_url, first, BESIDE_S)
    return [
        Kept("Spillway, 3 schedulers", ours.expected, BESIDE_KILLS, ours.missed, ours.doubled),
        baseline.killing(scene, "Celery beat", **numbers, kills=0),
        baseline.killing(scene, "Celery beat", **numbers, kills=BESIDE_KILLS),
        baseline.killing(scene, "Celery beat, beat_sync_every=1", **numbers, kills=BESIDE_KILLS, sync_every=1),
        baseline.killing(scene, "2 Celery beats", **numbers, kills=0, beats=2),
    ]


def _show(rows: list[dict[str, Any]]) -> None:
    heads = ("who", "schedules", "due", "effects", "effects/s", "lag p50", "lag p99", "last")
    cells = []
    for row in rows:
        rate = f"{row['per_second']:,.0f}" if row["per_second"] else ""
        lags = [f"{row[each]:.2f} s" for each in ("p50", "p99", "last")]
        done = f"{row['count']:,} of {row['expected']:,}"
        cells.append([row["who"], f"{row['schedules']:,}", row["due"], done, rate, *lags])
    print(table(heads, cells), flush=True)


def _show_killed(rows: list[Kept]) -> None:
    heads = ("who", "instants", "kill -9 of a scheduler", "missed", "doubled")
    cells = [[row.who, *(f"{each:,}" for each in (row.expected, row.kills, row.missed, row.doubled))] for row in rows]
    print(table(heads, cells), flush=True)


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
    """Measure, check, print; the last line is JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few kills of few processes, no rates, below a minute")
    parser.add_argument("--only", choices=("rates", "kills"), help="one half: rates and Celery beat, or the 200 kills")
    options = parser.parse_args()
    plan = {"schedules": 70, "seconds": 150, "kills": 200, "crashes": 2, "processes": (SCHEDULERS, WORKERS)}
    if options.quick:
        plan = {"schedules": 20, "seconds": 12, "kills": 12, "crashes": 1, "processes": (2, 2)}
    found: dict[str, Any] = {}
    clean = True
    print(facts(), flush=True)
    with open_env() as scene:
        if not options.quick and options.only != "kills":
            found["rates"] = rates(scene)
            _show(found["rates"])
            beside = killed_alike(scene)
            _show_killed(beside)
            found["killed_alike"] = [vars(each) for each in beside]
            clean = not (beside[0].missed or beside[0].doubled)
        if options.only != "rates":
            verdict = killing(scene, **plan)  # type: ignore[arg-type]  # a plan of these very words
            _show_verdict(verdict, int(str(plan["kills"])), int(str(plan["crashes"])))
            doubled = control(scene).doubled
            print(f"Without the key (schedule, instant), {doubled} of 20 instants are done twice.")
            found |= {"kills": vars(verdict), "control_doubled": doubled}
            clean = clean and verdict.clean and doubled > 0
        _close()
    print(f"load in the end {os.getloadavg()[0]:.1f}")
    print(json.dumps(found))
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())

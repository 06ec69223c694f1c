"""The checker of the bench of schedules: makes schedules, reads what subscribers saw and what the rows say.

An effect is a message in a stream of Redis. Its key is that of the run, so what a second attempt sends again under the
same key is one effect; an instant with two keys would be two.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import redis

TOPICS = 100
TRIES = 20


@dataclass(frozen=True)
class Verdict:
    """Counts of instants and of what became of them."""

    expected: int
    missed: int
    doubled: int
    sent_again: int
    second_attempts: int
    unfinished: int
    sent_while_killing: int = 0

    @property
    def clean(self) -> bool:
        """Whether each instant had exactly one effect."""
        return not (self.missed or self.doubled or self.unfinished)


@dataclass(frozen=True)
class Lags:
    """Seconds from the instant to the effect."""

    count: int
    p50: float
    p99: float
    last: float

    def cells(self) -> list[str]:
        """For a table."""
        return [f"{self.count:,}", f"{self.p50:.2f} s", f"{self.p99:.2f} s"]


def lags_of(seconds: list[float]) -> Lags:
    """Of at least one."""
    ordered = sorted(seconds) or [float("nan")]
    last = ordered[-1]
    return Lags(len(seconds), ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)], last)


def clear(url: str) -> None:
    """No schedules, no runs, no messages; workers may still be at the last ones."""
    from django.db import OperationalError, connection

    for left in range(TRIES, 0, -1):
        try:
            with connection.cursor() as cursor:
                cursor.execute("TRUNCATE schedules_schedulerun, schedules_trigger, definitions_schedule CASCADE")
            break
        except OperationalError:  # a deadlock with a worker
            if left == 1:
                raise
            time.sleep(0.5)
    redis.Redis.from_url(url).flushall()


def fill(count: int, *, every_s: int, first: datetime, spread_s: int = 0, ends_at: datetime | None = None) -> None:
    """Schedules with a message each; the first instants are `first` and, spread, so many whole seconds later."""
    from django.db import connection

    from apps.accounts.models import Account
    from apps.definitions.models import Schedule

    owner, _ = Account.objects.get_or_create(name="bench", defaults={"title": "Bench", "kind": "operator"})
    rows = []
    for number in range(count):
        starts_at = first + timedelta(seconds=number % spread_s if spread_s else 0)
        rows.append(
            Schedule(
                account=owner,
                name=f"s-{number}",
                every_s=every_s,
                starts_at=starts_at,
                ends_at=ends_at,
                next_at=starts_at,
                overlap="allow",
                catch_up="all",
                catch_up_window_s=3600,
                attempts=10,
                backoff_s=1,
                target_kind="topic",
                target={"topic": f"t-{number % TOPICS}", "message": "tick"},
            )
        )
    Schedule.objects.bulk_create(rows, batch_size=2000)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE definitions_schedule")


def messages(url: str) -> list[tuple[float, dict[str, str]]]:
    """Everything that was sent: when (Unix seconds, by Redis) and what."""
    client = redis.Redis.from_url(url, decode_responses=True)
    streams: list[Any] = list(client.scan_iter("spillway:topic:*", count=1000))
    found = []
    for stream in streams:
        rows: Any = client.xrange(stream)
        found += [(int(message_id.split("-")[0]) / 1000, fields) for message_id, fields in rows]
    return found


def effects(url: str) -> list[float]:
    """The lag of each effect: of what was sent again the first counts."""
    first: dict[str, float] = {}
    for at, fields in messages(url):
        lag = at - datetime.fromisoformat(fields["scheduled_at"]).timestamp()
        first[fields["key"]] = min(lag, first.get(fields["key"], lag))
    return list(first.values())


def wait_for(count: int, seconds: float) -> int:
    """Wait until so many runs are done, at most so long; how many are."""
    from apps.schedules.models import ScheduleRun

    ends, done = time.monotonic() + seconds, 0
    while time.monotonic() < ends:
        done = ScheduleRun.objects.filter(state="done").count()
        if done >= count:
            break
        time.sleep(0.25)
    return done


def sent(url: str) -> int:
    """How many messages were sent so far, as Redis counts them; it lives while the database does not."""
    client = redis.Redis.from_url(url, decode_responses=True)
    streams: list[Any] = list(client.scan_iter("spillway:topic:*", count=1000))
    pipe = client.pipeline(transaction=False)
    for stream in streams:
        pipe.xlen(stream)
    return sum(pipe.execute())


def check(url: str, first: datetime, seconds: int) -> Verdict:
    """Compare every instant of every schedule, one each second, with what came of it."""
    from apps.definitions.models import Schedule
    from apps.schedules.models import ScheduleRun

    names = [f"bench/{name}" for name in Schedule.objects.values_list("name", flat=True)]
    expected = {(name, (first + timedelta(seconds=each)).isoformat()) for name in names for each in range(seconds)}
    keys: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for _, fields in messages(url):
        keys[fields["schedule"], fields["scheduled_at"]][fields["key"]] += 1
    return Verdict(
        expected=len(expected),
        missed=len(expected - set(keys)) + len(set(keys) - expected),
        doubled=sum(len(each) - 1 for each in keys.values()),
        sent_again=sum(each.total() - len(each) for each in keys.values()),
        second_attempts=ScheduleRun.objects.filter(attempt__gt=1).count(),
        unfinished=ScheduleRun.objects.exclude(state="done").count(),
    )


def next_whole(seconds: float) -> datetime:
    """A whole second, at least so far ahead."""
    return datetime.fromtimestamp(int(time.time() + seconds) + 1, UTC)


def without_the_key(url: str, first: datetime, seconds: int) -> Verdict:
    """The control: the key is taken away, and a scheduler that fell back books again what was booked."""
    from django.db import connection

    from apps.definitions.models import Schedule
    from apps.schedules.run import working
    from apps.schedules.run.booking import book

    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE schedules_schedulerun DROP CONSTRAINT one_schedule_run_per_instant")
    Schedule.objects.update(next_at=first + timedelta(seconds=seconds - 1))
    while book().more:
        continue
    working.work_off()
    return check(url, first, seconds)

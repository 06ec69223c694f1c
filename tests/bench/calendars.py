"""The calendar against an independent implementation: every zone, every clock change of 2024–2035; 0 differences.

Around each change of each zone random expressions are computed, and walked second by second or minute by minute through
the rule as tests/calendar_rule.py writes it down. Beside it croniter, where it means the same, and how long one takes.
"""

from __future__ import annotations

import argparse
import random
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from croniter import croniter

from apps.calendars import instants, next_after, read_timing
from tests.bench.tables import table
from tests.calendar_rule import changes, croniter_means_the_same, random_rule, walk, zones

YEARS = (2024, 2035)
AROUND = timedelta(hours=3)


@dataclass
class Result:
    """What one zone came to."""

    changes: int = 0
    instants: int = 0
    differences: int = 0
    first: str = ""


def compare_zone(name: str, most: int | None = None) -> Result:
    """All changes of one zone (or `most` of them), and one quiet day of each year."""
    dice, zone, result = random.Random(name), ZoneInfo(name), Result()
    found = changes(zone, *YEARS)
    result.changes = len(found)
    quiet = [datetime(year, dice.randint(1, 12), dice.randint(1, 28), 12, tzinfo=UTC) for year in range(2024, 2036)]
    for moment in dice.sample(found + quiet, min(most or 10**6, len(found) + len(quiet))):
        minutes = dice.random() < 0.9
        rule = random_rule(dice, whole_minutes=minutes)
        step, length = (60, 2 * AROUND) if minutes else (1, AROUND)
        start = (moment - length / 2).replace(second=0)
        seconds = int(length.total_seconds())
        walked = list(walk(rule, zone, start, seconds, step))
        timing = read_timing(cron=rule.text, zone=name)
        end = start + timedelta(seconds=seconds - 1)
        computed = list(instants(timing, start - timedelta(seconds=1), end))
        result.instants += len(set(walked) | set(computed))
        result.differences += len(set(walked) ^ set(computed))
        if walked != computed and not result.first:
            result.first = f"{rule.text} in {name} around {moment.isoformat()}"
    return result


def against_croniter(count: int) -> Result:
    """Random expressions from random instants on, in UTC."""
    dice, result = random.Random(12), Result()
    while result.instants < count:
        rule = random_rule(dice, whole_minutes=True)
        if not croniter_means_the_same(rule):
            continue
        start = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(minutes=dice.randint(0, 12 * 365 * 1440))
        theirs = croniter(rule.text, start, second_at_beginning=True)
        timing, ours = read_timing(cron=rule.text), start
        for _ in range(10):
            found, expected = next_after(timing, ours), theirs.get_next(datetime)
            result.instants += 1
            if found != expected:
                result.differences += 1
                result.first = result.first or f"{rule.text} from {ours}: {found}, croniter {expected}"
            ours = expected
    return result


def speeds() -> list[tuple[str, str]]:
    """Microseconds for the next instant, of usual expressions in a zone with clock changes."""
    rows, start = [], datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
    for cron in (
        "*/10 * * * * *",
        "*/5 * * * *",
        "30 2 * * *",
        "0 9 * * 1-5",
        "0 0 L * *",
        "0 9 15W * *",
        "0 0 29 2 *",
    ):
        timing, count, moment = read_timing(cron=cron, zone="Europe/Berlin"), 5000, start
        began = time.perf_counter()
        for _ in range(count):
            moment = next_after(timing, moment) or start
        rows.append((cron, f"{(time.perf_counter() - began) / count * 1e6:.1f}"))
    return rows


def main() -> int:
    """Compare, print, 1 when anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, help="looks at so many places of each zone only")
    most = parser.parse_args().most
    began, names = time.monotonic(), zones()
    with ProcessPoolExecutor() as pool:
        results = list(pool.map(compare_zone, names, [most] * len(names), chunksize=4))
    results.append(against_croniter(2000 if most else 20_000))
    walked = results[:-1]
    rows = [
        ("zones", f"{len(names)}"),
        ("clock changes 2024–2035", f"{sum(each.changes for each in walked):,}"),
        ("instants compared with the walked rule", f"{sum(each.instants for each in walked):,}"),
        ("differences", f"{sum(each.differences for each in walked)}"),
        ("instants compared with croniter", f"{results[-1].instants:,}"),
        ("differences from croniter", f"{results[-1].differences}"),
        ("seconds", f"{time.monotonic() - began:.0f}"),
    ]
    print(table(("what", "count"), rows))
    print(table(("next instant of", "µs"), speeds()))
    for each in results:
        if each.first:
            print("differs:", each.first)
    return int(any(each.differences for each in results))


if __name__ == "__main__":
    raise SystemExit(main())

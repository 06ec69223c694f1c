"""When to try again, for how long, and when to give an endpoint up; pure."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

# What Standard Webhooks proposes: after the first attempt, which is made at once.
DELAYS = tuple(timedelta(seconds=seconds) for seconds in (5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 10 * 3600))
JITTER = 0.1
LONGEST_WISH = timedelta(hours=24)
# A failing endpoint is left alone for a while, so that what waits for it does not keep workers from others.
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=5), timedelta(minutes=5)
GIVE_UP_AFTER = timedelta(days=5)


def next_attempt(
    tries: int, moment: datetime, wish: timedelta | None = None, delays: Sequence[timedelta] = DELAYS
) -> datetime | None:
    """When to try again after so many attempts, None when they were enough; `wish` is the receiver's Retry-After."""
    if tries > len(delays):
        return None
    delay = delays[tries - 1] * (1 + random.random() * JITTER)  # noqa: S311 - spreads load, keeps no secret
    return moment + max(delay, wish or timedelta())


def pause(failures: int, wish: timedelta | None = None) -> timedelta:
    """How long to leave an endpoint alone after so many failures in a row."""
    usual = min(FIRST_PAUSE * (1 << min(failures - 1, 16)), LONGEST_PAUSE)
    return max(usual, min(wish or timedelta(), timedelta(hours=1)))


def retry_after(headers: Mapping[str, str], moment: datetime) -> timedelta | None:
    """What `Retry-After` asks for, in seconds or as a date, at most a day; None without a sensible one."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal() and len(text) < 9:
        return min(timedelta(seconds=int(text)), LONGEST_WISH)
    try:
        wished = parsedate_to_datetime(text)
    except ValueError:
        return None
    wished = wished if wished.tzinfo else wished.replace(tzinfo=UTC)
    return min(max(wished - moment, timedelta()), LONGEST_WISH)

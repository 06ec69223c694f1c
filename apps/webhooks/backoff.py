"""When to try again, for how long, and when to give an endpoint up; pure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta

from apps.core.concurrency.backoff import pause_after

# What Standard Webhooks proposes: after the first attempt, which is made at once.
DELAYS = tuple(timedelta(seconds=seconds) for seconds in (5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 10 * 3600))
JITTER = 0.1
# A failing endpoint is left alone for a while, so that what waits for it does not keep workers from others.
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=5), timedelta(minutes=5)
GIVE_UP_AFTER = timedelta(days=5)
# Two tries of one message are at most 11 hours apart. After a longer silence (nothing to say, the account suspended, no
# worker) a failure is the first one again: an endpoint is not given up for days in which nobody tried it.
SILENCE = timedelta(hours=12)


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
    usual = pause_after(failures, first=FIRST_PAUSE, longest=LONGEST_PAUSE)
    return max(usual, min(wish or timedelta(), timedelta(hours=1)))

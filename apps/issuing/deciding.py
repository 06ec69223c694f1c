"""Decides when to renew, how long to rest after a failure, and whom to ask; pure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from apps.core.concurrency.backoff import pause_after

# Renewed when a third of its lifetime is left, up to a twentieth of the lifetime earlier, each at its own moment.
LEFT, JITTER = 1 / 3, 1 / 20
FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=5), timedelta(hours=12)
LONGEST_WISH = timedelta(days=2)
# Failures in a row at one authority before the next one is asked.
TRIES = 2


class Authority(Protocol):
    """An authority, as far as the choice needs one."""

    paused_until: datetime | None


A = TypeVar("A", bound=Authority)


def renewal(begins: datetime, ends: datetime, seed: str) -> datetime:
    """When to renew what is valid between the two; the same for the same `seed` (its fingerprint)."""
    share = random.Random(seed).random()  # noqa: S311 - spreads renewals, keeps no secret
    return ends - (ends - begins) * (LEFT + JITTER * share)


def pause(failures: int, wish: timedelta | None = None) -> timedelta:
    """How long to rest after so many failures in a row (from 1), and at least as long as the authority wishes.

    A tenth more or less, so that what failed together does not come back together.
    """
    usual = pause_after(failures, first=FIRST_PAUSE, longest=LONGEST_PAUSE)
    spread = usual * random.uniform(0.9, 1.1)  # noqa: S311 - spreads load, keeps no secret
    return max(spread, min(wish or timedelta(), LONGEST_WISH))


def chosen(authorities: Sequence[A], failures: int, moment: datetime) -> A | None:
    """Whom to ask after so many failures: the first one twice, then the next one twice, and so on round.

    An authority that asked us to wait is passed over; None where all did, or where there is none.
    """
    awake = [each for each in authorities if each.paused_until is None or each.paused_until <= moment]
    return awake[failures // TRIES % len(awake)] if awake else None


def soonest_wake(authorities: Sequence[A]) -> datetime | None:
    """When the first of authorities that asked us to wait may be asked again."""
    return min((each.paused_until for each in authorities if each.paused_until), default=None)

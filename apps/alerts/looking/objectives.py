"""Looks at how fast pools use up their error budgets, in a long window and a short one, so that it ends soon after."""

from __future__ import annotations

from datetime import datetime

from apps.alerts.looking.contract import BLIND, Look, Seen
from apps.definitions.models import Pool
from apps.observe.collect import lease
from apps.observe.show.objectives import Standing, standings

# Watch → the long and the short window.
WINDOWS = {"objective_burning_fast": ("1h", "5m"), "objective_burning": ("6h", "30m")}
_WORDS = {"5m": "5 minutes", "30m": "30 minutes", "1h": "hour", "6h": "6 hours"}


def look_at_objectives(instant: datetime) -> dict[str, Look]:
    """Every watch of this file at once, in two queries: each pool with an objective, and its rate."""
    if not lease.watched():
        return dict.fromkeys(WINDOWS, BLIND)
    pools = {pool.pk: pool for pool in Pool.objects.exclude(objective=None).select_related("account")}
    found = standings(pools.values(), instant, whole=False)
    return {
        watch: Look(
            tuple(seen for pk, each in found.items() if (seen := _seen(pools[pk], each, windows, instant)) is not None)
        )
        for watch, windows in WINDOWS.items()
    }


def _seen(pool: Pool, standing: Standing, windows: tuple[str, str], instant: datetime) -> Seen | None:
    known = [(rate, aim) for aim in standing.aims if (rate := aim.burns(*windows)) is not None]
    rate, aim = max(known, key=lambda each: each[0], default=(0.0, standing.aims[0]))
    if not rate:
        return None
    long = aim.shares[windows[0]]
    what = "were refused or ended with 5xx" if aim.word == "availability" else f"took over {standing.latency_ms} ms"
    detail = (
        f"{long.bad:,} of {long.total:,} requests of the last {_WORDS[windows[0]]} {what}: "
        f"at least {rate:.1f} times as many as {aim.target:g} % allow, in the last {_WORDS[windows[1]]} too."
    )
    return Seen(
        *("pool", pool.pk, pool.account_id, pool.account.name, pool.name, "Pool {} uses up its error budget"),
        *(detail, instant, f"/pools/{pool.pk}", (f"pool:{pool.pk}",)),
        value=rate,
    )

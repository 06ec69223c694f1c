"""How pools stand to their objectives: what is left of the error budget, and how fast it is used up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, Sum

from apps.core.clock import now
from apps.definitions.models import Pool
from apps.observe.collect.tallies import SLOT, WINDOW
from apps.observe.models import PoolTally

# By what each is called; slots are of five minutes, so a window begins up to five minutes earlier than it says.
WINDOWS = {
    "5m": timedelta(minutes=5),
    "30m": timedelta(minutes=30),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
}
WHOLE = "28d"
# Of fewer requests a share says little.
FEWEST = 20


@dataclass(frozen=True, slots=True)
class Share:
    """Requests, and how many of them were not as they must be; `target` is the percentage that must be."""

    total: int
    bad: int
    target: float

    @property
    def percent(self) -> float | None:
        """How many were as they must be, None without requests."""
        return 100 * (self.total - self.bad) / self.total if self.total else None

    @property
    def burn(self) -> float | None:
        """How many times as fast as 28 days allow the budget is used; None where too few requests say."""
        return self.bad / self._allowed if self.total >= FEWEST else None

    @property
    def left(self) -> float | None:
        """Percent of the budget of these requests that is left, below zero when it is overspent; None without any."""
        return 100 * (1 - self.bad / self._allowed) if self.total else None

    @property
    def _allowed(self) -> float:
        return self.total * (100 - self.target) / 100


@dataclass(frozen=True, slots=True)
class Aim:
    """One half of an objective, availability or latency: its shares by window."""

    word: str
    target: float
    shares: Mapping[str, Share]

    def burns(self, long: str, short: str) -> float | None:
        """How fast the budget is used in both windows: the slower of the two. None where one is unknown."""
        rates = [self.shares[long].burn, self.shares[short].burn]
        known = [rate for rate in rates if rate is not None]
        return min(known) if len(known) == len(rates) else None


@dataclass(frozen=True, slots=True)
class Standing:
    """One pool: its aims, and for how many percent of the 28 days anything is known."""

    aims: tuple[Aim, ...]
    latency_ms: int | None
    known: float


def standings(pools: Iterable[Pool], instant: datetime | None = None, *, whole: bool = True) -> dict[int, Standing]:
    """How those of the pools stand that have an objective, by primary key. One query; `whole` asks for all 28 days."""
    at = instant or now()
    wanted = {pool.pk: pool.objective for pool in pools if pool.objective}
    windows = WINDOWS | ({WHOLE: WINDOW} if whole else {})
    begin = at - max(windows.values()) - SLOT
    rows = PoolTally.objects.filter(pool__in=list(wanted), at__gt=begin).values("pool").order_by()
    found = {row["pool"]: row for row in rows.annotate(known=Sum("minutes"), **_sums(windows, at))}
    return {pk: _standing(objective, found.get(pk, {}), windows) for pk, objective in wanted.items()}


def _sums(windows: Mapping[str, timedelta], at: datetime) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, length in windows.items():
        within = Q(at__gt=at - length - SLOT)
        found |= {f"{each}_{name}": Sum(each, filter=within) for each in ("total", "failed", "timed", "slow")}
    return found


def _standing(objective: Mapping[str, Any], row: Mapping[str, Any], windows: Iterable[str]) -> Standing:
    def shares(target: float, total: str, bad: str) -> dict[str, Share]:
        return {name: Share(row.get(f"{total}_{name}") or 0, row.get(f"{bad}_{name}") or 0, target) for name in windows}

    aims = [Aim("availability", objective["availability"], shares(objective["availability"], "total", "failed"))]
    latency = objective.get("latency_ms")
    if latency is not None:
        aims.append(Aim("latency", objective["latency_share"], shares(objective["latency_share"], "timed", "slow")))
    minutes = WINDOW.total_seconds() / 60
    return Standing(tuple(aims), latency, min(100.0, 100 * (row.get("known") or 0) / minutes))

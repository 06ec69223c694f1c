"""How pools and routes stand to their objectives: what is left of the error budget, and how fast it is used up."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, Sum

from apps.core.clock import now
from apps.definitions.models import Pool, Route
from apps.observe.collect.slots import SLOT, SUMS, TALLIES, WINDOW, day_of

# By what each is called; slots are of five minutes, so a window begins up to five minutes earlier than it says.
WINDOWS = {
    "5m": timedelta(minutes=5),
    "30m": timedelta(minutes=30),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "3d": timedelta(days=3),
}
# So many whole days and today.
WHOLE = "28d"
ALL = (*WINDOWS, WHOLE)
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
    """A pool or a route: its aims, and for how many percent of the 28 days anything is known.

    `unknown` says why nothing can be known now, `incomplete` what is still missing.
    """

    aims: tuple[Aim, ...]
    latency_ms: int | None
    known: float
    unknown: str = ""
    incomplete: str = ""


@dataclass(frozen=True, slots=True)
class Day:
    """What was counted on one day (UTC)."""

    at: datetime
    total: int
    failed: int
    timed: int
    slow: int


def standings(
    rows: Iterable[Pool] | Iterable[Route],
    instant: datetime | None = None,
    *,
    kind: str = "pool",
    windows: Collection[str] = ALL,
) -> dict[int, Standing]:
    """How those of the pools or routes stand that have an objective, by primary key. Two queries, or one."""
    at = instant or now()
    wanted = {row.pk: row.objective for row in rows if row.objective}
    if not wanted:
        return {}
    found = _of_slots(kind, wanted, at, windows)
    if WHOLE in windows:
        for pk, row in _of_days(kind, wanted, at).items():
            sums = found.setdefault(pk, {})
            for name, value in row.items():
                sums[name] = (sums.get(name) or 0) + value
    return {pk: _standing(objective, found.get(pk, {}), windows) for pk, objective in wanted.items()}


def days(kind: str, pk: int, instant: datetime | None = None) -> list[Day]:
    """Its days, the oldest first; those of which nothing is known are left out."""
    today = day_of(instant or now())
    rows = TALLIES[kind]._default_manager.filter(**{kind: pk}, minutes__gt=0).order_by("at")
    found = [Day(*row) for row in rows.filter(whole_day=True, at__gte=today - WINDOW).values_list("at", *SUMS)]
    sums = rows.filter(whole_day=False, at__gte=today).order_by().aggregate(**{name: Sum(name) for name in SUMS})
    return [*found, Day(today, **sums)] if sums["total"] is not None else found


def _of_slots(kind: str, pks: Collection[int], at: datetime, windows: Collection[str]) -> dict[int, dict[str, Any]]:
    begins = {name: at - length - SLOT for name, length in WINDOWS.items() if name in windows}
    sums: dict[str, Any] = {}
    if WHOLE in windows:
        begins[WHOLE] = day_of(at) - timedelta.resolution
        sums["known"] = Sum("minutes", filter=Q(at__gt=begins[WHOLE]))
    for name, begin in begins.items():
        sums |= {f"{each}_{name}": Sum(each, filter=Q(at__gt=begin)) for each in SUMS}
    rows = _tallies(kind, pks).filter(whole_day=False, at__gt=min(begins.values()))
    return {row.pop(kind): row for row in rows.annotate(**sums)}


def _of_days(kind: str, pks: Collection[int], at: datetime) -> dict[int, dict[str, int]]:
    today = day_of(at)
    rows = _tallies(kind, pks).filter(whole_day=True, at__gte=today - WINDOW, at__lt=today)
    sums = {f"{each}_{WHOLE}": Sum(each) for each in SUMS}
    return {row.pop(kind): row for row in rows.annotate(known=Sum("minutes"), **sums)}


def _tallies(kind: str, pks: Collection[int]) -> Any:
    return TALLIES[kind]._default_manager.filter(**{f"{kind}__in": list(pks)}).values(kind).order_by()


def _standing(objective: Mapping[str, Any], row: Mapping[str, Any], windows: Iterable[str]) -> Standing:
    def shares(target: float, total: str, bad: str) -> dict[str, Share]:
        return {name: Share(row.get(f"{total}_{name}") or 0, row.get(f"{bad}_{name}") or 0, target) for name in windows}

    aims = [Aim("availability", objective["availability"], shares(objective["availability"], "total", "failed"))]
    latency = objective.get("latency_ms")
    if latency is not None:
        aims.append(Aim("latency", objective["latency_share"], shares(objective["latency_share"], "timed", "slow")))
    return Standing(tuple(aims), latency, min(100.0, 100 * (row.get("known") or 0) / (WINDOW / timedelta(minutes=1))))

"""What the first pages of operators and of customers have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.definitions import selectors as definitions
from apps.definitions.models import Certificate
from apps.observe import selectors as observe
from apps.observe.numbers import PoolNumbers
from apps.overflow.flows import Flow
from apps.web.kit.figures import figures_of, spark
from apps.web.load_balancers.certificates import SOON, validity
from apps.web.overflow.words import use_kind, use_words
from apps.web.overview.causes import find_causes
from apps.web.overview.incidents import SHOWN, Incident
from apps.web.overview.screen import uses_of

POOLS_SHOWN = 12
# A pool of which nothing is known is no worse than a healthy one: its traffic decides.
WORST_FIRST = ("down", "degraded", "healthy", "unknown")
CELLS_SHOWN = 3
SORTS: Mapping[str, Callable[[str, PoolNumbers], Any]] = {
    "pool": lambda name, _: name,
    "requests": lambda _, pool: pool.numbers.requests_rps or 0.0,
    "errors": lambda _, pool: pool.numbers.error_rate or 0.0,
    "p95": lambda _, pool: pool.numbers.p95_ms or 0.0,
    "servers": lambda _, pool: (pool.servers_up or 0) / pool.servers_total if pool.servers_total else 0.0,
}


def attention(actor: Actor, every: list[Incident]) -> dict[str, Any]:
    """The worst incidents, each with its cause, and how many more there are."""
    find_causes(actor, every[:SHOWN])
    return {"incidents": every[:SHOWN], "more_incidents": max(len(every) - SHOWN, 0)}


def expiring_soon(actor: Actor) -> list[tuple[Certificate, str, str]]:
    """Certificates that expire within three weeks, soonest first, each with its state and words."""
    rows = expiring(actor, now()).order_by("not_after")
    return [(certificate, *validity(certificate, now())) for certificate in rows[:5]]


def expiring(actor: Actor, instant: datetime) -> QuerySet[Certificate]:
    """Certificates that have expired by three weeks after the instant."""
    rows = definitions.certificates(actor).filter(not_after__lt=instant + timedelta(days=SOON))
    return rows.exclude(order__renew_at__gt=instant)  # what is renewed in time is no news


@dataclass(frozen=True, slots=True)
class RegionCell:
    """What a pool uses of its limit in a region; `percent` is None where there is nothing to compare with."""

    region: str
    percent: int | None
    kind: str
    words: str


def pools_of_interest(actor: Actor, flow: Flow, sort: str = "") -> dict[str, Any]:
    """The worst pools first, then the busiest, and how many there are in all.

    `sort` is one of SORTS, with a hyphen before it for descending.
    """
    every = definitions.pools(actor).prefetch_related(None)
    names = dict(every.values_list("pk", "name"))
    shown, numbers = _shown(actor, names, sort)
    rows, cells = every.in_bulk(shown), _cells(flow)
    series = observe.series(actor, "backend", [f"pool-{pk}" for pk in shown], minutes=60, points=60)
    found = [
        {
            "pool": rows[pk],
            "now": numbers[pk],
            "figures": figures_of(numbers[pk].numbers),
            "points": spark(series[f"pool-{pk}"].requests) if f"pool-{pk}" in series else "",
            "uses": sorted(cells.get(pk, ()), key=lambda cell: -(cell.percent or 0))[:CELLS_SHOWN],
        }
        for pk in shown
    ]
    return {"pools": found, "pools_total": len(names)}


def _shown(actor: Actor, names: Mapping[int, str], sort: str) -> tuple[list[int], dict[int, PoolNumbers]]:
    """The pools that are shown, in order, with their numbers; all numbers are read only where they sort the pools."""
    if key := SORTS.get(sort.removeprefix("-")):
        numbers = observe.pool_numbers(actor, names)
        seen = {pk: (each.health, each.numbers.requests_rps or 0.0) for pk, each in numbers.items()}
    else:
        numbers, seen = {}, observe.pools_at_a_glance(names.keys())
    shown = sorted(seen, key=lambda pk: (WORST_FIRST.index(seen[pk][0]), -seen[pk][1]))
    if key:
        shown.sort(key=lambda pk: key(names[pk], numbers[pk]), reverse=sort.startswith("-"))
    shown = shown[:POOLS_SHOWN]
    return shown, numbers or observe.pool_numbers(actor, shown)


def sort_links(sort: str) -> dict[str, dict[str, str]]:
    """For each column: how it is sorted now (for `aria-sort`), and what its head asks for."""
    found = {}
    for name in SORTS:
        first = name if name == "pool" else f"-{name}"
        other = f"-{name}" if sort == name else name
        now = {name: "ascending", f"-{name}": "descending"}.get(sort, "")
        found[name] = {"now": now, "next": other if now else first}
    return found


def _cells(flow: Flow) -> dict[int, list[RegionCell]]:
    """By pool: how full it is in each region with a limit, or that it serves nothing there."""
    found: dict[int, list[RegionCell]] = {}
    if flow.at is None or flow.stale:
        return found
    for region, each in uses_of(flow):
        used = each.use.used if each.use.usable else None
        percent = None if used is None else round(100 * used)
        if percent is not None or not each.use.usable:
            cell = RegionCell(region.name, percent, use_kind(each.use), use_words(each.use))
            found.setdefault(int(each.pool_id.removeprefix("pool-")), []).append(cell)
    return found

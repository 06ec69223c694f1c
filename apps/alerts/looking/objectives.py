"""Looks at how fast error budgets are used up, in a long window and a short one, so that it ends soon after."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial

from apps.alerts.looking.contract import Key, Look, Seen
from apps.definitions.models import Pool, Route
from apps.logs.objectives.standing import route_standings
from apps.observe.collect import lease
from apps.observe.show.objectives import Standing, standings

# Watch → the long and the short window.
Windows = dict[str, tuple[str, str]]
FAST: Windows = {"objective_burning_fast": ("1h", "5m"), "objective_burning": ("6h", "30m")}
# Three days are many slots, and nobody hurries: it is looked at less often.
SLOW: Windows = {"objective_burning_slowly": ("3d", "6h")}
_WORDS = {"5m": "5 minutes", "30m": "30 minutes", "1h": "hour", "6h": "6 hours", "3d": "3 days"}
Found = tuple[str, Pool | Route, Standing]


def look(wanted: Windows, instant: datetime) -> dict[str, Look]:
    """Some watches at once, in a fixed number of queries: each pool and route with an objective, and its rate."""
    names = {name for windows in wanted.values() for name in windows}
    found = list(_found(names, instant))
    return {watch: _look(found, windows, instant) for watch, windows in wanted.items()}


look_fast, look_slow = partial(look, FAST), partial(look, SLOW)


def _found(windows: Iterable[str], instant: datetime) -> Iterator[Found]:
    pools = {each.pk: each for each in Pool.objects.filter(objective__isnull=False).select_related("account")}
    for pk, standing in standings(pools.values(), instant, windows=tuple(windows)).items():
        yield "pool", pools[pk], standing
    with_objective = Route.objects.filter(objective__isnull=False).select_related("account").prefetch_related("pools")
    routes = {each.pk: each for each in with_objective}
    for pk, standing in route_standings(list(routes.values()), instant, windows=tuple(windows)).items():
        yield "route", routes[pk], standing


def _look(found: Iterable[Found], windows: tuple[str, str], instant: datetime) -> Look:
    """Of pools nobody knows while the nodes are not read; of routes that burn not, nothing while lines are missing."""
    watched = lease.watched()
    seen: list[Seen] = []
    unknown: set[Key] = set()
    for kind, row, standing in found:
        burning = None if kind == "pool" and not watched else _seen(kind, row, standing, windows, instant)
        if burning is not None:
            seen.append(burning)
        elif standing.unknown or standing.incomplete or (kind == "pool" and not watched):
            unknown.add((kind, row.pk))
    return Look(tuple(seen), frozenset(unknown))


def _seen(kind: str, row: Pool | Route, standing: Standing, windows: tuple[str, str], instant: datetime) -> Seen | None:
    known = [(rate, aim) for aim in standing.aims if (rate := aim.burns(*windows)) is not None]
    rate, aim = max(known, key=lambda each: each[0], default=(0.0, standing.aims[0]))
    if not rate:
        return None
    long = aim.shares[windows[0]]
    failed = "were refused or ended with 5xx" if kind == "pool" else "ended with 5xx"
    what = failed if aim.word == "availability" else f"took over {standing.latency_ms} ms"
    detail = (
        f"{long.bad:,} of {long.total:,} requests of the last {_WORDS[windows[0]]} {what}: "
        f"at least {rate:.1f} times as many as {aim.target:g} % allow, in the last {_WORDS[windows[1]]} too."
    )
    return Seen(
        *(
            kind,
            row.pk,
            row.account_id,
            row.account.name,
            row.name,
            f"{kind.capitalize()} {{}} uses up its error budget",
        ),
        *(detail, instant, f"/{kind}s/{row.pk}", tuple(_causes(kind, row))),
        value=rate,
    )


def _causes(kind: str, row: Pool | Route) -> Iterator[str]:
    """What a pool is to blame for, its routes are not told of once more."""
    yield f"{kind}:{row.pk}"
    if isinstance(row, Route):
        yield from (f"pool:{share.pool_id}" for share in row.pools.all() if share.weight)

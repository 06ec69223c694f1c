"""A month of an account as a report shows it: each number by itself, with what is known of it; nothing is summed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from apps.accounts.actors import Actor
from apps.alerts.models import Alert
from apps.alerts.selectors import own_alerts
from apps.core.clock import now
from apps.core.written.numbers import plain
from apps.definitions.models import Backend, Pool, Route
from apps.definitions.selectors import pools, routes
from apps.fleet.models import Region
from apps.observe.show.months import Kept, Use, kept, known_minutes, uses
from apps.web.capacity.measured import Measured, measured
from apps.web.kit.figures import cut
from apps.web.pools.limits import limit_words

UNKNOWN = "unknown"
# From so many percent of the capacity on there is little room left.
TIGHT, FULL = 80, 100
INCIDENTS_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Month:
    """A month in UTC, as far as it has come."""

    begin: datetime

    @classmethod
    def of(cls, text: str) -> Month | None:
        """Of `2026-11`; None for what is no month, or is still to come."""
        try:
            begin = datetime.strptime(text, "%Y-%m").replace(tzinfo=UTC)
        except ValueError:
            return None
        return cls(begin) if begin <= now() else None

    @property
    def end(self) -> datetime:
        """Its last moment, or now."""
        return min(self.after, now())

    @property
    def after(self) -> datetime:
        """When the next one begins."""
        return (self.begin + timedelta(days=32)).replace(day=1)

    @property
    def before(self) -> Month:
        """The last one."""
        return Month((self.begin - timedelta(days=1)).replace(day=1))

    @property
    def next(self) -> Month | None:
        """The following one, None while it is still to come."""
        return Month(self.after) if self.after <= now() else None

    @property
    def name(self) -> str:
        """As it stands in the address."""
        return f"{self.begin:%Y-%m}"

    @property
    def minutes(self) -> float:
        """How many have passed of it."""
        return (self.end - self.begin) / timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class PoolRow:
    """A pool in a region."""

    pool: Pool
    region: Region
    served: str
    overflow: str
    rejected: str
    peak: str
    limit: str
    capacity: Measured | None
    used: str
    kind: str
    known: str


@dataclass(frozen=True, slots=True)
class ObjectiveRow:
    """A pool or a route beside what is promised of it."""

    name: str
    pk: int
    is_route: bool
    target: str
    reached: str
    missed: str
    kind: str
    known: str


@dataclass(frozen=True, slots=True)
class IncidentRow:
    """An alert of the month; `lasted` in words."""

    alert: Alert
    since: datetime
    lasted: str


def pool_rows(actor: Actor, month: Month) -> list[PoolRow]:
    """Each own pool in each of its regions, by name."""
    own = list(pools(actor).filter(account=actor.account).order_by("name"))
    backends = [backend for pool in own for backend in pool.backends.all()]
    regions = {backend.region_id for backend in backends}
    counted = uses([pool.pk for pool in own], regions, month.begin, month.end)
    known = known_minutes(month.begin, month.end)
    capacities = measured(actor, pools=[pool.pk for pool in own], within=(month.begin, month.end))
    by_pk = {pool.pk: pool for pool in own}
    rows = []
    for backend in sorted(backends, key=lambda each: (by_pk[each.pool_id].name, each.region.name)):
        key = backend.pool_id, backend.region_id
        minutes = known.get(backend.region_id, 0)
        use = counted.get(key, Use(peak_rps=0.0)) if minutes else None
        capacity = capacities.get(key)
        rows.append(_pool_row(by_pk[backend.pool_id], backend, use, capacity, known_share(minutes, month)))
    return rows


def _pool_row(pool: Pool, backend: Backend, use: Use | None, capacity: Measured | None, known: str) -> PoolRow:
    percent = None if use is None or use.peak_rps is None or not capacity else 100 * use.peak_rps / capacity.capacity
    return PoolRow(
        pool=pool,
        region=backend.region,
        served=UNKNOWN if use is None else f"{use.served:,}{' connections' if pool.protocol == 'tcp' else ''}",
        overflow=UNKNOWN if use is None else f"{use.overflow_out:,}",
        rejected=UNKNOWN if use is None else f"{use.rejected:,}",
        peak=UNKNOWN if use is None or use.peak_rps is None else f"{plain(use.peak_rps)}/s",
        limit=limit_words(backend),
        capacity=capacity,
        used=UNKNOWN if percent is None else f"{percent:.0f} %",
        kind="" if percent is None or percent < TIGHT else "bad" if percent >= FULL else "warn",
        known=known,
    )


def objective_rows(actor: Actor, month: Month) -> list[ObjectiveRow]:
    """Each own route and pool with an objective: how many requests were served as promised."""
    own_routes = list(routes(actor).filter(account=actor.account, objective__isnull=False).prefetch_related(None))
    own_pools = list(pools(actor).filter(account=actor.account, objective__isnull=False).prefetch_related(None))
    of_routes = kept("route", [row.pk for row in own_routes], month.begin, month.end)
    of_pools = kept("pool", [row.pk for row in own_pools], month.begin, month.end)
    found = [_objective_row(row, of_routes.get(row.pk), month) for row in own_routes]
    return [*found, *(_objective_row(row, of_pools.get(row.pk), month) for row in own_pools)]


def _objective_row(row: Route | Pool, counted: Kept | None, month: Month) -> ObjectiveRow:
    target = float((row.objective or {})["availability"])
    minutes, total = (counted.minutes, counted.total) if counted else (0, 0)
    reached = 100 * (total - counted.failed) / total if counted and minutes and total else None
    nothing = "no requests" if minutes else UNKNOWN
    return ObjectiveRow(
        name=f"{row.hostname.name}{row.path}" if isinstance(row, Route) else row.name,
        pk=row.pk,
        is_route=isinstance(row, Route),
        target=f"{target:g} %",
        reached=nothing if reached is None else f"{cut(reached, 3)} %",
        missed=nothing if reached is None or counted is None else f"{counted.failed:,} of {total:,}",
        kind="" if reached is None else "good" if reached >= target else "bad",
        known=known_share(minutes, month),
    )


def incident_rows(actor: Actor, month: Month) -> tuple[list[IncidentRow], bool]:
    """The account's alerts of the month, newest first, and whether there are more."""
    rows = own_alerts(actor).filter(since__gte=month.begin, since__lt=month.end).prefetch_related(None)
    found = list(rows[: INCIDENTS_SHOWN + 1])
    return [_incident(row) for row in found[:INCIDENTS_SHOWN]], len(found) > INCIDENTS_SHOWN


def _incident(row: Alert) -> IncidentRow:
    if row.resolved_at is None:
        return IncidentRow(row, row.since, "still open")
    minutes = max(1, round((row.resolved_at - row.since) / timedelta(minutes=1)))
    lasted = (
        f"{minutes} min" if minutes < 120 else f"{minutes / 60:.0f} h" if minutes < 2880 else f"{minutes // 1440} d"
    )
    return IncidentRow(row, row.since, lasted)


def known_share(minutes: int, month: Month) -> str:
    """For how much of the month, as far as it has come, anything is known."""
    if not minutes:
        return "0 %"
    percent = min(100.0, 100 * minutes / max(1.0, month.minutes))
    return "< 1 %" if percent < 1 else f"{percent:.0f} %"

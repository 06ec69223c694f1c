"""Definitions and rates of some pools, brought together region by region."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from django.db.models import QuerySet

from apps.accounts.actors import Actor
from apps.compiler.limits import bounds_of, times
from apps.compiler.model.shared import Limit, LimitKind, LimitScope
from apps.compiler.targets.haproxy.overflow.ceilings import AT_ONCE, OUT, PER_SECOND
from apps.definitions.freezing.frozen_servers import open_to
from apps.definitions.models import Backend, Pool, Server, scaled_limit
from apps.definitions.serving import usable, usable_servers
from apps.definitions.sharing import seen_pools
from apps.fleet.models import Region
from apps.fleet.selectors import latency_table, node_regions
from apps.observe.models import Condition
from apps.observe.numbers import Numbers
from apps.observe.selectors import pool_numbers
from apps.observe.show.flows import Rates, rates
from apps.overflow.flows import CONNECTIONS, REQUESTS
from apps.overflow.planner import capacity_of_flight


class PoolRow(NamedTuple):
    """What flows and plans need of a pool; of thousands of pools model objects cost more than the flow."""

    pk: int
    name: str
    account: str
    overflow_mode: str
    overflow_order: Sequence[str]
    when_full: str
    protocol: str = "http"

    @property
    def unit(self) -> str:
        """What its rates count."""
        return CONNECTIONS if self.protocol == "tcp" else REQUESTS


class LimitRow(NamedTuple):
    """The same of a backend."""

    pk: int
    pool_id: int
    region_id: int
    capacity_scaler: float
    limit_kind: str
    limit_value: float
    limit_scope: str
    limit_set_by: str
    limit_set_at: datetime | None
    limit_measured_by: str


@dataclass(frozen=True, slots=True)
class Share:
    """A pool's backend in one region: what it may take per second (None: no limit; 0: nothing) or at once.

    A `closed` one takes nothing whatever its limit says: drained, scaled to zero, or, `empty`, with no server that gets
    requests.
    """

    backend: LimitRow
    rps: float | None
    flight: int | None
    closed: bool = False
    empty: bool = False


@dataclass(slots=True)
class PoolFacts:
    """One pool: shares by region id, offered and spilled traffic by region id."""

    pool: PoolRow
    shares: dict[str, Share] = field(default_factory=dict)
    served: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    guests: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    refused: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    capped: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    rate_capped: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    busy: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    lanes: dict[tuple[str, str, str], float] = field(default_factory=lambda: defaultdict(float))
    regions: Sequence[str] = ()  # that have to do with it, by name
    idle: bool = False  # of a thousand pools most are, and nothing need be added up for them

    def own(self, region: str) -> float:
        """What a region serves of its own clients' requests."""
        return max(0.0, self.served[region] - self.guests[region])

    def out(self, region: str) -> float:
        """What leaves a region."""
        return sum(rate for (source, target, _), rate in self.lanes.items() if source == region != target)

    def offered(self, region: str) -> float:
        """What a region's clients want."""
        return self.own(region) + self.out(region) + self.refused[region]


@dataclass(slots=True)
class Facts:
    """Everything that flows, plans and sentences are made of.

    `down` says since when all watched servers of a pool (primary key) in a region are down, where that is so.
    """

    regions: dict[str, Region]
    pools: list[PoolFacts]
    rates: Rates
    latencies: dict[tuple[str, str], float]
    down: Mapping[tuple[int, str], datetime]
    numbers: Mapping[int, Numbers] = field(default_factory=dict)

    def healthy(self, pool: PoolFacts, region: str) -> bool:
        """Whether a server of the pool can be used there, as far as anybody knows; one that has none has nothing."""
        share = pool.shares.get(region)
        return not self.is_down(pool, region) and not (share and share.empty)

    def is_down(self, pool: PoolFacts, region: str) -> bool:
        """Whether every server that somebody watches is down."""
        return (pool.pool.pk, region) in self.down

    def order(self, region: str, pool: PoolFacts) -> list[str]:
        """The other regions to which the pool's overflow may go, in the order in which it tries them."""
        names = {key: row.name for key, row in self.regions.items()}
        explicit = [key for name in pool.pool.overflow_order for key, known in names.items() if known == name]
        rest = [key for key in pool.shares if key not in explicit]
        rest.sort(key=lambda key: (self.latencies.get((region, key), float("inf")), names[key]))
        order = [key for key in (*explicit, *rest) if key != region and key in pool.shares]
        return open_to(pool.pool.overflow_mode, explicit, order)


def gather(actor: Actor, pool: Pool | None, at: datetime | None) -> Facts:
    """Facts of one pool or of all that the actor may see; the number of queries does not depend on theirs."""
    rows = seen_pools(actor).filter(pk=pool.pk) if pool else actor.visible(Pool.objects.all())
    named = ("pk", "name", "account__name", "overflow_mode", "overflow_order", "when_full", "protocol")
    pools = {row[0]: PoolFacts(PoolRow(*row)) for row in rows.order_by("pk").values_list(*named)}
    regions = {f"rgn-{row.pk}": row for row in Region.objects.order_by("name")}
    # A subquery and no list: thousands of primary keys as parameters cost more than what is read with them.
    backends = Backend.objects.filter(pool__in=rows.order_by().values("pk"))
    _add_shares(pools, regions, backends)
    measured = rates([f"pool-{pk}" for pk in pools], at)
    home = {node: f"rgn-{region}" for node, region in node_regions().items()}
    _add_rates({f"pool-{pk}": facts for pk, facts in pools.items()}, measured, home)
    for facts in pools.values():
        _settle(facts, regions)
    latencies = {
        (f"rgn-{first}", f"rgn-{second}"): known.ms
        for (first, second), known in latency_table(_near(pools.values(), regions)).items()
        if known.ms is not None
    }
    timed = _needs_time(pools)
    numbers = {pk: known.numbers for pk, known in pool_numbers(actor, timed).items()} if timed else {}
    return Facts(regions, list(pools.values()), measured, latencies, _down(pools, backends), numbers)


def _near(pools: Iterable[PoolFacts], regions: Mapping[str, Region]) -> list[Region]:
    """The regions that have to do with these pools, and those that their requests went to: of others none is far."""
    used = {key for facts in pools for key in (*facts.regions, *(target for _, target, _ in facts.lanes))}
    return [row for key, row in regions.items() if key in used]


def with_traffic(facts: Facts, pool: PoolFacts, measured: Rates) -> PoolFacts:
    """The pool with its limits of now and the traffic of another time; `measured` by region as `rates_over` has it."""
    found = PoolFacts(pool.pool, pool.shares)
    home = {row.pk: region for region, row in facts.regions.items()}
    _add_rates({f"pool-{pool.pool.pk}": found}, measured, home)
    _settle(found, facts.regions)
    return found


def _settle(pool: PoolFacts, regions: Mapping[str, Region]) -> None:
    """Says what follows from shares and rates, once both are there."""
    pool.regions = _regions_of(pool, regions)
    counted = (pool.served, pool.guests, pool.refused, pool.capped, pool.lanes)
    pool.idle = not any(any(each.values()) for each in counted)


def _needs_time(pools: Mapping[int, PoolFacts]) -> list[int]:
    """Pools of which a limit counts requests in flight: how long those take says what it means per second."""
    return [pk for pk, facts in pools.items() if any(share.flight is not None for share in facts.shares.values())]


def _add_shares(pools: Mapping[int, PoolFacts], regions: Mapping[str, Region], backends: QuerySet[Backend]) -> None:
    rows = backends.annotate(usable=usable_servers()).order_by("region__name")
    for *row, servers in rows.values_list(*LimitRow._fields, "usable"):
        limit = LimitRow(*row)
        region = f"rgn-{limit.region_id}"
        if region in regions and limit.pool_id in pools:  # what came meanwhile is shown the next time
            pools[limit.pool_id].shares[region] = share_of(limit, servers, drained=regions[region].drained)


def share_of(limit: LimitRow, servers: int, *, drained: bool) -> Share:
    """What a backend may take with so many servers that a limit per server counts."""
    if drained or limit.capacity_scaler <= 0 or not servers:
        return Share(limit, 0.0, None, closed=True, empty=not servers)
    whole = scaled_limit(limit.limit_value, limit.limit_scope, limit.capacity_scaler, servers)
    if limit.limit_kind == LimitKind.RATE:
        return Share(limit, whole, None)
    if limit.limit_kind == LimitKind.CONNECTIONS:
        return Share(limit, None if whole else 0.0, _in_flight(limit, servers))
    return Share(limit, None, None)


def _in_flight(limit: LimitRow, servers: int) -> int:
    """What nodes count against: they round for one server, and take one request at least."""
    kind, scope = LimitKind(limit.limit_kind), LimitScope(limit.limit_scope)
    bounds = bounds_of(Limit(kind, int(limit.limit_value), scope), limit.capacity_scaler)
    return times(bounds, servers).in_flight or 0


def _add_rates(pools: Mapping[str, PoolFacts], measured: Rates, home: Mapping[int, str]) -> None:
    for (node_id, name), rate in measured.served.items():
        pools[name].served[home[node_id]] += rate
    for (node_id, name), busy in measured.connections.items():
        pools[name].busy[home[node_id]] += busy
    for (node_id, key), rate in measured.flows.items():
        facts, region = pools[key.pool], home[node_id]
        if key.verb == "from":
            facts.guests[region] += rate
        elif key.verb == "refuse":
            facts.refused[region] += rate
            _add_capped(facts, region, key.reason, rate)
        elif key.verb == "to":
            facts.lanes[region, key.region, key.reason] += rate


def _add_capped(facts: PoolFacts, region: str, reason: str, rate: float) -> None:
    """Refused by the account's ceilings, within the pool or on the way to another region."""
    ceiling = reason.removesuffix(OUT)
    if ceiling in (AT_ONCE, PER_SECOND):
        facts.capped[region] += rate
    if ceiling == PER_SECOND:
        facts.rate_capped[region] += rate


def _down(pools: Mapping[int, PoolFacts], backends: QuerySet[Backend]) -> dict[tuple[int, str], datetime]:
    """Pool and region → since when every server that somebody watches is down; what has no such server is left out.

    One query, more where a server is down: of most backends nobody needs to read what is said of each server.
    """
    said = Condition.objects.filter(object_kind="server", type="Up")
    down = list(said.filter(status=False).values_list("object_id", flat=True))
    if not down:
        return {}
    taking = Server.objects.filter(usable(), backend__in=backends.values("pk"))
    suspects = taking.filter(pk__in=down).values("backend")
    servers = dict(taking.filter(backend__in=suspects).values_list("pk", "backend_id"))
    states: dict[int, list[tuple[bool | None, datetime]]] = defaultdict(list)
    for pk, status, since in said.filter(object_id__in=servers).values_list("object_id", "status", "since"):
        states[servers[pk]].append((status, since))
    where = {
        share.backend.pk: (pool, region) for pool, facts in pools.items() for region, share in facts.shares.items()
    }
    return {
        where[backend]: max(since for _, since in known)
        for backend, known in states.items()
        if backend in where and all(status is False for status, _ in known)
    }


def capacity_rps(share: Share, numbers: Numbers | None) -> float | None:
    """What a share takes per second for the planner; a limit in flight by the median time of its requests."""
    if share.flight is None:
        return share.rps
    return capacity_of_flight(share.flight, numbers.p50_ms if numbers else None)


def regions_of(facts: Facts) -> Sequence[str]:
    """Regions that have to do with any of the pools, by name."""
    used = {key for each in facts.pools for key in each.regions}
    return [key for key in facts.regions if key in used]


def _regions_of(pool: PoolFacts, regions: Mapping[str, Region]) -> Sequence[str]:
    """Where it has servers, or traffic."""
    used = {*pool.shares, *pool.served, *pool.refused, *(source for source, _, _ in pool.lanes)}
    return [key for key in regions if key in used]

"""Definitions and rates of some pools, brought together region by region."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Count, Q

from apps.accounts.actors import Actor
from apps.compiler.model.shared import LimitKind, ServerState
from apps.compiler.targets.haproxy.overflow.ceilings import AT_ONCE, OUT, PER_SECOND
from apps.definitions.freezing.frozen_servers import open_to
from apps.definitions.models import Backend, Pool
from apps.definitions.sharing import seen_pools
from apps.fleet.models import Node, Region
from apps.fleet.selectors import latency_table
from apps.observe.models import Condition
from apps.observe.numbers import Numbers
from apps.observe.selectors import pool_numbers
from apps.observe.show.flows import Rates, rates
from apps.overflow.planner import capacity_of_flight


@dataclass(frozen=True, slots=True)
class Share:
    """A pool's backend in one region: what it may take per second (None: no limit; 0: nothing) or at once.

    A `closed` one takes nothing whatever its limit says: drained, scaled to zero, or, `empty`, without a ready server.
    """

    backend: Backend
    rps: float | None
    flight: int | None
    closed: bool = False
    empty: bool = False


@dataclass(slots=True)
class PoolFacts:
    """One pool: shares by region id, offered and spilled traffic by region id."""

    pool: Pool
    shares: dict[str, Share] = field(default_factory=dict)
    served: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    guests: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    refused: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    capped: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    rate_capped: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    busy: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    lanes: dict[tuple[str, str, str], float] = field(default_factory=lambda: defaultdict(float))

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

    `down` says for each pool (primary key) and region with watched servers since when all of those are down; None:
    one is up.
    """

    regions: dict[str, Region]
    pools: list[PoolFacts]
    rates: Rates
    latencies: dict[tuple[str, str], float]
    down: Mapping[tuple[int, str], datetime | None]
    numbers: Mapping[int, Numbers] = field(default_factory=dict)

    def healthy(self, pool: PoolFacts, region: str) -> bool:
        """Whether a server of the pool can be used there, as far as anybody knows; one that has none has nothing."""
        share = pool.shares.get(region)
        return not self.is_down(pool, region) and not (share and share.empty)

    def is_down(self, pool: PoolFacts, region: str) -> bool:
        """Whether every server that somebody watches is down."""
        return self.down.get((pool.pool.pk, region)) is not None

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
    pools = {row.pk: PoolFacts(row) for row in rows.select_related("account").order_by("pk")}
    regions = {f"rgn-{row.pk}": row for row in Region.objects.order_by("name")}
    _add_shares(pools)
    measured = rates([f"pool-{pk}" for pk in pools], at)
    home = {node: f"rgn-{region}" for node, region in Node.objects.values_list("pk", "fleet__region_id")}
    _add_rates({f"pool-{pk}": facts for pk, facts in pools.items()}, measured, home)
    latencies = {
        (f"rgn-{first}", f"rgn-{second}"): known.ms
        for (first, second), known in latency_table().items()
        if known.ms is not None
    }
    numbers = {pk: known.numbers for pk, known in pool_numbers(actor, _needs_time(pools)).items()}
    return Facts(regions, list(pools.values()), measured, latencies, _down(pools), numbers)


def _needs_time(pools: Mapping[int, PoolFacts]) -> list[int]:
    """Pools of which a limit counts requests in flight: how long those take says what it means per second."""
    return [pk for pk, facts in pools.items() if any(share.flight is not None for share in facts.shares.values())]


def _add_shares(pools: Mapping[int, PoolFacts]) -> None:
    ready = Count("servers", filter=Q(servers__state=ServerState.READY.value))
    backends = Backend.objects.filter(pool__in=pools).annotate(ready_servers=ready).select_related("region")
    for backend in backends.order_by("region__name"):
        pools[backend.pool_id].shares[f"rgn-{backend.region_id}"] = share_of(backend, backend.ready_servers)


def share_of(backend: Backend, ready: int) -> Share:
    """What a backend may take; `ready` counts its servers that are neither drained nor in maintenance."""
    if backend.region.drained or backend.capacity_scaler <= 0 or not ready:
        return Share(backend, 0.0, None, closed=True, empty=not ready)
    whole = backend.scaled_limit(ready)
    if backend.limit_kind == LimitKind.RATE:
        return Share(backend, whole, None)
    if backend.limit_kind == LimitKind.CONNECTIONS:
        return Share(backend, None if whole else 0.0, round(whole))
    return Share(backend, None, None)


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
    """Refused by the account's ceilings; what was refused within the pool was counted as served there."""
    ceiling = reason.removesuffix(OUT)
    if ceiling in (AT_ONCE, PER_SECOND):
        facts.capped[region] += rate
    if ceiling == PER_SECOND:
        facts.rate_capped[region] += rate
    if reason in (AT_ONCE, PER_SECOND):
        facts.served[region] = max(0.0, facts.served[region] - rate)


def _down(pools: Mapping[int, PoolFacts]) -> dict[tuple[int, str], datetime | None]:
    """Pool and region → since when every server that somebody watches is down, None while one is not."""
    ready = Backend.objects.filter(pool__in=pools, servers__state=ServerState.READY.value)
    servers = {
        pk: (pool, f"rgn-{region}") for pk, pool, region in ready.values_list("servers__pk", "pool_id", "region_id")
    }
    states: dict[tuple[int, str], list[tuple[bool | None, datetime]]] = defaultdict(list)
    rows = Condition.objects.filter(object_kind="server", type="Up", object_id__in=servers)
    for pk, status, since in rows.values_list("object_id", "status", "since"):
        states[servers[pk]].append((status, since))
    return {
        where: max(since for _, since in known) if all(status is False for status, _ in known) else None
        for where, known in states.items()
    }


def capacity_rps(share: Share, numbers: Numbers | None) -> float | None:
    """What a share takes per second for the planner; a limit in flight by the median time of its requests."""
    if share.flight is None:
        return share.rps
    return capacity_of_flight(share.flight, numbers.p50_ms if numbers else None)


def regions_of(facts: Facts) -> Sequence[str]:
    """Regions that have to do with these pools, by name."""
    used = {
        key
        for pool in facts.pools
        for key in (*pool.shares, *pool.served, *pool.refused, *(source for source, _, _ in pool.lanes))
    }
    return [key for key in facts.regions if key in used]

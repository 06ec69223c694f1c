"""SHOW, the reads: flows as they are or were, as the planner predicts them, and as they would be if."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from apps.accounts.actors import Actor
from apps.compiler.model import LimitKind
from apps.core.clock import now
from apps.definitions.models import Pool
from apps.definitions.sharing import seen_pools
from apps.observe.flows import overflowing_since, steps
from apps.overflow import reasons
from apps.overflow.facts import Facts, PoolFacts, capacity_per_s, gather, regions_of
from apps.overflow.flows import Flow, Lane, Point, RegionUse, WhatIf
from apps.overflow.planner import Plan, Question, mean_added_ms, plan

NOBODY = ""
# Less than one request in twenty seconds is a leftover of the window, no flow.
LEAST = 0.05
LaneRates = Mapping[tuple[str, str, str], float]
NO_QUESTION = WhatIf()


def flow_of(actor: Actor, pool: Pool | None, at: datetime | None = None) -> Flow:
    """The flow of one pool or of all that the actor may see, now or in the bucket that holds `at`."""
    facts = gather(actor, pool, at)
    since = overflowing_since([f"pool-{each.pool.pk}" for each in facts.pools]) if at is None else {}
    lanes: dict[tuple[str, str, str], float] = defaultdict(float)
    for each in facts.pools:
        for key, rate in each.lanes.items():
            if key[0] != key[1]:
                lanes[key] += rate
    uses = [_measured(facts, region) for region in regions_of(facts)]
    return _flow(facts, lanes, uses, since)


def flow_overall(actor: Actor, at: datetime | None = None) -> Flow:
    """The flow of everything that the actor may see."""
    return flow_of(actor, None, at)


def history(actor: Actor, pool: Pool | None, minutes: int) -> list[Point]:
    """What was wanted, left its region and was refused, oldest first."""
    rows = seen_pools(actor).filter(pk=pool.pk) if pool else actor.visible(Pool.objects.all())
    names = [f"pool-{pk}" for pk in rows.order_by().values_list("pk", flat=True)]
    return [
        Point(step.at, None if step.served is None else step.served + (step.refused or 0.0), step.out, step.refused)
        for step in steps(names, minutes)
    ]


def predicted(actor: Actor, pool: Pool | None) -> Flow:
    """What the planner makes of the traffic that is offered right now."""
    facts = gather(actor, pool, None)
    return _planned(facts, NO_QUESTION)


def predicted_each(actor: Actor) -> dict[int, tuple[str, Flow]]:
    """Pool (primary key) → its name and what the planner makes of it, for every pool that the actor may see."""
    facts = gather(actor, None, None)
    return {each.pool.pk: (each.pool.name, _planned(replace(facts, pools=[each]), NO_QUESTION)) for each in facts.pools}


def what_if(actor: Actor, pool: Pool | None, question: WhatIf) -> tuple[Flow, Flow, tuple[str, ...]]:
    """What the planner says of now, of the question, and the differences in words; nothing is changed."""
    facts = gather(actor, pool, None)
    before, after = _planned(facts, NO_QUESTION), _planned(facts, question)
    moved = _moved_clients(facts, question)
    longer = reasons.longer_way(*(mean_added_ms(flow.served(), facts.latencies) for flow in (before, after)))
    return before, after, (*moved, *reasons.differences(before.regions, after.regions), *longer)


def _moved_clients(facts: Facts, question: WhatIf) -> tuple[str, ...]:
    """Clients of a lost region arrive at the nearest one that is left."""
    refuges = {region: _refuge(facts, region, question) for region in question.lose if region in facts.regions}
    return tuple(
        f"Clients of {facts.regions[region].name} arrive at {facts.regions[target].name}."
        for region, target in refuges.items()
        if target
    )


def _refuge(facts: Facts, region: str, question: WhatIf) -> str:
    others = [key for key in regions_of(facts) if key not in question.lose]
    distance = {key: facts.latencies.get((region, key), float("inf")) for key in others}
    return min(others, key=lambda key: (distance[key], facts.regions[key].name), default=NOBODY)


def _measured(facts: Facts, region: str) -> RegionUse:
    pools = facts.pools
    own = sum(pool.own(region) for pool in pools)
    guests = sum(pool.guests[region] for pool in pools)
    served = sum(pool.served[region] for pool in pools)
    refused = sum(pool.refused[region] for pool in pools)
    out = sum(pool.out(region) for pool in pools)
    return _use(facts, region, own=own, served=served, out=out, guests=guests, refused=refused)


def _use(
    facts: Facts, region: str, *, own: float, served: float, out: float, guests: float, refused: float
) -> RegionUse:
    """A region's row: the rates given, with what its limits say."""
    row = facts.regions[region]
    shares = [pool.shares[region] for pool in facts.pools if region in pool.shares]
    backends = [share.backend for share in shares]
    rated = [share.per_s for share in shares]
    flights = [share.flight for share in shares if share.flight is not None]
    newest = max(
        (each for each in backends if each.limit_set_at), key=lambda each: each.limit_set_at or now(), default=None
    )
    return RegionUse(
        region_id=region,
        name=row.name,
        title=row.title,
        offered_per_s=own + out + refused,
        own_per_s=own,
        served_per_s=served,
        out_per_s=out,
        in_per_s=guests,
        refused_per_s=refused,
        capacity_per_s=sum(each or 0.0 for each in rated) if rated and None not in rated else None,
        unlimited=any(each.limit_kind == LimitKind.NONE for each in backends) and not row.drained,
        capacity_set_by=newest.limit_set_by if newest else "",
        capacity_set_at=newest.limit_set_at if newest else None,
        measured_by=newest.limit_measured_by if newest else "",
        in_flight=sum(pool.busy[region] for pool in facts.pools) if flights else None,
        flight_limit=sum(flights) if flights else None,
        drained=row.drained,
        healthy=facts.healthy(region),
    )


def _flow(facts: Facts, rates: LaneRates, uses: Sequence[RegionUse], since: Mapping[str, datetime]) -> Flow:
    lanes = _lanes(facts, rates)
    told = []
    for use in uses:
        mine = [lane for lane in lanes if lane.source_id == use.region_id]
        told.append(
            replace(
                use, sentences=reasons.sentences(use, mine, since.get(use.region_id), of_one_pool=len(facts.pools) == 1)
            )
        )
    measured = facts.rates
    refused = sum(use.refused_per_s for use in uses)
    return Flow(tuple(lanes), tuple(told), refused, measured.at, measured.age_s, measured.stale)


def _lanes(facts: Facts, rates: LaneRates) -> list[Lane]:
    """One lane per pair of regions; of several reasons the one that moves most."""
    by_pair: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for (source, target, reason), rate in rates.items():
        by_pair[source, target][reason] = by_pair[source, target].get(reason, 0.0) + rate
    found = []
    for (source, target), by_reason in sorted(by_pair.items()):
        whole = sum(by_reason.values())
        if whole >= LEAST and source in facts.regions and target in facts.regions:
            names = facts.regions[source].name, facts.regions[target].name
            added = facts.latencies.get((source, target))
            reason = max(by_reason, key=lambda each: by_reason[each])
            found.append(Lane(source, names[0], target, names[1], whole, added, reason))
    return found


def _planned(facts: Facts, question: WhatIf) -> Flow:
    """Plan every pool by itself and add the plans up."""
    totals = _limits_now(facts)
    lanes: dict[tuple[str, str, str], float] = defaultdict(float)
    rows: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    capacities: dict[str, list[float | None]] = defaultdict(list)
    for pool in facts.pools:
        asked = _question(facts, pool, question, totals)
        for region, capacity in asked.capacity.items():
            capacities[region].append(capacity)
        why = {key: _why(facts, pool, key, question) for key in asked.offered}
        _add_plan(plan(asked), why, lanes, rows)
    uses = [_planned_use(facts, region, rows[region], capacities[region], question) for region in regions_of(facts)]
    return _flow(facts, lanes, uses, {})


def _limits_now(facts: Facts) -> dict[str, float]:
    """The rate limits of each region together: another limit for the region scales each of them."""
    totals: dict[str, float] = defaultdict(float)
    for pool in facts.pools:
        for region, share in pool.shares.items():
            totals[region] += share.per_s or 0.0
    return totals


def _question(facts: Facts, pool: PoolFacts, asked: WhatIf, totals: Mapping[str, float]) -> Question:
    capacity: dict[str, float | None] = {}
    numbers = facts.numbers.get(pool.pool.pk)
    for region, share in pool.shares.items():
        down = facts.down.get((pool.pool.pk, region), False)
        per_s = 0.0 if down else capacity_per_s(share, numbers)
        if region in asked.limits and not down and not share.closed:
            wanted, there = asked.limits[region], totals[region]
            per_s = wanted * per_s / there if per_s is not None and there else wanted / len(facts.pools)
        capacity[region] = 0.0 if region in (*asked.lose, *asked.drain) else per_s
    offered: dict[str, float] = defaultdict(float)
    for region in regions_of(facts):
        target = _refuge(facts, region, asked) if region in asked.lose else region
        if rate := pool.offered(region) * asked.factor:
            offered[target or region] += rate
    orders = {region: facts.order(region, pool) for region in facts.regions}
    return Question(offered, capacity, orders, pool.pool.when_full)


def _why(facts: Facts, pool: PoolFacts, region: str, asked: WhatIf) -> str:
    """Why traffic leaves a region, in the words of `Lane.reason`."""
    share = pool.shares.get(region)
    if facts.regions[region].drained or region in asked.drain:
        return "drained"
    if share is None or facts.down.get((pool.pool.pk, region)) or region in asked.lose:
        return "down"
    if share.closed:
        return "drained" if share.backend.capacity_scaler <= 0 else "down"
    return "rate" if share.flight is None else "connections"


def _add_plan(
    made: Plan, why: Mapping[str, str], lanes: dict[tuple[str, str, str], float], rows: dict[str, dict[str, float]]
) -> None:
    for (source, target), rate in made.lanes.items():
        rows[target]["served"] += rate
        if source == target:
            rows[source]["own"] += rate
            continue
        rows[source]["out"] += rate
        rows[target]["guests"] += rate
        forced = made.spread.get((source, target), 0.0)
        lanes[source, target, "full"] += forced
        lanes[source, target, why[source]] += rate - forced
    for fate, left in (("refused", made.refused), ("queued", made.queued)):
        for source, rate in left.items():
            rows[source][fate] += rate


def _planned_use(
    facts: Facts, region: str, row: Mapping[str, float], capacities: Iterable[float | None], question: WhatIf
) -> RegionUse:
    rates = {name: row.get(name, 0.0) for name in ("own", "served", "out", "guests", "refused")}
    use = _use(facts, region, **rates)
    known = list(capacities)
    capacity = sum(each or 0.0 for each in known) if known and None not in known else None
    lost, queued = region in question.lose, row.get("queued", 0.0)
    return replace(
        use,
        offered_per_s=use.offered_per_s + queued,
        queued_per_s=queued,
        capacity_per_s=capacity,
        drained=use.drained or region in question.drain,
        healthy=use.healthy and not lost,
        unlimited=use.unlimited and capacity is None,
    )

"""The reads: flows as they are or were, as the planner predicts them, and as they would be if."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from apps.accounts.actors import Actor
from apps.compiler.model.shared import LimitKind
from apps.core.clock import now
from apps.definitions.models import Pool
from apps.definitions.sharing import seen_pools
from apps.fleet.selectors import node_regions
from apps.observe.live.shared import once_per_sample
from apps.observe.show.flows import moved_by_minute, overflowing_since, steps
from apps.overflow import reasons
from apps.overflow.facts import Facts, PoolFacts, gather, regions_of
from apps.overflow.flows import REQUESTS, Flow, Lane, Point, PoolUse, RegionUse, WhatIf
from apps.overflow.planner import Plan, mean_added_ms, plan
from apps.overflow.questions import question_of, refuges_of

# Less than one request in twenty seconds is a leftover of the window, no flow.
LEAST = 0.05
LaneRates = Mapping[tuple[str, str, str], float]
Since = Mapping[tuple[str, str, str], datetime]
NO_QUESTION = WhatIf()
# What is counted of a pool in a region, and what is planned for it: `queued` by plans alone, `capped` by nodes alone.
RATES = ("own", "served", "out", "guests", "refused", "queued", "capped", "rate_capped")
IDLE: Mapping[str, float] = dict.fromkeys(RATES, 0.0)


@dataclass(frozen=True, slots=True)
class Part:
    """One pool's part of a flow: its lanes (client region, serving region, reason) and its row of each region."""

    pool_id: str
    pool: str
    lanes: LaneRates
    uses: Mapping[str, RegionUse]
    unit: str


def flow_of(actor: Actor, pool: Pool | None, at: datetime | None = None) -> Flow:
    """The flow of one pool or of all that the actor may see, now or in the bucket that holds `at`."""
    facts = gather(actor, pool, at)
    return _counted(facts, causes_since(facts) if at is None else {})


def flow_and_plan(actor: Actor, pool: Pool | None) -> tuple[Flow, Flow]:
    """What nodes count now, and what the planner makes of the very same traffic."""
    if pool is None:
        return once_per_sample(("flow and plan", actor.account.pk), lambda: _both(gather(actor, None, None)))
    return _both(gather(actor, pool, None))


def _both(facts: Facts) -> tuple[Flow, Flow]:
    return _counted(facts, causes_since(facts)), _planned(facts, NO_QUESTION)


def _counted(facts: Facts, since: Since) -> Flow:
    return _flow(facts, [_measured(facts, each) for each in facts.pools], since)


def flow_overall(actor: Actor) -> Flow:
    """The flow of everything that the actor may see."""
    return once_per_sample(("flow", actor.account.pk), lambda: flow_of(actor, None))


def history(actor: Actor, pool: Pool | None, minutes: int) -> list[Point]:
    """What was wanted, left its region and was refused, oldest first."""
    rows = seen_pools(actor).filter(pk=pool.pk) if pool else _of_requests(actor)
    names = [f"pool-{pk}" for pk in rows.order_by().values_list("pk", flat=True)]
    return [
        Point(step.at, None if step.served is None else step.served + (step.refused or 0.0), step.out, step.refused)
        for step in steps(names, minutes)
    ]


def history_in_region(actor: Actor, pool_id: int, region: str, minutes: int) -> list[Point]:
    """The same of one pool in one region (`rgn-2`): what was wanted of it there, with what came from elsewhere."""
    names = [f"pool-{pk}" for pk in seen_pools(actor).filter(pk=pool_id).values_list("pk", flat=True)]
    return [
        Point(step.at, None if step.served is None else step.served + (step.out or 0.0) + (step.refused or 0.0),
              step.out, step.refused)
        for step in steps(names, minutes, region)
    ]  # fmt: skip


def moved(actor: Actor, minutes: int) -> list[Point]:
    """What left its region and was refused of all that the actor may see, a minute at a time; `demand_rps` is None."""
    names = [f"pool-{pk}" for pk in _of_requests(actor).order_by().values_list("pk", flat=True)]
    return [Point(step.at, None, step.out, step.refused) for step in moved_by_minute(names, minutes)]


def _of_requests(actor: Actor) -> QuerySet[Pool]:
    """The pools whose rates may be added up."""
    return actor.visible(Pool.objects.exclude(protocol="tcp"))


def predicted(actor: Actor, pool: Pool | None) -> Flow:
    """What the planner makes of the traffic that is offered right now."""
    facts = gather(actor, pool, None)
    return _planned(facts, NO_QUESTION)


def predicted_each(actor: Actor) -> dict[int, tuple[str, Flow]]:
    """Pool (primary key) → its name and what the planner makes of it, for every pool that the actor may see."""
    facts = gather(actor, None, None)
    return {each.pool.pk: (each.pool.name, _planned(_alone(facts, each), NO_QUESTION)) for each in facts.pools}


def _alone(facts: Facts, pool: PoolFacts) -> Facts:
    return replace(facts, pools=[pool])


def what_if(actor: Actor, pool: Pool | None, question: WhatIf) -> tuple[Flow, Flow, tuple[str, ...]]:
    """What the planner says of now, of the question, and the differences in words; nothing is changed."""
    facts = gather(actor, pool, None)
    before, after = _planned(facts, NO_QUESTION), _planned(facts, question)
    moved = _moved_clients(facts, question)
    longer = reasons.longer_way(*(mean_added_ms(flow.served(), facts.latencies) for flow in (before, after)))
    return before, after, (*moved, *reasons.differences(before.regions, after.regions), *longer)


def _moved_clients(facts: Facts, question: WhatIf) -> tuple[str, ...]:
    """Clients of a failed region arrive at the nearest one that is left."""
    return tuple(
        f"Clients of {facts.regions[region].name} arrive at {facts.regions[target].name}."
        for region, target in refuges_of(facts, question).items()
        if target
    )


def causes_since(facts: Facts) -> dict[tuple[str, str, str], datetime]:
    """(Pool, region, reason of its lanes) → since when that reason holds, where somebody knows."""
    found = dict(overflowing_since([f"pool-{each.pool.pk}" for each in facts.pools]))
    found |= {(f"pool-{pk}", region, "down"): since for (pk, region), since in facts.down.items()}
    for pool in facts.pools:
        for region, row in facts.regions.items():
            if row.drained:
                key = f"pool-{pool.pool.pk}", region, "drained"
                found.pop(key, None)
                if row.drained_at:
                    found[key] = row.drained_at
    return found


def _measured(facts: Facts, pool: PoolFacts) -> Part:
    """What nodes counted of one pool."""
    uses = {}
    for region in pool.regions:
        uses[region] = _use(facts, pool, region, IDLE if pool.idle else _rates(pool, region))
    lanes = {key: rate for key, rate in pool.lanes.items() if key[0] != key[1]}
    return Part(f"pool-{pool.pool.pk}", _name(pool), lanes, uses, pool.pool.unit)


def _rates(pool: PoolFacts, region: str) -> Mapping[str, float]:
    return {
        "own": pool.own(region),
        "served": pool.served[region],
        "out": pool.out(region),
        "guests": pool.guests[region],
        "refused": pool.refused[region],
        "capped": pool.capped[region],
        "rate_capped": pool.rate_capped[region],
    }


def _name(pool: PoolFacts) -> str:
    return f"{pool.pool.account}/{pool.pool.name}"


def _use(facts: Facts, pool: PoolFacts, region: str, rates: Mapping[str, float]) -> RegionUse:
    """A pool's row of a region: the rates given, with what its limit says."""
    return RegionUse(**_values(facts, pool, region, rates))


def _values(facts: Facts, pool: PoolFacts, region: str, rates: Mapping[str, float]) -> dict[str, Any]:
    row, share = facts.regions[region], pool.shares.get(region)
    backend = share.backend if share else None
    return {
        "region_id": region,
        "name": row.name,
        "title": row.title,
        "demand_rps": rates["own"] + rates["out"] + rates["refused"],
        "local_rps": rates["own"],
        "served_rps": rates["served"],
        "overflow_out_rps": rates["out"],
        "overflow_in_rps": rates["guests"],
        "rejected_rps": rates["refused"],
        "capped_rps": rates["capped"],
        "rate_capped_rps": rates["rate_capped"],
        "capacity_rps": share.rps if share else None,
        "unlimited": backend is not None and backend.limit_kind == LimitKind.NONE and not row.drained,
        "capacity_set_by": backend.limit_set_by if backend and backend.limit_set_at else "",
        "capacity_set_at": backend.limit_set_at if backend else None,
        "measured_by": backend.limit_measured_by if backend and backend.limit_set_at else "",
        "in_flight": pool.busy[region] if share and share.flight is not None else None,
        "flight_limit": share.flight if share else None,
        "drained": row.drained,
        "healthy": facts.healthy(pool, region),
        "unit": pool.pool.unit,
    }


def _flow(facts: Facts, parts: Sequence[Part], since: Since) -> Flow:
    """All parts as one flow; each pool is judged by itself before anything is added up."""
    told = [_told(facts, part, since, several=len(parts) > 1) for part in parts]
    rates: dict[tuple[str, str, str], float] = defaultdict(float)
    for part in told if len(told) == 1 else (each for each in told if each.unit == REQUESTS):
        for key, rate in part.lanes.items():
            rates[key] += rate
    lanes = _lanes(facts, rates)
    uses = [_region(region, told, lanes, facts.regions[region].drained_at) for region in regions_of(facts)]
    measured = facts.rates
    refused = sum(use.rejected_rps for use in uses)
    ids = tuple(part.pool_id for part in parts)
    regions = node_regions() if measured.silent else {}
    silent = {regions.get(node_id) for node_id in measured.silent}
    unread = tuple(row.name for row in facts.regions.values() if row.pk in silent)
    return Flow(tuple(lanes), tuple(uses), refused, measured.at, measured.age_s, measured.stale, ids, unread)


def _told(facts: Facts, part: Part, since: Since, *, several: bool) -> Part:
    """The part with its sentences; with several pools each sentence names its own."""
    if not part.lanes and all(reasons.is_quiet(use) for use in part.uses.values()):
        return part
    lanes = _lanes(facts, part.lanes)
    uses = {}
    for region, use in part.uses.items():
        mine = [lane for lane in lanes if lane.source_id == region]
        begun = {reason: since.get((part.pool_id, region, reason)) for reason in reasons.OWN_REASONS} if since else {}
        known = {reason: reasons.clock(at, now()) for reason, at in begun.items() if at}
        said = reasons.sentences(use, mine, known, pool=part.pool if several else "")
        uses[region] = replace(use, sentences=said) if said else use
    return replace(part, uses=uses)


def _region(region: str, parts: Sequence[Part], lanes: Sequence[Lane], drained_at: datetime | None) -> RegionUse:
    """What all pools do in a region. Traffic is added up; limits are not, because the room of one is no other's."""
    pools = [PoolUse(part.pool_id, part.pool, use) for part in parts if (use := part.uses.get(region))]
    if len(parts) == 1:
        return pools[0].use
    pools.sort(key=lambda each: reasons.urgency(each.use), reverse=True)
    uses = [each.use for each in pools]
    counted = (use for use in uses if use.unit == REQUESTS)
    busy = [use for use in counted if use.demand_rps or use.served_rps]  # what is zero elsewhere need not be added up
    sums: dict[str, Any] = {name: sum((getattr(use, name) for use in busy), 0.0) for name in ADDED_UP}
    whole = replace(
        uses[0],
        **sums,
        **NOT_ADDED_UP,
        unit=REQUESTS,
        unlimited=all(use.unlimited for use in uses),
        healthy=any(use.healthy for use in uses),
        pools=tuple(pools),
    )
    mine = [lane for lane in lanes if lane.source_id == region]
    return replace(whole, sentences=reasons.together(whole, mine, reasons.clock(drained_at, now())))


ADDED_UP = (
    "demand_rps", "local_rps", "served_rps", "overflow_out_rps", "overflow_in_rps", "rejected_rps", "queued_rps",
    "capped_rps", "rate_capped_rps",
)  # fmt: skip
NOT_ADDED_UP: Mapping[str, Any] = {
    "capacity_rps": None, "capacity_set_by": "", "capacity_set_at": None, "measured_by": "", "in_flight": None,
    "flight_limit": None,
}  # fmt: skip


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
    several = len(facts.pools) > 1
    asked = replace(question, limits={}) if several else question
    refuges = refuges_of(facts, asked)
    return _flow(facts, [_planned_part(facts, pool, asked, refuges) for pool in facts.pools], {})


def _planned_part(facts: Facts, pool: PoolFacts, asked: WhatIf, refuges: Mapping[str, str]) -> Part:
    question = question_of(facts, pool, asked, refuges)
    if pool.idle:
        capacity = question.capacity
        idle = {key: _planned_use(facts, pool, key, IDLE, capacity.get(key), asked) for key in pool.regions}
        return Part(f"pool-{pool.pool.pk}", _name(pool), {}, idle, pool.pool.unit)
    why = {key: _why(facts, pool, key, asked) for key in question.offered}
    lanes: dict[tuple[str, str, str], float] = defaultdict(float)
    rows: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    _add_plan(plan(question), why, lanes, rows)
    regions = dict.fromkeys((*pool.regions, *rows))
    uses = {key: _planned_use(facts, pool, key, rows[key], question.capacity.get(key), asked) for key in regions}
    return Part(f"pool-{pool.pool.pk}", _name(pool), lanes, uses, pool.pool.unit)


def _why(facts: Facts, pool: PoolFacts, region: str, asked: WhatIf) -> str:
    """Why traffic leaves a region, in the words of `Lane.reason`."""
    share = pool.shares.get(region)
    if facts.regions[region].drained or region in asked.drained_regions:
        return "drained"
    if share is None or facts.is_down(pool, region) or region in asked.failed_regions:
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
    facts: Facts,
    pool: PoolFacts,
    region: str,
    row: Mapping[str, float],
    capacity: float | None,
    asked: WhatIf,
) -> RegionUse:
    values = _values(facts, pool, region, row)
    values["demand_rps"] += row["queued"]
    values["queued_rps"] = row["queued"]
    values["capacity_rps"] = capacity
    values["in_flight"] = None  # counted now, not predicted
    values["drained"] = values["drained"] or region in asked.drained_regions
    values["healthy"] = values["healthy"] and region not in asked.failed_regions
    values["unlimited"] = values["unlimited"] and capacity is None
    return RegionUse(**values)

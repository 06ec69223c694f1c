"""What the planner is asked: the traffic and the limits of a pool, as they are and as a what-if changes them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from apps.overflow.facts import Facts, PoolFacts, capacity_rps, regions_of
from apps.overflow.flows import WhatIf
from apps.overflow.planner import Question

NOBODY = ""


def refuges_of(facts: Facts, question: WhatIf) -> dict[str, str]:
    """Each failed region and the one where its clients arrive."""
    others = [key for key in regions_of(facts) if key not in question.failed_regions] if question.failed_regions else []

    def nearest(region: str) -> str:
        distance = {key: facts.latencies.get((region, key), float("inf")) for key in others}
        return min(others, key=lambda key: (distance[key], facts.regions[key].name), default=NOBODY)

    return {region: nearest(region) for region in question.failed_regions if region in facts.regions}


def question_of(facts: Facts, pool: PoolFacts, asked: WhatIf, refuges: Mapping[str, str]) -> Question:
    """The pool's traffic and what each region may take; `refuges` are those of `refuges_of`."""
    capacity: dict[str, float | None] = {}
    numbers = facts.numbers.get(pool.pool.pk)
    for region, share in pool.shares.items():
        down = facts.is_down(pool, region)
        rps = 0.0 if down else capacity_rps(share, numbers)
        if region in asked.limits and not down and not share.closed:
            rps = asked.limits[region]
        capacity[region] = 0.0 if region in (*asked.failed_regions, *asked.drained_regions) else rps
    offered: dict[str, float] = defaultdict(float)
    for region in () if pool.idle else pool.regions:
        if rate := pool.offered(region) * asked.factor:
            offered[refuges.get(region) or region] += rate
    orders = {region: facts.order(region, pool) for region in offered}
    return Question(offered, capacity, orders, pool.pool.when_full)

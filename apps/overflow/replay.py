"""What would have become of the traffic of the last hour or day, had the limits been others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.accounts.actors import Actor
from apps.definitions.models import Pool
from apps.observe.show.flows import rates_over
from apps.overflow.facts import Facts, PoolFacts, gather, with_traffic
from apps.overflow.flows import WhatIf
from apps.overflow.planner import Question, plan
from apps.overflow.questions import question_of, refuges_of


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of the requests/s of one region's clients in one step; `waiting` only the planner can tell apart."""

    local: float
    out: float
    refused: float
    waiting: float = 0.0

    @property
    def demand(self) -> float:
        """What the clients want, whatever became of it."""
        return self.local + self.out + self.refused + self.waiting


Fates = Sequence[Fate | None]  # None where no node was looked at


@dataclass(frozen=True, slots=True)
class RegionReplay:
    """One region's clients, a step at a time: what nodes counted, and the planner's answer where something is asked."""

    region_id: str
    name: str
    actual: Fates
    asked: Fates


@dataclass(frozen=True, slots=True)
class Replay:
    """All regions over the same steps: the Unix second in which each begins, and its length in seconds."""

    at: Sequence[int]
    step_s: int
    regions: Sequence[RegionReplay]


def replay(actor: Actor, pool: Pool, question: WhatIf | None, minutes: int) -> Replay:
    """The pool's traffic of the last `minutes` placed again by the planner.

    Servers, drains and what `question` does not name are those of now: it tells limits apart, not outages of that time.
    """
    facts = gather(actor, pool, None)
    steps = rates_over([f"pool-{pool.pk}"], minutes)
    then = [with_traffic(facts, one, rates) if rates else None for one in facts.pools for rates in steps.values()]
    used = {region for step in then if step for region in step.regions}
    planned = _planned(facts, then, question) if question else []
    regions = [
        RegionReplay(
            region,
            row.name,
            [None if step is None else Fate(step.own(region), step.out(region), step.refused[region]) for step in then],
            [None if fates is None else fates.get(region, NOTHING) for fates in planned],
        )
        for region, row in facts.regions.items()
        if region in used
    ]
    at = list(steps)
    return Replay(at, at[1] - at[0], regions)


NOTHING = Fate(0.0, 0.0, 0.0)


def _planned(facts: Facts, steps: Sequence[PoolFacts | None], question: WhatIf) -> list[dict[str, Fate] | None]:
    refuges = refuges_of(facts, question)
    return [None if step is None else _placed(question_of(facts, step, question, refuges)) for step in steps]


def _placed(asked: Question) -> dict[str, Fate]:
    """Client region → what the planner makes of its traffic."""
    made = plan(asked)
    return {
        region: Fate(
            made.lanes.get((region, region), 0.0),
            sum(rate for (source, target), rate in made.lanes.items() if source == region != target),
            made.refused.get(region, 0.0),
            made.queued.get(region, 0.0),
        )
        for region in asked.offered
    }

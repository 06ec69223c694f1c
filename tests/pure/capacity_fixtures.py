"""Backends in simulated time for the search, and what they can take in truth."""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from apps.capacity.measure.results import Result
from apps.capacity.run.steps import LoadProfile, Outcome, Purpose, Status, StepPlan, Verdict
from apps.definitions.shapes.operations.capacity_test import ObjectiveSpec
from apps.drivers.load.contract import Arrivals, Endpoint, Plan, Request, Second
from apps.drivers.load.memory import MemoryBackend, MemoryGenerator, memory_backend

ADDRESS = ("10.0.0.1", 80)


@dataclass
class Story:
    """What a run did: every rate that was asked for, every step, every second."""

    result: Result
    outcomes: list[Outcome] = field(default_factory=list)
    plans: list[StepPlan] = field(default_factory=list)
    seconds: list[Second] = field(default_factory=list)

    @property
    def length(self) -> int:
        return len(self.seconds)

    def purposes(self) -> set[Purpose]:
        return {plan.purpose for plan in self.plans}


def run(
    profile: LoadProfile, *, arrivals: str = "constant", connections: int = 1000, seed: int = 0, **model: Any
) -> tuple[Story, MemoryBackend]:
    """A whole run against a backend with this model (fields of MemoryBackend)."""
    backend = memory_backend(*ADDRESS, seed=seed + 1000, **model)
    return asyncio.run(_run(profile, Arrivals(arrivals), connections, seed)), backend


async def _run(profile: LoadProfile, arrivals: Arrivals, connections: int, seed: int) -> Story:
    story = Story(profile.result())
    step = profile.next_step()
    generator = MemoryGenerator(clock=lambda: 0.0)
    if step is None:
        return story
    await generator.start(_plan(step, arrivals, connections, seed))
    seconds = generator.seconds()
    while step is not None:
        story.plans.append(step)
        await (generator.set_users(step.users) if step.users else generator.set_rate(step.rate))
        story.outcomes.append(await _make(profile, step, seconds, generator, story))
        step = profile.next_step()
    story.result = profile.result()
    return story


def _plan(step: StepPlan, arrivals: Arrivals, connections: int, seed: int) -> Plan:
    return Plan(
        (Endpoint(*ADDRESS),),
        Request("shop.test"),
        rate=step.rate,
        users=step.users,
        max_rate=100_000 if step.rate else 0,
        arrivals=arrivals,
        duration_s=3600,
        max_connections=connections,
        seed=seed,
    )


async def _make(
    profile: LoadProfile, step: StepPlan, seconds: object, generator: MemoryGenerator, story: Story
) -> Outcome:
    made: list[Second] = []
    verdict = Verdict(Status.UNDECIDED)
    while not verdict.decided:
        await generator.renew()
        made.append(await anext(seconds))  # type: ignore[call-overload]
        verdict = profile.evaluate(step, made)
    story.seconds += made
    return profile.record(step, made, verdict)


def poisson_truth(objective: ObjectiveSpec, *, servers: int, service_ms: float, exponential: bool = False) -> float:
    """The rate at which just as many requests are slow as the objective allows, by simulating a long time."""
    low, high = 0.0, servers * 1000 / service_ms
    seeded = random.Random(7)
    gaps = [seeded.expovariate(1.0) for _ in range(150_000)]
    works = [service_ms / 1000 * (seeded.expovariate(1.0) if exponential else 1.0) for _ in gaps]
    allowed = (1 - objective.percentile / 100) * len(gaps)
    while (high - low) / high > 0.004:
        rate = (low + high) / 2
        enough = _as_many_slow(gaps, works, rate, servers, objective.max_latency_ms / 1000, allowed)
        low, high = (low, rate) if enough else (rate, high)
    return (low + high) / 2


def _as_many_slow(
    gaps: Sequence[float], works: Sequence[float], rate: float, servers: int, below_s: float, allowed: float
) -> bool:
    """Whether so many requests are slow at this rate; above the truth that is known long before the end."""
    free, now, slow = [0.0] * servers, 0.0, 0
    for gap, work in zip(gaps, works, strict=True):
        now += gap / rate
        done = max(now, free[0]) + work
        heapq.heapreplace(free, done)
        if done - now > below_s:
            slow += 1
            if slow >= allowed:
                return True
    return False

"""Which profile a kind of load takes: search, constant rate, users, ramp, soak; pure."""

from __future__ import annotations

from apps.capacity.run.holding import SOAK_WINDOW_S, WARM_UP_S, StepSchedule, held_steps, ramp_steps
from apps.capacity.run.search.profile import Search
from apps.capacity.run.steps import LoadProfile, StepPlan
from apps.definitions.shapes.operations.capacity_test import CapacityTestSpec


def load_profile_of(spec: CapacityTestSpec, *, known_limit: float = 0.0, max_rate: float | None = None) -> LoadProfile:
    """The profile of a test.

    `known_limit` (requests/s) is where a search without a rate of its own begins to guess; `max_rate` is what quotas
    leave (None: the guards of the test alone).
    """
    highest = float(spec.guards.max_rate if max_rate is None else min(spec.guards.max_rate, max_rate))
    load = spec.load
    if load.kind == "search":
        return Search(
            objective=spec.objective,
            start_rate=min(load.rate or known_limit, highest),
            max_rate=highest,
            arrivals=load.arrivals,
            seconds=float(spec.guards.max_duration_s),
        )
    steps = _ramp(spec, highest) if load.kind == "ramp" else _held(spec, highest)
    return StepSchedule(
        steps, kind=load.kind, objective=spec.objective, arrivals=load.arrivals, until_bad=load.kind == "ramp"
    )


def _held(spec: CapacityTestSpec, highest: float) -> list[StepPlan]:
    load = spec.load
    seconds = max(1.0, min(float(load.duration_s), spec.guards.max_duration_s - WARM_UP_S))
    window = SOAK_WINDOW_S if load.kind == "soak" else seconds
    if load.kind == "users":
        return held_steps(users=min(load.users, spec.guards.max_connections), seconds=seconds, window_s=window)
    return held_steps(rate=min(load.rate, highest), seconds=seconds, window_s=window)


def _ramp(spec: CapacityTestSpec, highest: float) -> list[StepPlan]:
    load = spec.load
    return ramp_steps(
        rate=min(load.rate, highest),
        to_rate=load.to_rate,
        step=load.step,
        seconds=float(load.duration_s),
        max_rate=highest,
    )

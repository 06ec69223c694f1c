"""Which course a kind of load takes: search, constant rate, users, ramp, soak; pure."""

from __future__ import annotations

from apps.capacity.search import Search
from apps.capacity.steps import Course
from apps.definitions.specs import CapacityTestSpec


def course_of(spec: CapacityTestSpec, *, known_limit: float = 0.0, max_rate: float | None = None) -> Course:
    """The course of a test.

    `known_limit` (requests/s) is where a search without a rate of its own begins to guess; `max_rate` is what quotas
    leave (None: the guards of the test alone).
    """
    highest = min(spec.guards.max_rate, spec.guards.max_rate if max_rate is None else max_rate)
    return Search(
        objective=spec.objective,
        start_rate=spec.load.rate or known_limit,
        max_rate=highest,
        arrivals=spec.load.arrivals,
        seconds=spec.guards.max_duration_s,
    )

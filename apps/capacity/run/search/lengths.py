"""How long a step of the search is, in seconds, by what is known of the target."""

from __future__ import annotations

from math import ceil, log2

from apps.capacity.measure.evaluation import RAMP_SECONDS, enough_requests
from apps.capacity.run.search.state import State
from apps.capacity.run.steps import Purpose, StepPlan


def shortest(state: State) -> float:
    """The shortest step that means something: 30 service times."""
    return _for_services(state, state.tuning.service_times)


def _for_services(state: State, services: int) -> float:
    tuning, latency_ms = state.tuning, state.objective.max_latency_ms
    service = (state.usual_ms or latency_ms * tuning.unknown_service) / 1000
    queue = tuning.queues * latency_ms / 1000
    least, most = tuning.shortest_s
    return RAMP_SECONDS + max(least, min(most, float(ceil(max(services * service, queue)))))


def confirmation(state: State) -> float:
    """What a confirmation takes."""
    tuning = state.tuning
    usual = tuning.confirm_even_s if state.constant else tuning.confirm_bunched_s
    return min(max(usual, tuning.confirm_lengths * shortest(state)), state.seconds * tuning.confirm_share)


def affords_step(state: State) -> bool:
    """Whether there is time for one more step beside the confirmation."""
    return state.left > confirmation(state) + state.tuning.spare_lengths * shortest(state)


def step_at(state: State, purpose: Purpose, rate: float, note: str) -> StepPlan:
    """A step on the way up (double) or between two rates (bisect)."""
    if purpose is Purpose.DOUBLE:
        return _probe(state, rate, note)
    return StepPlan(purpose, shortest(state), _longest(state, rate), rate, note=note)


def _probe(state: State, rate: float, note: str) -> StepPlan:
    tuning = state.tuning
    least = _for_services(state, tuning.probe_service_times)
    most = max(least, tuning.growth_s, min(tuning.probe_most_s, tuning.probe_requests / rate))
    return StepPlan(Purpose.DOUBLE, least, most, rate, note=note)


def _longest(state: State, rate: float) -> float:
    """What a step of the bisection may take: an equal part of the time that is left before the confirmation."""
    tuning, low = state.tuning, state.low or rate
    halvings = log2(max(1.01, (state.high - low) / low / tuning.precision)) if state.bad else 0.0
    steps = max(1, ceil(halvings)) + 1
    fair = (state.left - confirmation(state) - tuning.spare_s) / steps
    needed = tuning.spare_requests * enough_requests(state.objective) / rate + RAMP_SECONDS
    most = max(shortest(state), needed, tuning.growth_s) if state.constant else tuning.longest_s
    return max(shortest(state), min(fair, most))

"""Decides what a canary does next; pure.

What is worse than agreed holds it at once. What is unknown lets no step pass: it waits until somebody knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.canaries.plan import CanaryPlan

# Of responses that take a millisecond, twice as long says nothing.
LEAST_SLOWER_MS = 10.0


@dataclass(frozen=True, slots=True)
class Side:
    """What one pool had of the route's requests since the step is live; None where it answered nothing."""

    lines: int = 0
    error_rate: float | None = None
    p95_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """A canary as it stands: seconds since its share is live (None: not yet), for how long it lasts, and both sides.

    `unknown` says why the sides are not known; `stopped` why the share does not come to the nodes.
    """

    plan: CanaryPlan
    in_step_s: float | None
    for_s: int
    canary: Side = Side()
    others: Sequence[Side] = ()
    unknown: str = ""
    stopped: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether it goes on to the next share or holds, and what it waits for or why it holds."""

    goes_on: bool = False
    holds: bool = False
    message: str = ""


def decide(facts: Facts) -> Decision:
    """What follows from the facts."""
    if facts.stopped:
        return Decision(holds=True, message=facts.stopped)
    if facts.in_step_s is None:
        return Decision(message="It waits until the weights are live on every node.")
    if worse := _worse(facts):
        return Decision(holds=True, message=worse)
    unknown = facts.unknown or _not_known(facts)
    if facts.in_step_s < facts.for_s:
        return Decision(message=unknown)
    if unknown:
        return Decision(message=f"The time of this step is over. {unknown}")
    return Decision(goes_on=True)


def _worse(facts: Facts) -> str:
    plan, canary = facts.plan, facts.canary
    if facts.unknown or canary.lines < plan.least_requests:
        return ""
    if canary.error_rate is not None and canary.error_rate > plan.max_error_rate:
        share = f"{100 * canary.error_rate:.1f} % of its {canary.lines:,} responses are 5xx"
        return f"{share}; the canary allows {100 * plan.max_error_rate:g} %."
    slowest = _slowest(facts.others)
    if canary.p95_ms is None or slowest is None:
        return ""
    if canary.p95_ms > max(plan.max_slower * slowest, slowest + LEAST_SLOWER_MS):
        times = f"{plan.max_slower:g} times the {slowest:,.0f} ms of the slowest other pool"
        return f"Its p95 is {canary.p95_ms:,.0f} ms; the canary allows {times}."
    return ""


def _not_known(facts: Facts) -> str:
    if facts.canary.lines < facts.plan.least_requests:
        return f"It has had {facts.canary.lines:,} of the {facts.plan.least_requests:,} requests that it is judged by."
    if facts.canary.p95_ms is None or facts.canary.error_rate is None:
        return "Nobody knows how it responds."
    if _slowest(facts.others) is None:
        return "Nobody knows how fast the other pools respond."
    return ""


def _slowest(others: Sequence[Side]) -> float | None:
    return max((each.p95_ms for each in others if each.p95_ms is not None), default=None)

"""What people and pipelines send to begin a canary, and the weights that follow from it; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

from apps.compiler.grammar import GrammarError
from apps.definitions.shapes.base.shape import About, Check, Data, Shape
from apps.definitions.shapes.base.words import LISTED, Reference, at_most, real, whole

WEEK_S = 7 * 86_400
MOST_STEPS = 20
ALL = 100


@dataclass(frozen=True, slots=True)
class CanaryStep(Shape):
    """A share of the route's requests, and for how long the pool has it once it is live."""

    percent: Annotated[int, whole(1, 99), About("Percent of the requests that the pool gets.", "Share, %")]
    for_s: Annotated[int, whole(10, WEEK_S), About("Seconds for which it gets them.", "Seconds")]


def _growing(steps: tuple[CanaryStep, ...], _: Data) -> None:
    if not steps:
        raise GrammarError("missing", "Name at least one step.")
    if any(later.percent <= before.percent for before, later in pairwise(steps)):
        raise GrammarError("not_growing", "Give each step a higher percentage than the one before.")


@dataclass(frozen=True, slots=True)
class CanaryPlan(Shape):
    """Which pool, in what steps, and when the canary holds. After the last step the pool gets all requests."""

    pool: Annotated[Reference, About("The pool of the route whose share grows.", "Canary", example="shop-next")]
    steps: Annotated[
        tuple[CanaryStep, ...],
        LISTED,
        at_most(MOST_STEPS, "steps in one canary"),
        Check(_growing),
        About("Its share, step by step; then it gets all requests.", missing="Name at least one step."),
    ]
    max_error_rate: Annotated[
        float, real(0, 1), About("The highest share of 5xx (0 to 1) among its responses.", "Highest error rate")
    ] = 0.05
    max_slower: Annotated[
        float,
        real(1, 100),
        About("How many times the p95 of the slowest other pool its own may be.", "Times slower"),
    ] = 2.0
    least_requests: Annotated[
        int,
        whole(1, 1_000_000),
        About("Requests that it must have had in a step before that step is judged.", "Requests to judge by"),
    ] = 20


def weights_at(before: Mapping[str, int], pool: str, percent: int) -> dict[str, int]:
    """The weights of all pools when this one has so many percent; the others share the rest as they did `before`."""
    others = {name: weight for name, weight in before.items() if name != pool}
    if percent == 0:
        return {**others, pool: 0}
    if percent == ALL:
        return {**dict.fromkeys(others, 0), pool: ALL}
    serving = sum(weight > 0 for weight in others.values())
    whole_weight = ALL if serving == 1 else 10 * ALL  # thousandths are what nodes tell apart
    rest = whole_weight - whole_weight * percent // ALL
    return {**_shared_out(others, rest), pool: whole_weight * percent // ALL}


def _shared_out(others: Mapping[str, int], rest: int) -> dict[str, int]:
    """The rest in whole numbers: each rounded down, and what is left to those that lost most."""
    total = sum(others.values())
    found = {name: rest * weight // total for name, weight in others.items()}
    lost = sorted(others, key=lambda name: (-(rest * others[name] % total), name))
    for name in lost[: rest - sum(found.values())]:
        found[name] += 1
    return found

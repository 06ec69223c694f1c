"""What a search knows: nothing here is ever changed, each step that is over makes a new state (learning.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from apps.capacity.measure.summing import Ending
from apps.capacity.run.search.tuning import TUNING, Tuning
from apps.capacity.run.steps import Outcome
from apps.definitions.shapes.operations.capacity_test import ObjectiveSpec
from apps.drivers.load.contract import Arrivals


@dataclass(frozen=True, slots=True)
class State:
    """The question, and what all steps so far have shown; rates in requests/s.

    `guess` is where the limit may lie (0: nobody guessed), `ceiling` what target or generator certainly bears at most.
    `full` has by rate what was answered in seconds in which the target never waited for work, `overloaded_at` the
    seconds of overload of the last bad step at a rate, `costs` those that it cost with its drain. `seen_twice` are bad
    rates that were tried once more. `drain` says that a queue is left of the last step.
    """

    objective: ObjectiveSpec
    max_rate: float
    constant: bool
    seconds: float
    guess: float
    warm_rate: float
    ceiling: float
    tuning: Tuning = TUNING
    outcomes: tuple[Outcome, ...] = ()
    elapsed: float = 0.0
    overloaded_s: float = 0.0
    usual_ms: float | None = None
    good: tuple[float, ...] = ()
    bad: tuple[float, ...] = ()
    full: Mapping[float, tuple[int, ...]] = field(default_factory=dict)
    seen_twice: frozenset[float] = frozenset()
    overloaded_at: Mapping[float, int] = field(default_factory=dict)
    costs: Mapping[float, int] = field(default_factory=dict)
    voids: int = 0
    drain: bool = False
    ending: Ending | None = None
    confirmed: float | None = None
    confirmations: int = 0

    @property
    def low(self) -> float | None:
        """The highest rate that was good and below all bad ones."""
        return max((rate for rate in self.good if rate < self.high), default=None)

    @property
    def high(self) -> float:
        """The lowest rate that was bad; infinite before."""
        return min(self.bad, default=float("inf"))

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.seconds - self.elapsed


def first_state(objective: ObjectiveSpec, *, guess: float, max_rate: float, arrivals: str, seconds: float) -> State:
    """The state before anything was sent."""
    constant = arrivals == Arrivals.CONSTANT
    # A single server that meets the objective at all keeps up with one request at a time.
    one_at_a_time = (1.0 if constant else TUNING.half_busy) * 1000 / objective.max_latency_ms
    warm_rate = min(max(TUNING.lowest_rate, min(TUNING.warm_rate, one_at_a_time)), max_rate)
    return State(objective, max_rate, constant, seconds, guess, warm_rate, ceiling=max_rate)

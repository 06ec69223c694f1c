"""The words between a run and what decides its profile: steps, verdicts, outcomes; pure.

A run asks its profile (`profiles.load_profile_of`) for one step after the other:

    while step := profile.next_step():
        <set step.rate or step.users; collect seconds>
        verdict = profile.evaluate(step, seconds)     # after every second, until it is decided
        profile.record(step, seconds, verdict)        # also when an abort condition or a person ended the step
    result = profile.result()
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from apps.capacity.measure.measuring import Measured
from apps.capacity.measure.results import Result
from apps.drivers.load.contract import Second


class Purpose(StrEnum):
    """Why a step is made; a drain waits until the queue of the step before is gone and is no measurement."""

    WARM_UP = "warm_up"
    DOUBLE = "double"
    BISECT = "bisect"
    CONFIRM = "confirm"
    HOLD = "hold"
    RAMP = "ramp"
    DRAIN = "drain"


class Status(StrEnum):
    """What a step turned out to be. Void: the generator could not keep up, nothing can be said."""

    GOOD = "good"
    BAD = "bad"
    VOID = "void"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A status and the sentence that explains it; `decided` ends the step."""

    status: Status
    message: str = ""

    @property
    def decided(self) -> bool:
        """Whether the step is over."""
        return self.status is not Status.UNDECIDED


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One rate (requests/s) or number of users to hold, `seconds_min` to `seconds_max` long; `note` for people."""

    purpose: Purpose
    seconds_min: float
    seconds_max: float
    rate: float = 0.0
    users: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A step that is over: what was planned, what was measured, the verdict."""

    step: StepPlan
    measured: Measured
    verdict: Verdict


class LoadProfile(Protocol):
    """What decides the steps of a run. Data in, data out: no clock, no network; time is the seconds it is shown."""

    def next_step(self) -> StepPlan | None:
        """The step to make now; None when all is known that can be known."""
        ...

    def evaluate(self, step: StepPlan, seconds: Sequence[Second]) -> Verdict:
        """What the seconds of the step so far say; decided at the latest after `seconds_max`."""
        ...

    def record(self, step: StepPlan, seconds: Sequence[Second], verdict: Verdict) -> Outcome:
        """Take note of a step that is over; one that was broken off undecided counts for nothing."""
        ...

    def result(self) -> Result:
        """What is known by now; also in the middle, when a run was stopped."""
        ...

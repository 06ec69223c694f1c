"""The border to what a run does: a target acts, says what came of it, or says why not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from apps.schedules.models import ScheduleRun


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run: a sentence for people, and what pages link to."""

    message: str = ""
    result: dict[str, Any] = field(default_factory=dict)


class TargetFailed(Exception):
    """The target did not do it; `message` says why in a sentence, `final` that trying again cannot help."""

    def __init__(self, message: str, *, final: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.final = final


Act = Callable[[ScheduleRun, datetime], Outcome]
ActOnMany = Callable[[Sequence[ScheduleRun], datetime], Sequence[Outcome | TargetFailed]]


@dataclass(frozen=True, slots=True)
class Target:
    """How one kind of target acts on a run, which comes with its schedule and account.

    `in_transaction`: the effect is rows of ours, so acting and finishing the run are one transaction, and what
    TargetFailed interrupts is undone. Others act without a transaction, at least once, with `run.key` as the key by
    which the effect is known again. One that `waits` for somebody outside has a seat (core/concurrency/fairness.py):
    what is ours never stands behind it. `act_on_many` does the same for many runs at once, in their order.
    """

    act: Act
    in_transaction: bool = False
    waits: bool = False
    act_on_many: ActOnMany | None = None

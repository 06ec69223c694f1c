"""A second being counted: what every implementation writes down meanwhile, and the record it becomes."""

from __future__ import annotations

from apps.drivers.load.contract import LATE_MS, LATE_SHARE, MOST_HELD_UP, Second
from apps.drivers.load.histogram import Histogram


class Counting:
    """The counts of the present second; `late` latencies in seconds."""

    __slots__ = ("answered", "errors", "held_up", "latencies", "latest", "offered", "sent", "statuses")

    def __init__(self) -> None:
        self.offered = self.sent = self.answered = 0
        self.latest = 0.0
        self.held_up: list[float] = []
        self.statuses: dict[int, int] = {}
        self.errors: dict[str, int] = {}
        self.latencies = Histogram()

    @property
    def empty(self) -> bool:
        """Nothing happened at all."""
        return not (self.offered or self.answered or self.errors)

    def left(self, late_s: float) -> None:
        """A request left, so much after it was due."""
        self.sent += 1
        self.latest = max(self.latest, late_s)
        if late_s * 1000 > LATE_MS:
            self.held_up.append(late_s * 1000)

    def answer(self, status: int, took_s: float) -> None:
        """An answer is complete."""
        self.answered += 1
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.latencies.record(took_s * 1e6)

    def error(self, kind: str) -> None:
        """A request came to nothing."""
        self.errors[kind] = self.errors.get(kind, 0) + 1

    def second(self, *, at: float, target: float, in_flight: int, connections: int) -> Second:
        """The record."""
        never_left = self.offered - self.sent - self.errors.get("refused", 0)
        noticeable = LATE_SHARE * (self.latencies.percentile(50) or 0.0) / 1000
        held_up = sum(late > noticeable for late in self.held_up)
        spoiled = max(0, never_left) + held_up + self.errors.get("generator", 0)
        return Second(
            at=at,
            target=target,
            offered=self.offered,
            sent=self.sent,
            answered=self.answered,
            statuses=self.statuses,
            errors=self.errors,
            in_flight=in_flight,
            connections=connections,
            histogram=self.latencies.encode(),
            late_ms=self.latest * 1000,
            generator_limited=spoiled > MOST_HELD_UP * self.offered,
        )

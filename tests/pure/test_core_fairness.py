"""However many owners are slow, one whose work is quick finds a seat; played second by second."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest

from apps.core.concurrency import fairness
from apps.core.concurrency.fairness import Owners, Seats, in_turns, of_slow

SEATS, SLOW_OWNERS, TAKES_S = 5, 30, 10
Work = tuple[str, int]


@dataclass
class Play:
    """A process with these seats: owners whose work takes ten seconds, and `quick`, whose work takes none."""

    seats: Seats[Work]
    slow_owners: int
    clock: float = 0.0
    sitting: list[tuple[float, ExitStack]] = field(default_factory=list)
    served: dict[str, int] = field(default_factory=dict)
    waits_since: float | None = None

    def choose(self, owners: Owners) -> tuple[str, Work] | None:
        """The owner who was served least; there is always work of the slow ones."""
        names = [f"slow-{number:02}" for number in range(self.slow_owners)]
        names += ["quick"] if self.waits_since is not None else []
        free = sorted((each for each in names if each not in owners), key=lambda each: self.served.get(each, 0))
        return (free[0], (free[0], self.served.get(free[0], 0))) if free else None

    def second(self) -> int | None:
        """One passes; how long `quick` has waited when it is its turn."""
        self.clock += 1
        for ends, seat in [each for each in self.sitting if each[0] <= self.clock]:
            self.sitting.remove((ends, seat))
            seat.close()
        lag = None
        while len(self.sitting) < SEATS:
            seat = ExitStack()
            work = seat.enter_context(self.seats.seat(self.choose))
            if work is None:
                break
            owner = work[0]
            self.served[owner] = self.served.get(owner, 0) + 1
            if owner == "quick":
                assert self.waits_since is not None
                lag, self.waits_since = int(self.clock - self.waits_since), None
                seat.close()
            else:
                self.sitting.append((self.clock + TAKES_S, seat))
        return lag


def worst_lag(monkeypatch: pytest.MonkeyPatch, slow_owners: int) -> int:
    """How long `quick` waits at most, once it is known who is slow; it has something to do each second."""
    play = Play(Seats(lambda: SEATS), slow_owners)
    monkeypatch.setattr(time, "monotonic", lambda: play.clock)
    for _ in range(2 * TAKES_S * SLOW_OWNERS // SEATS):
        play.second()
    lags = []
    for _ in range(100):
        play.waits_since = play.clock if play.waits_since is None else play.waits_since
        lag = play.second()
        lags += [] if lag is None else [lag]
    return max(lags) if len(lags) > 5 else 100


def test_thirty_slow_owners_together_delay_one_whose_work_is_quick_by_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert worst_lag(monkeypatch, SLOW_OWNERS) <= worst_lag(monkeypatch, 0) == 1


def test_control_where_nobody_is_known_to_be_slow_they_fill_every_seat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Seats, "_barred", lambda *_: frozenset())
    assert worst_lag(monkeypatch, SLOW_OWNERS) > 2


@pytest.mark.parametrize("shared", range(2, 40))
def test_the_slow_leave_half_of_what_is_shared(shared: int) -> None:
    assert 1 <= of_slow(shared) <= shared / 2


def test_an_owner_is_slow_until_its_work_is_quick_or_it_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    instant = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: instant)
    seats: Seats[int] = Seats(lambda: 2)

    def found() -> int | None:
        with (
            seats.seat(lambda _: ("slow", 1)),
            seats.seat(lambda owners: None if "a" in owners else ("a", 2)) as work,
        ):
            return work

    seats.remember("slow", 10.0)
    assert found() == 2
    seats.remember("slow", 10.0)
    seats.remember("a", 10.0)
    assert found() is None
    seats.remember("slow", 10.0)
    seats.remember("a", 0.1)
    assert found() == 2
    seats.remember("slow", 10.0)
    seats.remember("a", 10.0)
    instant = fairness.FORGOTTEN_S + 1
    assert found() == 2


def test_of_work_that_is_many_pieces_the_slowest_counts_and_not_their_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    instant, left = 0.0, [1]
    monkeypatch.setattr(time, "monotonic", lambda: instant)
    seats: Seats[int] = Seats(lambda: 2)

    def do(_: int) -> float:
        nonlocal instant
        instant += 5.0
        return 0.2

    assert in_turns(seats, lambda *_: ("a", left.pop()) if left else None, do) == 1
    assert not seats._slow_until


def test_work_that_fails_keeps_nobody_elses_waiting() -> None:
    left, did = ["c", "a", "b"], list[str]()

    def do(owner: str) -> None:
        did.append(owner)
        if owner == "a":
            raise ValueError(owner)

    assert in_turns(Seats[str](lambda: 2), lambda *_: (left[-1], left.pop()) if left else None, do) == 3
    assert did == ["b", "a", "c"]


def test_no_more_slow_owners_are_known_than_can_be_named_in_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness, "MOST_KNOWN", 3)
    seats: Seats[int] = Seats(lambda: 2)
    for owner in range(9):
        seats.remember(owner, 10.0)
    assert list(seats._slow_until) == [6, 7, 8]

"""When a second says of itself that the generator, not the backend, was too slow."""

from __future__ import annotations

import pytest

from apps.drivers.load.contract import Second
from apps.drivers.load.http1.recording import Counting


def second_of(late_ms: list[float], *, took_ms: float, offered: int = 0, refused: int = 0, own: int = 0) -> Second:
    """A second in which requests left so late and took so long."""
    counting = Counting()
    counting.offered = offered or len(late_ms)
    for late in late_ms:
        counting.left(late / 1000)
        counting.answer(200, took_ms / 1000)
    for kind, count in (("refused", refused), ("generator", own)):
        for _ in range(count):
            counting.error(kind)
    return counting.second(at=1.0, target=1.0, in_flight=0, connections=1)


@pytest.mark.parametrize(
    ("late_ms", "took_ms", "limited"),
    [
        ([0.0] * 100, 1.0, False),
        ([9.0] * 100, 1.0, False),
        ([11.0] * 2 + [0.0] * 98, 1.0, True),
        ([11.0] + [0.0] * 99, 1.0, False),  # 1 %
        ([15.0] * 5, 384.0, False),  # below 5 % of what an answer takes
        ([25.0] + [0.0] * 4, 384.0, True),
    ],
)
def test_requests_that_leave_late_spoil_a_second_when_it_shows(
    late_ms: list[float], took_ms: float, limited: bool
) -> None:
    found = second_of(late_ms, took_ms=took_ms)
    assert found.generator_limited is limited
    assert found.late_ms == pytest.approx(max(late_ms))


def test_requests_that_never_leave_spoil_a_second() -> None:
    assert second_of([0.0] * 98, took_ms=1.0, offered=100).generator_limited
    assert not second_of([0.0] * 99, took_ms=1.0, offered=100).generator_limited


def test_a_full_plan_is_no_fault_of_the_generator() -> None:
    assert not second_of([0.0] * 50, took_ms=1.0, offered=100, refused=50).generator_limited


def test_running_out_of_ports_is() -> None:
    assert second_of([0.0] * 100, took_ms=1.0, own=2).generator_limited


def test_a_second_without_anything_is_empty() -> None:
    assert Counting().empty
    assert second_of([], took_ms=1.0).histogram == ""

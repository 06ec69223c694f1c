"""The abort conditions, second by second: each acts on what it is for, in time, and on nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apps.capacity.run.abort_conditions import Abort, Environment, Neighbour, SecondSample, abort_for

CALM = Environment(neighbours={"pool-7": Neighbour(100, 0.0, 40.0)})
GOOD = SecondSample(ended=20, failed=0, p95_ms=50.0, environment=CALM)


def first(samples: list[SecondSample], before: Environment = CALM) -> tuple[int, Abort] | None:
    """After how many seconds an abort condition acts, and which."""
    for count in range(1, len(samples) + 1):
        if found := abort_for(samples[:count], before):
            return count, found
    return None


def reasons(samples: list[SecondSample]) -> tuple[int, str] | None:
    """The same without the sentence."""
    found = first(samples)
    return (found[0], found[1].reason) if found else None


def test_a_quiet_minute_aborts_nothing() -> None:
    assert first([GOOD] * 60) is None


@pytest.mark.parametrize(("failed", "acts"), [(2, (5, "errors")), (1, None)])
def test_more_than_five_per_cent_of_errors_for_five_seconds_abort(failed: int, acts: tuple[int, str] | None) -> None:
    assert reasons([replace(GOOD, failed=failed)] * 20) == acts


def test_one_second_of_errors_aborts_nothing() -> None:
    assert first([*[GOOD] * 10, replace(GOOD, failed=20), *[GOOD] * 10]) is None


def test_a_backend_that_refuses_everything_aborts_although_nothing_is_answered() -> None:
    assert reasons([SecondSample(1, 1, None, environment=CALM)] * 9) == (5, "errors")


def test_seconds_in_which_nothing_ends_say_nothing() -> None:
    assert first([SecondSample(0, 0, None, environment=CALM)] * 60) is None


@pytest.mark.parametrize(("p95", "acts"), [(151.0, (20, "latency")), (149.0, None)])
def test_three_times_the_latency_of_the_beginning_for_ten_seconds_aborts(
    p95: float, acts: tuple[int, str] | None
) -> None:
    assert reasons([*[GOOD] * 10, *[replace(GOOD, p95_ms=p95)] * 20]) == acts


def test_a_step_that_looks_for_the_breaking_point_may_be_slow() -> None:
    slow = replace(GOOD, p95_ms=5000.0, probing=True)
    assert first([*[GOOD] * 10, *[slow] * 20]) is None
    assert reasons([*[GOOD] * 10, *[replace(slow, probing=False)] * 20]) == (20, "latency")


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        (replace(CALM, silent_s=6.1), "heartbeat"),
        (replace(CALM, silent_s=None), "heartbeat"),
        (replace(CALM, forbidden="The account is suspended."), "forbidden"),
        (replace(CALM, trouble="A rollout is under way."), "region"),
        (replace(CALM, shortage="No room."), "headroom"),
        (replace(CALM, neighbours={"pool-7": Neighbour(100, 0.06, 40.0)}), "neighbour"),
        (replace(CALM, neighbours={"pool-7": Neighbour(100, 0.0, 91.0)}), "neighbour"),
        (replace(CALM, neighbours={"pool-9": Neighbour(100, 0.2, 91.0)}), "neighbour"),
    ],
)
def test_the_environment_aborts_in_the_same_second(environment: Environment, reason: str) -> None:
    assert reasons([GOOD, GOOD, replace(GOOD, environment=environment)]) == (3, reason)


@pytest.mark.parametrize("environment", [replace(CALM, node_cpu=0.81), replace(CALM, node_connections=0.81)])
def test_a_node_that_is_busy_for_three_seconds_aborts(environment: Environment) -> None:
    busy = replace(GOOD, environment=environment)
    assert reasons([GOOD, *[busy] * 9]) == (4, "node")
    assert first([GOOD, busy, busy, GOOD] * 9) is None


@pytest.mark.parametrize(
    "environment",
    [
        replace(CALM, silent_s=5.9),
        replace(CALM, node_cpu=0.79, node_connections=0.79),
        replace(CALM, neighbours={"pool-7": Neighbour(100, 0.04, 79.0)}),
        replace(CALM, neighbours={"pool-7": Neighbour(5, 0.9, 900.0)}),
        replace(CALM, neighbours={"pool-9": Neighbour(100, 0.0, 900.0)}),
        replace(CALM, neighbours={}),
    ],
)
def test_what_is_within_bounds_aborts_nothing(environment: Environment) -> None:
    assert first([replace(GOOD, environment=environment)] * 30) is None


def test_a_neighbour_that_was_ill_before_the_load_is_not_the_load_s_fault() -> None:
    ill = replace(CALM, neighbours={"pool-7": Neighbour(100, 0.3, 400.0)})
    assert abort_for([replace(GOOD, environment=ill)], ill) is None
    assert abort_for([replace(GOOD, environment=ill)], CALM) is not None

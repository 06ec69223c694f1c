"""Weights follow what was counted, settle below the limit, and go home without swinging."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.stacks.cloud.weights import SMALLEST_MOVE, WHOLE, RegionBackend, next_move, present_weights

HOME = RegionBackend(1, "eu-central-1", 100.0)
NEAR = RegionBackend(2, "eu-west-1", 100.0)
FAR = RegionBackend(3, "us-east-1", None)


def weights(backends: list[RegionBackend], demand: float) -> dict[int, int] | None:
    move = next_move(backends, demand)
    return move.weights if move else None


def test_below_the_limit_everything_stays_at_home() -> None:
    assert weights([HOME, NEAR], 90) is None
    assert present_weights([HOME, NEAR]) == {1: WHOLE, 2: 0}


def test_what_is_over_the_limit_goes_to_the_next_with_room() -> None:
    assert weights([HOME, NEAR, FAR], 150) == {1: 667, 2: 333, 3: 0}
    assert weights([HOME, NEAR, FAR], 400) == {1: 250, 2: 250, 3: 500}


def test_what_others_serve_already_is_no_room() -> None:
    assert weights([HOME, replace(NEAR, busy=80), FAR], 150) == {1: 667, 2: 133, 3: 200}


def test_with_no_room_anywhere_all_take_by_capacity() -> None:
    assert weights([HOME, replace(NEAR, limit=300.0)], 1000) == {1: 250, 2: 750}


def test_a_drained_region_gets_nothing() -> None:
    move = next_move([replace(HOME, limit=0.0), NEAR], 50)
    assert move is not None
    assert move.weights == {1: 0, 2: WHOLE}
    assert "takes no traffic" in move.reason


def test_small_wishes_move_nothing() -> None:
    assert weights([HOME, NEAR], 101) is None
    assert weights([HOME, NEAR], 103) == {1: 971, 2: 29}


def test_it_goes_home_only_with_a_tenth_of_room() -> None:
    away = [replace(HOME, weight=667), replace(NEAR, weight=333)]
    assert weights(away, 99) == {1: 909, 2: 91}, "it goes as far as leaves a tenth of room"
    almost = [replace(HOME, weight=909), replace(NEAR, weight=91)]
    assert weights(almost, 98) is None
    assert weights(almost, 80) == {1: WHOLE, 2: 0}


@given(
    st.lists(st.tuples(st.none() | st.floats(0, 1000), st.floats(0, 500)), min_size=1, max_size=5),
    st.floats(0, 5000),
)
def test_weights_are_whole_and_sum_up(backends: list[tuple[float | None, float]], demand: float) -> None:
    made = [RegionBackend(index + 1, f"r-{index}", limit, busy) for index, (limit, busy) in enumerate(backends)]
    move = next_move(made, demand)
    if move is not None:
        assert sum(move.weights.values()) == WHOLE
        assert all(0 <= weight <= WHOLE for weight in move.weights.values())
        now = present_weights(made)
        assert max(abs(now[key] - weight) for key, weight in move.weights.items()) >= SMALLEST_MOVE


def simulated(demands: Sequence[float], *, moving: bool = True) -> list[dict[int, int]]:
    """Minute by minute: demand arrives, is counted a minute late, weights move and are in force a minute later."""
    backends, seen, pending, history = [HOME, NEAR], demands[0], None, []
    for demand in demands:
        if pending is not None:
            backends = [replace(backend, weight=pending[backend.backend_id]) for backend in backends]
        history.append(present_weights(backends))
        move = next_move(backends, seen) if moving else None
        pending, seen = (move.weights if move else None), demand
    return history


@pytest.mark.parametrize("demand", [120.0, 150.0, 190.0])
def test_the_loop_settles_below_the_limit_and_returns(demand: float) -> None:
    history = simulated([50] * 3 + [demand] * 10 + [50] * 6)
    home = [weights[1] / WHOLE * at for weights, at in zip(history, [50] * 3 + [demand] * 10 + [50] * 6, strict=True)]
    assert all(each <= 105 for each in home[6:13]), home
    assert history[-1] == {1: WHOLE, 2: 0}
    moves = sum(one != other for one, other in pairwise(history))
    assert moves <= 3, "it does not swing"


def test_without_moves_the_region_drowns() -> None:
    history = simulated([50] * 3 + [150] * 10, moving=False)
    assert history[-1][1] / WHOLE * 150 > 105

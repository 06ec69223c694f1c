"""What the guards refuse before any node, and what they let through."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import Snapshot
from apps.rollouts.push.guards import NOT_BY_HAND, SAFETY, is_empty, violations
from apps.rollouts.push.repairs import pause_of
from apps.rollouts.push.states import MOVES, TERMINAL, IllegalMove, RolloutState, check_move
from tests.pure.compiler_fixtures import front, route, snapshot

FULL = snapshot(front(*(route(number, path=f"/{number}") for number in range(1, NOT_BY_HAND + 1))))
FRONT = FULL.load_balancers[0]


def without_routes() -> Snapshot:
    return replace(FULL, load_balancers=(replace(FRONT, routes=()),))


def test_an_ordinary_change_violates_nothing() -> None:
    after = replace(FULL, load_balancers=(replace(FRONT, routes=FRONT.routes[1:]),))
    assert violations(FULL, after, compile_snapshot(after).output) == []


def test_losing_all_routes_at_once_is_refused_with_their_number() -> None:
    after = without_routes()
    assert str(NOT_BY_HAND) in violations(FULL, after, compile_snapshot(after).output)[0]


def test_removing_the_last_few_routes_is_allowed() -> None:
    before = replace(FULL, load_balancers=(replace(FRONT, routes=FRONT.routes[:2]),))
    assert violations(before, without_routes(), compile_snapshot(without_routes()).output) == []


def test_losing_all_listeners_is_refused() -> None:
    after = replace(FULL, load_balancers=())
    assert is_empty(after)
    assert "listen" in violations(FULL, after, compile_snapshot(after).output)[0]


@pytest.mark.parametrize("value", SAFETY)
def test_a_missing_safety_value_is_refused_by_name(value: str) -> None:
    bundle = compile_snapshot(FULL).output
    lines = bundle.files["haproxy.cfg"].decode().splitlines(keepends=True)
    kept = "".join(line for line in lines if not (line.strip() + " ").startswith(value))
    blind = replace(bundle, files={**bundle.files, "haproxy.cfg": kept.encode()})
    assert violations(None, FULL, bundle) == []
    assert violations(None, FULL, blind) == [f"haproxy.cfg does not say `{value.strip()}`."]


def test_pauses_between_repairs_grow_to_ten_minutes() -> None:
    assert [pause_of(count) for count in (1, 2, 3)] == [timedelta(seconds=seconds) for seconds in (10, 20, 40)]
    assert pause_of(1000) == timedelta(minutes=10)


def test_a_finished_rollout_never_moves_again() -> None:
    assert {"done", "rolled_back", "failed", "superseded"} == TERMINAL
    for state in TERMINAL:
        with pytest.raises(IllegalMove):
            check_move(state, RolloutState.PUSHING)
    for state, moves in MOVES.items():
        for move in moves:
            check_move(state, move)

"""What a replacement of servers does next: never too many out, nothing believed that no node has said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apps.replacements.deciding import CONFIRM_S, Decision, Facts, Member, Seen, decide
from apps.replacements.plan import ReplacementPlan

PLAN = ReplacementPlan()
UP, OUT_OF_USE, DOWN = (Seen(word) for word in ("up", "maintenance", "down"))
DRAINED = UP  # nodes see no difference


def server(key: int, *seen: Seen, stored: str = "ready", **values: object) -> Member:
    """A waiting server that two nodes see up, unless said otherwise."""
    usual: dict[str, object] = {"state": "waiting", "region": "eu", "seen": seen or (UP, UP)}
    return Member(key, name=f"s{key}", stored=stored, **(usual | values))  # type: ignore[arg-type]  # field names


def out(key: int, *seen: Seen, stored: str = "drain", **values: object) -> Member:
    """One of the batch, in the state that it was given."""
    return server(key, *seen, stored=stored, **({"state": "out", "set_to": stored} | values))


def facts(step: str, *members: Member, in_step_s: float = 1.0, plan: ReplacementPlan = PLAN, **more: float) -> Facts:
    """A replacement at a step."""
    return Facts(plan, step, in_step_s, members, **more)


def chosen(found: Decision) -> list[int]:
    """The servers of the new batch."""
    return [key for key, (state, _) in found.outcomes.items() if state == "out"]


def test_as_many_as_may_be_out_at_once_are_drained() -> None:
    found = decide(facts("choose", *map(server, range(5)), plan=replace(PLAN, batch_size=2)))
    assert (found.step, chosen(found), found.states) == ("drain", [0, 1], {0: "drain", 1: "drain"})


def test_one_server_of_the_region_always_stays() -> None:
    found = decide(facts("choose", server(1), server(2), plan=replace(PLAN, batch_size=9)))
    assert chosen(found) == [1]
    alone = decide(facts("choose", server(1), in_step_s=PLAN.health_s + 1))
    assert (chosen(alone), alone.stops) == ([], True)
    assert alone.message == "eu has no other server that is up."


def test_a_backup_does_not_stand_in_for_the_last_server() -> None:
    found = decide(facts("choose", server(1), server(2, serves=False, state=None)))
    assert chosen(found) == []


def test_servers_that_are_down_count_as_out() -> None:
    other = server(9, UP, DOWN, state=None)
    assert chosen(decide(facts("choose", server(1), server(2), server(3), other))) == []
    two = decide(facts("choose", server(1), server(2), server(3), other, plan=replace(PLAN, batch_size=2)))
    assert chosen(two) == [1]


def test_a_server_that_is_down_goes_first() -> None:
    assert chosen(decide(facts("choose", server(1), server(2, DOWN, DOWN), server(3)))) == [2]


def test_regions_go_one_after_another() -> None:
    both = (server(1), server(2), server(3, region="us"), server(4, region="us"))
    found = decide(facts("choose", *both, plan=replace(PLAN, batch_size=9)))
    assert chosen(found) == [1]
    later = (replace(both[0], state="done"), replace(both[1], state="done"), *both[2:])
    assert chosen(decide(facts("choose", *later))) == [3]


def test_one_that_somebody_else_took_out_is_left_alone() -> None:
    found = decide(facts("choose", server(1, DRAINED, stored="drain"), server(2), server(3)))
    assert found.outcomes[1] == ("left", "It was set to drain.")
    assert chosen(found) == [2]


@pytest.mark.parametrize("last", [UP, Seen("unknown"), None], ids=["up", "unknown", "no node at all"])
def test_no_server_is_handed_over_before_every_node_has_taken_it_out(last: Seen | None) -> None:
    seen = (OUT_OF_USE, last) if last else ()
    nobody = Member(1, "eu", "s1", "maintenance", seen, "out", "maintenance")
    assert decide(facts("take_out", nobody, in_step_s=CONFIRM_S - 1)).step is None
    late = decide(facts("take_out", nobody, in_step_s=CONFIRM_S + 1))
    assert (late.step, late.stops) == (None, True)
    assert decide(facts("take_out", out(1, OUT_OF_USE, OUT_OF_USE, stored="maintenance"))).step == "replace"


def test_what_was_seen_before_a_drain_says_nothing_of_it() -> None:
    assert decide(facts("drain", out(1, Seen("up", age_s=2.0)), in_step_s=1.0)).step is None
    assert decide(facts("drain", out(1, Seen("up", age_s=0.5)), in_step_s=1.0)).step == "take_out"


def test_connections_are_waited_for_as_long_as_the_plan_says() -> None:
    busy = out(1, DRAINED, Seen("up", connections=2))
    waits = decide(facts("drain", busy, in_step_s=PLAN.drain_s - 1))
    assert (waits.step, waits.message) == (None, "Waiting for 2 connections of s1.")
    assert decide(facts("drain", busy, in_step_s=PLAN.drain_s)).step == "take_out"
    late = out(1, Seen("maintenance", connections=1), stored="maintenance")
    assert decide(facts("take_out", late, in_step_s=PLAN.drain_s - 1)).step is None
    assert decide(facts("take_out", late, in_step_s=PLAN.drain_s)).step == "replace"


def test_an_owner_who_says_nothing_fails_the_batch_and_stops() -> None:
    found = decide(facts("replace", out(1, OUT_OF_USE, stored="maintenance"), in_step_s=PLAN.replace_s))
    assert (found.outcomes[1][0], found.stops, found.step) == ("failed", True, None)


def test_the_time_to_be_healthy_begins_when_every_node_checks() -> None:
    assert decide(facts("admit", out(1, UP, OUT_OF_USE), in_step_s=CONFIRM_S - 1)).step is None
    assert decide(facts("admit", out(1, UP, OUT_OF_USE), in_step_s=CONFIRM_S)).stops
    assert decide(facts("admit", out(1, UP, DOWN))).step == "check"


def test_a_server_is_well_only_by_a_look_after_its_check_had_time() -> None:
    before, after = (out(1, DRAINED, Seen("up", age_s=age)) for age in (4.0, 0.5))
    assert decide(facts("check", before, in_step_s=5.0, settle_s=3.0)).step is None
    assert decide(facts("check", after, in_step_s=5.0, settle_s=3.0)).step == "return"


def test_a_bad_build_stops_at_the_first_batch_and_never_comes_back() -> None:
    bad = [out(key, DOWN, DOWN) for key in (1, 2)]
    found = decide(facts("check", *bad, server(3), in_step_s=PLAN.health_s + 1))
    assert (found.stops, found.step, dict(found.states)) == (True, None, {})
    assert found.message == "2 servers failed. It was not healthy within 120 s."


def test_within_the_budget_the_others_of_the_batch_come_back() -> None:
    found = decide(facts("check", out(1, DOWN), out(2, DRAINED), in_step_s=130.0, plan=replace(PLAN, max_failures=1)))
    assert (found.step, found.stops, dict(found.states)) == ("return", False, {2: "ready"})


def test_with_slow_start_it_comes_back_from_maintenance() -> None:
    found = decide(facts("check", out(1, DRAINED), slow_start_s=20.0))
    assert (found.step, dict(found.states)) == ("rest", {1: "maintenance"})
    assert decide(facts("rest", out(1, UP, stored="maintenance"))).step is None
    assert decide(facts("rest", out(1, OUT_OF_USE, stored="maintenance"))).states == {1: "ready"}
    warm = out(1, UP, stored="ready")
    assert decide(facts("watch", warm, in_step_s=15.0, slow_start_s=20.0)).step is None
    assert decide(facts("watch", warm, in_step_s=21.0, slow_start_s=20.0)).step == "choose"


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (DOWN, "It went down after it came back."),
        (Seen("up", responses=100, errors=60), "60 % of its responses were 5xx after it came back."),
    ],
)
def test_what_goes_wrong_after_it_came_back_is_drained_again(seen: Seen, why: str) -> None:
    found = decide(facts("watch", out(1, seen, stored="ready"), in_step_s=5.0))
    assert (found.outcomes[1], found.states, found.stops) == (("failed", why), {1: "drain"}, True)


def test_few_errors_or_errors_of_before_are_no_failure() -> None:
    few, old = Seen("up", responses=10, errors=10), Seen("up", responses=100, errors=100, age_s=6.0)
    assert all(not decide(facts("watch", out(1, each, stored="ready"), in_step_s=5.0)).outcomes for each in (few, old))


def test_who_sets_a_server_ready_in_the_middle_stops_it() -> None:
    found = decide(facts("replace", out(1, UP, stored="ready", set_to="maintenance")))
    assert (found.stops, found.message) == (True, "s1 was set to ready by somebody else.")


def test_it_is_over_when_no_server_waits() -> None:
    assert decide(facts("choose", server(1, state="done"), server(2, state="left"))).over

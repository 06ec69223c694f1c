"""Whether a machine is fit for its work follows from what it says of itself."""

from __future__ import annotations

import pytest

from apps.observe.collect.fitness import FitnessFacts, evaluate_clock, evaluate_fitness, unknown_fitness
from apps.observe.evaluate.conditions import Reason, Type


def by_type(facts: FitnessFacts) -> dict[Type, tuple[bool | None, Reason]]:
    return {verdict.type: (verdict.status, verdict.reason) for verdict in evaluate_fitness(facts)}


def test_a_haproxy_that_is_too_old_is_named_with_what_to_do() -> None:
    (verdict, _) = evaluate_fitness(FitnessFacts(1, "2.4.30-0ubuntu0.22.04.1"))
    assert (verdict.status, verdict.reason) == (False, Reason.VERSION_TOO_OLD)
    assert "HAProxy 2.4.30" in verdict.message
    assert "2.6 or later. Install a newer package" in verdict.message


@pytest.mark.parametrize("version", ["2.6.12-1+deb12u4", "3.2.26-1"])
def test_versions_from_the_oldest_on_are_supported(version: str) -> None:
    assert by_type(FitnessFacts(1, version))[Type.SUPPORTED] == (True, Reason.VERSION_SUPPORTED)


def test_what_a_node_does_not_tell_is_not_judged() -> None:
    assert set(by_type(FitnessFacts(1, ""))) == {Type.TAKES_CHANGES}


def test_a_node_that_could_not_take_a_change_says_why() -> None:
    found = evaluate_fitness(FitnessFacts(1, "2.6.12", "Generation 7 was not taken (validate): no space left."))
    assert [each.message for each in found if each.reason is Reason.CHANGES_WAIT] == [
        "Generation 7 was not taken (validate): no space left."
    ]


@pytest.mark.parametrize(
    ("ahead_s", "right", "words"),
    [
        (0.9, True, "agrees"),
        (-0.9, True, "agrees"),
        (1.2, False, "more than 1 s ahead of"),
        (-4.0, False, "4 s behind"),
        (600.0, False, "10 min ahead of"),
    ],
)
def test_a_clock_that_is_off_by_more_than_a_second_is_told_with_the_side(
    ahead_s: float, right: bool, words: str
) -> None:
    verdict = evaluate_clock("node", 1, ahead_s)
    assert verdict.status is right
    assert words in verdict.message


def test_a_node_that_does_not_answer_leaves_all_of_it_unknown() -> None:
    assert {each.status for each in unknown_fitness(1)} == {None}


@pytest.mark.parametrize(
    ("protocols", "status", "reason", "words"),
    [
        ((1, 2), True, Reason.AGENT_CURRENT, "speaks version 2 of the protocol"),
        ((1, 1), True, Reason.AGENT_OLDER, "all its counters again at each reading. Update the agent."),
        ((0, 0), False, Reason.AGENT_TOO_OLD, "so the node gets no changes. Update the agent;"),
        ((3, 4), False, Reason.AGENT_TOO_NEW, "so the node gets no changes. Update the consoles;"),
    ],
)
def test_an_agent_of_another_version_is_named_with_what_it_lacks_and_what_to_do(
    protocols: tuple[int, int], status: bool, reason: Reason, words: str
) -> None:
    found = evaluate_fitness(FitnessFacts(1, "2.6.12", agent=("0.1.0", protocols)))
    (verdict,) = [each for each in found if each.type is Type.AGENT_SUPPORTED]
    assert (verdict.status, verdict.reason) == (status, reason)
    assert words in verdict.message
    assert verdict.message.startswith("Its agent 0.1.0 ")

"""Verdicts follow from facts; what nobody saw is unknown."""

from __future__ import annotations

import pytest

from apps.observe.evaluate.conditions import (
    NodeFacts,
    Reason,
    ServerFacts,
    Type,
    evaluate_errors,
    evaluate_node,
    evaluate_pool,
    evaluate_queue,
    evaluate_server,
    server_word,
)


def server(*statuses: str, region: str = "us", name: str = "web-1", check: str = "") -> ServerFacts:
    return ServerFacts(1, name, region, statuses, check)


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ("UP", "up"),
        ("UP 1/3", "up"),
        ("DOWN", "down"),
        ("DOWN 1/2", "down"),
        ("MAINT", "maintenance"),
        ("MAINT (resolution)", "down"),
        ("DRAIN", "drain"),
        ("no check", "unchecked"),
        ("", "unknown"),
        ("SOMETHING", "unknown"),
    ],
)
def test_the_words_of_haproxy_become_ours(status: str, word: str) -> None:
    assert server_word(status) == word


@pytest.mark.parametrize(
    ("statuses", "status", "reason"),
    [
        ((), None, Reason.NOT_OBSERVED),
        (("UP", "UP"), True, Reason.CHECK_PASSES),
        (("DOWN", "DOWN"), False, Reason.CHECK_FAILS),
        (("UP", "DOWN"), False, Reason.NODES_DISAGREE),
        (("MAINT", "MAINT"), False, Reason.MAINTENANCE),
        (("DRAIN",), False, Reason.DRAINING),
        (("no check",), None, Reason.UNCHECKED),
    ],
)
def test_a_server_is_judged_by_all_nodes_that_see_it(
    statuses: tuple[str, ...], status: bool | None, reason: Reason
) -> None:
    verdict = evaluate_server(server(*statuses))
    assert (verdict.status, verdict.reason) == (status, reason)


def test_a_pool_with_one_server_down_is_degraded_and_says_which_and_why() -> None:
    verdict = evaluate_pool(1, [server("UP"), server("DOWN", name="web-2", check="L4CON refused in 0 ms")])
    assert (verdict.status, verdict.reason) == (False, Reason.SOME_SERVERS_DOWN)
    assert verdict.message == "1 of 2 servers is down: web-2 (L4CON refused)."


def test_a_server_whose_name_leads_nowhere_is_down_and_says_so() -> None:
    verdict = evaluate_server(server("MAINT (resolution)", check="shop.example has no address"))
    assert (verdict.reason, verdict.message) == (
        Reason.CHECK_FAILS, "It cannot be reached: shop.example has no address.",
    )  # fmt: skip


def test_a_pool_without_a_server_that_is_up_is_down() -> None:
    verdict = evaluate_pool(1, [server("DOWN", check="L7STS/503"), server("DOWN")])
    assert verdict.reason is Reason.NO_SERVER_UP
    assert "L7STS/503" in verdict.message


def test_a_pool_without_servers_is_down_and_one_that_nobody_reports_on_is_unknown() -> None:
    empty, unheard = evaluate_pool(1, []), evaluate_pool(1, [server()])
    assert (empty.status, empty.reason) == (False, Reason.NO_SERVERS)
    assert (unheard.status, unheard.reason) == (None, Reason.NOT_OBSERVED)


def test_a_pool_that_lost_one_region_names_it() -> None:
    verdict = evaluate_pool(1, [server("UP"), server("DOWN", region="eu")])
    assert verdict.reason is Reason.REGION_WITHOUT_SERVERS
    assert verdict.message.startswith("No server is up in eu.")


def test_servers_that_people_took_out_are_no_failure() -> None:
    assert evaluate_pool(1, [server("UP"), server("MAINT"), server("DRAIN")]).status is True
    assert evaluate_pool(1, [server("MAINT")]).reason is Reason.NO_SERVER_UP


@pytest.mark.parametrize(
    ("statuses", "status", "reason"),
    [
        (["no check", "no check"], None, Reason.UNCHECKED),
        (["no check", "MAINT"], None, Reason.UNCHECKED),
        (["no check", "DOWN (agent)"], False, Reason.SOME_SERVERS_DOWN),
        (["DOWN (agent)"], False, Reason.NO_SERVER_UP),
    ],
)
def test_a_pool_without_a_health_check_is_neither_healthy_nor_down(
    statuses: list[str], status: bool | None, reason: Reason
) -> None:
    verdict = evaluate_pool(1, [server(each) for each in statuses])
    assert (verdict.status, verdict.reason) == (status, reason)


def test_the_message_does_not_change_with_the_duration_of_a_check() -> None:
    before, after = (evaluate_server(server("DOWN", check=f"L4TOUT in {took} ms")) for took in (2001, 2003))
    assert before == after


def by_type(facts: NodeFacts) -> dict[Type, tuple[bool | None, Reason]]:
    return {verdict.type: (verdict.status, verdict.reason) for verdict in evaluate_node(facts)}


def test_a_node_that_does_not_answer_leaves_the_rest_unknown() -> None:
    found = by_type(NodeFacts(1, False, "No route to host.", 7, True))
    assert found[Type.REACHABLE] == (False, Reason.DOES_NOT_ANSWER)
    assert found[Type.SERVING] == found[Type.DRIFTED] == (None, Reason.NOT_OBSERVED)


def test_a_node_that_nobody_looked_at_is_unknown() -> None:
    assert set(by_type(NodeFacts(1, None)).values()) == {(None, Reason.NOT_OBSERVED)}


def test_a_node_says_whether_it_serves_and_drifted() -> None:
    assert by_type(NodeFacts(1, True, "", 7, True))[Type.SERVING] == (True, Reason.WORKER_ANSWERS)
    assert by_type(NodeFacts(1, True, "", 0, False))[Type.SERVING] == (False, Reason.NOTHING_PUSHED)
    assert by_type(NodeFacts(1, True, "", 7, False))[Type.SERVING] == (False, Reason.NO_WORKER)
    assert by_type(NodeFacts(1, True, "", 7, True, ("a.map",)))[Type.DRIFTED] == (True, Reason.FILES_EDITED)


@pytest.mark.parametrize(
    ("responses", "failed", "high"), [(0, 0, False), (19, 19, False), (100, 4, False), (100, 5, True)]
)
def test_errors_are_high_from_five_per_cent_of_enough_responses(responses: int, failed: int, high: bool) -> None:
    assert evaluate_errors(1, responses, failed).status is high


@pytest.mark.parametrize(
    ("lengths", "grows"),
    [([], False), ([0, 9], False), ([1, 3, 6], True), ([5, 5, 5], False), ([1, 9, 6], False), ([0, 1, 4], False)],
)
def test_a_queue_grows_when_it_only_rises(lengths: list[int], grows: bool) -> None:
    assert evaluate_queue(1, lengths).status is grows

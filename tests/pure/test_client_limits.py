"""Limits per client as numbers, as terms of a map, and what is told of them before they are rendered."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from apps.compiler.bundle import Bundle
from apps.compiler.client_limits import ban_of, clients_of, is_limit, memory_bytes, numbers_of, rates_of
from apps.compiler.compile import Compilation, compile_snapshot
from apps.compiler.model.fleet import Region, RegionNode
from apps.compiler.model.listener_options import ConnectionLimit
from apps.compiler.model.policy import ClientLimit, Rules
from apps.compiler.policies import rule_set
from apps.compiler.targets.haproxy.policies.client_limit import limits_map
from apps.core.errors import FieldError
from apps.definitions.shapes.base.reading import read
from apps.definitions.shapes.base.shape import Shape
from apps.definitions.shapes.traffic import client_limit as shapes
from tests.pure.compiler_fixtures import front, listener, pool, route, snapshot

LIMIT = ClientLimit(requests=100)


def compiled(*limits: ClientLimit, nodes: int = 1) -> Compilation[Bundle]:
    """A load balancer with a route for each limit, in a region of so many nodes."""
    sets = [rule_set(Rules(client_limit=each)) for each in limits]
    routes = [route(number, hostname=f"r{number}.example", rule_set=each.id) for number, each in enumerate(sets, 1)]
    served = replace(front(*routes), rule_sets=tuple({each.id: each for each in sets}.values()))
    reach = tuple(
        RegionNode(f"node-{number}", f"n{number}", "192.0.2.1", 9700, 9800, 9900) for number in range(1, nodes + 1)
    )
    region = {"region_id": "rgn-1", "regions": (Region("rgn-1", "us", reach),), "overflow_key": "5ec2e7" * 8}
    return compile_snapshot(snapshot(served, pools=(pool(1),), **region))


@pytest.mark.parametrize(
    ("said", "long", "short", "again"),
    [
        (ClientLimit(requests=100), 1000, 130, 1),
        (ClientLimit(requests=100, burst=500), 1000, 500, 1),
        (ClientLimit(requests=1, burst=50), 10, 10, 1),
        (ClientLimit(requests=600, per="minute"), 600, 600, 1),
        (ClientLimit(requests=600, per="minute", burst=20), 600, 20, 1),
        (ClientLimit(requests=2, per="minute"), 2, 2, 30),
    ],
)
def test_a_rate_is_two_numbers_and_a_time_to_try_again(said: ClientLimit, long: int, short: int, again: int) -> None:
    found = numbers_of(said)
    assert (found.long, found.short, found.retry_after_s) == (long, short, again)


def test_bytes_and_errors_are_counted_over_the_window_of_their_period() -> None:
    assert rates_of(ClientLimit(bytes_out=5_000, errors=3)) == (50_000, None, 30)
    assert rates_of(ClientLimit(bytes_out=5_000, bytes_in=7_000, errors=3, per="minute")) == (5_000, 7_000, 3)


def test_what_a_request_must_hold_a_counter_for_is_stored_only_where_a_limit_counts_it() -> None:
    def stored(*limits: ClientLimit) -> dict[str, str]:
        config = compiled(*limits, nodes=2).output.files["haproxy.cfg"].decode()
        return dict(re.findall(r"backend st_clients_held_(\w+) from http\n.* store (\S+)\n", config))

    bytes_of_second = "bytes_out_rate(10s),bytes_in_rate(10s)"
    assert stored(LIMIT) == {}
    assert stored(ClientLimit(in_flight=5)) == {"second": "gpt0,conn_cur"}
    assert stored(ClientLimit(bytes_out=5_000), LIMIT) == {"second": bytes_of_second}
    assert stored(ClientLimit(errors=5, per="minute"), LIMIT) == {"minute": "http_err_rate(60s)"}
    assert stored(ClientLimit(bytes_in=5_000, in_flight=5), ClientLimit(bytes_in=5_000, per="minute")) == {
        "second": f"gpt0,conn_cur,{bytes_of_second}",
        "minute": bytes_of_second.replace("10s", "60s"),
    }


@pytest.mark.parametrize("question", ["gpt0", "http_err_rate"])
def test_what_each_node_counted_is_added_up(question: str) -> None:
    config = compiled(ClientLimit(in_flight=5, errors=3), nodes=2).output.files["haproxy.cfg"].decode()
    sums = re.findall(rf"concat\((:0:\d)\),table_{question}\(st_clients_held_second\)(,add\(txn.counted\))? ", config)
    assert sums == [(":0:1", ""), (":0:2", ",add(txn.counted)")]


def test_bytes_of_a_long_answer_are_told_while_it_is_sent_only_where_a_limit_counts_them() -> None:
    for said, told in ((LIMIT, False), (ClientLimit(bytes_out=5_000), True)):
        assert (b"option contstats" in compiled(said).output.files["haproxy.cfg"]) is told


def test_a_limit_without_requests_is_none_and_one_that_logs_bans_nobody() -> None:
    assert not is_limit(None)
    assert not is_limit(ClientLimit(exempt=("192.0.2.0/24",)))
    assert ban_of(LIMIT) is None
    assert ban_of(replace(LIMIT, ban_after=3)) == (60, 600)
    assert ban_of(replace(LIMIT, ban_after=3, log_only=True)) is None


def test_numbers_stand_in_the_map_so_that_a_change_of_them_is_no_reload() -> None:
    one, other = (compiled(replace(LIMIT, requests=number)).output.files for number in (100, 200))
    assert one["haproxy.cfg"] == other["haproxy.cfg"]
    assert one["maps/lb-1-limits.map"] != other["maps/lb-1-limits.map"]


def test_routes_count_together_by_what_the_limit_says() -> None:
    def scopes(counted_for: str | None) -> set[str]:
        wanted = rule_set(Rules(client_limit=replace(LIMIT, counted_for=counted_for)))
        routes = (
            route(1, rule_set=wanted.id),
            route(2, path="/below", rule_set=wanted.id),
            route(3, hostname="b.example", rule_set=wanted.id),
            route(4, hostname="c.example", account="other", rule_set=wanted.id),
        )
        return {
            each.split("|")[1] for each in limits_map(replace(front(*routes), rule_sets=(wanted,)), routes).values()
        }

    assert [len(scopes(each)) for each in (None, "account", "hostname", "route")] == [2, 2, 3, 4]


def test_a_limit_that_may_take_much_memory_is_told_once() -> None:
    much = replace(LIMIT, clients=2_000_000)
    assert memory_bytes(much, 4) == 4 * clients_of(much) * memory_bytes(replace(LIMIT, clients=1), 1)
    assert memory_bytes(replace(much, bytes_out=5_000), 4) == 2 * memory_bytes(much, 4)
    warnings = [each for each in compiled(much, much, LIMIT, nodes=4).warnings if each.code == "limit_memory"]
    assert [each.object_id for each in warnings] == ["route-1"]
    assert "2000000 over 4 nodes may take 1760 MB on each node" in warnings[0].message
    assert not [each for each in compiled(LIMIT, nodes=4).warnings if each.code == "limit_memory"]


def test_bans_of_a_limit_outlast_an_upgrade_that_brings_fields() -> None:
    known = rule_set(Rules(client_limit=LIMIT))
    found = limits_map(replace(front(route(1, rule_set=known.id)), rule_sets=(known,)), [route(1, rule_set=known.id)])
    assert found["route-1"].split("|")[1] == "ac13d85e2f1e", "as it was when limits had no errors"


@pytest.mark.parametrize(
    "wrong",
    [
        {"requests": 0},
        {"per": "hour"},
        {"bytes_out": 999},
        {"bytes_in": 10**9},
        {"errors": 0},
        {"key_name": "X Key"},
        {"key_name": "x),src("},
        {"ipv4_prefix": 33},
        {"exempt": ("everybody",)},
        {"action": "allow"},
        {"ban_for_s": 10**9},
    ],
)
def test_a_limit_out_of_its_grammar_leaves_its_route_out(wrong: dict[str, object]) -> None:
    left_out = compiled(replace(LIMIT, **wrong)).left_out  # type: ignore[arg-type]
    assert [(each.object_id, each.field) for each in left_out] == [("route-1", f"client_limit.{next(iter(wrong))}")]


@pytest.mark.parametrize(
    ("shape", "sent", "pointer", "sentence"),
    [
        (shapes.ConnectionLimitSpec, {"connections": 5, "key": "header"}, "/key", "its client is an address"),
        (shapes.ConnectionLimitSpec, {"connections": 5, "key_name": "X-Api-Key"}, "/key_name", "of a policy."),
        (shapes.ClientLimit, {"requests": 5, "connections": 5}, "/connections", "client_limit of a listener."),
        (shapes.ClientLimit, {"requests": 5, "bytes": 5}, "/bytes", "did you mean"),
    ],
)
def test_what_is_limited_elsewhere_is_said(shape: type[Shape], sent: object, pointer: str, sentence: str) -> None:
    errors: list[FieldError] = []
    read(shape, sent, "", errors)
    assert [(each.pointer, each.code) for each in errors] == [(pointer, "unknown_field")]
    assert sentence in errors[0].detail


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"connections": 0}, "connections"),
        ({"connections": 5, "per": "hour"}, "per"),
        ({"connections": 5, "ipv6_prefix": 8}, "ipv6_prefix"),
        ({"connections": 5, "exempt": ("192.0.2.0/24 }\n",)}, "exempt"),
    ],
)
def test_a_limit_of_connections_out_of_its_grammar_leaves_its_listener_out(wrong: dict[str, Any], field: str) -> None:
    served = front(route(1), listeners=(listener(1, client_limit=ConnectionLimit(**wrong)), listener(2)))
    left_out = compile_snapshot(snapshot(served)).left_out
    assert [(each.object_id, each.field) for each in left_out] == [("lst-1", f"client_limit.{field}")]


def test_connections_are_the_sum_of_what_all_nodes_counted() -> None:
    nodes = tuple(RegionNode(f"node-{number}", f"n{number}", "192.0.2.1", 9700, 9800, 9900) for number in (3, 12_345))
    served = front(route(1), listeners=(listener(1, client_limit=ConnectionLimit(connections=5)),))
    region: dict[str, Any] = {"region_id": "rgn-1", "regions": (Region("rgn-1", "us", nodes),)}
    config = (
        compile_snapshot(snapshot(served, **region, overflow_key="5ec2e7" * 8)).output.files["haproxy.cfg"].decode()
    )
    rates = re.findall(r"concat\((:\d+:\d+)\),table_gpc0_rate\(st_clients_second\)(,add\(sess.counted\))?", config)
    assert rates == [(":0:3", ""), (":1:2345", ",add(sess.counted)")]


def test_a_limit_of_connections_that_may_take_much_memory_is_told() -> None:
    limit = ConnectionLimit(connections=5, clients=2_000_000)
    warnings = compile_snapshot(snapshot(front(route(1), listeners=(listener(1, client_limit=limit),)))).warnings
    assert [(each.object_id, each.code) for each in warnings] == [("lst-1", "limit_memory")]


@pytest.mark.parametrize(
    ("sent", "pointer"),
    [
        ({"requests": 5, "key": "header"}, "/key_name"),
        ({"requests": 5, "key": "cookie"}, "/key_name"),
        ({"requests": 5, "burst": 4}, "/burst"),
        ({"requests": 5, "burst": 4, "per": "minute"}, ""),
        ({"requests": 5, "key": "header", "key_name": "X-Key"}, ""),
    ],
)
def test_fields_fit_together(sent: dict[str, object], pointer: str) -> None:
    errors: list[FieldError] = []
    read(shapes.ClientLimit, sent, "", errors)
    assert [each.pointer for each in errors] == ([pointer] if pointer else [])

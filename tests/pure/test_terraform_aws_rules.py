"""The rules of an ALB choose what our precedence chooses, and one new route moves next to no other."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from apps.compiler.compile import compile_stack
from apps.compiler.grammar import METHODS
from apps.compiler.model.shared import (
    FixedResponse,
    LoadBalancer,
    PathKind,
    Protocol,
    Route,
    ValueCondition,
    ValueMatch,
)
from apps.compiler.questions.trace import Question
from apps.compiler.routing import winning_route
from apps.compiler.targets.terraform.aws.listener_rules.patterns import conditions_of
from apps.compiler.targets.terraform.aws.listener_rules.priorities import Position, allot, position_of
from apps.compiler.targets.terraform.aws.listener_rules.shares import weights_of
from tests.conformance.alb_rules import evaluate, rules_of
from tests.pure.aws_fixtures import certificate, stack
from tests.pure.compiler_fixtures import (
    ASKED_HEADERS,
    ASKED_HOSTS,
    ASKED_METHODS,
    ASKED_PATHS,
    RICH_ASKED_PATHS,
    crowd,
    front,
    fronts,
    listener,
    rich_crowd,
    route,
)
from tests.pure.properties import always

# ALB compares the Host header as it was sent; what a port in it does is said as a loss of the listener.
HOSTS = [host for host in ASKED_HOSTS if ":" not in host]


def _on_port_80(load_balancer: LoadBalancer) -> LoadBalancer:
    return front(*load_balancer.routes, listeners=(listener(1, port=80),))


def _on_usual_ports(load_balancer: LoadBalancer) -> LoadBalancer:
    https = listener(2, port=443, protocol=Protocol.HTTPS, certificate_ids=("crt-1",))
    return front(*load_balancer.routes, listeners=(listener(1, port=80), https))


Rules = dict[str, dict[str, Any]]


def _differences(
    load_balancer: LoadBalancer, change: Callable[[Rules], Rules] = dict, paths: Sequence[str] = ASKED_PATHS
) -> list[Question]:
    """Requests that the rules answer otherwise than our precedence does among the routes that were not refused."""
    compilation = compile_stack(stack(_on_usual_ports(load_balancer), certificates=(certificate(1),)))
    rules = change(compilation.output.as_json()["resources"].get("aws_lb_listener_rule", {}))
    document = replace(compilation.output, resources={**compilation.output.resources, "aws_lb_listener_rule": rules})
    out = {finding.object_id for finding in compilation.left_out}
    kept = front(*(each for each in load_balancer.routes if each.id not in out))
    found = []
    listeners = {Protocol.HTTP: "lst_1", Protocol.HTTPS: "lst_2"}
    for host, path, method, headers, scheme in product(HOSTS, paths, ASKED_METHODS, ASKED_HEADERS, listeners):
        question = Question(host, path, method, scheme, headers, client="127.0.0.1")
        winner = winning_route(kept, host, path, method, headers, scheme, "127.0.0.1")
        outcome = evaluate(document, listeners[scheme], question)
        if (outcome.status, outcome.body if winner else None) != ((200, winner.id) if winner else (404, None)):
            found.append(question)
    return found


@pytest.mark.parametrize("seed", range(2))
def test_the_rules_choose_the_route_that_the_reference_chooses_where_many_crowd(seed: int) -> None:
    assert _differences(crowd(seed)) == []


@pytest.mark.parametrize("seed", range(2))
def test_suffixes_any_host_queries_and_networks_become_rules_that_choose_as_the_reference(seed: int) -> None:
    """Without hostnames for one label: where these are, suffixes over them are refused."""
    drawn = rich_crowd(seed, 90)
    routes = tuple(each for each in drawn.routes if not each.hostname.startswith("*."))
    assert _differences(front(*routes), paths=RICH_ASKED_PATHS) == []


def test_a_suffix_over_a_wildcard_is_refused_because_the_guard_would_take_its_hosts() -> None:
    balancer = front(_answering(1, "*.b.a.example"), _answering(2, "**.a.example"), _answering(3, "**.c.example"))
    compilation = compile_stack(stack(_on_port_80(balancer)))
    assert [(each.object_id, each.code) for each in compilation.left_out] == [("route-2", "suffix_over_wildcard")]


def _rules_choose_as_the_reference(load_balancer: LoadBalancer) -> None:
    assert _differences(load_balancer) == []


@pytest.mark.exhaustive
def test_the_rules_choose_the_route_that_the_reference_chooses() -> None:
    always(_rules_choose_as_the_reference, fronts(), count=100, repeatable=False)


def _upside_down(rules: Rules) -> Rules:
    return {name: {**rule, "priority": 50_001 - rule["priority"]} for name, rule in rules.items()}


def _unguarded(rules: Rules) -> Rules:
    return {name: rule for name, rule in rules.items() if "beyond" not in name}


def test_the_comparison_notices_another_order_and_a_missing_guard() -> None:
    crowded = front(_answering(1, "a.example", "/api"), _answering(2, "a.example"), _answering(3, "*.a.example"))
    assert _differences(crowded) == []
    assert {question.path for question in _differences(crowded, _upside_down)} > {"/api"}
    assert {question.host for question in _differences(crowded, _unguarded)} == {"c.b.a.example", "y.b.a.example"}


def test_a_deeper_name_falls_through_its_own_wildcard_but_never_into_a_shorter_one() -> None:
    """ALB's `*` crosses dots; without the guard the second and third request would reach route-2."""
    deep, shallow = _answering(1, "*.b.a.example", "/only"), _answering(2, "*.a.example")
    document = compile_stack(stack(_on_port_80(front(deep, shallow)))).output
    asked = {
        ("x.b.a.example", "/only"): "route-1",
        ("x.b.a.example", "/other"): None,
        ("y.x.b.a.example", "/only"): None,
        ("x.a.example", "/other"): "route-2",
    }
    for (host, path), wanted in asked.items():
        outcome = evaluate(document, "lst_1", Question(host, path))
        assert (outcome.body if outcome.status == 200 else None) == wanted, host


def _answering(number: int, hostname: str, path: str = "/", **fields: object) -> Route:
    return route(number, hostname, path, fixed_response=FixedResponse(200, body=f"route-{number}"), **fields)


@pytest.mark.parametrize("headers", range(5))
@pytest.mark.parametrize("methods", [(), ("GET",), ("GET", "POST"), ("GET", "POST", "PUT", "PATCH"), tuple(METHODS)])
@pytest.mark.parametrize("path", ["/", "/a"])
def test_a_route_of_many_conditions_becomes_rules_that_aws_takes(
    headers: int, methods: tuple[str, ...], path: str
) -> None:
    conditions = tuple(ValueCondition(f"X-H{number}", ValueMatch.EQUALS, "1") for number in range(headers))
    one = _answering(1, "a.example", path, methods=methods, headers=conditions)
    compilation = compile_stack(stack(_on_port_80(front(one))))
    room = 4 - headers
    fits = room >= (1 if methods else 0) + (1 if path == "/a" else 0)
    assert bool(conditions_of(one)) == fits
    assert [finding.code for finding in compilation.left_out] == ([] if fits else ["too_many_conditions"])
    if not fits:
        return
    rules_of(compilation.output, "lst_1")  # asserts what AWS takes
    sent = {each.name: "1" for each in conditions}
    for method, asked in product(METHODS, ("/a", "/a/b", "/ab")):
        outcome = evaluate(compilation.output, "lst_1", Question("a.example", asked, method, Protocol.HTTP, sent))
        takes = (not methods or method in methods) and (path == "/" or asked != "/ab")
        assert outcome.status == (200 if takes else 404), (method, asked)


def test_a_route_takes_no_more_rules_than_it_needs() -> None:
    assert len(conditions_of(route(1, path="/a", methods=("GET", "POST")))) == 1
    assert len(conditions_of(route(1, path="/a", methods=("GET", "POST", "PUT")))) == 2
    assert len(conditions_of(route(1, path="/", methods=("GET", "POST", "PUT")))) == 1


_WORDS = ("api", "shop", "blog", "img", "user", "cart", "list", "search", "order", "pay")


def _random_routes(count: int, hosts: int) -> list[Route]:
    dice = random.Random(count)
    return [_random_route(dice, number, hosts) for number in range(1, count + 1)]


def _random_route(dice: random.Random, number: int, hosts: int) -> Route:
    segments = (f"{dice.choice(_WORDS)}{dice.randrange(9)}" for _ in range(dice.choice([1, 1, 2, 3])))
    kind = dice.choice([PathKind.EXACT, PathKind.PREFIX, PathKind.PREFIX])
    host = dice.choice([*(f"h{each}.example" for each in range(hosts)), "*.w.example"])
    return route(number, host, "/" + "/".join(segments), path_kind=kind, methods=dice.choice([(), (), ("GET",)]))


def _numbers(routes: list[Route]) -> dict[str, int]:
    placed = sorted((position_of(each), each.id) for each in routes)
    return dict(zip((key for _, key in placed), allot([position for position, _ in placed]), strict=True))


@pytest.mark.parametrize(("count", "hosts"), [(100, 1), (100, 10), (1000, 50)])
def test_a_new_route_moves_next_to_no_other(count: int, hosts: int) -> None:
    """Of new routes, one at a time: measured is that none moves another, and 0.1 for each among 3000."""
    routes = _random_routes(count, hosts)
    before = _numbers(routes)
    dice = random.Random(7)
    moved = 0
    for number in range(5000 // count):
        after = _numbers([*routes, _random_route(dice, 10_000 + number, hosts)])
        moved += sum(after[key] != priority for key, priority in before.items())
    assert moved <= 5


def test_priorities_rise_and_stay_within_what_aws_takes_however_crowded_the_position_is() -> None:
    crowd = [Position((0,), 1, number=number) for number in range(25_000)]
    crowd += [Position((1,), 50_000, number=number) for number in range(25_000)]
    numbers = allot(crowd)
    assert numbers == list(range(1, 50_001))
    with pytest.raises(ValueError, match="50000 priorities"):
        allot([*crowd, Position((2,), 1)])


def test_wildcards_of_any_depth_keep_their_order() -> None:
    """Deeper ones first, even where the bands have become too narrow to tell them apart."""
    routes = [route(number, "*." + "a." * number + "example") for number in range(1, 60)]
    numbers = _numbers(routes)
    assert [numbers[each.id] for each in routes] == sorted(numbers.values(), reverse=True)


def test_weights_are_exact_where_999_parts_suffice_and_near_where_not() -> None:
    assert weights_of([Fraction(1, 5), Fraction(4, 5)]) == [1, 4]
    assert weights_of([Fraction(1)]) == [1]
    large = [Fraction(1, 1000), Fraction(999, 1000)]
    assert weights_of(large) == [1, 999]
    uneven = [Fraction(997, 2000), Fraction(1003, 2000)]
    weights = weights_of(uneven)
    assert max(weights) == 999
    for weight, part in zip(weights, uneven, strict=True):
        assert abs(Fraction(weight, sum(weights)) - part) < Fraction(1, 1000)
    assert weights_of([Fraction(1, 10**6), Fraction(10**6 - 1, 10**6)])[0] == 1

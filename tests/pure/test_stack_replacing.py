"""What a cloud cannot change where it stands is known before, and gets a name of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from apps.compiler.compile import compile_stack
from apps.compiler.model.stack import AddressKind, StackSnapshot
from apps.stacks.review.replacements import FORCING, attributes, follows, made_anew
from apps.stacks.state.revision_store import resources_by_address
from tests.pure.aws_fixtures import NETWORK, address, front, stack
from tests.pure.compiler_fixtures import listener, route
from tests.pure.google_fixtures import everything
from tests.schema_facts import facts_of

ELSEWHERE = replace(NETWORK, vpc="vpc-2", subnets=("subnet-x", "subnet-y"))


def elastic(port: int = 80, **fields: Any) -> StackSnapshot:
    """A load balancer behind Elastic IPs: a passage leads from them to it."""
    own = front(route(1, "a.example"), listeners=(listener(1, port=port, address="ip-1"),))
    return stack(own, addresses=(address(1, AddressKind.ELASTIC),), **fields)


def resources(snapshot: StackSnapshot) -> dict[str, Any]:
    return resources_by_address(compile_stack(snapshot).output.as_json())


def clashes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What is made anew while the old one of the same name still stands."""
    return [
        each
        for each in made_anew(before, after)
        if after[each].get("lifecycle", {}).get("create_before_destroy")
        and after[each].get("name") == before[each].get("name")
    ]


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (stack(front(route(1, "a.example"))), stack(front(route(1, "a.example")), network=ELSEWHERE), "aws_lb"),
        (elastic(), elastic(network=ELSEWHERE), "aws_lb_target_group"),
        (elastic(80), elastic(8080), "aws_lb_target_group"),
        (everything(), replace(everything(), network=replace(everything().network, vpc="other")), "google_compute_n"),
    ],
)
def test_what_is_made_anew_before_the_old_one_goes_never_has_its_name(
    before: StackSnapshot, after: StackSnapshot, kind: str
) -> None:
    old, new = resources(before), resources(after)
    assert [each for each in made_anew(old, new) if each.startswith(kind)]
    assert clashes(old, new) == []


def test_one_name_for_both_would_be_found() -> None:
    """Negative control: the names of before this rule."""
    old, new = resources(elastic()), resources(elastic(network=ELSEWHERE))
    group = next(each for each in new if each.startswith("aws_lb_target_group."))
    new[group] = {**new[group], "name": old[group]["name"]}
    assert clashes(old, new) == [group]


def test_a_group_that_stands_keeps_the_name_that_it_has() -> None:
    old = resources(elastic())
    (group, body), *_ = [(each, old[each]) for each in old if each.startswith("aws_lb_target_group.")]
    named = old | {group: {**body, "name": "sw-stk3-bkd-1-lb-1-http", "lifecycle": {"create_before_destroy": True}}}
    assert made_anew(named, old) == {}
    assert attributes(named[group], old[group]) == attributes(old[group])


def test_what_names_a_thing_that_is_made_anew_goes_with_it_or_follows_it() -> None:
    before = resources(stack(front(route(1, "a.example"))))
    after = before | {"aws_lb.lb_1": before["aws_lb.lb_1"] | {"internal": True}}
    found = made_anew(before, after)
    assert found == {
        "aws_lb.lb_1": "internal",
        "aws_lb_listener.lst_1": "load_balancer_arn",
        "aws_lb_listener_rule.lst_1_route_1": "listener_arn",
    }
    assert follows(after["aws_lb_listener_rule.lst_1_route_1"], found)
    assert not follows(after["aws_security_group.lb_1"], found)


def test_every_type_and_attribute_of_the_table_is_one_of_the_providers() -> None:
    facts = {kind: fact for each in ("aws", "google") for kind, fact in facts_of(each).items()}
    for kind, names in FORCING.items():
        assert names <= set(facts[kind]["attributes"]), kind
    emitted = {each.partition(".")[0] for case in (elastic(), everything()) for each in resources(case)}
    unknown = emitted - set(FORCING)
    assert unknown <= {"google_compute_health_check", "google_compute_ssl_policy"}, unknown

"""No cloud serves a route without the rules that its policy says: each block is refused, and the route left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args, get_type_hints

import pytest

from apps.compiler.compile import compile_stack
from apps.compiler.model.policy import Maintenance, Rules
from apps.compiler.model.shared import LoadBalancer
from apps.compiler.model.stack import StackSnapshot
from apps.compiler.policies import BLOCKS, rule_set
from tests.pure import aws_fixtures, google_fixtures
from tests.pure.compiler_fixtures import listener, route

PATH = "/only-with-its-rules"
CLOUDS: dict[str, Callable[[LoadBalancer], StackSnapshot]] = {
    "aws": aws_fixtures.stack,
    "google": google_fixtures.stack,
}


def _block(name: str) -> Any:
    """Such a block, with nothing in it but that it holds."""
    if name == "maintenance":
        return Maintenance(enabled=True)
    return get_args(get_type_hints(Rules)[name])[0]()


def _compiled(cloud: str, rules: Rules) -> tuple[set[tuple[str, str]], str]:
    """What is left out, as (object, code), and the documents as text."""
    holds = rule_set(rules)
    shop = replace(route(1, path=PATH), rule_set=holds.id)
    front = LoadBalancer("lb-1", "front-1", "acme", (listener(1, port=80),), (shop,), rule_sets=(holds,))
    found = compile_stack(CLOUDS[cloud](front))
    return {(each.object_id, each.code) for each in found.left_out}, repr(found.output)


@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.parametrize("block", BLOCKS)
def test_a_route_whose_rules_a_cloud_cannot_follow_is_not_in_its_document(block: str, cloud: str) -> None:
    left_out, document = _compiled(cloud, Rules(**{block: _block(block)}))
    assert ("route-1", block) in left_out
    assert PATH not in document


@pytest.mark.parametrize("cloud", CLOUDS)
def test_control_the_same_route_without_rules_is_there(cloud: str) -> None:
    left_out, document = _compiled(cloud, Rules(maintenance=Maintenance(enabled=False)))
    assert left_out == set()
    assert PATH in document

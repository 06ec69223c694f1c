"""What an older HAProxy passes over: refused where it is written and no node can, named where it comes later."""

from __future__ import annotations

from typing import Any

import pytest

from apps.compiler.compile import compile_snapshot
from apps.core.errors import Invalid
from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.services import save_object
from apps.observe.models import NodeReport
from tests.apps.pushed import Env, put_env, remembered, route

RULES = {"bandwidth": {"download_bytes_per_s": 100_000}}
# The fields, by the rules that have them, and what is said of an older node.
PASSED_OVER = {
    "bandwidth": (RULES, "Bandwidth is not limited on {}; limits need HAProxy 2.7 or later on each node."),
    "retries/attempts": (
        {"retries": {"attempts": 1}},
        "Retries are counted as the pool says on {}; a route's own number needs HAProxy 3.2 or later.",
    ),
}
each_field = pytest.mark.parametrize("field", PASSED_OVER)
NODES = remembered(Env.reconcile)


@pytest.fixture
def env(db: None) -> Env:
    """A fleet whose two nodes have HAProxy 2.6."""
    return put_env(NODES)


def save(env: Env, kind: str, name: str, **spec: Any) -> None:
    """By the operator."""
    save_object(actor=env.operator, kind=kind, name=name, spec=spec)


def refused_at(env: Env, kind: str, name: str, **spec: Any) -> list[str]:
    """Where the object is refused because of the nodes."""
    with pytest.raises(Invalid) as caught:
        save(env, kind, name, **spec)
    detail = "No node of fleet here has it: n1 (HAProxy 2.6), n2 (HAProxy 2.6)."
    assert all(each.code == "haproxy_version" and detail in each.detail for each in caught.value.field_errors)
    return [each.pointer for each in caught.value.field_errors]


def upgrade(env: Env, *names: str) -> None:
    """These nodes report a later HAProxy."""
    assert NodeReport.objects.filter(node__name__in=names).update(haproxy_version="3.2.26") == len(names)


def warnings(env: Env) -> list[str]:
    """What the fleet's findings say of older nodes; no route is left out."""
    compiled = compile_snapshot(snapshot_of(env.fleet))
    assert compiled.left_out == ()
    return [each.message for each in compiled.warnings if each.code in {"bandwidth", "retries_attempts"}]


@each_field
def test_it_is_refused_where_no_node_can(env: Env, field: str) -> None:
    rules, _ = PASSED_OVER[field]
    assert refused_at(env, "Route", "home", **route("/") | {"rules": rules}) == [f"/spec/rules/{field}"]
    save(env, "Policy", "new", rules=rules)  # nobody follows it yet
    assert refused_at(env, "Route", "home", **route("/") | {"policies": ["new"]}) == ["/spec/policies"]
    default = {"rules": rules, "default_for": {"account": True}}
    assert refused_at(env, "Policy", "new", **default) == [f"/spec/rules/{field}"]
    save(env, "Route", "home", **route("/") | {"rules": {"body": {"max_bytes": 5}}})  # the control


def test_a_field_that_is_new_is_refused_beside_one_of_its_block_that_is_old(env: Env) -> None:
    save(env, "Route", "home", **route("/") | {"rules": {"retries": {"after_sending": False}}})
    both = {"retries": {"after_sending": False, "attempts": 1}}
    assert refused_at(env, "Route", "home", **route("/") | {"rules": both}) == ["/spec/rules/retries/attempts"]


@each_field
def test_it_is_taken_where_some_can_and_the_others_are_named(env: Env, field: str) -> None:
    rules, sentence = PASSED_OVER[field]
    upgrade(env, "n1")
    save(env, "Route", "home", **route("/") | {"rules": rules})
    assert warnings(env) == [sentence.format("n2 (HAProxy 2.6)")]
    upgrade(env, "n2")
    assert warnings(env) == []


@each_field
def test_routes_are_served_and_change_when_a_node_goes_back_to_an_older_haproxy(env: Env, field: str) -> None:
    rules, _ = PASSED_OVER[field]
    upgrade(env, "n1", "n2")
    save(env, "Route", "home", **route("/") | {"rules": rules})
    NodeReport.objects.update(haproxy_version="2.6.12")
    assert len(warnings(env)) == 1
    save(env, "Route", "home", **route("/") | {"rules": rules | {"body": {"max_bytes": 5}}})


def test_where_no_node_has_reported_nothing_is_refused(env: Env) -> None:
    NodeReport.objects.all().delete()
    save(env, "Route", "home", **route("/") | {"rules": RULES})
    assert warnings(env) == []


def test_a_limit_has_a_number(env: Env) -> None:
    upgrade(env, "n1", "n2")
    for said, pointer in (
        ({"per": "request"}, "/per"),
        ({"download_bytes_per_s": 9_999}, "/download_bytes_per_s"),
        ({"upload_bytes_per_s": 1_000_000_001}, "/upload_bytes_per_s"),
        ({"upload_bytes_per_s": 20_000, "per": "second"}, "/per"),
    ):
        with pytest.raises(Invalid) as caught:
            save(env, "Policy", "slow", rules={"bandwidth": said})
        assert [each.pointer for each in caught.value.field_errors] == [f"/spec/rules/bandwidth{pointer}"]

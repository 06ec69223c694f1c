"""Limits of bandwidth where no node can hold them: refused where they are written, named where they come later."""

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
    """What the fleet's findings say of bandwidth; no route is left out."""
    compiled = compile_snapshot(snapshot_of(env.fleet))
    assert compiled.left_out == ()
    return [each.message for each in compiled.warnings if each.code == "bandwidth"]


def test_it_is_refused_where_no_node_can(env: Env) -> None:
    assert refused_at(env, "Route", "home", **route("/") | {"rules": RULES}) == ["/spec/rules/bandwidth"]
    save(env, "Policy", "slow", rules=RULES)  # nobody follows it yet
    assert refused_at(env, "Route", "home", **route("/") | {"policies": ["slow"]}) == ["/spec/policies"]
    default = {"rules": RULES, "default_for": {"account": True}}
    assert refused_at(env, "Policy", "slow", **default) == ["/spec/rules/bandwidth"]
    save(env, "Route", "home", **route("/") | {"rules": {"body": {"max_bytes": 5}}})  # the control


def test_it_is_taken_where_some_can_and_the_others_are_named(env: Env) -> None:
    upgrade(env, "n1")
    save(env, "Route", "home", **route("/") | {"rules": RULES})
    needed = "limits need HAProxy 2.7 or later on each node."
    assert warnings(env) == [f"Bandwidth is not limited on n2 (HAProxy 2.6); {needed}"]
    upgrade(env, "n2")
    assert warnings(env) == []


def test_routes_are_served_when_a_node_goes_back_to_an_older_haproxy(env: Env) -> None:
    upgrade(env, "n1", "n2")
    save(env, "Route", "home", **route("/") | {"rules": RULES})
    NodeReport.objects.update(haproxy_version="2.6.12")
    assert len(warnings(env)) == 1


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

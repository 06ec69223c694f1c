"""A push to clouds after a machine died in mid-apply: what nobody told the state of is taken over, never made twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.core.clock import database_now
from apps.drivers.clouds.contract import Standing
from apps.drivers.infra.contract import Import
from apps.drivers.infra.reading import plan_of
from apps.stacks import selectors, services
from apps.stacks.models import StackRun, StackSync
from apps.stacks.review.differences import IMPORT, TAKEN_OVER
from apps.stacks.run.orphans import compare, known_to
from apps.stacks.state.storage import State
from tests.apps.stacks_runs_env import Env, make_env

pytestmark = pytest.mark.django_db


@pytest.fixture
def env(operator: Actor, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Env]:
    """Nothing stands yet."""
    yield from make_env(operator, settings, monkeypatch, tmp_path)


def begin(env: Env, *names: str) -> None:
    """These are wanted, planned and approved."""
    env.want(*names)
    env.reconcile()
    services.approve(actor=env.actor, run_id=env.run().pk, plan_digest=env.run().plan_digest)


def created(env: Env) -> list[str]:
    return sorted(address.partition(".")[2] for action, address in env.cloud.applied if action == "create")


def test_what_a_machine_made_as_it_died_is_taken_over_and_nobody_is_asked_again(env: Env) -> None:
    begin(env, "a", "b", "c")
    env.lose("b")
    env.reconcile()
    assert (env.run().state, StackRun.objects.count()) == ("done", 1)
    assert (created(env), env.cloud.twice, env.cloud.lost) == (["a", "b", "c"], [], set())
    changes, _ = selectors.plan_of(env.actor, env.run().pk)
    assert {each.label: (each.action, [detail.sentence for detail in each.details]) for each in changes} == {
        "b": (IMPORT, [TAKEN_OVER]),
        "c": ("create", []),
    }


def test_without_asking_the_cloud_it_would_be_made_twice(env: Env) -> None:
    begin(env, "a", "b", "c")
    env.lose("b")
    env.answers.made.clear()
    env.reconcile()
    assert env.cloud.twice == ["terraform_data.b"]


def test_the_cloud_is_asked_after_no_apply_that_ended_well(env: Env) -> None:
    env.bring("a")
    env.bring("a", "b")
    assert (env.run().state, env.answers.asked) == ("done", 0)


def test_it_is_asked_after_an_apply_that_failed(env: Env) -> None:
    env.policy("automatic")
    env.cloud.failing["terraform_data.b"] = "ResourceAlreadyExists: one of that name stands there."
    env.want("a", "b")
    env.reconcile()
    assert (env.run().state, env.answers.asked) == ("failed", 0)
    env.cloud.failing.clear()
    env.cloud.resources["terraform_data.b"] = {"input": "b"}
    env.cloud.lost.add("terraform_data.b")
    env.answers.made.append(Standing("terraform_data", "id-b", "terraform_data.b"))
    StackRun.objects.update(next_try_at=database_now())
    env.reconcile()
    assert (env.run().state, env.answers.asked, env.cloud.twice) == ("done", 1, [])


def test_taking_over_alone_needs_nobody_whatever_the_policy(env: Env) -> None:
    begin(env, "a", "b")
    env.lose("b")
    services.cancel(actor=env.actor, run_id=env.run().pk)
    env.reconcile()
    assert env.run().state == "discarded"
    services.plan_now(actor=env.actor, stack_id=env.stack.pk)
    env.reconcile()
    assert (env.run().state, env.run().approved_by, env.cloud.lost) == ("done", "spillway", set())


def test_taking_over_with_other_changes_waits_as_these_do(env: Env) -> None:
    begin(env, "a", "b")
    env.lose("b")
    env.want("a", "b", "c")
    env.reconcile()
    assert env.run().state == "planned"
    env.approve()
    assert (env.run().state, env.cloud.twice) == ("done", [])


def test_what_is_taken_over_and_differs_is_changed_not_made_again(env: Env) -> None:
    begin(env, "a", "b")
    env.lose("b")
    env.want("a", b="other")
    env.reconcile()
    (change,), _ = selectors.plan_of(env.actor, env.run().pk)
    assert (change.action, change.details[0].sentence, change.details[1].sentence) == (
        "update",
        TAKEN_OVER,
        "input: b → other",
    )
    assert env.run().state == "planned"
    env.approve()
    assert (env.cloud.resources["terraform_data.b"], env.cloud.twice) == ({"input": "other"}, [])


def test_a_cloud_that_does_not_answer_lets_nothing_be_made(env: Env) -> None:
    begin(env, "a", "b")
    env.lose("b")
    env.answers.failure = "AWS did not answer."
    env.reconcile()
    assert env.run().state == "failed"
    assert "AWS did not answer." in env.run().message
    env.answers.failure = ""
    StackRun.objects.update(next_try_at=database_now())
    env.reconcile()
    assert (env.run().state, env.cloud.twice) == ("done", [])


def test_what_nobody_wants_any_more_is_listed_until_it_is_gone(env: Env) -> None:
    begin(env, "a", "b")
    env.lose("b")
    env.want("a")
    env.reconcile()
    told = {"kind": "terraform_data", "id": "id-b", "address": "terraform_data.b", "label": "b"}
    assert StackSync.objects.get().unknown == [told]
    assert (env.run().state, env.cloud.twice) == ("unchanged", [])
    env.answers.made.clear()
    services.plan_now(actor=env.actor, stack_id=env.stack.pk)
    env.reconcile()
    assert StackSync.objects.get().unknown == []
    asked = env.answers.asked
    services.plan_now(actor=env.actor, stack_id=env.stack.pk)
    env.reconcile()
    assert env.answers.asked == asked


def test_a_stack_is_not_destroyed_past_what_its_state_does_not_know(env: Env) -> None:
    begin(env, "a", "b")
    env.lose("b")
    services.cancel(actor=env.actor, run_id=env.run().pk)
    env.reconcile()
    services.destroy(actor=env.actor, stack_id=env.stack.pk, reason="moved away")
    env.reconcile()
    assert env.run().state == "failed"
    assert "The cloud has resources that the state does not know: b. Plan first" in env.run().message
    services.plan_now(actor=env.actor, stack_id=env.stack.pk)
    env.reconcile()
    services.destroy(actor=env.actor, stack_id=env.stack.pk, reason="moved away")
    env.reconcile()
    env.approve()
    assert (env.run().state, env.standing) == ("done", set())


ZONE = {"name": "a.example", "comment": "Kept by Spillway as zone-1 of stk-1"}
RECORD = {"zone_id": "${aws_route53_zone.zone_1.zone_id}", "name": "www.a.example", "type": "A", "ttl": 60}
EGRESS = {"security_group_id": "${aws_security_group.lb_1.id}", "ip_protocol": "-1", "cidr_ipv4": "0.0.0.0/0"}
WANTED: dict[str, dict[str, dict[str, Any]]] = {
    "aws_route53_zone": {"zone_1": ZONE},
    "aws_route53_record": {"rec_1": RECORD},
    "aws_security_group": {"lb_1": {}},
    "aws_vpc_security_group_egress_rule": {"lb_1": EGRESS},
}
OF_RECORD = {"name": "www.a.example", "type": "A"}


def test_what_carries_no_tag_is_known_by_what_it_belongs_to() -> None:
    found = compare(
        [
            Standing("aws_security_group", "sg-1", "aws_security_group.lb_1"),
            Standing("aws_vpc_security_group_egress_rule", "sgr-1", "", "sg-1", {"ip_protocol": "-1"}),
            Standing("aws_route53_zone", "Z1", "", "", ZONE),
            Standing("aws_route53_record", "Z1_www.a.example_A", "", "Z1", OF_RECORD),
            Standing("aws_route53_record", "Z1_by-hand.a.example_A", "", "Z1", OF_RECORD | {"name": "by-hand"}),
            Standing("aws_route53_record", "Z9_www.a.example_A", "", "Z9", OF_RECORD),
            Standing("aws_route53_zone", "Z2", "", "", ZONE | {"comment": "Kept by Spillway as zone-1 of stk-2"}),
        ],
        WANTED,
        {},
        {},
        {},
    )
    assert found.imports == (
        Import("aws_security_group.lb_1", "sg-1"),
        Import("aws_vpc_security_group_egress_rule.lb_1", "sgr-1"),
        Import("aws_route53_zone.zone_1", "Z1"),
        Import("aws_route53_record.rec_1", "Z1_www.a.example_A"),
    )
    assert found.unknown == ()


def test_a_record_is_found_in_a_zone_that_the_state_knows_and_what_it_knows_is_left_alone() -> None:
    standing = [
        Standing("aws_route53_zone", "Z1", "aws_route53_zone.zone_1"),
        Standing("aws_route53_record", "Z1_www.a.example_A", "", "Z1", OF_RECORD),
    ]
    known = {"Z1": "aws_route53_zone.zone_1"}
    assert compare(standing, WANTED, {}, known, {}).imports == (
        Import("aws_route53_record.rec_1", "Z1_www.a.example_A"),
    )
    known["Z1_www.a.example_A"] = "aws_route53_record.rec_1"
    assert compare(standing, WANTED, {}, known, {}).imports == ()


def test_of_two_that_say_the_same_one_is_taken_and_the_other_listed() -> None:
    standing = [Standing("aws_security_group", name, "aws_security_group.lb_1") for name in ("sg-1", "sg-2")]
    found = compare(standing, WANTED, {}, {}, {})
    assert (found.imports, found.unknown) == (
        (Import("aws_security_group.lb_1", "sg-1"),),
        ((standing[1], "aws_security_group.lb_1"),),
    )
    beside = compare(standing[1:], WANTED, {}, {"sg-1": "aws_security_group.lb_1"}, {})
    assert (beside.imports, beside.unknown) == ((), ((standing[1], "aws_security_group.lb_1"),))


def test_a_record_of_the_revision_that_died_is_listed_when_it_is_not_wanted_any_more() -> None:
    standing = [Standing("aws_route53_record", "Z1_www.a.example_A", "", "Z1", OF_RECORD)]
    found = compare(standing, {}, WANTED, {"Z1": "aws_route53_zone.zone_1"}, {})
    assert (found.imports, found.unknown) == ((), ((standing[0], "aws_route53_record.rec_1"),))
    again = compare(standing, {}, {}, {}, {standing[0].id: "aws_route53_record.rec_1"})
    assert again == found


def test_a_state_says_which_ids_it_knows_those_included_that_are_about_to_go() -> None:
    instances: list[dict[str, Any]] = [{"attributes": {"id": "new"}}, {"deposed": "x", "attributes": {"id": "old"}}]
    rows = [
        {"mode": "managed", "type": "aws_eip", "name": "ip_1", "instances": instances},
        {"mode": "data", "type": "aws_vpc", "name": "x", "instances": [{"attributes": {"id": "vpc-1"}}]},
        {"mode": "managed", "type": "aws_lb", "name": "none", "instances": [{"attributes": {}}]},
    ]
    content = State(json.dumps({"resources": rows}).encode(), 1, "one")
    assert known_to(content) == {"new": "aws_eip.ip_1", "old": "aws_eip.ip_1"}
    assert known_to(None) == {}


def test_a_plan_that_only_imports_is_not_empty() -> None:
    def row(**change: Any) -> dict[str, Any]:
        return {"address": "aws_eip.ip_1", "type": "aws_eip", "mode": "managed", "change": change}

    same = {"actions": ["no-op"], "before": {}, "after": {}}
    plan = plan_of({"resource_changes": [row(**same, importing={"id": "eipalloc-1"})]}, b"")
    assert ([each.imported for each in plan.changes], plan.is_empty) == ([True], False)
    assert plan_of({"resource_changes": [row(**same)]}, b"").is_empty

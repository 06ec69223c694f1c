"""What somebody added by hand to what a stack made is told, stays told, and is never deleted."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.core.secrets.sealing import seal
from apps.drivers.clouds.contract import Stranger
from apps.stacks import selectors, services
from apps.stacks.cloud.strangers import sentence
from apps.stacks.models import StackRun, StackSync, StateVersion
from tests.apps.stacks_runs_env import Env, make_env

pytestmark = pytest.mark.django_db
RULE = Stranger("aws_lb_listener_rule", "arn:rule", "id-a", "rule 7 (path-pattern)")
TOLD = "Someone added rule 7 (path-pattern) to a in the cloud: delete it there, or define it here."


@pytest.fixture
def env(operator: Actor, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Env]:
    """One thing stands, and its state says so."""
    for found in make_env(operator, settings, monkeypatch, tmp_path):
        found.bring("a")
        instance = {"attributes": {"id": "id-a"}}
        row = {"mode": "managed", "type": "terraform_data", "name": "a", "instances": [instance]}
        body = json.dumps({"version": 4, "serial": 1, "resources": [row]}).encode()
        StateVersion.objects.create(
            stack=found.stack, number=1, md5="", content=seal(zlib.compress(body)), written_by="Terraform", resources=1
        )
        yield found


def look(env: Env) -> StackRun:
    services.check_drift(actor=env.actor, stack_id=env.stack.pk)
    env.reconcile()
    return StackRun.objects.filter(kind="check").latest("id")


def test_what_was_added_is_told_and_no_run_tries_to_take_it_away(env: Env) -> None:
    env.answers.added.append(RULE)
    run = look(env)
    assert (run.state, run.drifted, run.message) == ("done", 1, TOLD)
    assert env.run() == run, "no repair"
    state = selectors.stack_state(env.actor, env.stack.pk)
    assert (state.status, state.message) == ("drifted", TOLD)


def test_it_stays_told_after_the_repair_of_what_was_changed_beside_it(env: Env) -> None:
    env.answers.added.append(RULE)
    env.policy("automatic")
    env.cloud.resources["terraform_data.a"]["input"] = "by hand"
    run = look(env)
    assert run.message == f"Someone changed a. {TOLD}"
    assert (env.run().kind, env.run().state, run.drifted) == ("change", "done", 2)
    assert selectors.stack_state(env.actor, env.stack.pk).status == "drifted"


def test_once_it_is_deleted_the_next_look_says_so(env: Env) -> None:
    env.answers.added.append(RULE)
    look(env)
    env.answers.added.clear()
    assert (look(env).state, StackSync.objects.get().added_by_hand) == ("unchanged", [])
    assert selectors.stack_state(env.actor, env.stack.pk).status == "in_sync"


def test_a_cloud_that_does_not_answer_leaves_what_was_known_and_the_look_says_so(env: Env) -> None:
    env.answers.added.append(RULE)
    look(env)
    env.answers.failure = "AWS did not answer."
    run = look(env)
    assert (run.state, run.message) == ("unchanged", "It is unknown what was added manually. AWS did not answer.")
    assert [each["id"] for each in StackSync.objects.get().added_by_hand] == ["arn:rule"]


def test_what_is_below_somebody_elses_thing_is_not_told(env: Env) -> None:
    env.answers.added.append(Stranger("aws_lb_listener_rule", "arn:rule", "id-of-others", "rule 7"))
    assert look(env).state == "unchanged"


def test_many_are_cut_and_counted() -> None:
    told = [{"kind": "", "id": str(number), "label": "front", "message": f"rule {number}"} for number in range(5)]
    assert sentence(told).startswith(
        "Someone added rule 0 to front, rule 1 to front, rule 2 to front and 2 more in the cloud:"
    )

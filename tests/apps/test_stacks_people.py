"""Destroying, protected addresses, drift, locks, and who may come in."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.audit.models import Entry
from apps.compiler.compile import CompileError
from apps.compiler.model.shared import Finding
from apps.core.clock import database_now
from apps.core.errors import Conflict, Forbidden, Invalid, NotFound
from apps.core.secrets.sealing import seal
from apps.fleet.models import StaticIP
from apps.fleet.services import request_stack_push
from apps.stacks import selectors, services
from apps.stacks.models import StackRun, StackSync, StateLock, StateVersion
from apps.stacks.run import compiling
from apps.stacks.run.compiling import Compiled
from apps.stacks.state import revision_store
from tests.apps.stacks_env import a_stack, data
from tests.apps.stacks_runs_env import Env, make_env


@pytest.fixture
def env(operator: Actor, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Env]:
    """Nothing stands yet, and changes do not wait for each other."""
    yield from make_env(operator, settings, monkeypatch, tmp_path)


def test_destroying_needs_a_reason_a_person_and_no_protected_address(env: Env) -> None:
    env.bring("a", "b")
    env.policy("automatic")
    with pytest.raises(Invalid):
        services.destroy(actor=env.actor, stack_id=env.stack.pk, reason=" ")
    address = StaticIP.objects.create(
        account=env.actor.account, name="front", kind="elastic", stack=env.stack, protected=True
    )
    with pytest.raises(Conflict, match="front"):
        services.destroy(actor=env.actor, stack_id=env.stack.pk, reason="moving away")
    address.delete()
    services.destroy(actor=env.actor, stack_id=env.stack.pk, reason="moving away")
    env.reconcile()
    assert (env.run().state, env.run().to_delete) == ("planned", 2)
    env.approve()
    assert (env.run().state, env.standing) == ("done", set())
    assert StackSync.objects.get().applied is None
    assert selectors.stack_state(env.actor, env.stack.pk).status == "destroyed"
    assert services.stacks_to_sweep() == []


@pytest.mark.parametrize(
    ("kind", "kept"), [("aws_eip", True), ("google_compute_global_address", True), ("aws_lb", False)]
)
def test_a_plan_that_gives_a_protected_address_back_fails_and_one_that_takes_it_off_does_not(
    env: Env, kind: str, kept: bool
) -> None:
    """What stands before the load balancer only for the address belongs to the address too, and goes when it is off."""
    address = StaticIP.objects.create(
        account=env.actor.account, name="front", kind="elastic", stack=env.stack, protected=True
    )
    env.labels = {f"ip-{address.pk}": "front"}
    env.document = data("a")
    env.document["resources"][kind] = {"ip": {"input": "ip"}}
    env.document["owners"][f"{kind}.ip"] = f"ip-{address.pk}"
    request_stack_push([env.stack])
    env.reconcile()
    env.approve()
    owners = env.document["owners"]
    env.document = data("a")
    env.document["owners"] |= owners
    request_stack_push([env.stack])
    env.reconcile()
    assert env.run().state == ("failed" if kept else "planned")
    assert ("front is protected" in env.run().message) == kept
    assert f"{kind}.ip" in env.standing


def test_an_address_that_is_protected_after_the_plan_was_made_is_not_released(env: Env) -> None:
    address = StaticIP.objects.create(account=env.actor.account, name="front", kind="elastic", stack=env.stack)
    StaticIP.objects.update(protected=False)
    env.labels = {f"ip-{address.pk}": "front"}
    env.document = data("a")
    env.document["resources"]["aws_eip"] = {"ip": {"input": "ip"}}
    env.document["owners"]["aws_eip.ip"] = f"ip-{address.pk}"
    request_stack_push([env.stack])
    env.reconcile()
    env.approve()
    services.destroy(actor=env.actor, stack_id=env.stack.pk, reason="moving away")
    env.reconcile()
    StaticIP.objects.update(protected=True)
    env.approve()
    assert (env.run().state, env.run().message) == (
        "failed",
        "front is protected and would be released to the cloud. To release it, remove the protection first.",
    )
    assert "aws_eip.ip" in env.standing


def test_several_protected_addresses_are_named_together(env: Env) -> None:
    for name in ("front", "back"):
        StaticIP.objects.create(account=env.actor.account, name=name, kind="elastic", stack=env.stack, protected=True)
    with pytest.raises(Conflict, match=r"^back, front are protected and would be released"):
        services.destroy(actor=env.actor, stack_id=env.stack.pk, reason="moving away")


def test_addresses_that_the_cloud_chose_reach_their_static_ips(env: Env) -> None:
    address = StaticIP.objects.create(account=env.actor.account, name="front", kind="elastic", stack=env.stack)
    both = "${[terraform_data.a.two, terraform_data.a.one]}"
    env.document = data("a") | {"outputs": {f"ip_{address.pk}_addresses": both}}
    env.document["resources"]["terraform_data"]["a"] |= {"one": "203.0.113.7", "two": "203.0.113.9"}
    request_stack_push([env.stack])
    env.reconcile()
    env.approve()
    address.refresh_from_db()
    assert (address.address, address.addresses) == ("203.0.113.7", ["203.0.113.7", "203.0.113.9"])


def test_drift_is_found_now_and_then_and_its_repair_waits_for_a_person(env: Env) -> None:
    env.bring(a="10")
    env.cloud.resources["terraform_data.a"]["input"] = "by hand"
    assert services.stacks_to_sweep() == []
    StackSync.objects.update(checked_at=database_now() - timedelta(hours=2))
    assert services.stacks_to_sweep() == [env.stack.pk]
    env.reconcile()
    check, repair = StackRun.objects.order_by("id")[1:]
    assert (check.kind, check.state, check.drifted) == ("check", "done", 1)
    assert (repair.kind, repair.state, repair.reason) == ("change", "planned", "Someone changed a.")
    env.approve()
    assert env.cloud.resources["terraform_data.a"]["input"] == "10"


def test_a_look_for_drift_that_finds_none_changes_nothing(env: Env) -> None:
    env.bring("a")
    services.check_drift(actor=env.actor, stack_id=env.stack.pk)
    env.reconcile()
    assert (env.run().kind, env.run().state) == ("check", "unchanged")
    assert selectors.stack_state(env.actor, env.stack.pk).status == "in_sync"


@pytest.mark.parametrize("end", ["fails", "is cancelled"])
def test_after_an_apply_that_came_to_no_good_end_nothing_is_called_drift(
    env: Env, settings: Settings, end: str
) -> None:
    """Half of the new revision stands: against the old one that looks like somebody's change."""
    env.bring(a="10")
    env.want("b", "c", a="20")
    env.reconcile()
    if end == "fails":
        env.cloud.failing["terraform_data.c"] = "No more of these in your account."
    else:
        settings.STACK_LEASE_S = 0.0001  # the worker looks at every step whether it may go on

        def stop(point: str) -> None:
            StackSync.objects.update(claimed_until=database_now() + timedelta(hours=1))
            if point == "terraform_data.a":
                services.cancel(actor=env.actor, run_id=env.run().pk)

        env.cloud.during = stop
    env.approve()
    env.cloud.during, settings.STACK_LEASE_S = None, 15
    wanted, last = env.run().revision, env.run()
    assert last.state == ("failed" if end == "fails" else "discarded")
    with pytest.raises(Conflict, match="plan it now"):
        services.check_drift(actor=env.actor, stack_id=env.stack.pk)
    StackSync.objects.update(checked_at=database_now() - timedelta(hours=2))
    StackRun.objects.filter(state="failed").update(next_try_at=database_now() + timedelta(hours=1))
    assert services.stacks_to_sweep() == []
    env.reconcile()
    assert env.run() == last, "no check, no repair"
    env.cloud.failing.clear()
    if end == "fails":
        StackRun.objects.filter(pk=last.pk).update(next_try_at=database_now() - timedelta(seconds=1))
        env.reconcile()
    else:
        services.plan_now(actor=env.actor, stack_id=env.stack.pk)
        env.reconcile()
        env.approve()
    assert (env.run().state, env.run().revision) == ("done", wanted)
    assert env.cloud.resources["terraform_data.a"]["input"] == "20"
    services.check_drift(actor=env.actor, stack_id=env.stack.pk)


def test_a_look_that_somebody_took_meanwhile_does_not_end_the_tries(env: Env) -> None:
    env.bring(a="10")
    env.want(a="20")
    env.cloud.failing["terraform_data.a"] = "No."
    env.reconcile()
    env.approve()
    failed = env.run()
    # As an earlier version left it: a look that came to its end, after the failure.
    StackRun.objects.create(
        stack=env.stack,
        revision=failed.revision,
        kind="check",
        state="unchanged",
        actor="spillway",
        finished_at=database_now(),
    )
    env.cloud.failing.clear()
    StackRun.objects.filter(pk=failed.pk).update(next_try_at=database_now() - timedelta(seconds=1))
    assert services.stacks_to_sweep() == [env.stack.pk]
    env.reconcile()
    assert env.cloud.resources["terraform_data.a"]["input"] == "20"


def test_what_cannot_be_compiled_is_said_and_not_tried_again(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(stack_id: int) -> Compiled:
        raise CompileError((Finding("impossible", "lb-1", "front", "Nobody can do this."),))

    monkeypatch.setattr(compiling, "compiled", refuse)
    request_stack_push([env.stack])
    env.reconcile()
    state = selectors.stack_state(env.actor, env.stack.pk)
    assert (state.status, state.message) == ("refused", "Nobody can do this.")
    assert services.stacks_to_sweep() == []


@pytest.mark.both_engines
def test_the_lock_of_a_dead_attempt_is_waited_for_and_then_taken_away(env: Env, settings: Settings) -> None:
    settings.STACK_LOCK_GRACE_S = 3600
    env.want("a")
    env.die_at("plan")
    StateLock.objects.create(stack=env.stack, lock_id="old", info={"Who": "me"}, run=env.run(), held_by="x")
    password = env.run().password_digest
    env.reconcile()
    assert (env.run().state, StateLock.objects.get().lock_id) == ("waiting", "old")
    assert env.run().password_digest == password  # what still works may still write
    StackRun.objects.update(next_try_at=None)
    env.reconcile()
    assert env.run().state == "waiting"
    StackRun.objects.update(next_try_at=None)
    StateLock.objects.update(seen_at=database_now() - timedelta(hours=2))
    env.reconcile()
    assert env.run().state == "planned"
    assert not StateLock.objects.exists()
    entry = Entry.objects.get(action="unlock")
    assert (entry.actor, entry.before["lock"]) == ("spillway", "old")  # type: ignore[index]


def test_an_apply_that_outlives_its_worker_is_waited_for_whatever_is_defined_meanwhile(
    env: Env, settings: Settings
) -> None:
    """Its Terraform may still write the state: without that, what it makes is nobody's."""
    settings.STACK_LOCK_GRACE_S = 3600
    env.want("a", "b")
    env.reconcile()
    services.approve(actor=env.actor, run_id=env.run().pk, plan_digest=env.run().plan_digest)
    env.die_at("terraform_data.a")
    applying = env.run()
    StateLock.objects.create(stack=env.stack, lock_id="alive", run=applying, held_by="x")
    env.want("a", "b", "c")
    env.reconcile()
    assert StateLock.objects.get().lock_id == "alive"
    applying.refresh_from_db()
    assert (applying.finished_at, applying.password_digest != "") == (None, True)
    StateLock.objects.all().delete()  # it came to its end
    StackRun.objects.update(next_try_at=None)
    env.reconcile()
    assert (env.run().state, env.run().revision.number) == ("planned", 2)


def test_an_apply_that_outlives_its_worker_is_waited_for_when_a_person_stops_it(env: Env, settings: Settings) -> None:
    settings.STACK_LOCK_GRACE_S = 3600
    env.want("a", "b")
    env.reconcile()
    services.approve(actor=env.actor, run_id=env.run().pk, plan_digest=env.run().plan_digest)
    env.die_at("terraform_data.a")
    StateLock.objects.create(stack=env.stack, lock_id="alive", run=env.run(), held_by="x")
    env.reconcile()
    assert env.run().state == "waiting"
    services.cancel(actor=env.actor, run_id=env.run().pk)
    env.reconcile()
    assert (env.run().finished_at, StateLock.objects.get().lock_id) == (None, "alive")
    StateLock.objects.all().delete()
    StackRun.objects.update(next_try_at=None)
    env.reconcile()
    assert env.run().state == "discarded"


def test_a_lock_is_taken_away_by_a_person_with_its_id_and_a_reason(env: Env) -> None:
    env.want("a")
    env.reconcile()
    run = env.run()
    StateLock.objects.create(stack=env.stack, lock_id="old", run=run, held_by="x")
    unlock: dict[str, Any] = {"actor": env.actor, "stack_id": env.stack.pk}
    with pytest.raises(Invalid):
        services.force_unlock(**unlock, lock_id="old", reason="")
    with pytest.raises(Conflict):
        services.force_unlock(**unlock, lock_id="other", reason="it is dead")
    services.force_unlock(**unlock, lock_id="old", reason="it is dead")
    assert not StateLock.objects.exists()
    assert StackRun.objects.get().password_digest == ""
    assert Entry.objects.filter(action="unlock", reason="it is dead").exists()


def test_a_run_whose_lock_was_taken_away_while_it_planned_never_has_its_password_again(env: Env) -> None:
    def unlock(point: str) -> None:
        if point == "plan":
            StateLock.objects.create(stack=env.stack, lock_id="own", run=env.run(), held_by="x")
            services.force_unlock(actor=env.actor, stack_id=env.stack.pk, lock_id="own", reason="it hangs")

    env.cloud.during = unlock
    env.want("a")
    env.reconcile()
    assert (env.run().state, env.run().password_digest) == ("planned", "")
    env.approve()
    assert env.run().state == "done", "the next attempt has a password of its own"


def test_only_operators_come_in(env: Env, acme: Actor) -> None:
    env.want("a")
    env.reconcile()
    run = env.run().pk
    for call in (
        lambda: services.approve(actor=acme, run_id=run, plan_digest=""),
        lambda: services.discard(actor=acme, run_id=run),
        lambda: services.cancel(actor=acme, run_id=run),
        lambda: services.retry(actor=acme, run_id=run),
        lambda: services.plan_now(actor=acme, stack_id=env.stack.pk),
        lambda: services.destroy(actor=acme, stack_id=env.stack.pk, reason="x"),
        lambda: services.check_drift(actor=acme, stack_id=env.stack.pk),
        lambda: services.force_unlock(actor=acme, stack_id=env.stack.pk, lock_id="x", reason="x"),
        lambda: services.read_state(actor=acme, stack_id=env.stack.pk, number=1),
    ):
        with pytest.raises(Forbidden):
            call()
    assert selectors.stack_states(acme) == []
    assert not selectors.runs(acme).exists()
    for missing in (lambda: selectors.run(acme, run), lambda: selectors.stack_state(acme, env.stack.pk)):
        with pytest.raises(NotFound):
            missing()


def test_a_state_is_read_without_its_secrets_and_the_record_says_by_whom(env: Env) -> None:
    key = {"attributes": {"arn": "arn:x", "private_key": "hush", "body": "b", "list": [{"a": "hush"}]}}
    key["sensitive_attributes"] = [[{"type": "get_attr", "value": "list"}, {"value": 0}, {"value": "a"}]]  # type: ignore[assignment]
    content = seal(zlib.compress(_body(key)))
    StateVersion.objects.create(stack=env.stack, number=1, serial=3, md5="", content=content, written_by="x")
    found = services.read_state(actor=env.actor, stack_id=env.stack.pk, number=1)
    assert "hush" not in str(found)
    assert found["resources"][0]["instances"][0]["attributes"]["arn"] == "arn:x"
    assert Entry.objects.filter(action="read_state", actor=env.actor.name).exists()
    with pytest.raises(NotFound):
        services.read_state(actor=env.actor, stack_id=env.stack.pk, number=2)


def _body(instance: dict[str, Any]) -> bytes:
    outputs = {"open": {"value": 1}, "closed": {"value": "hush", "sensitive": True}}
    resources = [{"mode": "managed", "type": "x", "name": "y", "instances": [instance]}]
    return json.dumps({"version": 4, "outputs": outputs, "resources": resources}).encode()


def test_the_state_of_all_stacks_costs_the_same_for_many(
    env: Env, operator: Actor, django_assert_num_queries: Any
) -> None:
    env.bring("a")
    with django_assert_num_queries(5):
        assert [each.status for each in selectors.stack_states(operator)] == ["in_sync"]
    for number in range(5):
        a_stack(operator, f"more-{number}")
    with django_assert_num_queries(5):
        assert len(selectors.stack_states(operator)) == 6


def test_the_state_of_one_stack_is_read_without_the_others(
    env: Env, operator: Actor, django_assert_num_queries: Any
) -> None:
    env.bring("a")
    other = a_stack(operator, "other")
    with django_assert_num_queries(5) as asked:
        assert selectors.stack_state(operator, env.stack.pk).status == "in_sync"
    assert f'"id" IN ({env.stack.pk})' in asked[0]["sql"]
    assert [each.stack for each in selectors.stack_states(operator, among=(other.pk,))] == [other]


def test_revisions_are_sealed(env: Env) -> None:
    env.want(a="hush-hush")
    env.reconcile()
    run = env.run()
    stored = bytes(run.revision.document) + bytes(run.plan) + bytes(run.plan_file)
    assert b"hush" not in stored
    assert "hush-hush" in str(revision_store.open_revision(run.revision).document)

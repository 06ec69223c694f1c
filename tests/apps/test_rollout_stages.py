"""A fleet of a later stage gets a change when those of earlier stages have served traffic with it."""

from __future__ import annotations

from typing import Any

import pytest

from apps.accounts.models import Account
from apps.definitions.models import Pool
from apps.definitions.services import save_object
from apps.drivers.proxy.contract import Refused
from apps.fleet.models import Fleet
from apps.fleet.services import request_push
from apps.observe.models import NodeReport, Sample
from apps.rollouts import selectors, services
from apps.rollouts.models import FleetSync, Quarantine, Rollout
from apps.rollouts.push import reconciling
from apps.rollouts.waiting_for import missing
from apps.rollouts.waves import proving
from tests.apps.pushed import Env, add_route, begin_now, put_env, remembered
from tests.apps.watched import SOAK_SECONDS, serve, soaked
from tests.conftest import actor_of

NO = Refused("no", stage="switch")


def set_stage(env: Env, fleet: str, stage: int) -> None:
    settings: dict[str, Any] = {"stage": stage, "soak_seconds": SOAK_SECONDS}
    save_object(actor=env.operator, kind="Fleet", name=fleet, spec={"region": fleet, "rollout_settings": settings})


def with_a_second_stage(env: Env) -> None:
    """Two nodes here, in stage 1, and two there, in stage 2; all run the first revision."""
    region = {"title": "There", "latitude": None, "longitude": None}
    save_object(actor=env.operator, kind="Region", name="there", spec=region)
    set_stage(env, "here", 1)
    set_stage(env, "there", 2)
    for name in ("m1", "m2"):
        url = f"memory://{env.memory[0].name}-{name}"
        save_object(actor=env.operator, kind="Node", name=name, spec={"fleet": "there", "url": url})
    listener = {"name": "http", "protocol": "http", "port": 8080}
    spec = {"fleets": ["here", "there"], "listeners": [listener]}
    save_object(actor=env.operator, kind="LoadBalancer", name="front", spec=spec)
    add_route(env.operator, "green", "/green", "green")
    work("here")
    work("there")


STAGES = remembered(with_a_second_stage)


@pytest.fixture
def env(db: None) -> Env:
    """Both fleets before a change."""
    return put_env(STAGES)


@pytest.fixture
def changed(db: None) -> Env:
    """Both after a change that the first has taken a moment ago and the second awaits."""
    env = put_env(CHANGED)
    begin_now(latest("here"))
    begin_now(latest("there"))
    return env


def work(fleet: str) -> None:
    """What a worker does when it is woken."""
    assert services.reconcile_fleet(fleet_id=Fleet.objects.get(name=fleet).pk)


def latest(fleet: str) -> Rollout:
    return Rollout.objects.filter(fleet__name=fleet).latest("id")


def standing(fleet: str) -> tuple[str, int, str]:
    """State, wave and message of the newest rollout."""
    row = latest(fleet)
    return row.state, row.wave, row.message


def change(env: Env, pool: str = "blue", balance: str = "roundrobin") -> None:
    """A change that needs a reload; the worker of the later stage is the first to see it."""
    env.change_pool(pool, balance)
    work("there")
    work("here")


CHANGED = remembered(change, STAGES)


def soak(*, failed: int = 0, pool: str = "blue") -> None:
    """The nodes here have served traffic for their soak time."""
    since = soaked(latest("here"))
    Sample.objects.all().delete()
    serve(since, "n1", "n2", failed=failed, pool=pool)
    serve(since, "m1", "m2", pool=pool)
    work("here")


def runs(env: Env, node: str, pool: str = "blue", balance: str = "roundrobin") -> bool:
    """Whether the configuration of the node balances the pool so."""
    text = env.node(node).files["haproxy.cfg"].decode()
    _, _, section = text.partition(f"\nbackend pool-{Pool.objects.get(name=pool).pk} ")
    return f"balance {balance}\n" in section.partition("\nbackend ")[0]


def test_the_second_stage_waits_for_the_soak_time_of_the_first(env: Env) -> None:
    change(env)
    work("there")
    assert standing("here")[:2] == ("soaking", 1)
    assert standing("there") == ("pushing", 0, "Fleet here of an earlier stage has not proven it yet.")
    assert (runs(env, "n1"), runs(env, "n2"), runs(env, "m1"), runs(env, "m2")) == (True, True, False, False)
    soak()
    assert standing("here")[:2] == ("done", 2)
    work("there")
    assert standing("there") == ("done", 1, "")
    assert runs(env, "m1")
    assert runs(env, "m2")


def test_changes_without_a_reload_wait_for_no_stage(env: Env) -> None:
    add_route(env.operator, "news", "/news")
    work("there")
    assert standing("there") == ("done", 1, "")


@pytest.mark.slow(reason="four rollouts of two fleets, one after the other")
def test_what_the_first_stage_took_back_never_reaches_the_second(changed: Env) -> None:
    changed.change_pool("green", "roundrobin")  # somebody else's, while the first soaks
    soak(failed=20)
    assert Quarantine.objects.get().label.endswith("/blue")
    work("there")
    assert latest("there").previous is not None
    assert "took it back" in str(Rollout.objects.filter(fleet__name="there").order_by("-id")[1].message)
    soak(pool="green")
    work("there")
    assert standing("here")[0] == standing("there")[0] == "done"
    assert (runs(changed, "m1", "blue"), runs(changed, "m1", "green")) == (False, True)


def test_what_is_quarantined_before_the_second_stage_reads_it_is_left_out_there(env: Env) -> None:
    env.change_pool("blue", "roundrobin")
    work("here")
    soak(failed=20)
    work("here")
    work("there")
    assert not runs(env, "m1")
    fleet = Fleet.objects.get(name="there")
    assert not Quarantine.objects.filter(fleet=fleet)
    assert [each["label"] for each in FleetSync.objects.get(fleet=fleet).left_out] == [Quarantine.objects.get().label]
    env.change_pool("blue", "random")
    work("there")
    assert not runs(env, "m1", "blue", "random")
    work("here")
    work("there")
    assert standing("there")[:2] == ("pushing", 0)
    assert not FleetSync.objects.get(fleet=fleet).left_out


def test_a_fleet_that_never_got_a_change_is_where_it_should_be(changed: Env) -> None:
    soak(failed=20)
    work("there")
    fleet = Fleet.objects.get(name="there")
    assert latest("there").state == "superseded"
    assert selectors.is_live(fleet.pk, fleet.desired_generation)
    assert selectors.sync_statuses(changed.operator)[fleet.pk] == "in_sync"


def test_an_object_that_is_tried_again_is_tried_in_all_stages(env: Env) -> None:
    env.change_pool("blue", "roundrobin")
    work("here")
    soak(failed=20)
    work("there")
    services.try_again(actor=env.operator, quarantine_id=Quarantine.objects.get().pk)
    work("here")
    work("there")
    assert standing("there")[:2] == ("pushing", 0)


def test_what_goes_back_without_a_culprit_is_rejected_until_something_else_is_proven(changed: Env) -> None:
    fleet = Fleet.objects.get(name="here")
    rollout = latest("here")
    services.roll_back(actor=changed.operator, revision_id=rollout.previous_id or 0, reason="slow")
    work("here")
    work("there")
    assert standing("there")[0] == "failed"
    assert "Fleet here of an earlier stage does not run these changes." in standing("there")[2]
    assert not runs(changed, "m1")
    services.resume(actor=changed.operator, fleet_id=fleet.pk, reason="not it")
    work("here")
    soak()
    work("there")
    work("there")
    assert standing("there")[0] == "done"
    assert runs(changed, "m1")


def test_a_change_that_came_later_is_awaited_as_well(env: Env) -> None:
    """The first stage soaks an earlier change when the second reads a later one: both have to be proven."""
    env.change_pool("blue", "roundrobin")
    work("here")
    env.change_pool("green", "roundrobin")
    work("there")
    soak()
    work("there")
    assert standing("there")[:2] == ("pushing", 0)
    work("here")
    soak(pool="green")
    work("there")
    assert standing("there")[0] == "done"


def test_a_change_of_the_second_stage_alone_does_not_wait(env: Env) -> None:
    spec = {"region": "there", "rollout_settings": {"stage": 2}, "node_settings": {"max_connections": 5000}}
    save_object(actor=env.operator, kind="Fleet", name="there", spec=spec)
    work("there")
    assert standing("there")[:2] == ("done", 1)


def test_a_first_stage_without_a_node_that_answers_is_not_waited_for(env: Env) -> None:
    for name in ("n1", "n2"):
        env.node(name).unreachable = True
    NodeReport.objects.filter(node__fleet__name="here").update(last_contact_error="no route to host")
    change(env)
    work("there")
    assert standing("there")[0] == "done"


def test_an_operator_pushes_to_all_nodes_without_waiting_for_a_stage(changed: Env) -> None:
    services.push_to_all(actor=changed.operator, rollout_id=latest("there").pk, reason="urgent")
    work("there")
    assert standing("there")[0] == "done"


def test_a_fleet_that_moves_to_the_first_stage_waits_no_longer(changed: Env) -> None:
    set_stage(changed, "there", 1)
    work("there")
    assert Rollout.objects.filter(fleet__name="there", state="done").count() > 1


def test_the_change_says_that_it_waits_for_another_fleet(changed: Env) -> None:
    said = [each.message for each in missing(changed.operator, [Fleet.objects.get(name="there").pk])]
    assert said == ["The change reaches fleet there when fleets of earlier stages have proven it."]


def test_a_repair_here_holds_up_nobody_there(env: Env) -> None:
    env.node("n1").files["haproxy.cfg"] += b"# by hand\n"
    work("here")
    assert latest("here").kind == "repair"
    sync = FleetSync.objects.get(fleet__name="here")
    assert sync.proven_generation == Fleet.objects.get(name="here").desired_generation


def test_fleets_of_other_accounts_are_not_waited_for(env: Env) -> None:
    other = actor_of("other", Account.Kind.OPERATOR)
    Fleet.objects.filter(name="here").update(account=other.account)
    change(env)
    assert standing("there")[:2] == ("done", 1)


@pytest.mark.exhaustive
def test_control_without_the_order_both_have_it_at_once(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proving, "of_earlier_stages", lambda _fleet: [])
    change(env)
    assert standing("there")[0] == "done"


def test_nodes_of_the_second_stage_are_compared_with(changed: Env) -> None:
    """A pool that is as bad where the change is not is no reason to take it back."""
    since = soaked(latest("here"))
    serve(since, "n1", "n2", "m1", "m2", failed=20)
    work("here")
    assert standing("here")[0] == "done"


def test_a_fleet_that_settles_for_what_it_runs_is_not_waited_for_in_vain(
    env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first stage rejected a change without a culprit; the next one differs for the second stage alone."""
    monkeypatch.setattr(reconciling, "find_culprits", lambda *_: None)
    env.memory[0].refusal_for = lambda bundle: NO if b"balance roundrobin" in bundle.files["haproxy.cfg"] else None
    change(env)
    work("there")
    request_push(Fleet.objects.all())
    work("there")
    assert standing("there")[:2] == ("pushing", 0)
    work("here")
    work("there")
    assert standing("there")[0] == "failed"
    assert "Fleet here of an earlier stage does not run these changes." in standing("there")[2]


def test_a_mistake_that_was_put_right_before_the_first_stage_ran_it_never_reaches_the_second(env: Env) -> None:
    settings: dict[str, Any] = {"stage": 2, "soak_seconds": SOAK_SECONDS, "waves": [50]}
    save_object(actor=env.operator, kind="Fleet", name="there", spec={"region": "there", "rollout_settings": settings})
    settings = {"stage": 1, "soak_seconds": SOAK_SECONDS}
    spec = {"region": "here", "rollout_settings": settings, "node_settings": {"max_connections": 5000}}
    save_object(actor=env.operator, kind="Fleet", name="here", spec=spec)
    work("here")
    env.change_pool("blue", "roundrobin")
    work("there")
    env.change_pool("blue", "leastconn")
    env.change_pool("green", "random")
    soak()
    soak(pool="green")
    work("there")
    assert not runs(env, "m1", "blue", "roundrobin")
    assert runs(env, "m1", "green", "random")

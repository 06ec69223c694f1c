"""A change in waves: a few nodes first, more while those do as well, and back with all of them when they do worse."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.accounts.models import Account
from apps.audit.models import Entry
from apps.core.clock import now
from apps.core.errors import Conflict, Forbidden, Invalid
from apps.definitions.models import Pool
from apps.definitions.services import save_object
from apps.drivers.proxy.contract import Refused
from apps.fleet.models import Fleet, Node
from apps.observe.collect.buckets import SHORT, start_of
from apps.observe.models import Sample
from apps.rollouts import selectors, services
from apps.rollouts.models import FleetSync, Quarantine, Rollout, Step
from apps.rollouts.push import compiling
from apps.rollouts.waiting_for import missing
from apps.rollouts.waves import counting
from tests.apps.pushed import Env, add_route, begin_now, pool_spec, put_env, remembered
from tests.apps.watched import SOAK_SECONDS, counts, serve, soaked
from tests.conftest import actor_of

SETTINGS: dict[str, Any] = {"waves": [1, 50], "soak_seconds": SOAK_SECONDS}
NAMES = ("n1", "n2", "n3", "n4")


def with_waves(env: Env) -> None:
    """Four nodes, all of which run the first revision, in waves of one, one and two."""
    env.add_node("n3")
    env.add_node("n4")
    env.reconcile()
    save_object(actor=env.operator, kind="Fleet", name="here", spec={"region": "here", "rollout_settings": SETTINGS})
    env.reconcile()


WAVES = remembered(with_waves)


@pytest.fixture
def env(db: None) -> Env:
    """The fleet before a change."""
    return put_env(WAVES)


@pytest.fixture
def changed(db: None) -> Env:
    """The fleet whose first node took a change a moment ago."""
    env = put_env(CHANGED)
    begin_now(latest())
    return env


def latest() -> Rollout:
    return Rollout.objects.latest("id")


def latest_here(env: Env) -> Rollout:
    return Rollout.objects.filter(fleet=env.fleet).latest("id")


def updated(env: Env) -> list[str]:
    """Names of the nodes that run the wanted revision."""
    wanted = FleetSync.objects.get(fleet=env.fleet).wanted
    assert wanted is not None
    return [name for name in NAMES if env.node(name).digest == wanted.digest]


def states() -> dict[str, str]:
    return {step.node.name: step.state for step in latest().steps.select_related("node")}


def change(env: Env, balance: str = "roundrobin", pool: str = "blue") -> None:
    """A change that needs a reload is on its way."""
    env.change_pool(pool, balance)
    env.reconcile()


CHANGED = remembered(change, WAVES)


def pass_wave(env: Env) -> None:
    """The nodes of the wave do well until it has soaked."""
    current = latest().steps.filter(wave=latest().wave)
    serve(soaked(latest()), *current.values_list("node__name", flat=True))
    env.reconcile()


def test_a_change_reaches_one_node_then_more_then_all(env: Env) -> None:
    change(env)
    assert (updated(env), latest().state, latest().wave, latest().waves) == (["n1"], "soaking", 1, 3)
    pass_wave(env)
    assert (updated(env), latest().state, latest().wave) == (["n1", "n2"], "soaking", 2)
    pass_wave(env)
    assert (updated(env), latest().state) == (list(NAMES), "done")
    assert FleetSync.objects.get(fleet=env.fleet).last_good_id == latest().revision_id
    assert [(gate["wave"], gate["passed"]) for gate in latest().gates] == [(1, True), (2, True)]
    assert latest().gates[0]["message"] == "1 node served 100 requests; 0.0 % of the responses were 5xx."


def test_the_next_wave_waits_until_the_first_has_soaked(changed: Env) -> None:
    serve(soaked(latest(), seconds=40), "n1")
    changed.reconcile()
    assert (updated(changed), latest().state, latest().wave) == (["n1"], "soaking", 1)


def test_nothing_is_decided_before_the_end_of_the_soak_time_is_counted(changed: Env) -> None:
    serve(soaked(latest(), seconds=60), "n1")
    changed.reconcile()
    assert (latest().state, latest().wave, latest().message) == ("soaking", 1, "")


def test_runtime_changes_reach_all_nodes_at_once_unless_the_fleet_says_otherwise(env: Env) -> None:
    add_route(env.operator, "news", "/news")
    env.reconcile()
    assert (latest().state, latest().waves) == ("done", 1)
    settings = SETTINGS | {"runtime_changes": True}
    save_object(actor=env.operator, kind="Fleet", name="here", spec={"region": "here", "rollout_settings": settings})
    add_route(env.operator, "more", "/more")
    env.reconcile()
    assert (latest().state, latest().waves, updated(env)) == ("soaking", 3, ["n1"])


def test_later_changes_wait_until_the_last_wave_and_go_out_together(changed: Env) -> None:
    first = latest()
    changed.change_pool("green", "roundrobin")
    add_route(changed.operator, "news", "/news")
    changed.reconcile()
    assert (latest().pk, updated(changed)) == (first.pk, ["n1"])
    assert not compiling.must_compile(changed.fleet.pk)
    (why,) = missing(changed.operator, [changed.fleet.pk])
    told = "The change waits until an earlier one runs on all nodes of fleet here (wave 1 of 3). "
    told += "Servers and network lists do not wait."
    assert (why.reason, why.message) == ("pending", told)
    pass_wave(changed)
    pass_wave(changed)
    first.refresh_from_db()
    assert (first.state, latest().waves, updated(changed)) == ("done", 3, ["n1"])
    assert latest().revision.number == first.revision.number + 1


def drain_server(env: Env, **more: Any) -> None:
    """One server of the other pool goes into maintenance, which needs no reload."""
    spec = pool_spec() | more
    spec["backends"][0]["servers"][0]["state"] = "maintenance"
    save_object(actor=env.operator, kind="Pool", name="green", spec=spec)


def without_server(env: Env) -> list[str]:
    """Names of the nodes on which the server is in maintenance."""
    return [name for name in NAMES if b" disabled" in env.node(name).files["haproxy.cfg"]]


def test_servers_do_not_wait_for_waves(changed: Env) -> None:
    since = soaked(latest(), seconds=20)
    reloads = {name: changed.node(name).reloads for name in NAMES}
    drain_server(changed)
    changed.reconcile()
    assert (without_server(changed), updated(changed)) == (list(NAMES), ["n1"])
    assert {name: changed.node(name).reloads for name in NAMES} == reloads
    assert (latest().state, latest().wave, latest().soaking_since) == ("soaking", 1, since)
    changed.reconcile()
    assert latest().revision.number == 4  # the other nodes run revision 3
    pass_wave(changed)
    pass_wave(changed)
    assert (without_server(changed), updated(changed), latest().state) == (list(NAMES), list(NAMES), "done")
    assert FleetSync.objects.get(fleet=changed.fleet).compiled_generation == changed.desired()


def test_who_changed_what_waits_is_named_although_servers_went_ahead(changed: Env) -> None:
    add_route(replace(changed.operator, name="alice"), "news", "/news")
    drain_server(changed)
    changed.reconcile()
    pass_wave(changed)
    pass_wave(changed)
    assert latest().actor == f"{changed.operator.name}, alice"


def test_what_came_meanwhile_stays_when_the_change_is_taken_back(changed: Env) -> None:
    drain_server(changed)
    changed.reconcile()
    since = soaked(latest(), seconds=20)
    serve(since, "n1", failed=40)
    serve(since, "n3")
    changed.reconcile()
    assert Rollout.objects.get(gates__0__passed=False).state == "rolled_back"
    assert without_server(changed) == list(NAMES)
    assert not any(b"balance roundrobin" in changed.node(name).files["haproxy.cfg"] for name in NAMES)


def test_a_node_that_joins_runs_what_those_of_later_waves_run(changed: Env) -> None:
    before = dict(changed.node("n4").files)
    changed.add_node("n5")
    changed.reconcile()
    changed.reconcile()
    assert changed.node("n5").files["haproxy.cfg"] == before["haproxy.cfg"]
    rollout = latest()
    assert rollout.steps.get(node__name="n5").wave == rollout.waves
    pass_wave(changed)
    pass_wave(changed)
    assert set(rollout.steps.values_list("state", flat=True)) == {"done"}


def test_a_node_that_moves_to_another_fleet_runs_what_that_one_says(env: Env) -> None:
    front = {"fleets": ["there"], "listeners": [{"name": "http", "protocol": "http", "port": 8080}]}
    save_object(actor=env.operator, kind="Fleet", name="there", spec={"region": "here"})
    save_object(actor=env.operator, kind="LoadBalancer", name="second", spec=front)
    env.reconcile()
    change(env)
    node = Node.objects.get(name="n4")
    save_object(actor=env.operator, kind="Node", name="n4", spec={"fleet": "there", "url": node.url})
    services.reconcile_fleet(fleet_id=Fleet.objects.get(name="there").pk)
    digest = env.node("n4").digest
    services.push_to_all(actor=env.operator, rollout_id=latest_here(env).pk, reason="urgent")
    env.reconcile()
    assert latest_here(env).steps.count() == 3
    assert env.node("n4").digest == digest


def test_a_node_that_waits_for_its_wave_is_restored_when_somebody_edits_it(changed: Env) -> None:
    before = dict(changed.node("n4").files)
    for _ in range(2):
        changed.node("n4").files["haproxy.cfg"] += b"# by hand\n"
        changed.reconcile()
        assert changed.node("n4").files == before
    assert (updated(changed), latest().state, latest().wave) == (["n1"], "soaking", 1)


def test_what_needs_a_reload_waits_although_servers_do_not(changed: Env) -> None:
    changed.change_pool("green", "roundrobin")
    changed.reconcile()
    assert latest().revision.number == 2
    drain_server(changed, balance="roundrobin")
    changed.reconcile()
    assert without_server(changed) == list(NAMES)
    assert sum(b"balance roundrobin" in changed.node(name).files["haproxy.cfg"] for name in NAMES) == 1


def test_worse_responses_take_the_change_back_from_the_nodes_that_had_it(changed: Env) -> None:
    old = latest().previous
    since = soaked(latest(), seconds=20)
    serve(since, "n1", failed=40)
    serve(since, "n3", "n4", failed=1)
    changed.reconcile()
    failed = Rollout.objects.get(gates__0__passed=False)
    assert (failed.state, {node.digest for node in map(changed.node, NAMES)}) == (
        "rolled_back",
        {old.digest if old else ""},
    )
    told = "Pool operator/blue: 40.0 % of its 100 responses are 5xx (1.0 % on the other nodes)."
    assert failed.message.startswith(told)
    assert {step.node.name: step.state for step in failed.steps.select_related("node")} == {
        "n1": "rolled_back", "n2": "waiting", "n3": "waiting", "n4": "waiting",
    }  # fmt: skip


def test_only_what_changed_of_the_pool_that_suffers_is_quarantined(env: Env) -> None:
    env.change_pool("green", "roundrobin")
    change(env)
    since = soaked(latest(), seconds=20)
    serve(since, "n1", failed=40)
    serve(since, "n1", pool="green")
    serve(since, "n3")
    env.reconcile()
    assert [row.label for row in Quarantine.objects.all()] == ["operator/blue"]
    assert "After this change: 40.0 % of its 100 responses are 5xx" in Quarantine.objects.get().message
    assert (latest().state, latest().wave) == ("soaking", 1)
    Sample.objects.all().delete()
    pass_wave(env)
    pass_wave(env)
    text = env.node("n4").files["haproxy.cfg"].decode()
    assert text.count("balance roundrobin") == 1


def test_what_is_as_bad_without_the_change_is_not_held_against_it(changed: Env) -> None:
    since = soaked(latest())
    serve(since, "n1", failed=40)
    serve(since, "n3", "n4", failed=42)
    changed.reconcile()
    assert (latest().state, latest().wave) == ("soaking", 2)


def test_what_was_as_bad_before_is_not_held_against_it(changed: Env) -> None:
    since = soaked(latest())
    serve(since - timedelta(seconds=30), "n1", failed=41)
    serve(since, "n1", failed=40)
    changed.reconcile()
    assert (latest().state, latest().wave) == ("soaking", 2)


def test_requests_that_a_node_rejects_before_any_server_count_as_failed(changed: Env) -> None:
    since = soaked(latest(), seconds=20)
    serve(since, "n1")
    serve(since, "n3")
    pool = f"pool-{Pool.objects.get(name='blue').pk}"
    counts("n1", since, kind="flow", thing=f"{pool}/refuse/rgn-1/full", parent_id=pool, requests=50)
    changed.reconcile()
    failed = Rollout.objects.get(gates__0__passed=False)
    assert "33.3 % of its 150 responses are 5xx" in failed.message


def test_servers_that_respond_much_slower_take_the_change_back(changed: Env) -> None:
    since = soaked(latest(), seconds=20)
    serve(since - timedelta(seconds=30), "n1", latency_ms=40)
    serve(since, "n1", latency_ms=400)
    changed.reconcile()
    failed = Rollout.objects.get(gates__0__passed=False)
    assert "Its servers take 400 ms to respond, 40 ms without the change." in failed.message


def test_a_pool_that_loses_all_its_servers_takes_the_change_back(changed: Env) -> None:
    since = soaked(latest(), seconds=20)
    serve(since - timedelta(seconds=30), "n1", status="UP")
    serve(since, "n1", of=0, status="DOWN")
    serve(since, "n3", status="UP")
    changed.reconcile()
    failed = Rollout.objects.get(gates__0__passed=False)
    assert "Pool operator/blue: None of its servers is up any more." in failed.message


def test_servers_that_go_down_as_soon_as_a_node_has_the_change_are_seen(changed: Env) -> None:
    since = soaked(latest())
    pool = f"pool-{Pool.objects.get(name='blue').pk}"
    counts("n1", since - timedelta(seconds=SHORT), thing=pool, status="DOWN")  # and it rests from then on
    serve(since, "n3", status="UP")
    changed.reconcile()
    assert "None of its servers is up any more." in Rollout.objects.get(gates__0__passed=False).message


def test_servers_that_are_down_everywhere_do_not(changed: Env) -> None:
    since = soaked(latest())
    serve(since - timedelta(seconds=30), "n1", status="UP")
    serve(since, "n1", "n3", of=0, status="DOWN")
    changed.reconcile()
    assert (latest().state, latest().wave) == ("soaking", 2)


def test_without_numbers_the_wave_waits_and_says_so_and_goes_back_in_the_end(changed: Env) -> None:
    soaked(latest())
    changed.reconcile()
    assert (latest().state, latest().wave, updated(changed)) == ("soaking", 1, ["n1"])
    assert latest().message == "Nobody knows how n1 does with the change."
    soaked(latest(), seconds=60 + 600 + 10)
    changed.reconcile()
    assert (latest().state, states()["n1"]) == ("rolled_back", "rolled_back")
    assert "The change is taken back because nobody knows how it does." in latest().message


def test_a_pool_that_nobody_asked_before_is_compared_with_nothing(changed: Env) -> None:
    serve(soaked(latest()), "n1", failed=100)
    changed.reconcile()
    assert (latest().state, latest().wave) == ("soaking", 2)


def test_what_an_earlier_rollout_did_is_not_taken_for_how_it_was(changed: Env) -> None:
    since = soaked(latest(), seconds=20)
    Rollout.objects.exclude(pk=latest().pk).update(finished_at=since - timedelta(seconds=20))
    serve(since - timedelta(seconds=30), "n1", failed=60)
    serve(since, "n1", failed=40)
    serve(since, "n3")
    changed.reconcile()
    assert Rollout.objects.filter(gates__0__passed=False).exists()


@pytest.mark.exhaustive
def test_control_without_the_gate_a_bad_change_reaches_every_node(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.rollouts.waves.soaking.regressions", lambda *_: {})
    change(env)
    for names in (["n1"], ["n2"]):
        serve(soaked(latest()), *names, failed=100)
        env.reconcile()
    assert (updated(env), latest().state) == (list(NAMES), "done")


def test_a_node_that_refuses_turns_back_those_that_took_the_change(changed: Env) -> None:
    changed.node("n2").refusal = Refused("no", stage="validate", output="")
    pass_wave(changed)
    turned = Rollout.objects.get(message__contains="no")
    assert {step.node.name: step.state for step in turned.steps.select_related("node")}["n4"] == "waiting"
    assert changed.node("n1").digest == changed.node("n4").digest


def test_a_node_that_is_away_gives_its_turn_to_another_and_gets_the_change_last(env: Env) -> None:
    env.node("n1").unreachable = True
    change(env)
    assert (updated(env), latest().state, latest().wave) == (["n2"], "soaking", 1)
    waves = {step.node.name: step.wave for step in Step.objects.filter(rollout=latest()).select_related("node")}
    assert waves["n1"] == 3
    env.node("n1").unreachable = False
    pass_wave(env)
    pass_wave(env)
    env.reconcile()
    assert (updated(env), latest().state) == (list(NAMES), "done")


def test_nodes_without_traffic_come_last(env: Env) -> None:
    serve(datetime.fromtimestamp(start_of(now().timestamp(), SHORT) - SHORT, UTC), "n3")
    change(env)
    assert updated(env) == ["n3"]


def test_an_operator_pushes_to_all_nodes_without_waiting(changed: Env) -> None:
    with pytest.raises(Invalid):
        services.push_to_all(actor=changed.operator, rollout_id=latest().pk, reason="")
    services.push_to_all(actor=changed.operator, rollout_id=latest().pk, reason="An outage")
    changed.reconcile()
    assert (updated(changed), latest().state) == (list(NAMES), "done")
    entry = Entry.objects.filter(action="push_to_all").latest("id")
    assert (entry.reason, (entry.after or {})["wave"]) == ("An outage", 3)
    with pytest.raises(Conflict):
        services.push_to_all(actor=changed.operator, rollout_id=latest().pk, reason="Again")


def test_customers_do_not(changed: Env) -> None:
    with pytest.raises(Forbidden):
        services.push_to_all(actor=actor_of("acme", Account.Kind.CUSTOMER), rollout_id=latest().pk, reason="An outage")


def test_going_back_to_a_revision_does_not_wait_for_waves(changed: Env) -> None:
    before = latest().previous
    assert before is not None
    services.roll_back(actor=changed.operator, revision_id=before.pk, reason="It looks bad")
    changed.reconcile()
    assert (latest().kind, latest().state, latest().waves) == ("rollback", "done", 1)
    assert {changed.node(name).digest for name in NAMES} == {before.digest}
    assert Rollout.objects.order_by("-id")[1].state == "superseded"


def test_whole_buckets_only_are_counted() -> None:
    begin = datetime(2026, 11, 29, 12, 0, 3, tzinfo=UTC)
    times = counting.buckets_within(begin, begin + timedelta(seconds=30))
    assert [at.second for at in times] == [10, 20]


def test_a_node_says_with_which_wave_its_turn_comes(changed: Env) -> None:
    said = {node.node: (node.status, node.message) for node in selectors.node_sync(changed.operator)}
    assert said["n1"] == ("in_sync", "Runs revision 2.")
    assert said["n4"] == ("behind", "Runs revision 1. Revision 2 comes with wave 3.")

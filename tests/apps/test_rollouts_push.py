"""A push to nodes in memory: what goes out, what does not, and how little it disturbs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.services import save_object
from apps.drivers.proxy.contract import Refused
from apps.fleet.models import Fleet
from apps.fleet.services import request_push
from apps.observe.models import NodeReport
from apps.observe.services import note_report
from apps.rollouts import selectors, services
from apps.rollouts.models import FleetSync, Revision, Rollout
from tests.apps.pushed import APPLIED, Env, add_route, put_env, remembered, remove_object, remove_route
from tests.apps.test_definitions_services import pem_pair

RUNNING = remembered(Env.reconcile)


@pytest.fixture
def fresh(db: None) -> Env:
    """Nodes that run nothing yet."""
    return put_env(APPLIED)


@pytest.fixture
def env(db: None) -> Env:
    """Nodes that run the first revision."""
    return put_env(RUNNING)


def latest() -> Rollout:
    return Rollout.objects.latest("id")


def steps() -> dict[str, str]:
    return {step.node.name: step.state for step in latest().steps.select_related("node")}


def test_the_first_push_brings_a_revision_to_every_node(fresh: Env) -> None:
    fresh.reconcile()
    revision = Revision.objects.get(fleet=fresh.fleet)
    assert {node.digest for node in fresh.memory} == {revision.digest}
    assert (latest().state, latest().kind, latest().actor) == ("done", "change", fresh.operator.name)
    assert {report.digest for report in NodeReport.objects.all()} == {revision.digest}
    assert selectors.is_live(fresh.fleet.pk, fresh.desired())
    assert [node.status for node in selectors.node_sync(fresh.operator)] == ["in_sync", "in_sync"]


def test_a_route_goes_live_without_a_reload(env: Env) -> None:
    reloads = [node.reloads for node in env.memory]
    add_route(env.operator, "news", "/news")
    assert not selectors.is_live(env.fleet.pk, env.desired())
    env.reconcile()
    assert [node.reloads for node in env.memory] == reloads
    assert [step.how for step in latest().steps.all()] == ["runtime", "runtime"]
    assert selectors.is_live(env.fleet.pk, env.desired())


def test_the_first_route_of_a_pool_needs_no_reload_either(env: Env) -> None:
    add_route(env.operator, "new", "/new", "green")
    env.reconcile()
    assert [step.how for step in latest().steps.all()] == ["runtime", "runtime"]


def test_a_belief_that_is_out_of_date_costs_a_look_and_no_reload(env: Env) -> None:
    old = NodeReport.objects.get(node__name="n1")
    add_route(env.operator, "news", "/news")
    env.reconcile()
    NodeReport.objects.filter(pk=old.pk).update(digest=old.digest, on_disk=old.on_disk, generation=old.generation)
    add_route(env.operator, "more", "/more")
    env.reconcile()
    assert latest().state == "done"
    assert [step.how for step in latest().steps.all()] == ["runtime", "runtime"]
    assert [node.reloads for node in env.memory] == [1, 1]


def test_a_node_that_runs_a_foreign_configuration_gets_the_whole_bundle(env: Env) -> None:
    node = env.memory[0]
    node.files["haproxy.cfg"] += b"# from elsewhere\n"
    node.digest = node.state().on_disk
    env.reconcile()
    assert (latest().kind, latest().state) == ("repair", "done")
    assert [step.how for step in latest().steps.all()] == ["reload"]
    assert node.digest == env.memory[1].digest


def test_an_equal_digest_is_unchanged_and_disturbs_nobody(env: Env) -> None:
    before = [(node.pushes, node.generation, len(node.operations)) for node in env.memory]
    request_push([env.fleet])
    env.reconcile()
    assert [(node.pushes, node.generation, len(node.operations)) for node in env.memory] == before
    assert (Revision.objects.count(), Rollout.objects.count()) == (1, 1)
    assert selectors.is_live(env.fleet.pk, env.desired())


def test_changes_that_were_made_meanwhile_go_out_together(env: Env) -> None:
    for number in range(5):
        add_route(env.operator, f"r{number}", f"/r{number}")
    env.reconcile()
    assert Revision.objects.count() == 2
    assert latest().generation == env.desired()
    assert latest().revision.summary.endswith("(and 4 more)")


def test_a_policy_that_changed_is_told_in_words_with_who_changed_it(env: Env) -> None:
    for requests in (100, 50):
        rules = {"client_limit": {"requests": requests}}
        spec = {"rules": rules, "default_for": {"account": True}}
        save_object(actor=env.operator, kind="Policy", name="slow", spec=spec)
        env.reconcile()
    revision = latest().revision
    assert revision.summary.partition(": ")[2] == "client limit requests 100 → 50"
    assert revision.actor == env.operator.name


def test_a_listener_that_moves_to_another_port_goes_out(env: Env) -> None:
    before = env.memory[0].digest
    spec = {"fleets": ["here"], "listeners": [{"name": "http", "protocol": "http", "port": 8081}]}
    save_object(actor=env.operator, kind="LoadBalancer", name="front", spec=spec)
    env.reconcile()
    assert env.memory[0].digest != before
    assert [step.how for step in latest().steps.all()] == ["reload", "reload"]


def test_a_refusal_brings_the_touched_nodes_back_and_names_node_object_and_line(env: Env) -> None:
    good = env.memory[0].digest
    first_generation = env.memory[0].generation
    line = env.line_of_pool("blue")
    env.memory[1].refusal = Refused("unknown keyword", stage="validate", line=line)
    env.change_pool("blue", "roundrobin")
    env.reconcile()
    rollout = latest()
    assert rollout.state == "rolled_back"
    assert "n2" in rollout.message
    assert "unknown keyword" in rollout.message
    assert (rollout.line, rollout.object_label) == (line, "pool operator/blue")
    assert [node.digest for node in env.memory] == [good, good]
    assert env.memory[0].generation > first_generation + 1, "back under a higher number, not the old one"
    assert steps() == {"n1": "rolled_back", "n2": "refused"}
    assert not selectors.is_live(env.fleet.pk, env.desired())
    assert selectors.sync_statuses(env.operator) == {env.fleet.pk: "refused"}


def test_without_a_refusal_the_same_change_stays(env: Env) -> None:
    good = env.memory[0].digest
    env.change_pool("blue", "roundrobin")
    env.reconcile()
    assert latest().state == "done"
    assert {node.digest for node in env.memory}.isdisjoint({good})


def test_what_was_refused_is_not_tried_again_before_a_person_says_so(env: Env) -> None:
    env.memory[1].refusal = Refused("no", stage="trial_run")
    env.change_pool("blue", "roundrobin")
    env.reconcile()
    env.memory[1].refusal = None
    count = Rollout.objects.count()
    request_push([env.fleet])
    env.reconcile()
    env.reconcile()
    assert Rollout.objects.count() == count
    services.push_again(actor=env.operator, fleet_id=env.fleet.pk)
    env.reconcile()
    assert (latest().state, latest().kind) == ("done", "change")
    assert Revision.objects.count() == 2, "the refused revision is pushed again, not numbered again"
    assert selectors.is_live(env.fleet.pk, env.desired())


def test_a_refusal_of_the_very_first_revision_fails_and_says_that_there_is_nothing_to_go_back_to(fresh: Env) -> None:
    fresh.memory[0].refusal = Refused("no", stage="validate")
    fresh.reconcile()
    assert latest().state == "failed"
    assert "no earlier revision" in latest().message
    assert not selectors.is_live(fresh.fleet.pk, fresh.desired())


def test_an_unreachable_node_is_finished_later_while_the_others_go_on(env: Env) -> None:
    env.memory[1].unreachable = True
    add_route(env.operator, "news", "/news")
    env.reconcile()
    assert steps() == {"n1": "done", "n2": "unreachable"}
    assert latest().state == "pushing"
    assert [node.status for node in selectors.node_sync(env.operator)] == ["in_sync", "unreachable"]
    env.reconcile()
    assert latest().state == "pushing"
    env.memory[1].unreachable = False
    assert services.fleets_to_sweep() == [env.fleet.pk]
    env.reconcile()
    assert latest().state == "done"
    assert env.memory[0].digest == env.memory[1].digest
    assert services.fleets_to_sweep() == []


def test_a_newer_change_takes_the_place_of_a_rollout_that_waits_for_a_node(env: Env) -> None:
    env.memory[1].unreachable = True
    add_route(env.operator, "news", "/news")
    env.reconcile()
    waiting = latest()
    add_route(env.operator, "more", "/more")
    env.reconcile()
    waiting.refresh_from_db()
    assert waiting.state == "superseded"
    env.memory[1].unreachable = False
    env.reconcile()
    assert latest().state == "done"
    assert env.memory[0].digest == env.memory[1].digest == latest().revision.digest


def test_a_node_that_is_ahead_gets_a_number_above_its_own(env: Env) -> None:
    env.memory[0].generation = 1000
    add_route(env.operator, "news", "/news")
    env.reconcile()
    assert latest().state == "done"
    assert env.memory[0].generation > 1000
    assert env.memory[0].digest == env.memory[1].digest
    assert selectors.is_live(env.fleet.pk, env.desired())


def test_edited_files_are_found_and_put_right_under_a_higher_number(env: Env) -> None:
    node = env.memory[0]
    before = node.generation
    node.files["haproxy.cfg"] += b"# by hand\n"
    env.reconcile()
    assert (latest().kind, latest().state) == ("repair", "done")
    assert "n1 drifted" in latest().reason
    assert steps() == {"n1": "done"}, "the other node is left alone"
    assert node.generation > before
    assert node.state().on_disk == node.digest


def test_a_repair_that_is_refused_is_not_tried_in_a_loop(env: Env) -> None:
    node = env.memory[0]
    node.files["haproxy.cfg"] += b"# by hand\n"
    node.refusal = Refused("a foreign process has the port", stage="switch")
    for _ in range(3):
        env.reconcile()
    assert Rollout.objects.filter(kind="repair").count() == 1
    assert (latest().state, "foreign process" in latest().message) == ("failed", True)
    sync = FleetSync.objects.get(fleet=env.fleet)
    assert sync.wanted == sync.last_good, "a good revision does not become a bad one because a node is ill"
    node.refusal = None
    services.push_again(actor=env.operator, fleet_id=env.fleet.pk)
    env.reconcile()
    assert (latest().state, node.state().on_disk) == ("done", node.digest)


def test_a_node_that_joins_gets_what_the_others_run_and_they_learn_of_it(env: Env) -> None:
    before = env.memory[0].digest
    env.add_node("n3")
    env.reconcile()
    assert (latest().kind, steps()) == ("change", {"n1": "done", "n2": "done", "n3": "done"})
    assert env.node("n3").digest == env.memory[0].digest != before


def test_a_configuration_without_listeners_is_refused_before_any_node(env: Env) -> None:
    good = env.memory[0].digest
    remove_route(env.operator, "home")
    remove_object(env.operator, "LoadBalancer", "front")
    env.reconcile()
    assert latest().state == "failed"
    assert "1 listeners" in latest().message
    assert {node.digest for node in env.memory} == {good}
    assert not selectors.is_live(env.fleet.pk, env.desired())


def test_a_fleet_without_definitions_is_in_sync_and_gets_nothing(fresh: Env) -> None:
    remove_route(fresh.operator, "home")
    remove_object(fresh.operator, "LoadBalancer", "front")
    fresh.reconcile()
    assert [node.generation for node in fresh.memory] == [0, 0]
    assert not Revision.objects.exists()
    assert selectors.is_live(fresh.fleet.pk, fresh.desired())


def test_a_fleet_that_was_deleted_is_no_work(fresh: Env) -> None:
    assert services.reconcile_fleet(fleet_id=10**9)
    assert Fleet.objects.count() == 1


def test_a_fleet_is_compiled_for_the_oldest_haproxy_that_its_nodes_reported(env: Env) -> None:
    assert snapshot_of(env.fleet).haproxy_version == (2, 6)
    env.memory[0].haproxy_version, env.memory[1].haproxy_version = "3.2.26-1", "2.8.30-0ubuntu1"
    env.reconcile()
    assert snapshot_of(env.fleet).haproxy_version == (2, 8)


def report(env: Env, version: str, *, http3: bool) -> None:
    """Both nodes say that they have this HAProxy."""
    for node, memory in zip(env.fleet.nodes.order_by("name"), env.memory, strict=True):
        memory.haproxy_version, memory.http3 = version, http3
        note_report(node_id=node.pk, state=memory.state())


def test_a_fleet_with_http3_is_compiled_again_once_when_its_nodes_report_another_haproxy(env: Env) -> None:
    listener = {"name": "http", "protocol": "https", "port": 8443, "certificates": ["house"]}
    save_object(
        actor=env.operator,
        kind="Certificate",
        name="house",
        spec=dict(zip(("chain", "key"), pem_pair("www.example.org"), strict=True)),
    )
    front = {"fleets": ["here"], "listeners": [listener | {"tls": {"http3": True}}]}
    save_object(actor=env.operator, kind="LoadBalancer", name="front", spec=front)
    env.reconcile()
    assert services.fleets_to_sweep() == []
    assert b"HTTP3" not in env.memory[1].files["haproxy.cfg"]
    report(env, "3.2.26", http3=True)
    assert services.fleets_to_sweep() == [env.fleet.pk]
    generation = env.desired()
    assert services.fleets_to_sweep() == [env.fleet.pk]
    assert env.desired() == generation, "it is asked for once, whatever becomes of it"
    env.reconcile()
    assert env.memory[1].files["haproxy.cfg"].count(b"${SPILLWAY_HTTP3_") == 1
    assert services.fleets_to_sweep() == []


def test_a_fleet_that_asks_nothing_of_later_haproxys_is_not_compiled_again(env: Env) -> None:
    report(env, "2.6.12", http3=False)
    env.reconcile()
    report(env, "3.2.26", http3=True)
    assert services.fleets_to_sweep() == []


def test_what_a_node_says_of_no_version_is_no_build(env: Env) -> None:
    first, second = env.fleet.nodes.order_by("name")
    NodeReport.objects.filter(node=first).update(haproxy_version="")
    assert [each.node for each in snapshot_of(env.fleet).builds] == [second.name]


def test_a_node_that_is_away_for_long_does_not_take_the_others_far_back(env: Env) -> None:
    env.node("n2").unreachable = True
    for pool in ("blue", "green"):
        env.change_pool(pool, "roundrobin")
        env.reconcile()
        env.reconcile()
    env.node("n1").refusal = Refused("no", stage="validate", output="")
    env.change_pool("green", "source")
    env.reconcile()
    sync = FleetSync.objects.get(fleet=env.fleet)
    assert (sync.wanted and sync.wanted.number, sync.last_good and sync.last_good.number) == (3, 1)
    assert env.node("n1").digest == (sync.wanted and sync.wanted.digest)


def test_what_somebody_edits_is_restored_while_another_node_is_away(env: Env) -> None:
    env.node("n2").unreachable = True
    env.change_pool("blue", "roundrobin")
    env.reconcile()
    good = dict(env.node("n1").files)
    for _ in range(2):
        env.node("n1").files["haproxy.cfg"] += b"# by hand\n"
        env.reconcile()
        assert env.node("n1").files == good
    env.node("n2").unreachable = False
    env.reconcile()
    env.reconcile()
    assert (latest().state, Rollout.objects.filter(kind="repair").count()) == ("done", 0)
    assert env.node("n2").digest == env.node("n1").digest


def test_what_a_push_does_not_mend_is_pushed_once_for_each_look(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    env.node("n2").unreachable = True
    env.change_pool("blue", "roundrobin")
    env.reconcile()
    node = env.node("n1")
    usual = node.state
    monkeypatch.setattr(node, "state", lambda: replace(usual(), drift=("another process answers",)))
    env.reconcile()
    before = node.pushes
    env.reconcile()
    assert node.pushes == before + 1


def test_what_the_others_run_well_stays_when_a_late_node_refuses_it(env: Env) -> None:
    env.node("n2").unreachable = True
    env.change_pool("blue", "roundrobin")
    env.reconcile()
    env.reconcile()
    env.node("n2").unreachable = False
    env.node("n2").refusal = Refused("no", stage="validate", output="")
    env.reconcile()
    env.reconcile()
    sync = FleetSync.objects.get(fleet=env.fleet)
    assert (sync.wanted and sync.wanted.number, latest().state) == (2, "failed")
    assert env.node("n1").digest == (sync.wanted and sync.wanted.digest)
    env.node("n2").refusal = None
    NodeReport.objects.filter(node__name="n2").update(last_contact_error="")
    services.push_again(actor=env.operator, fleet_id=env.fleet.pk)
    env.reconcile()
    assert {node.digest for node in env.memory} == {sync.wanted and sync.wanted.digest}

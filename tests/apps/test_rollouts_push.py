"""A push to nodes in memory: what goes out, what does not, and how little it disturbs."""

from __future__ import annotations

import pytest

from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.services import save_object
from apps.drivers.proxy.contract import Refused
from apps.fleet.models import Fleet
from apps.fleet.services import request_push
from apps.observe.models import NodeReport
from apps.rollouts import selectors, services
from apps.rollouts.models import FleetSync, Revision, Rollout
from tests.apps.pushed import APPLIED, World, add_route, put_env, remembered, remove_object, remove_route

RUNNING = remembered(World.reconcile)


@pytest.fixture
def fresh(db: None) -> World:
    """Nodes that run nothing yet."""
    return put_env(APPLIED)


@pytest.fixture
def world(db: None) -> World:
    """Nodes that run the first revision."""
    return put_env(RUNNING)


def latest() -> Rollout:
    return Rollout.objects.latest("id")


def steps() -> dict[str, str]:
    return {step.node.name: step.state for step in latest().steps.select_related("node")}


def test_the_first_push_brings_a_revision_to_every_node(fresh: World) -> None:
    fresh.reconcile()
    revision = Revision.objects.get(fleet=fresh.fleet)
    assert {node.digest for node in fresh.memory} == {revision.digest}
    assert (latest().state, latest().kind, latest().actor) == ("done", "change", fresh.operator.name)
    assert {report.digest for report in NodeReport.objects.all()} == {revision.digest}
    assert selectors.is_live(fresh.fleet.pk, fresh.desired())
    assert [node.word for node in selectors.node_sync(fresh.operator)] == ["in_sync", "in_sync"]


def test_a_route_goes_live_without_a_reload(world: World) -> None:
    reloads = [node.reloads for node in world.memory]
    add_route(world.operator, "news", "/news")
    assert not selectors.is_live(world.fleet.pk, world.desired())
    world.reconcile()
    assert [node.reloads for node in world.memory] == reloads
    assert [step.how for step in latest().steps.all()] == ["runtime", "runtime"]
    assert selectors.is_live(world.fleet.pk, world.desired())


def test_the_first_route_of_a_pool_needs_no_reload_either(world: World) -> None:
    add_route(world.operator, "new", "/new", "green")
    world.reconcile()
    assert [step.how for step in latest().steps.all()] == ["runtime", "runtime"]


def test_a_belief_that_is_out_of_date_costs_a_look_and_no_reload(world: World) -> None:
    old = NodeReport.objects.get(node__name="n1")
    add_route(world.operator, "news", "/news")
    world.reconcile()
    NodeReport.objects.filter(pk=old.pk).update(digest=old.digest, on_disk=old.on_disk, generation=old.generation)
    add_route(world.operator, "more", "/more")
    world.reconcile()
    assert latest().state == "done"
    assert [step.how for step in latest().steps.all()] == ["runtime", "runtime"]
    assert [node.reloads for node in world.memory] == [1, 1]


def test_a_node_that_runs_a_foreign_configuration_gets_the_whole_bundle(world: World) -> None:
    node = world.memory[0]
    node.files["haproxy.cfg"] += b"# from elsewhere\n"
    node.digest = node.state().on_disk
    world.reconcile()
    assert (latest().kind, latest().state) == ("repair", "done")
    assert [step.how for step in latest().steps.all()] == ["reload"]
    assert node.digest == world.memory[1].digest


def test_an_equal_digest_is_unchanged_and_disturbs_nobody(world: World) -> None:
    before = [(node.pushes, node.generation, len(node.operations)) for node in world.memory]
    request_push([world.fleet])
    world.reconcile()
    assert [(node.pushes, node.generation, len(node.operations)) for node in world.memory] == before
    assert (Revision.objects.count(), Rollout.objects.count()) == (1, 1)
    assert selectors.is_live(world.fleet.pk, world.desired())


def test_changes_that_were_made_meanwhile_go_out_together(world: World) -> None:
    for number in range(20):
        add_route(world.operator, f"r{number}", f"/r{number}")
    world.reconcile()
    assert Revision.objects.count() == 2
    assert latest().generation == world.desired()
    assert latest().revision.summary.endswith("(and 19 more)")


def test_a_listener_that_moves_to_another_port_goes_out(world: World) -> None:
    before = world.memory[0].digest
    spec = {"fleets": ["here"], "listeners": [{"name": "http", "protocol": "http", "port": 8081}]}
    save_object(actor=world.operator, kind="LoadBalancer", name="front", spec=spec)
    world.reconcile()
    assert world.memory[0].digest != before
    assert [step.how for step in latest().steps.all()] == ["reload", "reload"]


def test_a_refusal_brings_the_touched_nodes_back_and_names_node_object_and_line(world: World) -> None:
    good = world.memory[0].digest
    first_generation = world.memory[0].generation
    line = world.line_of_pool("blue")
    world.memory[1].refusal = Refused("unknown keyword", stage="validate", line=line)
    world.change_pool("blue", "roundrobin")
    world.reconcile()
    rollout = latest()
    assert rollout.state == "rolled_back"
    assert "n2" in rollout.message
    assert "unknown keyword" in rollout.message
    assert (rollout.line, rollout.object_label) == (line, "pool operator/blue")
    assert [node.digest for node in world.memory] == [good, good]
    assert world.memory[0].generation > first_generation + 1, "back under a higher number, not the old one"
    assert steps() == {"n1": "rolled_back", "n2": "refused"}
    assert not selectors.is_live(world.fleet.pk, world.desired())
    assert selectors.sync_words(world.operator) == {world.fleet.pk: "refused"}


def test_without_a_refusal_the_same_change_stays(world: World) -> None:
    good = world.memory[0].digest
    world.change_pool("blue", "roundrobin")
    world.reconcile()
    assert latest().state == "done"
    assert {node.digest for node in world.memory}.isdisjoint({good})


def test_what_was_refused_is_not_tried_again_before_a_person_says_so(world: World) -> None:
    world.memory[1].refusal = Refused("no", stage="trial_run")
    world.change_pool("blue", "roundrobin")
    world.reconcile()
    world.memory[1].refusal = None
    count = Rollout.objects.count()
    request_push([world.fleet])
    world.reconcile()
    world.reconcile()
    assert Rollout.objects.count() == count
    services.push_again(actor=world.operator, fleet_id=world.fleet.pk)
    world.reconcile()
    assert (latest().state, latest().kind) == ("done", "change")
    assert Revision.objects.count() == 2, "the refused revision is pushed again, not numbered again"
    assert selectors.is_live(world.fleet.pk, world.desired())


def test_a_refusal_of_the_very_first_revision_fails_and_says_that_there_is_nothing_to_go_back_to(fresh: World) -> None:
    fresh.memory[0].refusal = Refused("no", stage="validate")
    fresh.reconcile()
    assert latest().state == "failed"
    assert "no earlier revision" in latest().message
    assert not selectors.is_live(fresh.fleet.pk, fresh.desired())


def test_an_unreachable_node_is_finished_later_while_the_others_go_on(world: World) -> None:
    world.memory[1].unreachable = True
    add_route(world.operator, "news", "/news")
    world.reconcile()
    assert steps() == {"n1": "done", "n2": "unreachable"}
    assert latest().state == "pushing"
    assert [node.word for node in selectors.node_sync(world.operator)] == ["in_sync", "unreachable"]
    world.reconcile()
    assert latest().state == "pushing"
    world.memory[1].unreachable = False
    assert services.fleets_to_sweep() == [world.fleet.pk]
    world.reconcile()
    assert latest().state == "done"
    assert world.memory[0].digest == world.memory[1].digest
    assert services.fleets_to_sweep() == []


def test_a_newer_change_takes_the_place_of_a_rollout_that_waits_for_a_node(world: World) -> None:
    world.memory[1].unreachable = True
    add_route(world.operator, "news", "/news")
    world.reconcile()
    waiting = latest()
    add_route(world.operator, "more", "/more")
    world.reconcile()
    waiting.refresh_from_db()
    assert waiting.state == "superseded"
    world.memory[1].unreachable = False
    world.reconcile()
    assert latest().state == "done"
    assert world.memory[0].digest == world.memory[1].digest == latest().revision.digest


def test_a_node_that_is_ahead_gets_a_number_above_its_own(world: World) -> None:
    world.memory[0].generation = 1000
    add_route(world.operator, "news", "/news")
    world.reconcile()
    assert latest().state == "done"
    assert world.memory[0].generation > 1000
    assert world.memory[0].digest == world.memory[1].digest
    assert selectors.is_live(world.fleet.pk, world.desired())


def test_edited_files_are_found_and_put_right_under_a_higher_number(world: World) -> None:
    node = world.memory[0]
    before = node.generation
    node.files["haproxy.cfg"] += b"# by hand\n"
    world.reconcile()
    assert (latest().kind, latest().state) == ("repair", "done")
    assert "n1 drifted" in latest().reason
    assert steps() == {"n1": "done"}, "the other node is left alone"
    assert node.generation > before
    assert node.state().on_disk == node.digest


def test_a_repair_that_is_refused_is_not_tried_in_a_loop(world: World) -> None:
    node = world.memory[0]
    node.files["haproxy.cfg"] += b"# by hand\n"
    node.refusal = Refused("a foreign process has the port", stage="switch")
    for _ in range(3):
        world.reconcile()
    assert Rollout.objects.filter(kind="repair").count() == 1
    assert (latest().state, "foreign process" in latest().message) == ("failed", True)
    sync = FleetSync.objects.get(fleet=world.fleet)
    assert sync.wanted == sync.last_good, "a good revision does not become a bad one because a node is ill"
    node.refusal = None
    services.push_again(actor=world.operator, fleet_id=world.fleet.pk)
    world.reconcile()
    assert (latest().state, node.state().on_disk) == ("done", node.digest)


def test_a_node_that_joins_gets_what_the_others_run_and_they_learn_of_it(world: World) -> None:
    before = world.memory[0].digest
    world.add_node("n3")
    world.reconcile()
    assert (latest().kind, steps()) == ("change", {"n1": "done", "n2": "done", "n3": "done"})
    assert world.node("n3").digest == world.memory[0].digest != before


def test_a_configuration_without_listeners_is_refused_before_any_node(world: World) -> None:
    good = world.memory[0].digest
    remove_route(world.operator, "home")
    remove_object(world.operator, "LoadBalancer", "front")
    world.reconcile()
    assert latest().state == "failed"
    assert "1 listeners" in latest().message
    assert {node.digest for node in world.memory} == {good}
    assert not selectors.is_live(world.fleet.pk, world.desired())


def test_a_fleet_without_definitions_is_in_sync_and_gets_nothing(fresh: World) -> None:
    remove_route(fresh.operator, "home")
    remove_object(fresh.operator, "LoadBalancer", "front")
    fresh.reconcile()
    assert [node.generation for node in fresh.memory] == [0, 0]
    assert not Revision.objects.exists()
    assert selectors.is_live(fresh.fleet.pk, fresh.desired())


def test_a_fleet_that_was_deleted_is_no_work(fresh: World) -> None:
    assert services.reconcile_fleet(fleet_id=10**9)
    assert Fleet.objects.count() == 1


def test_a_fleet_is_compiled_for_the_oldest_haproxy_that_its_nodes_reported(world: World) -> None:
    assert snapshot_of(world.fleet).haproxy_version == (2, 6)
    world.memory[0].haproxy_version, world.memory[1].haproxy_version = "3.2.26-1", "2.8.30-0ubuntu1"
    world.reconcile()
    assert snapshot_of(world.fleet).haproxy_version == (2, 8)

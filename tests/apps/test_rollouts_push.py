"""PUSH with nodes in memory: what goes out, what does not, and how little it disturbs."""

from __future__ import annotations

import pytest

from apps.rollouts import selectors, services
from apps.rollouts.models import Revision, Rollout
from tests.apps.pushed import World, add_route

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_first_push_brings_a_revision_to_every_node(world: World) -> None:
    services.reconcile_fleet(fleet_id=world.fleet.pk)
    revision = Revision.objects.get(fleet=world.fleet)
    assert {node.digest for node in world.memory} == {revision.digest}
    rollout = Rollout.objects.get(fleet=world.fleet)
    assert (rollout.state, rollout.kind) == ("done", "change")
    assert selectors.is_live(world.fleet.pk, world.desired())


def test_a_route_goes_live_without_a_reload(world: World) -> None:
    services.reconcile_fleet(fleet_id=world.fleet.pk)
    reloads = [node.reloads for node in world.memory]
    add_route(world.operator, "news", "/news")
    services.reconcile_fleet(fleet_id=world.fleet.pk)
    assert [node.reloads for node in world.memory] == reloads
    steps = Rollout.objects.latest("id").steps.all()
    assert [step.how for step in steps] == ["runtime", "runtime"]

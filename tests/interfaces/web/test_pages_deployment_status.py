"""Where a route is live: as nodes confirmed it, whatever else has changed since."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F

from apps.accounts.models import Account
from apps.definitions.models import Route
from apps.rollouts import services
from apps.rollouts.models import Revision
from apps.web.fleets.deployment_status import DeploymentStatus, deployment_status
from tests.apps.pushed import Env, add_route, put_env, remembered
from tests.conftest import actor_of

PUSHED = remembered(Env.reconcile)


@pytest.fixture
def env(db: None) -> Env:
    """Two nodes that run everything; its routes are an hour old."""
    found = put_env(PUSHED)
    Route.objects.update(updated_at=F("updated_at") - timedelta(hours=1))
    return found


def where(env: Env, name: str) -> DeploymentStatus:
    """Where the operator's page says that this route is live."""
    return deployment_status(env.operator, Route.objects.get(name=name))


def words(found: DeploymentStatus) -> list[str]:
    """How each node stands."""
    return [node.status for fleet in found.fleets for node in fleet.nodes]


def old_route() -> str:
    """A route that was there from the beginning."""
    return Route.objects.earliest("pk").name


def test_a_route_just_stored_is_live_nowhere_and_no_node_is_called_in_sync_with_it(env: Env) -> None:
    add_route(env.operator, "news", "/news")
    found = where(env, "news")
    assert (found.done, words(found)) == (0, ["behind", "behind"])
    env.reconcile()
    found = where(env, "news")
    assert (found.done, found.total, words(found)) == (2, 2, ["in_sync", "in_sync"])


def test_somebody_elses_change_on_its_way_takes_nobody_off_the_nodes(env: Env) -> None:
    old = old_route()
    add_route(env.operator, "news", "/news")
    assert where(env, old).everywhere
    Route.objects.filter(name=old).update(updated_at=Revision.objects.latest("number").created_at)
    assert where(env, old).done == 0, "changed while the last revision was being compiled: nobody can be sure"


def test_on_a_held_fleet_what_was_live_stays_so_and_what_came_later_is_not(env: Env) -> None:
    old, first = old_route(), Revision.objects.get()
    add_route(env.operator, "news", "/news")
    env.reconcile()
    services.roll_back(actor=env.operator, revision_id=first.pk, reason="news is broken")
    env.reconcile()
    assert where(env, old).everywhere
    found = where(env, "news")
    assert (found.done, words(found)) == (0, ["behind", "behind"])


def test_who_sees_no_nodes_is_told_the_same_of_fleets(env: Env) -> None:
    acme = actor_of("acme", Account.Kind.CUSTOMER)
    old = Route.objects.get(name=old_route())
    add_route(env.operator, "news", "/news")
    assert deployment_status(acme, old).everywhere
    found = deployment_status(acme, Route.objects.get(name="news"))
    assert (found.done, found.total, found.unit) == (0, 1, "fleet")

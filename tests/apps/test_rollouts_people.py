"""What people ask for: back to an earlier revision, holding there, going on, looking at differences."""

from __future__ import annotations

import zlib

import pytest

from apps.accounts.models import Membership
from apps.audit.models import Entry
from apps.core.errors import Conflict, Forbidden, Invalid, NotFound
from apps.core.secrets.sealing import unseal
from apps.drivers.proxy.contract import Refused
from apps.fleet.models import Fleet
from apps.rollouts import selectors, services
from apps.rollouts.models import FleetSync, Revision, Rollout
from apps.rollouts.push import revision_store
from tests.apps.pushed import APPLIED, Env, add_route, put_env, remembered
from tests.conftest import actor_of


def push_twice(env: Env) -> None:
    """The second revision has one route more."""
    env.reconcile()
    add_route(env.operator, "news", "/news")
    env.reconcile()


PUSHED_TWICE = remembered(push_twice)


@pytest.fixture
def env(db: None) -> Env:
    """Nodes that run the second of two revisions."""
    return put_env(PUSHED_TWICE)


def two_revisions() -> tuple[Revision, Revision]:
    first, second = Revision.objects.order_by("number")
    return first, second


def test_rolling_back_pushes_the_old_revision_under_a_new_number_and_holds_the_fleet(env: Env) -> None:
    first, second = two_revisions()
    before = env.memory[0].generation
    rollout = services.roll_back(actor=env.operator, revision_id=first.pk, reason="news is broken")
    env.reconcile()
    rollout.refresh_from_db()
    assert (rollout.state, rollout.kind, rollout.previous) == ("done", "rollback", second)
    assert {node.digest for node in env.memory} == {first.digest}
    assert [node.reloads for node in env.memory] == [1, 1], "the way back of a route needs no reload either"
    assert env.memory[0].generation > before
    entry = Entry.objects.get(action="roll_back")
    assert (entry.reason, entry.after["held_at"] if entry.after else None) == ("news is broken", 1)
    assert selectors.sync_statuses(env.operator) == {env.fleet.pk: "held"}


def test_changes_wait_while_a_fleet_is_held_and_go_out_together_when_it_resumes(env: Env) -> None:
    first, _ = two_revisions()
    services.roll_back(actor=env.operator, revision_id=first.pk, reason="wait")
    env.reconcile()
    add_route(env.operator, "one", "/one")
    add_route(env.operator, "two", "/two")
    env.reconcile()
    assert {node.digest for node in env.memory} == {first.digest}
    assert services.fleets_to_sweep() == [], "what waits for a person is no work for the sweep"
    assert not selectors.is_live(env.fleet.pk, env.desired())
    services.resume(actor=env.operator, fleet_id=env.fleet.pk, reason="repaired")
    env.reconcile()
    assert Revision.objects.count() == 3
    assert {node.digest for node in env.memory} == {Revision.objects.latest("number").digest}
    assert selectors.is_live(env.fleet.pk, env.desired())


def test_drift_is_repaired_while_a_fleet_is_held_and_the_waiting_change_still_goes_out(env: Env) -> None:
    first, _ = two_revisions()
    services.roll_back(actor=env.operator, revision_id=first.pk, reason="wait")
    env.reconcile()
    add_route(env.operator, "one", "/one")
    env.memory[0].files["haproxy.cfg"] += b"# by hand\n"
    env.reconcile()
    assert env.memory[0].state().on_disk == first.digest
    services.resume(actor=env.operator, fleet_id=env.fleet.pk, reason="repaired")
    env.reconcile()
    assert env.memory[0].digest == env.memory[1].digest != first.digest


def test_a_fleet_stays_held_when_nodes_refuse_the_revision_and_there_is_no_good_one(db: None) -> None:
    env = put_env(APPLIED)
    env.memory[1].refusal = Refused("no", stage="validate")
    env.reconcile()
    first = Revision.objects.get()
    rollout = services.roll_back(actor=env.operator, revision_id=first.pk, reason="it is known")
    add_route(env.operator, "more", "/more")
    env.reconcile()
    rollout.refresh_from_db()
    sync = FleetSync.objects.get(fleet=env.fleet)
    assert (rollout.state, sync.held_at, sync.wanted) == ("failed", first, first)
    assert Revision.objects.get() == first, "what was defined meanwhile waits for a person"
    env.memory[1].refusal = None
    services.push_again(actor=env.operator, fleet_id=env.fleet.pk)
    env.reconcile()
    assert {node.digest for node in env.memory} == {first.digest}, "a node that takes it by now is where it should be"


def test_a_fleet_stays_held_at_what_a_person_chose_when_a_node_refuses_it(env: Env) -> None:
    first, left = two_revisions()
    env.memory[1].refusal = Refused("no", stage="validate")
    rollout = services.roll_back(actor=env.operator, revision_id=first.pk, reason="news is broken")
    env.reconcile()
    rollout.refresh_from_db()
    sync = FleetSync.objects.get(fleet=env.fleet)
    assert (rollout.state, sync.held_at, sync.wanted) == ("failed", first, first)
    assert "The fleet stays held at revision 1, and nodes that do not run it are asked again." in rollout.message
    assert [node.digest for node in env.memory] == [first.digest, left.digest]
    env.memory[1].refusal = None
    services.push_again(actor=env.operator, fleet_id=env.fleet.pk)
    env.reconcile()
    assert {node.digest for node in env.memory} == {first.digest}


def test_rolling_back_needs_a_reason_an_operator_and_a_revision(env: Env) -> None:
    first, _ = two_revisions()
    viewer = actor_of("operator", "operator", Membership.Role.VIEWER)
    customer = actor_of("acme", "customer")
    with pytest.raises(Invalid):
        services.roll_back(actor=env.operator, revision_id=first.pk, reason=" ")
    for actor in (viewer, customer):
        with pytest.raises(Forbidden):
            services.roll_back(actor=actor, revision_id=first.pk, reason="x")
    with pytest.raises(NotFound):
        services.roll_back(actor=env.operator, revision_id=10**9, reason="x")
    assert FleetSync.objects.get(fleet=env.fleet).held_at is None


def test_only_a_held_fleet_can_resume(env: Env) -> None:
    with pytest.raises(Conflict):
        services.resume(actor=env.operator, fleet_id=env.fleet.pk, reason="x")


def test_the_difference_of_two_revisions_says_it_in_words_and_in_files(env: Env) -> None:
    first, second = two_revisions()
    found = selectors.difference(env.operator, first.pk, second.pk)
    assert found.sentences == ("route www.example.org /news: added",)
    assert "+www.example.org/news/ route-" in found.files


def test_what_no_node_runs_is_not_in_sync(env: Env) -> None:
    env.fleet.nodes.all().delete()
    assert selectors.sync_statuses(env.operator) == {env.fleet.pk: "no_nodes"}
    env.change_pool("blue", "source")
    env.reconcile()
    assert selectors.sync_statuses(env.operator) == {env.fleet.pk: "no_nodes"}


def test_customers_see_no_rollouts_but_whether_their_fleet_is_in_sync(env: Env) -> None:
    first, second = two_revisions()
    customer = actor_of("acme", "customer")
    assert not selectors.rollouts(customer).exists()
    assert not selectors.revisions(customer).exists()
    assert selectors.node_sync(customer) == []
    with pytest.raises(NotFound):
        selectors.difference(customer, first.pk, second.pk)
    with pytest.raises(NotFound):
        selectors.rollout(customer, Rollout.objects.latest("id").pk)
    assert selectors.sync_statuses(customer) == {env.fleet.pk: "in_sync"}
    empty = Fleet.objects.create(account=env.fleet.account, region=env.fleet.region, name="empty")
    assert selectors.sync_statuses(customer)[empty.pk] == "empty"
    empty.delete()
    add_route(env.operator, "more", "/more")
    assert selectors.sync_statuses(customer) == {env.fleet.pk: "behind"}


def test_a_stored_revision_shows_no_secret_to_who_reads_the_database(env: Env) -> None:
    revision = Revision.objects.defer(None).earliest("number")
    for stored in (revision.bundle, revision.snapshot):
        assert b"www.example.org" not in bytes(stored)
        assert zlib.decompress(unseal(stored)), "what is packed and not sealed shows nothing at first sight either"
    assert selectors.rollout(env.operator, Rollout.objects.earliest("pk").pk).steps.count() == 2


def test_old_revisions_are_forgotten_unless_something_points_to_them(env: Env) -> None:
    first, _ = two_revisions()
    services.roll_back(actor=env.operator, revision_id=first.pk, reason="hold")
    env.reconcile()
    services.resume(actor=env.operator, fleet_id=env.fleet.pk, reason="go on")
    for number in range(4):
        add_route(env.operator, f"r{number}", f"/r{number}")
        env.reconcile()
    services.roll_back(actor=env.operator, revision_id=first.pk, reason="hold")
    assert revision_store.prune_revisions(fleet_id=env.fleet.pk, keep=2) == 3
    assert list(Revision.objects.values_list("number", flat=True)) == [6, 5, 1]
    env.reconcile()
    assert {node.digest for node in env.memory} == {first.digest}

"""Bypass tokens: the nodes of a region know a run's token while it is active, and only then."""

from __future__ import annotations

from hashlib import sha256

import pytest

from apps.capacity.models import Run
from apps.capacity.run import bypass_tokens
from apps.compiler.model.fleet import BypassToken
from apps.core.errors import Conflict
from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.models import Pool
from apps.definitions.services import save_object
from apps.fleet.models import Region
from tests.apps.pushed import World, pool_spec


def started(world: World, server: str = "", pool: str = "blue") -> Run:
    """A run that a worker has just taken."""
    return Run.objects.create(
        account=world.operator.account,
        pool=Pool.objects.get(name=pool),
        region=Region.objects.get(name="here"),
        label="how much blue can take",
        plan={"target": {"pool": pool, "region": "here", "server": server}},
        state=Run.State.STARTING,
        actor=world.operator.name,
        attempt=1,
    )


def running_passes(world: World) -> set[bytes]:
    """What `maps/tests.map` says on the nodes that were pushed to."""
    return {node.files["maps/tests.map"] for node in world.memory}


def test_a_bypass_token_is_pushed_and_taken_back_and_only_its_digest_is_stored(world: World) -> None:
    world.reconcile()
    run = started(world)
    token = bypass_tokens.activate(run)
    world.reconcile()
    assert bypass_tokens.wait_until_live(run, 1)
    digest = sha256(token.encode()).hexdigest()
    assert running_passes(world) == {f"{digest} pool-{run.pool_id}\n".encode()}
    run.refresh_from_db()
    assert run.bypass_digest == digest
    assert token not in str(vars(run))
    bypass_tokens.deactivate(run)
    world.reconcile()
    assert bypass_tokens.wait_until_live(run, 1)
    assert running_passes(world) == {b""}


def test_a_run_that_is_over_opens_nothing_even_if_nobody_took_its_bypass_token_back(world: World) -> None:
    run = started(world)
    bypass_tokens.activate(run)
    assert len(snapshot_of(world.fleet).bypass_tokens) == 1
    Run.objects.filter(pk=run.pk).update(state=Run.State.FAILED)
    assert snapshot_of(world.fleet).bypass_tokens == ()


def test_taking_a_bypass_token_back_twice_pushes_once(world: World) -> None:
    run = started(world)
    bypass_tokens.activate(run)
    before = world.desired()
    bypass_tokens.deactivate(run)
    bypass_tokens.deactivate(run)
    assert world.desired() == before + 1


def test_who_lost_the_run_gets_no_pass(world: World) -> None:
    run = started(world)
    Run.objects.filter(pk=run.pk).update(attempt=2)
    with pytest.raises(Conflict):
        bypass_tokens.activate(run)
    assert Run.objects.get(pk=run.pk).bypass_digest == ""


@pytest.mark.parametrize("direct", [True, False])
def test_one_server_directly_and_pools_of_tcp_need_no_pass(world: World, direct: bool) -> None:
    if not direct:
        save_object(actor=world.operator, kind="Pool", name="raw", spec=pool_spec() | {"protocol": "tcp"})
    run = started(world, server="s1") if direct else started(world, pool="raw")
    assert bypass_tokens.activate(run) == ""
    assert bypass_tokens.headers_of(run, "") == {"X-Load-Test": run.name, "User-Agent": "Spillway-CapacityTest/1"}


def test_another_region_is_told_nothing(world: World) -> None:
    run = started(world)
    bypass_tokens.activate(run)
    digest = Run.objects.get(pk=run.pk).bypass_digest
    assert snapshot_of(world.fleet).bypass_tokens == (BypassToken(digest, f"pool-{run.pool_id}"),)
    save_object(
        actor=world.operator, kind="Region", name="there", spec={"title": "There", "latitude": None, "longitude": None}
    )
    there = save_object(actor=world.operator, kind="Fleet", name="there", spec={"region": "there"})
    assert snapshot_of(there).bypass_tokens == ()

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
from tests.apps.pushed import Env, pool_spec


def started(env: Env, server: str = "", pool: str = "blue") -> Run:
    """A run that a worker has just taken."""
    return Run.objects.create(
        account=env.operator.account,
        pool=Pool.objects.get(name=pool),
        region=Region.objects.get(name="here"),
        label="how much blue can take",
        plan={"target": {"pool": pool, "region": "here", "server": server}},
        state=Run.State.STARTING,
        actor=env.operator.name,
        attempt=1,
    )


def running_passes(env: Env) -> set[bytes]:
    """What `maps/tests.map` says on the nodes that were pushed to."""
    return {node.files["maps/tests.map"] for node in env.memory}


def test_a_bypass_token_is_pushed_and_taken_back_and_only_its_digest_is_stored(env: Env) -> None:
    env.reconcile()
    run = started(env)
    token = bypass_tokens.activate(run)
    env.reconcile()
    assert bypass_tokens.wait_until_live(run, 1)
    digest = sha256(token.encode()).hexdigest()
    assert running_passes(env) == {f"{digest} pool-{run.pool_id}\n".encode()}
    run.refresh_from_db()
    assert run.bypass_digest == digest
    assert token not in str(vars(run))
    bypass_tokens.deactivate(run)
    env.reconcile()
    assert bypass_tokens.wait_until_live(run, 1)
    assert running_passes(env) == {b""}


def test_a_run_that_is_over_opens_nothing_even_if_nobody_took_its_bypass_token_back(env: Env) -> None:
    run = started(env)
    bypass_tokens.activate(run)
    assert len(snapshot_of(env.fleet).bypass_tokens) == 1
    Run.objects.filter(pk=run.pk).update(state=Run.State.FAILED)
    assert snapshot_of(env.fleet).bypass_tokens == ()


def test_taking_a_bypass_token_back_twice_pushes_once(env: Env) -> None:
    run = started(env)
    bypass_tokens.activate(run)
    before = env.desired()
    bypass_tokens.deactivate(run)
    bypass_tokens.deactivate(run)
    assert env.desired() == before + 1


def test_who_lost_the_run_gets_no_pass(env: Env) -> None:
    run = started(env)
    Run.objects.filter(pk=run.pk).update(attempt=2)
    with pytest.raises(Conflict):
        bypass_tokens.activate(run)
    assert Run.objects.get(pk=run.pk).bypass_digest == ""


@pytest.mark.parametrize("direct", [True, False])
def test_one_server_directly_and_pools_of_tcp_need_no_pass(env: Env, direct: bool) -> None:
    if not direct:
        save_object(actor=env.operator, kind="Pool", name="raw", spec=pool_spec() | {"protocol": "tcp"})
    run = started(env, server="s1") if direct else started(env, pool="raw")
    assert bypass_tokens.activate(run) == ""
    assert bypass_tokens.headers_of(run, "") == {"X-Load-Test": run.name, "User-Agent": "Spillway-CapacityTest/1"}


def test_another_region_is_told_nothing(env: Env) -> None:
    run = started(env)
    bypass_tokens.activate(run)
    digest = Run.objects.get(pk=run.pk).bypass_digest
    assert snapshot_of(env.fleet).bypass_tokens == (BypassToken(digest, f"pool-{run.pool_id}", run.name),)
    save_object(
        actor=env.operator, kind="Region", name="there", spec={"title": "There", "latitude": None, "longitude": None}
    )
    there = save_object(actor=env.operator, kind="Fleet", name="there", spec={"region": "there"})
    assert snapshot_of(there).bypass_tokens == ()

"""Replacements as people and pipelines ask for them: who may, one at a time, and what each can do about it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Membership
from apps.audit.models import Entry
from apps.core.clock import now
from apps.core.errors import Conflict, Forbidden, Invalid, Managed, NotFound
from apps.definitions.models import Pool, Server
from apps.definitions.services import managing, set_server
from apps.observe.collect.deltas import Counts
from apps.observe.live import store as live
from apps.observe.live.store import LiveNode
from apps.replacements import advancing, services
from apps.replacements.models import Replacement
from apps.webhooks.events import type_of
from tests.apps.observe_env import Env, make_env

pytestmark = pytest.mark.django_db
WORDS = {"ready": "UP", "drain": "UP", "maintenance": "MAINT"}


@pytest.fixture
def env(db: None, live_redis: str) -> Env:
    """Two regions; a pool of acme has two servers in each, at the same two nodes."""
    return make_env()


def look(env: Env, *down: str) -> None:
    """What a collector writes when nodes have done what they were told; these servers fail their checks."""
    windows = {}
    for node in env.nodes:
        rows: dict[tuple[str, str], Counts] = {("node", f"node-{node.pk}"): Counts(seconds=10)}
        for each in Server.objects.filter(backend__region=node.fleet.region_id):
            word = "DOWN" if each.name in down and each.state != "maintenance" else WORDS[each.state]
            rows["server", f"srv-{each.pk}"] = Counts(seconds=10, status=word)
        windows[node.pk] = LiveNode(now().timestamp(), rows)
    live.write(windows, {})


def ask(env: Env, actor: Actor | None = None, **plan: Any) -> Replacement:
    """One of acme's pool, whose servers need no watching."""
    pool = env.pools["acme"]
    return services.request_replacement(actor=actor or env.acme, pool_id=pool.pk, plan={"watch_s": 0, **plan})


def until(env: Env, row: Replacement, step: str, *down: str) -> Replacement:
    """Look and go on until it is at a step, or no more runs."""
    for _ in range(12):
        row.refresh_from_db()
        if row.step == step or row.state != Replacement.State.RUNNING:
            return row
        look(env, *down)
        advancing.advance(row.pk)
    raise AssertionError(f"it stays at {row.step}: {row.message}")


def replaced(env: Env, row: Replacement, *down: str) -> Replacement:
    """Its owner replaces the batch that is handed over, and it goes on until the next one."""
    services.continue_replacement(actor=env.acme, replacement_id=row.pk, batch=row.batch)
    advancing.advance(row.pk)
    row.refresh_from_db()
    return until(env, row, "replace", *down)


def states(row: Replacement) -> dict[str, str]:
    """The servers' states within it."""
    return {each.name: str(each.state) for each in row.servers.all()}


def test_every_server_is_replaced_in_its_turn_and_is_ready_again(env: Env) -> None:
    row = until(env, ask(env, servers=["eu-2", "us-1"]), "replace")
    for batch, name in enumerate(("eu-2", "us-1"), start=1):
        assert (row.batch, [each.name for each in row.servers.filter(state="out")]) == (batch, [name])
        assert [each.name for each in Server.objects.exclude(state="ready")] == [name]
        row = replaced(env, row)
    assert (row.state, set(states(row).values()), row.message) == ("done", {"done"}, "")
    assert not Server.objects.exclude(state="ready").exists()


def test_webhooks_are_told_which_servers_may_be_replaced(env: Env) -> None:
    row = until(env, ask(env, region="us"), "replace")
    entry = Entry.objects.get(action="hand_over")
    assert type_of(entry) == "replacement.handed_over"
    told = entry.after or {}
    assert told["servers"] == [{"region": "us", "name": "us-1", "address": "10.0.0.1", "port": 8001}]
    assert (told["batch"], entry.object_id, entry.account) == (1, row.pk, env.acme.account)


def test_a_bad_build_stops_at_the_first_batch_goes_back_and_is_over(env: Env) -> None:
    row = until(env, ask(env, health_s=1), "replace")
    services.continue_replacement(actor=env.acme, replacement_id=row.pk, batch=1)
    row.refresh_from_db()
    until(env, row, "check", "eu-1")
    Replacement.objects.update(step_since=now() - timedelta(seconds=60))
    look(env, "eu-1")
    advancing.advance(row.pk)
    row.refresh_from_db()
    assert (row.state, states(row)["eu-1"], states(row)["eu-2"]) == ("stopped", "failed", "waiting")
    assert [each.name for each in Server.objects.exclude(state="ready")] == ["eu-1"]
    services.reverse_replacement(actor=env.acme, replacement_id=row.pk)
    row = until(env, row, "replace", "eu-1")
    assert (row.direction, [each.name for each in row.servers.filter(state="out")]) == ("back", ["eu-1"])
    row = replaced(env, row)
    assert (row.state, states(row)["eu-1"], states(row)["us-2"]) == ("done", "done", "left")
    assert not Server.objects.exclude(state="ready").exists()


def test_without_the_budget_a_bad_build_would_go_on(env: Env) -> None:
    row = until(env, ask(env, health_s=1, max_failures=4), "replace")
    services.continue_replacement(actor=env.acme, replacement_id=row.pk, batch=1)
    row.refresh_from_db()
    until(env, row, "check", "eu-1")
    Replacement.objects.update(step_since=now() - timedelta(seconds=60))
    look(env, "eu-1")
    advancing.advance(row.pk)
    row.refresh_from_db()
    assert (row.state, states(row)["eu-1"]) == ("running", "failed")


def test_stopping_gives_servers_back_that_nobody_touched(env: Env) -> None:
    row = until(env, ask(env), "drain")
    assert Server.objects.filter(state="drain").count() == 1
    row = services.stop_replacement(actor=env.acme, replacement_id=row.pk)
    assert (row.state, Server.objects.filter(state="ready").count()) == ("stopped", 6)
    advancing.advance(row.pk)
    assert Replacement.objects.get().state == "stopped"
    services.resume_replacement(actor=env.acme, replacement_id=row.pk)
    assert until(env, row, "replace").step == "replace"


def test_stopping_leaves_servers_out_that_are_being_replaced_and_ending_names_them(env: Env) -> None:
    row = until(env, ask(env), "replace")
    row = services.end_replacement(actor=env.acme, replacement_id=row.pk)
    assert (row.state, Server.objects.get(name="eu-1", backend__pool__name="acme-web").state) == (
        "ended",
        "maintenance",
    )
    assert "Still out: eu-1." in row.message
    ask(env)  # and the pool may have another one


def test_going_back_leaves_a_server_that_failed_before_it_was_handed_over(env: Env) -> None:
    row = until(env, ask(env, servers=["eu-1", "eu-2"]), "replace")
    services.continue_replacement(actor=env.acme, replacement_id=row.pk, batch=1)
    row = until(env, row, "drain")
    Server.objects.filter(name="eu-2", backend__pool=env.pools["acme"]).update(state="ready")  # somebody's own word
    advancing.advance(row.pk)
    row.refresh_from_db()
    assert (row.state, states(row)) == ("stopped", {"eu-1": "done", "eu-2": "failed"})
    services.reverse_replacement(actor=env.acme, replacement_id=row.pk)
    row = replaced(env, until(env, row, "replace"))
    assert (row.state, states(row)) == ("done", {"eu-1": "done", "eu-2": "left"})
    assert row.message == "", "no server is out"


def test_of_two_workers_with_the_same_facts_one_makes_the_step(env: Env) -> None:
    row = ask(env)
    look(env)
    read = Replacement.objects.get()
    advancing.advance(row.pk)
    assert not advancing._locked(read)
    assert Server.objects.filter(state="drain").count() == 1


def test_a_pool_has_one_at_a_time_and_an_account_has_a_bound(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(env)
    with pytest.raises(Conflict, match="of this pool is running"):
        ask(env)
    Replacement.objects.update(pool=None)
    monkeypatch.setattr(services, "MOST_OPEN", 1)
    with pytest.raises(Conflict, match="1 open replacements"):
        ask(env)


def test_only_who_may_change_the_pool_may_replace_its_servers(env: Env) -> None:
    viewer = Actor("v", env.acme.account, Membership.Role.VIEWER)
    reads = Actor("t", env.acme.account, Membership.Role.EDITOR, scopes=frozenset({"pools:read"}))
    for actor, refusal in ((viewer, Forbidden), (reads, Forbidden), (env.globex, NotFound)):
        with pytest.raises(refusal):
            ask(env, actor)
    row = ask(env)
    for act in (
        services.stop_replacement,
        services.reverse_replacement,
        services.end_replacement,
        services.resume_replacement,
    ):
        for actor, refusal in ((viewer, Forbidden), (reads, Forbidden), (env.globex, NotFound)):
            with pytest.raises(refusal):
                act(actor=actor, replacement_id=row.pk)


def test_a_pipelines_pool_is_replaced_by_its_pipeline(env: Env) -> None:
    Pool.objects.update(manager="ci")
    with pytest.raises(Managed):
        ask(env)
    with managing(manager="ci"):
        row = ask(env)
    assert until(env, row, "drain").step == "drain"


def test_one_whose_pool_a_pipeline_takes_over_stops_and_can_be_ended(env: Env) -> None:
    row = until(env, ask(env, region="us"), "drain")
    Pool.objects.update(manager="ci")
    look(env)
    advancing.advance(row.pk)
    row.refresh_from_db()
    assert (row.state, states(row)) == ("stopped", {"us-1": "waiting", "us-2": "waiting"})
    assert "managed by ci" in row.message
    assert row.message.endswith("Not set ready again: us-1.")
    services.end_replacement(actor=env.acme, replacement_id=row.pk)
    row.refresh_from_db()
    assert (row.state, "Still out: us-1" in row.message) == ("ended", True)


def test_one_that_runs_can_be_ended_though_a_pipeline_took_its_pool_over(env: Env) -> None:
    row = until(env, ask(env, region="us"), "drain")
    Pool.objects.update(manager="ci")
    services.end_replacement(actor=env.acme, replacement_id=row.pk)
    row.refresh_from_db()
    assert (row.state, [each.name for each in Server.objects.filter(state="drain")]) == ("ended", ["us-1"])


def test_what_cannot_be_replaced_is_named(env: Env) -> None:
    set_server(actor=env.acme, server_id=env.servers[0].pk, state="drain")
    with pytest.raises(Invalid) as refused:
        ask(env, servers=["eu-1", "eu-7"])
    found = {each.pointer: each.code for each in refused.value.field_errors}
    assert found == {"/servers/0": "not_ready", "/servers/1": "unknown"}
    for node in env.nodes:
        node.delete()
    with pytest.raises(Invalid, match="No node of ours serves eu"):
        ask(env)


def test_a_batch_is_continued_once_and_not_before_its_time(env: Env) -> None:
    row = ask(env)
    with pytest.raises(Conflict, match="is not handed over"):
        services.continue_replacement(actor=env.acme, replacement_id=row.pk, batch=1)
    row = replaced(env, until(env, row, "replace"))
    again = services.continue_replacement(actor=env.acme, replacement_id=row.pk, batch=1)
    assert (again.batch, again.step) == (2, "replace")
    with pytest.raises(Invalid):
        services.continue_replacement(actor=env.acme, replacement_id=row.pk, batch="2", failed=["nobody"])


def test_an_owner_may_say_that_a_server_could_not_be_replaced(env: Env) -> None:
    row = until(env, ask(env), "replace")
    services.continue_replacement(actor=env.acme, replacement_id=row.pk, batch=1, failed=["eu-1"])
    advancing.advance(row.pk)
    row.refresh_from_db()
    assert (row.state, row.message) == ("stopped", "1 server failed. Its owner says so.")


def test_a_server_that_leaves_the_pool_is_gone_and_the_rest_goes_on(env: Env) -> None:
    row = until(env, ask(env, region="eu"), "replace")
    Server.objects.filter(name="eu-1", backend__pool=env.pools["acme"]).delete()
    services.continue_replacement(actor=env.acme, replacement_id=row.pk, batch=1)
    advancing.advance(row.pk)
    assert states(row)["eu-1"] == "gone"


def test_the_sweep_does_the_work_where_no_broker_is(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advancing, "enqueue", lambda *_, **__: False)
    row = ask(env)
    look(env)
    advancing.sweep()
    row.refresh_from_db()
    assert row.step == "drain"
    row.account.suspended_at = now()
    row.account.save()
    look(env)
    advancing.sweep()
    row.refresh_from_db()
    assert row.step == "drain"

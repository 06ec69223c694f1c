"""Runs of capacity tests against backends in memory, in simulated time: from the request to the result."""

from __future__ import annotations

import html
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Membership
from apps.capacity import services
from apps.capacity.models import Run
from apps.capacity.run import bypass_tokens, checking, claims, facts, running
from apps.capacity.run.generating import Load
from apps.core.clock import now
from apps.core.errors import Conflict, Forbidden, NotFound
from apps.definitions.models import Server
from apps.definitions.services import save_object
from apps.drivers.load.memory import MemoryBackend, forget_memory_backends, memory_backend
from apps.drivers.proxy.memory import memory_node
from apps.fleet.models import Fleet, Node, Region
from apps.observe.collect.deltas import Counts
from apps.observe.models import NodeReport
from apps.rollouts import services as rollouts
from tests.apps.capacity_env import Watched, a_test, document, put, stepwise
from tests.conftest import actor_of
from tests.interfaces.people import client_of

HOLD = {"kind": "constant", "rate": 10, "duration_s": 5, "arrivals": "constant"}


@pytest.fixture
def editor(db: None, live_redis: str) -> Actor:
    """Acme's editor in an environment that can be loaded."""
    return put()


@pytest.fixture
def nodes(editor: Actor, monkeypatch: pytest.MonkeyPatch) -> Watched:
    """The nodes, pushed to and read."""
    return stepwise(monkeypatch)


@pytest.fixture
def backend(nodes: Watched) -> Iterator[MemoryBackend]:
    """The server: two lanes of 100 ms, so 20 requests/s."""
    yield memory_backend("127.0.0.1", 19101, servers=2, service_ms=100)
    forget_memory_backends()


def ran(actor: Actor, **parts: Any) -> Run:
    """A run that was asked for and carried out."""
    run = services.request_run(actor=actor, test_id=a_test(actor, **parts).pk)
    running.carry_out(run.pk)
    run.refresh_from_db()
    return run


@pytest.mark.slow(reason="eighty seconds of a search, each with all its questions")
def test_a_search_finds_what_the_server_takes_and_keeps_its_steps(editor: Actor, backend: MemoryBackend) -> None:
    backend.generator_max = 40.0  # the generator is not what breaks first
    run = ran(editor, load={"arrivals": "constant"})
    assert run.state == Run.State.DONE, run.message
    assert run.result is not None
    assert run.result["capacity"] == pytest.approx(20, rel=0.05)
    assert run.result["limited_by"] == "objective"
    assert run.result["overloaded_s"] <= 10
    assert run.result["build"]["digest"]
    assert run.steps.count() > 3
    assert run.seconds.count() > 10
    assert (run.bypass_digest, run.lease_until) == ("", None)


def test_a_run_through_the_nodes_has_a_bypass_token_only_while_it_lasts(editor: Actor, nodes: Watched) -> None:
    memory_backend("127.0.0.1", 18080, servers=2, service_ms=100)
    try:
        run = ran(editor, server="", load=HOLD)
    finally:
        forget_memory_backends()
    assert run.state == Run.State.DONE, run.message
    assert run.bypass_digest == ""


@pytest.mark.parametrize("fails", [0.5, 0.0])
def test_a_backend_that_fails_ends_the_run_and_one_that_does_not_does_not(
    editor: Actor, backend: MemoryBackend, fails: float
) -> None:
    backend.failing = fails
    run = ran(editor, load=HOLD)
    assert (run.state, "failed for 5 s" in run.message) == (
        (Run.State.STOPPED, True) if fails else (Run.State.DONE, False)
    )
    assert run.seconds.count() == (6 if fails else 10)


@pytest.mark.parametrize("slower", [True, False])
def test_another_tenant_that_gets_slower_ends_the_run(
    editor: Actor, nodes: Watched, backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch, slower: bool
) -> None:
    calm = Counts(seconds=10.0, requests=50, status_2xx=50, latency={50: 50})
    nodes.rows[("backend", "pool-77")] = calm
    nodes.read()
    looks = facts.look

    def look(watch: Any) -> Any:
        if slower and Run.objects.filter(state=Run.State.RUNNING, seconds__isnull=False).exists():
            nodes.rows[("backend", "pool-77")] = Counts(seconds=10.0, requests=50, status_2xx=50, latency={1000: 50})
            nodes.read()
        return looks(watch)

    monkeypatch.setattr(facts, "look", look)
    run = ran(editor, load=HOLD)
    assert ("gets slower" in run.message) is slower, run.message
    assert (run.state == Run.State.STOPPED) is slower


@pytest.mark.parametrize("busy", [0.9, 0.5])
def test_a_node_without_processor_time_to_spare_ends_the_run(
    editor: Actor, nodes: Watched, backend: MemoryBackend, busy: float
) -> None:
    nodes.in_use["cpu"] = busy
    nodes.read()
    run = ran(editor, load=HOLD)
    assert ("90 % of its CPU" in run.message) is (busy == 0.9), run.message
    assert (run.state == Run.State.STOPPED) is (busy == 0.9)


@pytest.mark.parametrize(("what", "busy"), [("cpu", 0.9), ("connections", 0.9), ("cpu", 0.5)])
def test_the_bottleneck_is_a_node_only_when_one_was_nearly_used_up(
    editor: Actor, nodes: Watched, backend: MemoryBackend, what: str, busy: float
) -> None:
    waiting = Counts(seconds=10.0, requests=50, status_2xx=50, queue_now=7, connections_now=12)
    nodes.rows[("server", f"srv-{Server.objects.get(backend__pool__name='shop', backend__region__name='here').pk}")] = (
        waiting
    )
    nodes.in_use[what] = busy
    nodes.read()
    backend.failing = 0.5  # whatever the node has left, a step goes wrong
    run = ran(editor, load=HOLD)
    assert run.result is not None
    found = run.result["bottleneck"]
    assert (found["reason"], found["name"]) == (("node", "here") if busy == 0.9 else ("queue", ""))
    assert (f"90 % of its {'CPU' if what == 'cpu' else what}" in found["message"]) is (busy == 0.9)
    page = client_of(editor).get(f"/capacity-runs/{run.pk}").content.decode()
    assert html.escape(found["message"]) in page


def test_a_region_that_is_drained_meanwhile_ends_the_run(
    editor: Actor, backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = facts.look

    def look(watch: Any) -> Any:
        if Run.objects.filter(seconds__isnull=False).exists():
            Region.objects.filter(name="here").update(drained=True)
        return looks(watch)

    monkeypatch.setattr(facts, "look", look)
    run = ran(editor, load=HOLD)
    assert (run.state, run.message) == (Run.State.STOPPED, "Aborted: here is drained, so it serves no traffic.")
    assert run.seconds.count() <= 2


@pytest.mark.parametrize(
    ("account", "why"),
    [("operator", "Node here of fleet here cannot be reached."), ("acme", "A rollout to fleet here is in progress.")],
)
def test_a_region_with_a_node_that_is_away_is_not_loaded_and_operators_learn_which(
    editor: Actor, account: str, why: str
) -> None:
    test = a_test(editor)
    node = memory_node(Node.objects.get(name="here").url.removeprefix("memory://"))
    node.unreachable = True
    try:
        pool = next(each for each in document("", 18080, 19101) if each["kind"] == "Pool")
        save_object(actor=editor, kind="Pool", name="shop", spec=pool["spec"] | {"balance": "random"})
        rollouts.reconcile_fleet(fleet_id=test.region.fleets.get().pk)
        test.account = Account.objects.get(name=account)
        assert checking.trouble_of_region(test) == why
    finally:
        node.unreachable = False


def test_a_silent_node_leaves_the_effect_unknown_unless_it_never_ran_anything(editor: Actor) -> None:
    test = a_test(editor)
    Watched().read()
    added = Node.objects.get(name="here")
    added.pk, added.name = None, "not-enrolled-yet"
    added.save()
    assert facts.look(facts.watch(test)).silent_s is not None
    NodeReport.objects.create(node=added, digest="of what it ran")
    assert facts.look(facts.watch(test)).silent_s is None


def test_viewers_stop_what_they_see_and_nobody_else_does(editor: Actor, backend: MemoryBackend) -> None:
    run = services.request_run(actor=editor, test_id=a_test(editor, load=HOLD).pk)
    globex = actor_of("globex", Account.Kind.CUSTOMER)
    with pytest.raises(NotFound):
        services.stop_run(actor=globex, run_id=run.pk)
    viewer = Actor("vera", editor.account, Membership.Role.VIEWER)
    assert services.stop_run(actor=viewer, run_id=run.pk).state == Run.State.STOPPED
    running.carry_out(run.pk)
    assert backend.received == 0
    with pytest.raises(Forbidden):
        services.request_run(actor=viewer, test_id=run.test_id or 0)


def test_a_stop_in_the_middle_ends_the_load_with_the_second(
    editor: Actor, backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = facts.look

    def look(watch: Any) -> Any:
        for run in Run.objects.filter(state=Run.State.RUNNING, stop_requested_at=None):
            services.stop_run(actor=editor, run_id=run.pk)
        return looks(watch)

    monkeypatch.setattr(facts, "look", look)
    run = ran(editor, load=HOLD)
    assert (run.state, run.message) == (Run.State.STOPPED, "somebody of acme stopped it.")
    assert run.seconds.count() == 2
    assert run.result is not None


def test_a_run_whose_load_ended_before_its_time_is_not_done(
    editor: Actor, backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a worker is held up for longer than the generator's lease."""
    monkeypatch.setattr(Load, "renew", lambda _: None)
    run = ran(editor, load=HOLD | {"duration_s": 30})
    assert (run.state, run.message) == (Run.State.FAILED, running.LOAD_LOST)
    assert run.seconds.count() < 10


def test_a_run_gets_exactly_one_run_and_a_late_one_none(editor: Actor, backend: MemoryBackend) -> None:
    test = a_test(editor, load=HOLD)
    first = services.request_run(actor=editor, test_id=test.pk, request_key="f1", scheduled_at=now())
    again = services.request_run(actor=editor, test_id=test.pk, request_key="f1", scheduled_at=now())
    assert first.pk == again.pk
    late = services.request_run(
        actor=editor, test_id=test.pk, request_key="f2", scheduled_at=now() - timedelta(seconds=90)
    )
    assert (late.state, "do not catch up" in late.message) == (Run.State.REFUSED, True)


def test_a_run_that_nobody_began_within_a_minute_is_refused(editor: Actor, backend: MemoryBackend) -> None:
    run = services.request_run(actor=editor, test_id=a_test(editor, load=HOLD).pk)
    Run.objects.update(begin_by=now() - timedelta(seconds=1))
    running.carry_out(run.pk)
    services.sweep()
    run.refresh_from_db()
    assert (run.state, backend.received) == (Run.State.REFUSED, 0)


def test_above_the_threshold_an_operator_approves(editor: Actor, backend: MemoryBackend, settings: Settings) -> None:
    settings.TEST_APPROVAL_RATE = 49
    run = services.request_run(actor=editor, test_id=a_test(editor, load=HOLD).pk)
    running.carry_out(run.pk)
    services.sweep()
    assert (Run.objects.get().state, backend.received) == (Run.State.WAITING, 0)
    with pytest.raises(Forbidden):
        services.approve_run(actor=editor, run_id=run.pk)
    operator = actor_of("operator", Account.Kind.OPERATOR)
    services.approve_run(actor=operator, run_id=run.pk)
    with pytest.raises(Conflict):
        services.approve_run(actor=operator, run_id=run.pk)
    running.carry_out(run.pk)
    assert Run.objects.get().state == Run.State.DONE


def test_a_lost_worker_is_found_and_its_run_never_goes_on(editor: Actor, nodes: Watched) -> None:
    run = services.request_run(actor=editor, test_id=a_test(editor, server="", load=HOLD).pk)
    held = claims.take(run.pk)
    assert held is not None
    Run.objects.update(lease_until=now() - timedelta(seconds=1), bypass_digest="a" * 64)
    services.sweep()
    run.refresh_from_db()
    assert (run.state, run.message, run.bypass_digest) == (Run.State.FAILED, services.LOST, "")
    with pytest.raises(claims.ClaimLost):
        claims.renew(held)
    assert claims.take(run.pk) is None


def test_a_token_that_a_worker_left_is_taken_back_from_the_nodes(editor: Actor, nodes: Watched) -> None:
    run = services.request_run(actor=editor, test_id=a_test(editor, server="", load=HOLD).pk)
    over = {"state": Run.State.FAILED, "ended_at": now(), "bypass_digest": "a" * 64}
    Run.objects.filter(pk=run.pk).update(**over)
    fleet = Fleet.objects.get(pk=bypass_tokens._fleets(run)[0].pk)
    for _ in range(2):
        services.sweep()
    assert Run.objects.get().bypass_digest == ""
    assert Fleet.objects.get(pk=fleet.pk).desired_generation == fleet.desired_generation + 1

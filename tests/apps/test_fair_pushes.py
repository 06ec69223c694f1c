"""One account's constant changes delay no other's, on the same fleet and on others: counted in turns at the nodes.

A turn is a wake-up that asks nodes for something; what leaves without asking costs a few queries. A worker is played
that works off wake-ups one by one, in the order in which they came.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from apps.compiler.model.fleet import Snapshot
from apps.core import events, queue
from apps.definitions.freezing import snapshot as definitions
from apps.definitions.services import save_object
from apps.drivers.proxy.memory import MemoryDriver
from apps.fleet.models import Fleet
from apps.fleet.services import CHANGED_TASK, RECONCILE_TASK, request_push
from apps.rollouts import services
from apps.rollouts.models import Rollout
from apps.rollouts.push import compiling, lifecycle, revision_store
from tests.apps.pushed import Env, add_route, pool_spec, put_env, remembered

pytestmark = pytest.mark.django_db
FLOODS = [100, pytest.param(1000, marks=pytest.mark.exhaustive)]
SMALL_FLOOD, ROUNDS, LATE = 30, 5, 3
Committed = Callable[..., AbstractContextManager[Any]]
TASKS: dict[str, Callable[[int], object]] = {
    RECONCILE_TASK: lambda fleet_id: services.reconcile_fleet(fleet_id=fleet_id),
    CHANGED_TASK: lambda fleet_id: services.reconcile_changed(fleet_id=fleet_id),
}


def with_another_fleet(env: Env) -> None:
    """A second fleet with a node and a load balancer of its own; everything runs."""
    save_object(actor=env.operator, kind="Fleet", name="there", spec={"region": "here"})
    save_object(actor=env.operator, kind="Node", name="m1", spec={"fleet": "there", "url": "memory://pushed-m1"})
    save_object(actor=env.operator, kind="Pool", name="red", spec=pool_spec())
    listener = {"name": "http", "protocol": "http", "port": 8080, "default_pool": "red"}
    spec = {"fleets": ["there"], "listeners": [listener]}
    save_object(actor=env.operator, kind="LoadBalancer", name="second", spec=spec)
    for fleet in Fleet.objects.all():
        services.reconcile_fleet(fleet_id=fleet.pk)


ENV = remembered(with_another_fleet)


@pytest.fixture
def env(db: None) -> Env:
    """Two fleets that run what is wanted."""
    return put_env(ENV)


class Worker:
    """What waits for a worker, and how often it asked nodes."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[str, int]] = deque()
        self.turns, self.asked = 0, False

    def until(self, done: Callable[[], bool]) -> int:
        """Work off what waits until that is so; how many turns it took."""
        before = self.turns
        while not done():
            task, fleet_id = self.waiting.popleft()
            self.asked = False
            TASKS[task](fleet_id)
            self.turns += self.asked
        return self.turns - before


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    """Hears every wake-up, and of every call that a node gets."""
    found, reach = Worker(), MemoryDriver._reach

    def reached(driver: MemoryDriver) -> None:
        found.asked = True
        reach(driver)

    monkeypatch.setattr(MemoryDriver, "_reach", reached)
    monkeypatch.setattr(queue, "enqueue", lambda task, fleet: found.waiting.append((task, fleet)))
    monkeypatch.setattr(events, "publish", lambda *_, **__: None)
    return found


def is_out(fleet: Fleet) -> bool:
    """Whether all that was desired of the fleet is compiled and pushed."""
    return not compiling.must_compile(fleet.pk) and not Rollout.objects.filter(fleet=fleet, finished_at=None).exists()


def behind(committed: Committed, worker: Worker, env: Env, flood: int, balance: str) -> int:
    """Turns until a change of the other fleet is out that came behind so many of the first."""
    other = Fleet.objects.get(name="there")
    with committed(execute=True):
        if flood:
            add_route(env.operator, f"flood-{flood}", f"/flood-{flood}")
        for _ in range(flood):
            request_push([env.fleet])
        save_object(actor=env.operator, kind="Pool", name="red", spec=pool_spec() | {"balance": balance})
    return worker.until(lambda: is_out(other))


@pytest.mark.slow(reason="works off a hundred wake-ups, or a thousand")
@pytest.mark.parametrize("flood", FLOODS)
def test_many_changes_of_one_fleet_hardly_delay_a_change_of_another(
    env: Env, worker: Worker, django_capture_on_commit_callbacks: Committed, flood: int
) -> None:
    alone = behind(django_capture_on_commit_callbacks, worker, env, 0, "source")
    assert behind(django_capture_on_commit_callbacks, worker, env, flood, "random") <= 2 * alone


@pytest.mark.exhaustive
@pytest.mark.slow(reason="asks every node for each of thirty wake-ups")
def test_control_where_each_wake_up_asks_the_nodes_another_fleet_waits_for_all_of_them(
    env: Env,
    worker: Worker,
    django_capture_on_commit_callbacks: Committed,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(TASKS, CHANGED_TASK, TASKS[RECONCILE_TASK])
    assert behind(django_capture_on_commit_callbacks, worker, env, SMALL_FLOOD, "random") >= SMALL_FLOOD


def pushes_until_live(env: Env, monkeypatch: pytest.MonkeyPatch, *, flood: int) -> int:
    """Rounds of pushes from a change of ours on until it is live, while so many of another's come during each."""
    note_start, rounds = lifecycle.note_start, list[bool]()

    def pushed(rollout: Rollout, node_ids: Iterable[int]) -> None:
        note_start(rollout, node_ids)
        bundle = revision_store.bundle_of(rollout.revision_id, rollout.revision.digest)
        rounds.append(b"/ours" in b"".join(bundle.files.values()))
        if len(rounds) == 1:
            add_route(env.operator, "ours", "/ours")
        if len(rounds) < ROUNDS:
            for number in range(flood):
                add_route(env.operator, f"r{number}", f"/r{number}-{len(rounds)}")

    monkeypatch.setattr(lifecycle, "note_start", pushed)
    add_route(env.operator, "first", "/first")
    env.reconcile()
    return rounds.index(True) if True in rounds else ROUNDS


@pytest.mark.slow(reason="writes and compiles routes round after round")
@pytest.mark.parametrize("flood", [0, 3])
def test_a_change_goes_out_with_the_next_push_however_many_others_come_with_every_one(
    env: Env, monkeypatch: pytest.MonkeyPatch, flood: int
) -> None:
    assert pushes_until_live(env, monkeypatch, flood=flood) == 1


@pytest.mark.exhaustive
def test_control_where_a_push_takes_one_change_it_waits_for_all_before_it(
    env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is frozen is what there was some rounds ago."""
    frozen, freeze = list[Snapshot](), definitions.freeze

    def late(fleet_id: int) -> tuple[Snapshot, int]:
        snapshot, generation = freeze(fleet_id)
        frozen.append(snapshot)
        return frozen[max(0, len(frozen) - LATE)], generation

    monkeypatch.setattr(compiling, "freeze", late)
    assert pushes_until_live(env, monkeypatch, flood=3) > 1

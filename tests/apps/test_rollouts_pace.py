"""Each node of a fleet is brought along at its own pace: one that falls silent holds up nobody."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connections

from apps.core.clock import now
from apps.drivers.proxy.agent import AgentDriver
from apps.drivers.proxy.connections import CONNECT_SECONDS
from apps.drivers.proxy.contract import NodeTarget, Unreachable
from apps.fleet.models import Node
from apps.fleet.pki import issue, make_authority
from apps.fleet.services import RECONCILE_TASK
from apps.rollouts import services
from apps.rollouts.models import Rollout, Step
from apps.rollouts.push import reconciling
from tests.apps.pushed import Env, add_route, put_env, remembered

RUNNING = remembered(Env.reconcile)
PROMISED_S = 1.0
CONTROL_S = 2.0
PATIENCE_S = 30.0
Woken = list[tuple[object, ...]]


class Silent:
    """An agent that takes every connection and answers none until it is told to hang up."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "a.sock"
        self.asked = threading.Event()
        self._taken: list[socket.socket] = []
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(self.path))
        self._door.listen(16)
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._taken.append(self._door.accept()[0])
                self.asked.set()

    def hang_up(self) -> None:
        """End every connection; the next ones are refused."""
        self.path.unlink()
        self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        for each in self._taken:
            each.close()


@contextmanager
def silent() -> Iterator[Silent]:
    """One that has hung up afterwards."""
    with tempfile.TemporaryDirectory(prefix="sw-") as folder:
        found = Silent(Path(folder))
        try:
            yield found
        finally:
            found.hang_up()


def until(true: object, seconds: float) -> bool:
    """Whether it became true in time."""
    assert callable(true)
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.02)
    return bool(true())


def _next_change_while_one_is_silent(monkeypatch: pytest.MonkeyPatch, seconds: float) -> tuple[bool, Woken]:
    """Whether n1 has the second change so soon after it was made, n2 being silent at the first; who was woken later."""
    woken: Woken = []
    monkeypatch.setattr(reconciling, "enqueue", lambda *words: woken.append(words))
    env = put_env(RUNNING)
    with silent() as agent:
        Node.objects.filter(name="n2").update(url=f"unix://{agent.path}")
        add_route(env.operator, "one", "/one")
        worker = threading.Thread(target=_reconcile, args=(env,))
        worker.start()
        assert agent.asked.wait(PATIENCE_S), "the silent one has been asked"
        time.sleep(0.5)
        add_route(env.operator, "two", "/two")
        before = env.memory[0].generation
        soon = until(lambda: env.memory[0].generation > before, seconds)
        if soon:
            worker.join(PATIENCE_S)
            assert not worker.is_alive(), "nor does the worker wait for the silent one"
    worker.join(PATIENCE_S)
    assert not worker.is_alive()
    until(lambda: bool(woken), 1)
    return soon, woken


def _reconcile(env: Env) -> None:
    try:
        services.reconcile_fleet(fleet_id=env.fleet.pk)
    finally:
        connections.close_all()


@pytest.mark.both_engines
@pytest.mark.slow(reason="a node is silent for a while")
@pytest.mark.django_db(transaction=True)  # the worker is a thread with a connection of its own
def test_a_healthy_node_gets_the_next_change_within_a_second_while_another_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    soon, woken = _next_change_while_one_is_silent(monkeypatch, PROMISED_S)
    assert soon
    assert [words[0] for words in woken] == [RECONCILE_TASK], "the late one is looked at when it is done"
    steps = dict(Step.objects.filter(rollout=Rollout.objects.latest("id")).values_list("node__name", "state"))
    assert steps == {"n1": "done", "n2": "waiting"}


@pytest.mark.exhaustive
@pytest.mark.slow(reason="a node is silent for a while")
@pytest.mark.django_db(transaction=True)  # as above
def test_control_a_worker_that_waits_for_all_nodes_keeps_the_healthy_one_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reconciling, "NEWS_SECONDS", 1000.0)
    soon, _ = _next_change_while_one_is_silent(monkeypatch, CONTROL_S)
    assert not soon


def _full_backlog() -> tuple[socket.socket, list[socket.socket]]:
    """A port of this machine that takes no connection any more, as an address that nobody is at."""
    door = socket.socket()
    door.bind(("127.0.0.1", 0))
    door.listen(0)
    waiting = []
    for _ in range(3):
        each = socket.socket()
        each.setblocking(False)
        each.connect_ex(door.getsockname())
        waiting.append(each)
    time.sleep(0.05)
    return door, waiting


@pytest.mark.slow(reason="a connection is waited for")
def test_an_address_where_nobody_is_costs_a_push_two_seconds_and_not_its_whole_time(tmp_path: Path) -> None:
    authority = make_authority(now())
    pair = issue(authority, "control-plane", client=True, now=now())
    for name, content in (("ca", authority.certificate), ("client", pair.certificate), ("key", pair.key)):
        (tmp_path / name).write_bytes(content)
    door, waiting = _full_backlog()
    try:
        url = f"https://127.0.0.1:{door.getsockname()[1]}"
        driver = AgentDriver(NodeTarget("n1", url, *(str(tmp_path / name) for name in ("ca", "client", "key"))))
        began = time.monotonic()
        with pytest.raises(Unreachable, match="timed out"):
            driver._call("PUT", "/v1/bundle", {}, 60.0)
        assert CONNECT_SECONDS <= time.monotonic() - began < 10
    finally:
        for each in (door, *waiting):
            each.close()


def test_a_node_that_could_not_take_a_change_holds_up_nobody_and_gets_it_later(db: None) -> None:
    env = put_env(RUNNING)
    env.memory[1].unavailable = "no space left on the disk"
    add_route(env.operator, "one", "/one")
    env.reconcile()
    rollout = Rollout.objects.latest("id")
    assert (rollout.state, rollout.fleet.sync.refused_digest) == ("pushing", ""), "nothing was refused"
    assert "no space left" in rollout.steps.get(node__name="n2").message
    env.memory[1].unavailable = ""
    assert until(lambda: not services.reconcile_fleet(fleet_id=env.fleet.pk) or _is_done(rollout), 5)
    assert env.memory[0].digest == env.memory[1].digest


def _is_done(rollout: Rollout) -> bool:
    rollout.refresh_from_db()
    return rollout.state == "done"

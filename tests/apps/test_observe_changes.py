"""What pages are shown is whole though only changes travel: rows go, nodes reload, hashes and collectors are lost."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from apps.core.clock import now
from apps.core.requests import answers_kept
from apps.drivers.proxy.memory import MemoryNode, forget_memory_nodes, memory_node
from apps.observe.collect.deltas import Counts
from apps.observe.collect.readings import Address, Reading, read_node
from apps.observe.collect.recorder import Recorder
from apps.observe.live import store as live
from apps.observe.models import Condition
from tests.apps.observe_env import Env, make_env, row


@pytest.fixture
def env(db: None, live_redis: str) -> Iterator[Env]:
    forget_memory_nodes()
    yield make_env()
    forget_memory_nodes()


class Round:
    """A collector that reads the first node of the environment as often as it is asked to, two seconds apart."""

    def __init__(self, env: Env, at: float = 0.0) -> None:
        self.node, self.recorder, self.at = env.nodes[0], Recorder(), at
        self.there: MemoryNode = memory_node(f"observe-{self.node.name}")
        self.there.generation = 3
        self.told = 0

    def __call__(self) -> None:
        self.show(self.read())

    def read(self) -> Reading:
        """One that is not shown yet."""
        address = Address(self.node.pk, self.node.name, self.node.url, seen=self.recorder.seen(self.node.pk))
        found = read_node(address)
        assert found.counters is not None
        self.told = len(found.counters.rows)
        self.recorder.gather([found])
        self.recorder.store({self.node.pk: found}, found.at)
        return found

    def show(self, found: Reading) -> None:
        """To pages and metrics."""
        self.recorder.show({self.node.pk: found})

    def shown(self) -> dict[str, tuple[int, str]]:
        """What pages read: by object its connections now, and its word."""
        found = live.read_kind([self.node.pk], "backend") or {}
        return {name: (each.connections_now, each.status) for (_, name), each in found[self.node.pk].rows.items()}

    def counted(self) -> dict[str, int]:
        """What metrics read."""
        return {name: each.requests for (_, name), each in live.read_totals([self.node.pk])[self.node.pk].items()}


def test_rows_at_rest_are_neither_told_nor_lost(env: Env) -> None:
    tick = Round(env)
    tick.there.rows = (row("backend", "pool-1", 5, connections_now=2), row("backend", "pool-2", 7))
    for told in (2, 0, 0):
        tick()
        assert tick.told == told
        assert tick.shown() == {"pool-1": (2, "OPEN"), "pool-2": (0, "OPEN")}
        assert tick.counted() == {"pool-1": 5, "pool-2": 7}
    tick.there.rows = (row("backend", "pool-1", 6, connections_now=1), row("backend", "pool-2", 7))
    tick()
    assert tick.told == 1
    assert tick.shown()["pool-1"] == (1, "OPEN")
    assert tick.counted() == {"pool-1": 6, "pool-2": 7}


def test_a_row_that_went_is_shown_and_counted_no_more(env: Env) -> None:
    tick = Round(env)
    tick.there.rows = (row("backend", "pool-1", 5), row("backend", "pool-2", 7))
    tick()
    tick()
    tick.there.rows = tick.there.rows[:1]
    tick()
    assert (set(tick.shown()), tick.counted()) == ({"pool-1"}, {"pool-1": 5})


def test_after_a_reload_the_new_counters_count(env: Env) -> None:
    tick = Round(env)
    tick.there.rows = (row("backend", "pool-1", 500), row("backend", "pool-2", 7))
    tick()
    tick()
    tick.there.epoch += 1
    tick.there.rows = (row("backend", "pool-1", 500), row("backend", "pool-3", 1))
    tick()
    # As many as before, and all of them new: told again though no number differs.
    assert tick.counted() == {"pool-1": 500, "pool-3": 1}
    window = tick.recorder.gatherers[tick.node.pk].window()
    assert window["backend", "pool-1"].requests == 500


def test_hashes_that_redis_lost_are_written_whole(env: Env) -> None:
    tick = Round(env)
    tick.there.rows = (row("backend", "pool-1", 5), row("backend", "pool-2", 7))
    for key in (live.live_key, live.totals_key):
        for _ in range(3):
            tick()
        live.client().delete(key(tick.node.pk))
        tick()
        assert tick.told == 0
        assert (set(tick.shown()), tick.counted()) == ({"pool-1", "pool-2"}, {"pool-1": 5, "pool-2": 7})


@pytest.mark.parametrize("named", [True, False])
def test_a_collector_that_stalled_does_not_write_into_the_numbers_of_the_next_one(
    env: Env, named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not named:  # without the safeguard
        monkeypatch.setattr(live, "UPDATE", live.UPDATE.replace("~= ARGV[1]", "== 'nobody'"))
    old, new = Round(env), Round(env)
    old.there.rows = (row("backend", "pool-1", 5), row("backend", "pool-2", 7))
    for _ in range(3):
        old()
    old.there.rows = (row("backend", "pool-1", 5), row("backend", "pool-2", 8))
    late = old.read()
    old.there.rows = old.there.rows[:1]
    for _ in range(3):
        new()
    old.show(late)
    new()
    assert (set(new.shown()) == set(new.counted()) == {"pool-1"}) is named


def test_a_row_that_left_while_nothing_was_shown_is_gone_when_redis_answers_again(env: Env) -> None:
    tick = Round(env)
    tick.there.rows = (row("backend", "pool-1", 5), row("backend", "pool-2", 7))
    for _ in range(3):
        tick()
    tick.there.rows = tick.there.rows[:1]
    tick.read()
    tick()
    assert (set(tick.shown()), tick.counted()) == ({"pool-1"}, {"pool-1": 5})


def test_a_server_is_unknown_when_its_node_is_silent_and_known_again_by_a_reading_without_a_row(env: Env) -> None:
    tick, server = Round(env), env.servers[0]
    tick.there.rows = (row("server", f"srv-{server.pk}", 5, status="UP"),)
    tick()

    def status() -> bool | None:
        return Condition.objects.get(object_kind="server", object_id=server.pk, type="Up").status

    assert status() is True
    later = now() + timedelta(seconds=30)
    tick.recorder.store({}, later)
    assert status() is None
    tick()
    assert tick.told == 0
    assert status() is True


@pytest.mark.parametrize("most", [0, 100])
def test_rows_are_found_on_the_nodes_that_have_them_whether_asked_for_by_name_or_all_told(
    env: Env, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MOST_NAMED", most)
    first, second, away = env.nodes[0].pk, env.nodes[1].pk, 10**6
    pool, other, nobodys = ("backend", "pool-1"), ("backend", "pool-2"), ("backend", "pool-3")
    rows = {pool: Counts(requests=5, seconds=10), other: Counts(requests=7, seconds=10)}
    live.write({first: live.LiveNode(100, rows), second: live.LiveNode(102, {other: rows[other]})}, {})
    found = live.read([first, second, away], [pool, nobodys])
    assert found == {first: live.LiveNode(100, {pool: rows[pool]}), second: live.LiveNode(102, {})}


@pytest.mark.parametrize("most", [0, 100])
def test_a_page_reads_the_rows_of_nodes_once_however_many_of_its_parts_ask(
    env: Env, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MOST_NAMED", most)
    node, pool, other = env.nodes[0].pk, ("backend", "pool-1"), ("backend", "pool-2")
    with answers_kept():
        for requests in (1, 2):
            row = Counts(requests=requests, seconds=10)
            live.write({node: live.LiveNode(100, {pool: row, other: Counts(seconds=10)})}, {})
            found = live.read([node], [pool] if requests == 1 else [pool, other])
            assert found is not None
            assert len(found[node].rows) == requests
            assert found[node].rows[pool].requests == 1
    assert (live.read([node], [pool]) or {})[node].rows[pool].requests == 2

"""Several collectors share the nodes, leader together, and one that stalls stores nothing of what is another's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from datetime import timedelta

import pytest
from django.test import override_settings

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.drivers.proxy.memory import forget_memory_nodes
from apps.fleet.models import Node, RegionLatency
from apps.observe.collect import lease
from apps.observe.collect.collector import Collector
from apps.observe.collect.readings import Reading
from apps.observe.collect.recorder import Recorder
from apps.observe.evaluate.conditions import Type
from apps.observe.models import CollectorLease, CollectorMember, Condition, NodeReport, Sample
from apps.observe.selectors import node_numbers, problems
from tests.apps.observe_env import START, Env, make_env, reading, row

pytestmark = pytest.mark.both_engines
DEAD_REDIS = "redis://127.0.0.1:1/0"


@pytest.fixture
def env(db: None) -> Iterator[Env]:
    forget_memory_nodes()
    yield make_env()
    forget_memory_nodes()


def settle(*holders: str) -> dict[str, frozenset[int]]:
    """What each holds after all of them have taken, given back and taken again."""
    held: dict[str, frozenset[int]] = {}
    for _ in range(3):
        for holder in holders:
            found = lease.share(holder)
            lease.release(found.surplus, holder)
            held[holder] = found.held - found.surplus
    return held


def age(holder: str) -> None:
    """As if this one had been silent for longer than the lease."""
    past = now() - timedelta(seconds=1)
    CollectorLease.objects.filter(holder=holder).update(until=past)
    CollectorMember.objects.filter(holder=holder).update(until=past)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_every_shard_has_one_collector_and_all_have_about_as_many(db: None, count: int) -> None:
    holders = [f"c{number}" for number in range(count)]
    held = settle(*holders)
    assert sorted(shard for shards in held.values() for shard in shards) == list(range(lease.SHARDS))
    sizes = [len(shards) for shards in held.values()]
    assert max(sizes) == -(-lease.SHARDS // count)
    # Who is there keeps what it has: nothing moves while nobody comes or goes.
    assert settle(*holders) == held


def test_neighbouring_numbers_are_shared_evenly() -> None:
    halves = [sum(lease.shard_of(pk) < lease.SHARDS // 2 for pk in range(first, first + 10)) for first in range(200)]
    assert {4, 5, 6} >= set(halves)


def test_the_shards_of_a_dead_collector_are_taken_when_its_lease_ends_and_not_before(db: None) -> None:
    held = settle("a", "b")
    assert lease.share("a").held == held["a"]
    age("b")
    assert lease.share("a").held == lease.EVERY


def test_a_collector_that_lost_its_shards_does_not_renew_them(db: None) -> None:
    settle("a")
    age("a")
    settle("b")
    assert lease.renew("a") == frozenset()
    assert lease.renew("b") == lease.EVERY


@pytest.mark.parametrize("fenced", [True, False])
def test_a_stalled_collector_stores_nothing(env: Env, fenced: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stalled, other = Recorder("stalled", frozenset()), Recorder("other", frozenset())
    stalled.hold(settle("stalled")["stalled"])
    node = env.nodes[0]
    stalled.gather([reading(node, START, (row("backend", "pool-1", 10),))])
    age("stalled")
    other.hold(settle("other")["other"])
    assert other.store({node.pk: reading(node, START, ())}, START) is not None
    if not fenced:
        monkeypatch.setattr(lease, "renew", lambda _: lease.EVERY)
    late = START + timedelta(seconds=10)
    old = reading(node, late, (row("backend", "pool-1", 99),))
    stalled.gather([old])
    stalled.close_buckets(late.timestamp() + 10)
    answer = stalled.store({node.pk: old}, late)
    seen = NodeReport.objects.get(node=node).seen_at
    assert (answer is None, seen == START, Sample.objects.exists()) == (fenced, fenced, not fenced)


def test_shards_that_change_hands_take_their_open_bucket_along(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, node = Recorder("old", frozenset()), Recorder("new", frozenset()), env.nodes[0]
    monkeypatch.setattr("apps.observe.collect.recorder.now", lambda: START + timedelta(seconds=6))
    pool = f"pool-{env.pools['acme'].pk}"

    def ticks(recorder: Recorder, seconds: Iterable[int]) -> None:
        for second in seconds:
            at = START + timedelta(seconds=second)
            recorder.gather([reading(node, at, (row("backend", pool, 1000 + 10 * second),))])
            recorder.close_buckets(at.timestamp())
            recorder.store({}, at)

    old.hold(settle("old")["old"])
    ticks(old, (0, 2, 4))
    shards = frozenset({lease.shard_of(node.pk)})
    old.flush(shards)
    lease.release(shards, "old")
    old.hold(old.shards - shards)
    assert node.pk not in old.gatherers
    assert lease.share("new").held == shards
    new.hold(shards)
    ticks(new, (6, 8, 10))
    # Between the readings of the two, two seconds are in no bucket: the new one has nothing to compare with.
    assert Sample.objects.get(kind="backend", at=START).requests == 40 + 20


def shared(env: Env) -> tuple[Recorder, Recorder, Node, Node]:
    """The one that judges and another, with a node of the same region each."""
    held = settle("leader", "other")
    leader, other = Recorder("leader", frozenset()), Recorder("other", frozenset())
    leader.hold(held["leader"])
    other.hold(held["other"])
    if not leader.leads:
        leader, other = other, leader
    fleet, names = env.nodes[0].fleet, iter(range(100))
    found = []
    for recorder in (leader, other):
        while True:
            name = f"more-{next(names)}"
            node = Node.objects.create(account=fleet.account, fleet=fleet, name=name, url=f"memory://{name}")
            if recorder.owns(node.pk):
                found.append(node)
                break
    return leader, other, *found  # type: ignore[return-value]  # two of them


def tick(recorder: Recorder, node: Node, at_s: float, *statuses: tuple[int, str]) -> None:
    """The node says this of servers."""
    at = now() + timedelta(seconds=at_s)
    found = reading(node, at, tuple(row("server", f"srv-{pk}", 5, status=word) for pk, word in statuses))
    recorder.gather([found])
    recorder.store({node.pk: found}, at)


def test_a_server_is_judged_by_the_nodes_of_all_collectors(env: Env) -> None:
    leader, other, mine, theirs = shared(env)
    server = env.servers[0].pk

    def reason() -> str:
        return Condition.objects.get(object_kind="server", object_id=server, type=Type.UP).reason

    for seconds in (20, 30):  # at first the leader is patient, for somebody just came
        tick(other, theirs, seconds, (server, "DOWN"))
        tick(leader, mine, seconds, (server, "UP"))
    assert reason() == "NodesDisagree"
    tick(other, theirs, 32, (server, "UP"))
    tick(leader, mine, 32, (server, "UP"))
    assert reason() == "CheckPasses"
    # Only the other's nodes see it, and that one dies: for a while nothing is said, then nobody knows.
    tick(leader, mine, 34)
    assert reason() == "CheckPasses"
    CollectorMember.objects.filter(holder=other.holder).update(until=now() - timedelta(seconds=1))
    tick(leader, mine, 36)
    assert reason() == "CheckPasses"
    tick(leader, mine, 46)
    assert reason() == "NotObserved"


def test_only_one_of_several_judges_and_tidies(env: Env) -> None:
    leader, other, _, theirs = shared(env)
    assert leader.leads
    assert not other.leads
    tick(other, theirs, 20, (env.servers[0].pk, "DOWN"))
    assert not Condition.objects.filter(object_kind__in=("server", "pool")).exists()
    assert Condition.objects.filter(object_kind="node", object_id=theirs.pk).exists()
    other.tend(START + timedelta(seconds=50))
    assert not Condition.objects.filter(object_kind="route").exists()


def test_the_shortest_way_of_any_node_counts_whoever_reads_it(env: Env) -> None:
    leader, other, mine, theirs = shared(env)
    away = env.regions[1].pk
    pair = (env.regions[0].pk, away)
    for recorder, ms in ((leader, 40), (other, 12)):
        recorder.trips[pair] = ms
        recorder.measure(START)
    tick(other, theirs, 20)
    tick(leader, mine, 20)
    leader.trips[pair] = 41
    leader.measure(START + timedelta(seconds=30))
    assert RegionLatency.objects.get(from_region=pair[0], to_region=away).measured_ms == 12


def test_a_node_that_nobody_reads_is_unknown_and_not_down(env: Env) -> None:
    operator, node = env.operator, env.nodes[0]
    recorder = Recorder("only", settle("only")["only"])
    recorder.store({node.pk: reading(node, START, ())}, START)
    later = START + timedelta(seconds=20)
    recorder.store({node.pk: Reading(node.pk, later, later, error="No answer.")}, later)
    assert node_numbers(operator)[node.pk].reachable is False
    assert told_down(operator, node)
    shard = lease.shard_of(node.pk)
    CollectorLease.objects.filter(shard=shard).update(until=now() - timedelta(seconds=1))
    assert node_numbers(operator)[node.pk].reachable is None
    assert not told_down(operator, node)
    # Another collector lives, so that not everything is unknown.
    assert lease.watched()


def told_down(actor: Actor, node: Node) -> bool:
    """Whether the node is among the problems."""
    return any(each.kind == "node" and each.object_id == node.pk for each in problems(actor))


def test_two_processes_read_every_node_once(transactional_db: None) -> None:
    forget_memory_nodes()
    env = make_env()
    heard: dict[str, set[int]] = {"a": set(), "b": set()}

    async def rounds() -> None:
        collectors = [Collector(holder=name) for name in heard]
        for _ in range(3):
            for each in collectors:
                await each.tick()
        for each in collectors:
            heard[each.holder] = {address.node_id for address in each._addresses}
        for each in collectors:
            each.stop()
            await each.run()

    with override_settings(REDIS_URL=DEAD_REDIS):
        asyncio.run(rounds())
    assert heard["a"] | heard["b"] == {node.pk for node in env.nodes}
    assert not heard["a"] & heard["b"]
    assert not CollectorMember.objects.exists()
    assert not lease.watched()

"""One suite for every proxy driver: the fake in memory and the agent with real haproxy."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import pytest

from apps.compiler.bundle import MANIFEST, Bundle, assemble
from apps.compiler.model.operations import DeleteMapEntry, ReplaceMap, SetMapEntry, SetServerMaxconn, SetServerWeight
from apps.drivers.proxy.contract import (
    BanEntries,
    CounterRow,
    NodeTarget,
    ProxyDriver,
    Refused,
    Seen,
    Superseded,
    Unavailable,
    Unreachable,
)
from apps.drivers.proxy.memory import MemoryNode, memory_node
from apps.drivers.proxy.registry import open_driver
from tests.conformance.bundles import MAP, make_bundle
from tests.conformance.real_agent import RealAgent, running_agent
from tests.ports import spare_port

pytestmark = pytest.mark.long
FLOW = "pool-1/to/rgn-2/rate"


@dataclass
class Env:
    """A driver and what a test may do to the node behind it."""

    driver: ProxyDriver
    port: int
    make_unreachable: Callable[[], None]
    make_unable: Callable[[], None]
    start_refusing: Callable[[], None]
    edit_a_map: Callable[[], None]
    ask_once: Callable[[], object]


def _memory_env() -> Env:
    name = f"conformance-{uuid.uuid4().hex}"
    node = memory_node(name)
    return Env(
        open_driver(NodeTarget(name, f"memory://{name}")),
        8080,
        lambda: setattr(node, "unreachable", True),
        lambda: setattr(node, "unavailable", "no space left"),
        lambda: setattr(node, "refusal", Refused("no", stage="validate", line=21, output="[ALERT] no")),
        lambda: node.files.update({MAP: b"evil.example/ pool-1\n"}),
        lambda: _count(node),
    )


def _count(node: MemoryNode) -> None:
    """What one request through `counting_bundle` leaves on a real node."""
    zero = dict.fromkeys(CounterRow._fields, 0)
    words = {"kind": "flow", "object_id": FLOW, "parent_id": "pool-1", "status": "", "check": ""}
    node.rows = (CounterRow(**{**zero, **words, "requests": 1}),)  # type: ignore[arg-type]  # by name
    node.admitted, node.peers = {"pool-1/node-5": 1}, {"node-6": False}


def _block_draft(agent: RealAgent) -> None:
    """Generation 2 cannot be written: something lies where its files would come."""
    assert agent.process is not None
    (agent.state_dir / "releases" / f".new-2-{agent.process.pid}").write_text("")


def _overwrite(path: Path) -> None:
    path.write_text("evil.example/ pool-1\n")


# Only the way to the agent differs over HTTPS; what it is told over either is the same.
over_https = pytest.mark.parametrize("env", ["memory", "unix", "https"], indirect=True)


@pytest.fixture(params=["memory", "unix", pytest.param("https", marks=pytest.mark.exhaustive)])
def env(request: pytest.FixtureRequest) -> Iterator[Env]:
    """Each kind of node in turn."""
    if request.param == "memory":
        yield _memory_env()
        return
    with running_agent(request.param) as agent:
        yield Env(
            agent.driver,
            agent.port,
            agent.kill,
            lambda: _block_draft(agent),
            lambda: None,  # the broken bundle below is refused by haproxy itself
            lambda: _overwrite(agent.state_dir / "live" / MAP),
            agent.get,
        )


def counting_bundle(port: int) -> Bundle:
    """Counts each request as admitted by this node and as a flow; the other peer does not answer."""
    extra = """    http-request track-sc1 "str(pool-1),concat(/${SPILLWAY_NODE})" table st_limits
    http-request sc-inc-gpc0(1)
    http-request track-sc2 str(pool-1/to/rgn-2/rate) table st_flow
    http-request sc-inc-gpc0(2)
backend st_limits
    stick-table type string len 64 size 1k expire 1m peers everywhere store gpc0,gpc0_rate(10s)
backend st_flow
    stick-table type string len 80 size 1k store gpc0
peers everywhere
"""
    peers = f"    peer node-5 127.0.0.1:{spare_port()}\n    peer node-6 127.0.0.1:{spare_port()}\n"
    base = make_bundle(port, extra=extra + peers)
    files = {path: content for path, content in base.files.items() if path != MANIFEST}
    return assemble(files, base.binds, {}, {"us-1": "node-5"})


def broken(port: int) -> Bundle:
    """A bundle whose haproxy.cfg has an unknown keyword on line 21."""
    return make_bundle(port, extra="frontend lst-9\n    bogus word\n")


def test_a_node_that_was_never_pushed_to_says_so(env: Env) -> None:
    state = env.driver.read_state()
    assert (state.generation, state.digest, state.on_disk, state.serving) == (0, "", "", False)
    assert state.clock is not None
    assert abs(state.clock - time.time()) < 60


@over_https
def test_a_push_makes_the_node_run_the_bundle(env: Env) -> None:
    bundle = make_bundle(env.port)
    state = env.driver.push_bundle(bundle, 3)
    assert (state.generation, state.digest, state.on_disk) == (3, bundle.digest, bundle.digest)
    assert state.serving
    assert state.workers >= 1
    assert env.driver.read_state().generation == 3


def test_a_check_refuses_what_a_push_would_and_changes_nothing(env: Env) -> None:
    before = env.driver.push_bundle(make_bundle(env.port), 3)
    assert env.driver.check_bundle(make_bundle(env.port, answer="two"), 4, "trial_run") == before
    with pytest.raises(Superseded):
        env.driver.check_bundle(make_bundle(env.port, answer="two"), 3, "trial_run")
    env.start_refusing()
    with pytest.raises(Refused) as refusal:
        env.driver.check_bundle(broken(env.port), 4, "trial_run")
    assert (refusal.value.stage, refusal.value.line) == ("validate", 21)
    state = env.driver.read_state()
    assert (state.generation, state.digest, state.reloads) == (3, before.digest, before.reloads)


def test_a_generation_that_is_not_higher_is_superseded(env: Env) -> None:
    bundle = make_bundle(env.port)
    env.driver.push_bundle(bundle, 5)
    for generation in (4, 5):
        with pytest.raises(Superseded):
            env.driver.push_bundle(make_bundle(env.port, answer="two"), generation)
        with pytest.raises(Superseded):
            env.driver.run_operations((), bundle, bundle.digest, generation)
    assert env.driver.read_state().digest == bundle.digest


@over_https
def test_push_keeps_the_running_config_when_the_check_fails(env: Env) -> None:
    bundle = make_bundle(env.port)
    env.driver.push_bundle(bundle, 1)
    env.start_refusing()
    with pytest.raises(Refused) as refusal:
        env.driver.push_bundle(broken(env.port), 2)
    assert (refusal.value.stage, refusal.value.line) == ("validate", 21)
    assert "[ALERT]" in refusal.value.output
    state = env.driver.read_state()
    assert (state.generation, state.digest, state.on_disk) == (1, bundle.digest, bundle.digest)
    assert state.last_error


@over_https
def test_a_node_that_cannot_do_it_now_refuses_nothing_and_says_so(env: Env) -> None:
    bundle = make_bundle(env.port)
    env.driver.push_bundle(bundle, 1)
    env.make_unable()
    with pytest.raises(Unavailable):
        env.driver.push_bundle(make_bundle(env.port, answer="two"), 2)
    state = env.driver.read_state()
    assert (state.generation, state.digest, state.on_disk, state.serving) == (1, bundle.digest, bundle.digest, True)
    assert state.unavailable


def test_files_that_do_not_match_their_digests_are_refused(env: Env) -> None:
    bundle = make_bundle(env.port)
    forged = replace(bundle, files={**bundle.files, MAP: b"evil.example/ pool-1\n"})
    with pytest.raises(Refused):
        env.driver.push_bundle(forged, 1)
    assert env.driver.read_state().generation == 0


def test_operations_change_maps_without_a_reload(env: Env) -> None:
    old = make_bundle(env.port, entries={"a.example/": "pool-1", "b.example/": "pool-1"})
    new = make_bundle(env.port, entries={"a.example/": "pool-2", "c.example/": "pool-1"})
    before = env.driver.push_bundle(old, 1)
    operations = (
        SetMapEntry(MAP, "a.example/", "pool-2"),
        DeleteMapEntry(MAP, "b.example/"),
        SetMapEntry(MAP, "c.example/", "pool-1"),
    )
    state = env.driver.run_operations(operations, new, old.digest, 2)
    assert (state.generation, state.digest, state.on_disk) == (2, new.digest, new.digest)
    assert state.reloads == before.reloads


def test_a_whole_map_is_replaced_at_once(env: Env) -> None:
    old = make_bundle(env.port)
    new = make_bundle(env.port, entries={f"h{number}.example/": "pool-1" for number in range(2000)})
    env.driver.push_bundle(old, 1)
    state = env.driver.run_operations((ReplaceMap(MAP),), new, old.digest, 2)
    assert (state.digest, state.on_disk) == (new.digest, new.digest)


@over_https
def test_a_weight_changes_without_a_reload(env: Env) -> None:
    old, new = make_bundle(env.port), make_bundle(env.port, weight=7)
    before = env.driver.push_bundle(old, 1)
    state = env.driver.run_operations((SetServerWeight("pool-2", "srv-1", 7),), new, old.digest, 2)
    assert (state.digest, state.on_disk, state.reloads) == (new.digest, new.digest, before.reloads)


def test_a_servers_slots_change_without_a_reload(env: Env) -> None:
    old, new = make_bundle(env.port), make_bundle(env.port, maxconn=7)
    before = env.driver.push_bundle(old, 1)
    state = env.driver.run_operations((SetServerMaxconn("pool-2", "srv-1", 7),), new, old.digest, 2)
    assert (state.digest, state.on_disk, state.reloads) == (new.digest, new.digest, before.reloads)


def test_operations_from_another_base_are_refused(env: Env) -> None:
    old, new = make_bundle(env.port), make_bundle(env.port, entries={"b.example/": "pool-1"})
    env.driver.push_bundle(old, 1)
    with pytest.raises(Refused) as refusal:
        env.driver.run_operations((), new, new.digest, 2)
    assert refusal.value.stage == "runtime"


def test_operations_that_do_not_lead_to_the_bundle_are_refused(env: Env) -> None:
    old, new = make_bundle(env.port), make_bundle(env.port, entries={"b.example/": "pool-1"})
    env.driver.push_bundle(old, 1)
    with pytest.raises(Refused) as refusal:
        env.driver.run_operations((SetMapEntry(MAP, "x.example/", "pool-1"),), new, old.digest, 2)
    assert refusal.value.stage == "runtime"
    state = env.driver.read_state()
    assert (state.generation, state.on_disk) == (1, old.digest)


def test_an_edited_file_shows_and_a_push_repairs_it(env: Env) -> None:
    bundle = make_bundle(env.port)
    env.driver.push_bundle(bundle, 1)
    env.edit_a_map()
    assert env.driver.read_state().on_disk not in ("", bundle.digest)
    assert env.driver.push_bundle(bundle, 2).on_disk == bundle.digest


def test_counters_fall_in_a_new_epoch_alone(env: Env) -> None:
    env.driver.push_bundle(counting_bundle(env.port), 1)
    env.ask_once()
    first = env.driver.read_counters()
    assert first.epoch == env.driver.read_counters().epoch
    env.driver.push_bundle(make_bundle(env.port, answer="two"), 2)
    second = env.driver.read_counters()
    before, after = ({row.object_id: row.requests for row in each.rows} for each in (first, second))
    assert second.epoch != first.epoch or after[FLOW] == before[FLOW] == 1


def test_an_observation_tells_what_changed_since_the_one_before(env: Env) -> None:
    env.driver.push_bundle(counting_bundle(env.port), 1)
    first = env.driver.observe()
    assert first.counters is not None
    assert (first.state, first.counters.base) == (env.driver.read_state(), "")
    env.ask_once()
    second = env.driver.observe(Seen(first.state, first.counters.token))
    assert second.counters is not None
    assert second.state is first.state
    assert second.counters.base == first.counters.token
    assert FLOW in {row.object_id for row in second.counters.rows}
    third = env.driver.observe(Seen(second.state, second.counters.token))
    assert third.counters is not None
    assert third.counters.base == second.counters.token
    assert FLOW not in {row.object_id for row in third.counters.rows}
    # All of it to whom it told nothing, and to everybody in a new epoch, which a reload may begin.
    stranger = env.driver.observe(Seen(third.state, "somebody-7"))
    assert stranger.counters is not None
    assert (stranger.counters.base, stranger.state) == ("", third.state)
    assert FLOW in {row.object_id for row in stranger.counters.rows}
    env.driver.push_bundle(make_bundle(env.port, answer="two"), 2)
    last = env.driver.observe(Seen(stranger.state, stranger.counters.token))
    assert last.counters is not None
    told = stranger.counters.token if last.counters.epoch == stranger.counters.epoch else ""
    assert (last.counters.base, last.state.generation) == (told, 2)
    assert last.clock is not None


def test_a_node_without_a_configuration_is_observed_without_counters(env: Env) -> None:
    found = env.driver.observe()
    assert (found.counters, found.state.generation) == (None, 0)
    assert env.driver.observe(Seen(found.state)).state == found.state


def test_flows_and_counts_of_both_nodes_are_told(env: Env) -> None:
    env.driver.push_bundle(counting_bundle(env.port), 1)
    assert env.driver.read_counters().admitted == {}
    env.ask_once()
    found = env.driver.read_counters()
    (flow,) = [row for row in found.rows if row.kind == "flow"]
    assert (flow.object_id, flow.parent_id, flow.requests) == (FLOW, "pool-1", 1)
    assert found.admitted == {"pool-1/node-5": 1}
    assert found.peers == {"node-6": False}
    assert found.distances_ms == {}


def test_a_node_says_how_much_of_its_processor_and_its_connections_it_uses(env: Env) -> None:
    env.driver.push_bundle(make_bundle(env.port), 1)
    used = env.driver.read_counters().in_use
    assert set(used) == {"cpu", "connections"}
    assert all(0 <= share <= 1 for share in used.values())


def test_a_node_that_counts_alone_tells_of_no_others(env: Env) -> None:
    env.driver.push_bundle(make_bundle(env.port), 1)
    found = env.driver.read_counters()
    assert (found.admitted, found.peers, found.distances_ms) == ({}, {}, {})
    assert [row for row in found.rows if row.kind == "flow"] == []


@over_https
def test_a_node_says_by_a_digest_which_ticket_secrets_it_has_and_nothing_is_reloaded(env: Env) -> None:
    env.driver.push_bundle(make_bundle(env.port), 1)
    before = env.driver.read_state()
    secrets = tuple(letter * 64 for letter in "abc")
    given = env.driver.give_ticket_secrets(secrets)
    assert given.ticket_secrets == sha256("".join(secrets).encode()).hexdigest() != before.ticket_secrets
    assert replace(given, ticket_secrets=before.ticket_secrets) == before
    assert env.driver.give_ticket_secrets(secrets) == env.driver.read_state() == given
    env.make_unreachable()
    with pytest.raises(Unreachable):
        env.driver.give_ticket_secrets(secrets)


def test_a_node_that_is_gone_is_unreachable(env: Env) -> None:
    env.make_unreachable()
    with pytest.raises(Unreachable):
        env.driver.read_state()
    with pytest.raises(Unreachable):
        env.driver.push_bundle(make_bundle(env.port), 1)


def test_no_driver_speaks_an_unknown_scheme() -> None:
    with pytest.raises(Unreachable):
        open_driver(NodeTarget("us-1", "gopher://somewhere"))


def test_a_node_without_limits_bans_nobody_and_lifting_is_no_matter(env: Env) -> None:
    env.driver.push_bundle(make_bundle(env.port), 1)
    assert env.driver.read_bans() == BanEntries()
    env.driver.lift_ban("st_banned_600", "2001:db8::1")
    assert env.driver.read_bans() == BanEntries()
    env.make_unreachable()
    for ask in (env.driver.read_bans, lambda: env.driver.lift_ban("st_banned_600", "2001:db8::1")):
        with pytest.raises(Unreachable):
            ask()

"""The decision between nothing, runtime operations and a reload; applied to the old files it gives the new ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from apps.compiler.bundle import Bundle
from apps.compiler.compile import compile_snapshot
from apps.compiler.differences.snapshots import diff_snapshots
from apps.compiler.model.fleet import BypassToken, Pool, Region, RegionNode, Snapshot
from apps.compiler.model.operations import (
    AddServer,
    DeleteMapEntry,
    DeleteServer,
    ReplaceMap,
    SetCertificate,
    SetMapEntry,
    SetServerState,
    SetServerWeight,
)
from apps.compiler.model.servers import AgentCheck, PersistBy, Persistence, ServerTls, Verify
from apps.compiler.model.shared import (
    Balance,
    Certificate,
    HealthCheck,
    LoadBalancer,
    Protocol,
    Route,
    ServerState,
    WeightedPool,
)
from apps.compiler.plan import REPLACE_ABOVE, Nothing, Reload, Runtime, plan
from apps.compiler.targets.haproxy.certificate_changes import LARGEST
from apps.compiler.targets.haproxy.maps import map_content
from apps.compiler.targets.haproxy.reader import read_map
from tests.pure.compiler_fixtures import certificate_pem, front, fronts, listener, pool, route, server, snapshot
from tests.pure.properties import always, examples

POOLS = (pool(1), pool(2))


def _bundle(*routes: Route, pools: tuple[Pool, ...] = POOLS) -> Bundle:
    return compile_snapshot(snapshot(front(*routes), pools=pools)).output


def _maps_after(running: Bundle, wanted: Bundle, decision: Runtime) -> dict[str, bytes]:
    """The map files after the operations, as the agent would write them."""
    maps = {path: read_map(content) for path, content in running.files.items() if path.startswith("maps/")}
    for operation in decision.operations:
        match operation:
            case SetMapEntry():
                maps[operation.path][operation.key] = operation.value
            case DeleteMapEntry():
                del maps[operation.path][operation.key]
            case ReplaceMap():
                maps[operation.path] = read_map(wanted.files[operation.path])
    return {path: map_content(entries) for path, entries in maps.items()}


def test_equal_bundles_need_nothing() -> None:
    assert plan(_bundle(route(1)), _bundle(route(1))) == Nothing()


def test_a_new_route_says_what_it_does_before_it_can_be_found() -> None:
    decision = plan(_bundle(route(1)), _bundle(route(1), route(2, path="/new")))
    assert decision == Runtime(
        (
            SetMapEntry("maps/lb-1-action.map", "route-2", "pool-1"),
            SetMapEntry("maps/lb-1-prefix.map", "a.example/new/", "route-2"),
        )
    )


def test_a_route_that_goes_is_no_longer_found_before_its_action_goes() -> None:
    decision = plan(_bundle(route(1), route(2, path="/new")), _bundle(route(1)))
    assert decision == Runtime(
        (
            DeleteMapEntry("maps/lb-1-prefix.map", "a.example/new/"),
            DeleteMapEntry("maps/lb-1-action.map", "route-2"),
        )
    )


def test_moving_weights_of_a_split_is_one_operation() -> None:
    def split(weight: int) -> Bundle:
        return _bundle(route(1, pools=(WeightedPool("pool-1", weight), WeightedPool("pool-2", 100 - weight))))

    expected = SetMapEntry("maps/lb-1-action.map", "route-1", "split|200|pool-1|1000|pool-2")
    assert plan(split(50), split(20)) == Runtime((expected,))


def test_weight_drain_and_maintenance_of_servers_need_no_reload() -> None:
    def with_server(**fields: object) -> Bundle:
        return _bundle(route(1), pools=(pool(1, servers=(server(1, **fields), server(2))),))

    ready = with_server()
    assert plan(ready, with_server(weight=7)) == Runtime((SetServerWeight("pool-1", "srv-1", 7),))
    drained = with_server(state=ServerState.DRAIN)
    assert plan(ready, drained) == Runtime((SetServerWeight("pool-1", "srv-1", 0),))
    assert plan(drained, ready) == Runtime((SetServerWeight("pool-1", "srv-1", 100),))
    parked = with_server(state=ServerState.MAINTENANCE)
    assert plan(ready, parked) == Runtime((SetServerState("pool-1", "srv-1", "maint"),))
    assert plan(parked, ready) == Runtime((SetServerState("pool-1", "srv-1", "ready"),))


def test_what_the_running_process_cannot_learn_is_a_reload_with_reasons() -> None:
    base = _bundle(route(1))
    more = compile_snapshot(snapshot(front(route(1), listeners=(listener(1), listener(2))), pools=POOLS)).output
    assert plan(base, more) == Reload(("the addresses of listeners changed",))
    assert plan(base, _bundle(route(1), pools=(*POOLS, pool(3)))) == Reload(("backend pool-3 is new",))
    moved = (pool(1, servers=(server(1, address="192.0.2.99"),)), pool(2))
    assert plan(base, _bundle(route(1), pools=moved)) == Reload(("backend pool-1 changed",))
    assert plan(base, _bundle(route(1), route(2, path="/x", methods=("GET",)))) == Reload(("frontend lst-1 changed",))


def _with_file(path: str, content: bytes, base: Bundle | None = None) -> Bundle:
    base = base or _bundle(route(1))
    return replace(base, files={**base.files, path: content}, digest=content.hex())


def test_a_key_that_changed_is_a_reload() -> None:
    for path in ("certs/ca-pool-1.pem", "certs/jwt-0a.pem", "certs/client-ca-0a.pem", "secrets/overflow.map"):
        assert plan(_with_file(path, b"old"), _with_file(path, b"new")) == Reload((f"{path} changed",))


def test_a_certificate_that_is_replaced_needs_no_reload_unless_it_is_too_large_or_shown_to_servers() -> None:
    path = "certs/crt-1.pem"
    old = _with_file(path, b"old")
    assert plan(old, _with_file(path, b"new")) == Runtime((SetCertificate(path),))
    assert plan(old, _with_file(path, b"x" * (LARGEST + 1))) == Reload((f"{path} changed",))
    tls = ServerTls(client_certificate_id="crt-1")
    certificate = Certificate("crt-1", "house", "acme", certificate_pem("a.example"), ("a.example",))
    pools = (pool(1, protocol=Protocol.HTTPS, server_tls=tls), pool(2))
    shown = compile_snapshot(snapshot(front(route(1)), pools=pools, certificates=(certificate,))).output
    assert plan(_with_file(path, b"old", shown), _with_file(path, b"new", shown)) == Reload((f"{path} changed",))
    assert plan(_bundle(route(1)), old) == Reload((f"{path} is new",))


def test_a_capacity_test_begins_and_ends_without_a_reload() -> None:
    region = Region("rgn-1", "us", (RegionNode("node-1", "us-1", "192.0.2.1", 9700, 9800, 9900),))
    quiet = replace(snapshot(front(route(1)), pools=POOLS), region_id="rgn-1", regions=(region,), overflow_key="7" * 64)
    tested = replace(quiet, bypass_tokens=(BypassToken("a" * 64, "pool-1"),))
    before, during = compile_snapshot(quiet).output, compile_snapshot(tested).output
    assert plan(before, during) == Runtime((SetMapEntry("maps/tests.map", "a" * 64, "pool-1"),))
    assert plan(during, before) == Runtime((DeleteMapEntry("maps/tests.map", "a" * 64),))
    assert [each.sentence for each in diff_snapshots(quiet, tested)] == ["capacity test of pool-1-label: added"]


def test_a_large_change_swaps_the_map_at_once() -> None:
    many = tuple(route(number, path=f"/r{number}") for number in range(1, REPLACE_ABOVE + 3))
    decision = plan(_bundle(), _bundle(*many))
    assert decision == Runtime((ReplaceMap("maps/lb-1-action.map"), ReplaceMap("maps/lb-1-prefix.map")))


def _operations_lead_to_the_wanted_files(old: LoadBalancer, new: LoadBalancer) -> None:
    def plain(drawn: LoadBalancer) -> Snapshot:
        routes = (
            replace(each, fixed_response=None, pools=(WeightedPool("pool-1", 1),), methods=(), headers=(), scheme=None)
            for each in drawn.routes
        )
        return snapshot(replace(drawn, routes=tuple(routes)))

    running, wanted = compile_snapshot(plain(old)).output, compile_snapshot(plain(new)).output
    decision = plan(running, wanted)
    assert not isinstance(decision, Reload)
    if isinstance(decision, Runtime):
        expected = {path: content for path, content in wanted.files.items() if path.startswith("maps/")}
        assert _maps_after(running, wanted, decision) == expected


@examples(few=15, many=150)
def test_runtime_operations_lead_to_the_wanted_files(count: int, *, repeatable: bool) -> None:
    always(_operations_lead_to_the_wanted_files, fronts(), fronts(), count=count, repeatable=repeatable)


def test_servers_that_come_and_go_need_no_reload_where_nothing_else_refers_to_them() -> None:
    def of(*numbers: int, **fields: Any) -> Bundle:
        fields = {"balance": Balance.ROUNDROBIN, "health_check": HealthCheck(path="/")} | fields
        return _bundle(route(1), pools=(pool(1, servers=tuple(map(server, numbers)), **fields), pool(2)))

    assert plan(of(1, 2), of(2, 3)) == Runtime((AddServer("pool-1", "srv-3"), DeleteServer("pool-1", "srv-1")))
    assert plan(of(1), of(1, 3, health_check=None)) == Reload(("backend pool-1 changed",))
    # The negative controls: what the order, a cookie or a table names, a name, TLS, and a pool that was empty.
    for kept in (
        {"balance": Balance.SOURCE},
        {"persistence": Persistence(PersistBy.COOKIE, cookie="SRV")},
        {"persistence": Persistence(PersistBy.SOURCE)},
        {"server_tls": ServerTls(verify=Verify.NONE)},
        {"agent_check": AgentCheck(port=9)},
    ):
        assert isinstance(plan(of(1, **kept), of(1, 3, **kept)), Reload), kept
    assert isinstance(plan(of(), of(1)), Reload)
    assert isinstance(plan(of(1), of()), Reload)
    named = (pool(1, servers=(server(1), server(3, address="app.internal"))), pool(2))
    assert isinstance(plan(_bundle(route(1)), _bundle(route(1), pools=named)), Reload)

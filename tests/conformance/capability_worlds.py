"""One load balancer on every target of the table of capabilities: plain, and with one field set."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from apps.compiler.compile import Compilation, compile_snapshot, compile_stack
from apps.compiler.model.access import NetworkList
from apps.compiler.model.capabilities import NodeBuild
from apps.compiler.model.policy import Rules, RuleSet
from apps.compiler.model.shared import (
    Balance,
    Certificate,
    HealthCheck,
    Listener,
    LoadBalancer,
    Protocol,
    Server,
    WeightedPool,
)
from apps.compiler.model.stack import CloudBackend, StackSnapshot
from apps.compiler.portability.table.cells import CLOUDS, VERSIONS, Column
from tests.pure import aws_fixtures, google_fixtures
from tests.pure.compiler_fixtures import certificate_pem, front, listener, pool, route, server, snapshot

Fields = dict[str, Any]
CHECK = HealthCheck("/up", interval_ms=10_000, timeout_ms=5000, fall=3)
_CERTIFICATES = tuple(
    Certificate(f"crt-{number}", f"certificate-{number}", "acme", certificate_pem("a.example"), ("a.example",))
    for number in (1, 2)
)


@dataclass(frozen=True, slots=True)
class Example:
    """A use of one field: what is changed of the route, the listener, the pool with its backend and server, the rules.

    It is of tcp where http knows nothing of the field; `https` puts the listener on 443 instead of 80.
    """

    route: Fields = field(default_factory=dict)
    listener: Fields = field(default_factory=dict)
    pool: Fields = field(default_factory=dict)
    backend: Fields = field(default_factory=dict)
    server: Fields = field(default_factory=dict)
    rules: Rules | None = None
    tcp: bool = False
    https: bool = False
    regions: int = 1


def findings(example: Example, column: Column) -> tuple[set[str], set[str]]:
    """What is left out with the example, and what is warned of, each as a text that names the object."""
    compiled = _compiled(example, column)
    left_out = {f"{each.object_id}: {each.message}" for each in compiled.left_out}
    return left_out, {f"{each.object_id}: {each.message}" for each in compiled.warnings}


def _compiled(example: Example, column: Column) -> Compilation[Any]:
    if column not in CLOUDS:
        version = VERSIONS[column]
        builds = (NodeBuild("n1", version, http3=True),)
        return compile_snapshot(_on_fleet(example, version, builds))
    return compile_stack(_in_stack(example, column))


def _on_fleet(example: Example, version: tuple[int, int], builds: tuple[NodeBuild, ...]) -> Any:
    tcp = example.tcp
    one = pool(1, **{"servers": (_server(example, server(1)), server(11)), **_neutral(tcp)} | _of(example))
    return replace(
        snapshot(_front(example, tcp=tcp), pools=(one, pool(2, **_protocol(tcp)))),
        certificates=_CERTIFICATES, haproxy_version=version, builds=builds,
    )  # fmt: skip


def _of(example: Example) -> Fields:
    """A fleet's pool has of its backend what stands in its own region."""
    pool_fields = {name: value for name, value in example.pool.items() if name != "overflow_mode"}
    return {**pool_fields, **example.backend}


def _in_stack(example: Example, column: Column) -> StackSnapshot:
    aws = column is not Column.GOOGLE
    tcp = example.tcp or column is Column.NLB
    region = aws_fixtures.HOME if aws else "europe"
    machine = aws_fixtures.server if aws else server
    home = CloudBackend("bkd-1", region, (_server(example, machine(1)), machine(11)))
    away = CloudBackend("bkd-3", aws_fixtures.AWAY if aws else "america", (machine(12),))
    backends = (replace(home, **dict(example.backend)), *([away] if example.regions > 1 else []))
    make = aws_fixtures.pool if aws else google_fixtures.cloud_pool
    one = make(1, **{"backends": backends, **_neutral(tcp)} | example.pool)
    stack = (aws_fixtures.stack if aws else google_fixtures.stack)(_front(example, tcp=tcp))
    return replace(
        stack,
        pools=(one, make(2, **_protocol(tcp))),
        certificates=_CERTIFICATES,
    )


def _neutral(tcp: bool) -> Fields:
    """A pool of which nothing is lost that it need not lose."""
    plain = {"health_check": CHECK, "connect_timeout_ms": 10_000, "balance": Balance.ROUNDROBIN}
    return {**plain, **_protocol(tcp)}


def _protocol(tcp: bool) -> Fields:
    return {"protocol": Protocol.TCP if tcp else Protocol.HTTP}


def _server(example: Example, plain: Server) -> Server:
    return replace(plain, **dict(example.server))


def _front(example: Example, *, tcp: bool) -> LoadBalancer:
    plain: dict[str, Any] = {"port": 80}
    if example.https:
        certificates = {"certificate_ids": ("crt-1", "crt-2"), "default_certificate_id": "crt-1"}
        plain = {"port": 443, "protocol": Protocol.HTTPS, **certificates}
    if tcp:
        plain = {"port": 5432, "protocol": Protocol.TCP, "default_pool_id": "pool-1"}
        if example.https:
            plain |= {"certificate_ids": ("crt-1", "crt-2"), "default_certificate_id": "crt-1", "ends_tls": True}
    bind: Listener = listener(1, **{**plain, **example.listener})
    if tcp:
        return front(listeners=(bind,))
    one = route(1, pools=(WeightedPool("pool-1", 1),), rule_set="rules-1" if example.rules else "")
    changed = replace(one, **dict(example.route))
    found = front(changed, listeners=(bind,))
    lists = (NetworkList("net-1", "office", ("198.51.100.0/24",)),)
    rule_sets = (RuleSet("rules-1", example.rules),) if example.rules else ()
    return replace(found, rule_sets=rule_sets, network_lists=lists)

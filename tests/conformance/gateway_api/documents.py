"""Reads the documents of all cases by the shapes that users write, and makes one snapshot of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import count
from typing import Any

from apps.compiler.codec import from_plain
from apps.compiler.model.fleet import Pool, Snapshot
from apps.compiler.model.listener_options import SniRoute
from apps.compiler.model.shared import (
    Certificate,
    Listener,
    LoadBalancer,
    PoolOptions,
    Protocol,
    Route,
    Server,
    WeightedPool,
)
from apps.compiler.policies import rule_set
from apps.definitions.freezing.frozen_servers import OBJECTS
from apps.definitions.freezing.lost_pools import LostPools
from apps.definitions.shapes.base.reading import read_or_raise
from apps.definitions.shapes.base.writing import write
from apps.definitions.shapes.servers.server_tls import ServerTls as ServerTlsShape
from apps.definitions.shapes.traffic.load_balancer import ListenerSpec, LoadBalancerSpec
from apps.definitions.shapes.traffic.pool import PoolSpec
from apps.definitions.shapes.traffic.route import Action, RouteSpec
from tests.conformance.gateway_api.cases import Case
from tests.pure.compiler_fixtures import certificate_pem

REGION = "region-a"
ACCOUNT = "acme"
FIRST_PORT = 20_000
# What stands for the certificate of the authority that the servers' certificates are of, and for another one's.
CA, OTHER_CA = "{ca}", "{other ca}"
MATCHES = ("path", "path_kind", "methods", "headers", "query", "cookies")


@dataclass(frozen=True, slots=True)
class Environment:
    """What is only known when the servers run: their ports by name, and the authorities in PEM."""

    ports: Mapping[str, int]
    authorities: Mapping[str, str]


@dataclass(slots=True)
class Numbers:
    """The next number of each kind of object."""

    route: Iterator[int]
    pool: Iterator[int]
    server: Iterator[int]
    front: Iterator[int]
    listener: Iterator[int]
    certificate: Iterator[int]


def snapshot_of(cases: Iterable[Case], environment: Environment) -> tuple[Snapshot, dict[tuple[str, str], str]]:
    """One fleet with a load balancer for each gateway of each case, and the ids of their listeners."""
    numbers = Numbers(*(count(1) for _ in fields(Numbers)))
    fronts: list[LoadBalancer] = []
    pools: dict[str, Pool] = {}
    certificates: list[Certificate] = []
    listeners: dict[tuple[str, str], str] = {}
    for case in cases:
        known = _pools_of(case, environment, numbers, pools)
        for gateway, said in case.gateways.items():
            front, shown = _front(case, gateway, said, known, numbers)
            listeners[case.name, gateway] = front.listeners[0].id
            fronts.append(front)
            certificates += shown
    found = Snapshot(
        "fleet-a", REGION, tuple(fronts), tuple(pools.values()), tuple(certificates), local_development=True
    )
    return found, listeners


def _pools_of(case: Case, environment: Environment, numbers: Numbers, pools: dict[str, Pool]) -> dict[str, str]:
    """The pools of a case by name: its own, and one for each backend; pools that many cases have are made once."""
    known = {}
    for name in environment.ports:
        spoken = {"http_version": "2"} if name.startswith("grpc-") else {}
        if name not in pools:
            pools[name] = _pool(name, {"at": [name], **spoken}, environment, numbers)
        known[name] = pools[name].id
    for name, said in case.pools.items():
        own = pools[f"{case.name} {name}"] = _pool(name, said, environment, numbers)
        known[name] = own.id
    return known


def _pool(name: str, said: Mapping[str, Any], environment: Environment, numbers: Numbers) -> Pool:
    servers = [{"name": each, "address": "127.0.0.1", "port": environment.ports[each]} for each in said["at"]]
    plain = {key: value for key, value in said.items() if key != "at"}
    if "ca" in plain.get("server_tls", {}):
        plain["server_tls"] = plain["server_tls"] | {"ca": environment.authorities[plain["server_tls"]["ca"]]}
    spec = read_or_raise(PoolSpec, plain | {"backends": [{"region": REGION, "servers": servers}]})
    options = {each.name: _option(each.name, spec) for each in fields(PoolOptions)}
    return Pool(
        id=f"pool-{next(numbers.pool)}",
        label=name,
        account=ACCOUNT,
        protocol=spec.protocol,
        balance=spec.balance,
        servers=tuple(
            Server(f"srv-{next(numbers.server)}", each.name, each.address, each.port, each.weight)
            for each in spec.backends[0].servers
        ),
        **options,
    )


def _option(name: str, spec: PoolSpec) -> Any:
    value = getattr(spec, name)
    if name not in OBJECTS or value is None:
        return value
    plain = write(type(value), value)
    if isinstance(value, ServerTlsShape):
        plain.pop("client_certificate")
    return from_plain(OBJECTS[name], plain)


def _front(
    case: Case, gateway: str, said: Mapping[str, Any], pools: Mapping[str, str], numbers: Numbers
) -> tuple[LoadBalancer, list[Certificate]]:
    listener, certificates = _listener(said, pools, numbers)
    rules = [rule for rule in case.routes if gateway in rule.get("gateways", [next(iter(case.gateways))])]
    front = LoadBalancer(f"lb-{next(numbers.front)}", f"{case.name} {gateway}", ACCOUNT, (listener,))
    for rule in rules:
        for spec in _specs(rule):
            front = _with_route(front, read_or_raise(RouteSpec, spec), pools, numbers)
            if rule.get("taken_back"):
                front = _without_pools(front)
    return front, certificates


def _listener(
    said: Mapping[str, Any], pools: Mapping[str, str], numbers: Numbers
) -> tuple[Listener, list[Certificate]]:
    number = next(numbers.listener)
    hosts = said.get("certificates", {})
    certificates = [
        Certificate(f"crt-{next(numbers.certificate)}", name, ACCOUNT, certificate_pem(host), (host,))
        for name, host in hosts.items()
    ]
    plain = {"name": "listener", "protocol": "http", "port": FIRST_PORT + number, **said, "certificates": [*hosts]}
    spec: ListenerSpec = read_or_raise(LoadBalancerSpec, {"listeners": [plain]}).listeners[0]
    ids = {each.label: each.id for each in certificates}
    listener = Listener(
        f"lst-{number}",
        f"listener-{number}",
        spec.protocol,
        spec.port,
        certificate_ids=tuple(ids.values()),
        default_certificate_id=ids.get(spec.default_certificate or ""),
        tls=spec.tls,
        default_pool_id=pools[spec.default_pool] if spec.default_pool else None,
        ends_tls=spec.protocol is Protocol.TCP and bool(ids),
        sni_routes=tuple(SniRoute(each.hostname, pools[each.pool], each.passthrough) for each in spec.sni_routes),
    )
    return listener, certificates if listener.speaks_tls else []


def _without_pools(front: LoadBalancer) -> LoadBalancer:
    """The pools of the newest route are shared with its account no more."""
    *others, newest = front.routes
    lost = LostPools({newest.id: frozenset(share.pool_id for share in newest.pools)}, {})
    return replace(front, routes=(*others, lost.without(newest)))


def _specs(rule: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The documents of one rule: a route for each host and each of the matches that are joined by or."""
    plain = {
        key: value for key, value in rule.items() if key not in ("hosts", "matches", "to", "gateways", "taken_back")
    }
    if "to" in rule:
        weights = rule["to"] if isinstance(rule["to"], Mapping) else {rule["to"]: 1}
        plain["action"] = {"pools": [{"pool": pool, "weight": weight} for pool, weight in weights.items()]}
    for host in rule.get("hosts", ["*"]):
        for match in rule.get("matches", [{}]):
            asked = dict(match)
            for name in ("headers", "query"):
                if name in asked:
                    asked[name] = [{"name": key, "value": value} for key, value in asked[name].items()]
            yield {"load_balancer": "front", "hostname": host, **asked, **plain}


def _with_route(front: LoadBalancer, spec: RouteSpec, pools: Mapping[str, str], numbers: Numbers) -> LoadBalancer:
    number = next(numbers.route)
    action: Action = spec.action
    rules = rule_set(spec.rules) if spec.rules is not None else None
    route = Route(
        f"route-{number}",
        f"route-{number}",
        ACCOUNT,
        spec.hostname,
        spec.path,
        spec.path_kind,
        spec.methods,
        spec.headers,
        tuple(WeightedPool(pools[share.pool], share.weight) for share in action.pools),
        action.redirect,
        action.fixed_response,
        spec.prefix_rewrite,
        scheme=spec.scheme,
        query=spec.query,
        cookies=spec.cookies,
        rule_set=rules.id if rules else "",
    )
    sets = front.rule_sets if rules is None or rules in front.rule_sets else (*front.rule_sets, rules)
    return replace(front, routes=(*front.routes, route), rule_sets=sets)

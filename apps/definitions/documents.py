"""DEFINE: the documents of every kind of object, the one way in for the API, the pages, apply and seed.

An object is `{kind, name, account?, spec}`. `read_object` turns it into a frozen specification or raises
`Invalid` with every fault.

References are names. `name` is an object of the same account, `account/name` one of another (operators, and what they
share); a load balancer and a place (region, fleet, stack, static IP) belong to the operator and are named by `name`
alone.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from apps.accounts.models import Account
from apps.accounts.quotas import DEFAULTS, bounds
from apps.compiler import grammar
from apps.compiler.model import (
    Balance,
    FixedResponse,
    HeaderCondition,
    HeaderMatch,
    HealthCheck,
    Limit,
    LimitKind,
    LimitScope,
    PathKind,
    Protocol,
    Redirect,
    ServerState,
    WhenFull,
)
from apps.core.errors import Fault, Invalid
from apps.definitions.asserting import read_assertions
from apps.definitions.capacity_tests import read_capacity_test
from apps.definitions.certificates import canonical_pem
from apps.definitions.clouds import read_address_pool, read_cloud_account, read_stack, read_static_ip
from apps.definitions.fleets import read_fleet
from apps.definitions.reading import Reader, agent_url, boolean, choice, integer, number, reference, title
from apps.definitions.schedules import read_schedule
from apps.definitions.specs import (
    AccountSpec,
    BackendSpec,
    CertificateSpec,
    LatencySpec,
    ListenerSpec,
    LoadBalancerSpec,
    NodeSpec,
    PoolSpec,
    RegionSpec,
    RouteSpec,
    ServerSpec,
    ShareSpec,
    Spec,
)
from apps.definitions.tags import read_grant, read_tags
from apps.definitions.zones import read_record, read_zone

MAX_POOLS_OF_ROUTE = 8
latency_ms = number(0, 60_000)


@dataclass(frozen=True, slots=True)
class Object:
    """One object as it was sent; `account` is None where the sender's own is meant, `pointer` where it stood."""

    kind: str
    name: str
    account: str | None
    spec: Spec
    pointer: str = ""


def _account(reader: Reader) -> AccountSpec:
    def kind(value: object) -> str:
        if value not in Account.Kind.values:
            raise grammar.GrammarError("choice", "Use operator or customer.")
        return str(value)

    return AccountSpec(
        reader.required("title", title),
        reader.optional("kind", kind, "customer"),
        _quotas(reader.child("quotas")),
        reader.optional("suspended", boolean, None),
    )


def _quotas(reader: Reader | None) -> tuple[tuple[str, int], ...] | None:
    if reader is None:
        return None
    found = {name: reader.optional(name, integer(*bounds(name)), None) for name in DEFAULTS}
    reader.close()
    return tuple((name, value) for name, value in found.items() if value is not None)


def _region(reader: Reader) -> RegionSpec:
    return RegionSpec(
        reader.required("title", title),
        reader.optional("latitude", number(-90, 90), None),
        reader.optional("longitude", number(-180, 180), None),
        reader.optional("drained", boolean, None),
        _latencies(reader) if reader.has("latency") else None,
    )


def _latencies(reader: Reader) -> tuple[LatencySpec, ...]:
    children, found = reader.children("latency"), []
    for child in children:
        found.append(LatencySpec(child.required("to", grammar.name), child.required("ms", latency_ms)))
        child.close()
    _refuse_twins(children, "to", [entry.to for entry in found])
    return tuple(found)


def _node(reader: Reader) -> NodeSpec:
    return NodeSpec(
        reader.required("fleet", grammar.name),
        reader.required("url", agent_url),
        reader.optional("address", grammar.listen_address, "127.0.0.1"),
        reader.optional("port_offset", integer(0, 60_000), 0),
    )


def _pem_text(value: object) -> str:
    text = canonical_pem(value) if isinstance(value, str) else ""
    if not isinstance(value, str) or len(value) > grammar.MAX_PEM or not text.isascii():
        raise grammar.GrammarError("pem", f"Paste PEM text of at most {grammar.MAX_PEM} characters.")
    return text


def _certificate(reader: Reader) -> CertificateSpec:
    return CertificateSpec(reader.required("chain", _pem_text), reader.optional("key", _pem_text, None))


def _server(reader: Reader) -> ServerSpec:
    # Whether loopback is allowed depends on the region's fleets, which the service knows.
    def address(value: object) -> str:
        return grammar.server_address(value, local_development=True)

    server = ServerSpec(
        reader.required("name", grammar.name),
        reader.required("address", address),
        reader.required("port", grammar.port),
        reader.optional("weight", grammar.server_weight, 100),
        reader.optional("state", choice(ServerState), ServerState.READY),
    )
    reader.close()
    return server


def _limit(reader: Reader | None) -> tuple[Limit, str]:
    """A limit, and the capacity run that it says it comes from."""
    if reader is None:
        return Limit(), ""
    kind = reader.required("kind", choice(LimitKind))
    value = reader.optional("value", grammar.limit_value, 0)
    scope = reader.optional("scope", choice(LimitScope), LimitScope.BACKEND)
    if kind is LimitKind.NONE and value:
        reader.fault("value", "limit", "A limit of kind none has no value; leave it out.")
    if kind in (LimitKind.RATE, LimitKind.CONNECTIONS) and value == 0:
        reader.fault("value", "limit", "Fill in a value of at least 1.")
    measured_by = reader.optional("measured_by", _measured_by, "")
    reader.close()
    return Limit(kind, value, scope), measured_by


def _measured_by(value: object) -> str:
    return "" if value == "" else grammar.name(value)


def _backend(reader: Reader) -> BackendSpec:
    region = reader.required("region", grammar.name)
    limit, measured_by = _limit(reader.child("limit"))
    scaler = reader.optional("capacity_scaler", number(0, 1), 1.0)
    children = reader.children("servers")
    servers = tuple(_server(child) for child in children)
    _refuse_twins(children, "name", [server.name for server in servers])
    places = [(server.address, server.port) if server.address and server.port else None for server in servers]
    _refuse_twins(children, "address", places)
    reader.close()
    return BackendSpec(region, limit, scaler, servers, measured_by)


@dataclass(frozen=True, slots=True)
class LimitChange:
    """What a small call says about one backend: the whole limit, and a scaler where it names one."""

    limit: Limit
    measured_by: str
    capacity_scaler: float | None


def read_limit(data: dict[str, Any], when_full: str) -> LimitChange:
    """`{kind, value?, scope?, measured_by?, capacity_scaler?}` of a pool with this policy. Raises Invalid."""
    faults: list[Fault] = []
    reader = Reader(data, "", faults)
    scaler = reader.optional("capacity_scaler", number(0, 1), None)
    limit, measured_by = _limit(reader)
    if when_full == WhenFull.QUEUE and limit.kind is LimitKind.RATE:
        reader.fault("kind", "queue", QUEUE_NEEDS_CONNECTIONS)
    if faults:
        raise Invalid(faults)
    return LimitChange(limit, measured_by, scaler)


QUEUE_NEEDS_CONNECTIONS = (
    "Queueing requires connection limits: choose refuse or spread for when all regions are full, "
    "or limit by connections in every region."
)


def _refuse_twins(readers: list[Reader], field: str, values: list[Any]) -> None:
    """The same value in two entries of a list is a fault of the second."""
    for index, value in enumerate(values):
        if value is not None and value in values[:index]:
            readers[index].fault(field, "twice", f"Another entry of the list has the same {field}.")


def _health_check(reader: Reader | None) -> HealthCheck | None:
    if reader is None:
        return None
    check = HealthCheck(
        path=reader.optional("path", grammar.check_path, ""),
        method=reader.optional("method", grammar.method, "GET"),
        host=reader.optional("host", _check_host, ""),
        expect_status=reader.optional("expect_status", grammar.status_code, 200),
        interval_ms=reader.optional("interval_ms", grammar.time_ms, 2000),
        timeout_ms=reader.optional("timeout_ms", grammar.time_ms, 2000),
        rise=reader.optional("rise", grammar.check_count, 2),
        fall=reader.optional("fall", grammar.check_count, 3),
    )
    reader.close()
    return check


def _check_host(value: object) -> str:
    return "" if value == "" else grammar.redirect_host(value)


def _pool(reader: Reader) -> PoolSpec:
    protocol = reader.optional("protocol", choice(Protocol), Protocol.HTTP)
    if protocol is Protocol.HTTPS:
        reader.fault("protocol", "choice", "Pools speak http or tcp with their servers.")
    children = reader.children("backends")
    when_full, order = _overflow(reader.child("overflow"))
    spec = PoolSpec(
        protocol=protocol,
        balance=reader.optional("balance", choice(Balance), Balance.LEASTCONN),
        connect_timeout_ms=reader.optional("connect_timeout_ms", grammar.time_ms, 2000),
        server_timeout_ms=reader.optional("server_timeout_ms", grammar.time_ms, 30_000),
        queue_timeout_ms=reader.optional("queue_timeout_ms", grammar.time_ms, 10_000),
        server_keepalive_ms=reader.optional("server_keepalive_ms", grammar.time_ms, None),
        health_check=_health_check(reader.child("health_check")),
        backends=tuple(_backend(child) for child in children),
        when_full=when_full,
        overflow_order=order,
        tags=read_tags(reader.child("tags")),
    )
    _refuse_twins(children, "region", [backend.region for backend in spec.backends])
    if when_full is WhenFull.QUEUE and any(backend.limit.kind is LimitKind.RATE for backend in spec.backends):
        reader.faults.append(Fault(f"{reader.pointer}/overflow/when_full", "queue", QUEUE_NEEDS_CONNECTIONS))
    return spec


def _overflow(reader: Reader | None) -> tuple[WhenFull, tuple[str, ...]]:
    """What happens when all regions are full, and the regions that are tried first."""
    if reader is None:
        return WhenFull.SPREAD, ()
    when_full = reader.optional("when_full", choice(WhenFull), WhenFull.SPREAD)
    order = reader.values("order", grammar.name)
    reader.close()
    return when_full, order


def _listener(reader: Reader) -> ListenerSpec:
    spec = ListenerSpec(
        name=reader.required("name", grammar.name),
        protocol=reader.required("protocol", choice(Protocol)),
        port=reader.required("port", grammar.port),
        static_ip=reader.optional("static_ip", grammar.name, None),
        certificates=reader.values("certificates", reference),
        default_pool=reader.optional("default_pool", reference, None),
    )
    if spec.protocol is Protocol.HTTPS and not spec.certificates:
        reader.fault("certificates", "missing", "An https listener needs at least one certificate.")
    if spec.protocol in (Protocol.HTTP, Protocol.TCP) and spec.certificates:
        reader.fault("certificates", "protocol", "Only an https listener has certificates.")
    if spec.protocol is Protocol.TCP and spec.default_pool is None:
        reader.fault("default_pool", "missing", "A tcp listener needs a default_pool; it has no routes.")
    reader.close()
    return spec


def _load_balancer(reader: Reader) -> LoadBalancerSpec:
    fleets, stacks = reader.values("fleets", grammar.name), reader.values("stacks", grammar.name)
    children = reader.children("listeners")
    listeners = tuple(_listener(child) for child in children)
    _refuse_twins(children, "name", [listener.name for listener in listeners])
    places = [(listener.static_ip, listener.port) for listener in listeners if listener.port]
    if len(places) == len(children):
        _refuse_twins(children, "port", places)
    return LoadBalancerSpec(fleets, listeners, stacks)


def _header(reader: Reader) -> HeaderCondition:
    match = reader.optional("match", choice(HeaderMatch), HeaderMatch.EQUALS)
    name = reader.required("name", grammar.header_name)
    value = ""
    if match is HeaderMatch.EQUALS:
        value = reader.required("value", grammar.header_value)
    elif reader.optional("value", str, ""):
        reader.fault("value", "header_value", "Only a header condition of match equals has a value; leave it out.")
    reader.close()
    return HeaderCondition(name, match, value)


def _redirect(reader: Reader) -> Redirect:
    redirect = Redirect(
        code=reader.required("code", grammar.redirect_code),
        scheme=reader.optional("scheme", grammar.url_scheme, None),
        host=reader.optional("host", grammar.redirect_host, None),
        path=reader.optional("path", grammar.path, None),
        keep_query=reader.optional("keep_query", boolean, default=True),
    )
    if not (redirect.scheme or redirect.host or redirect.path) and not reader.faults:
        reader.fault("", "redirect_loop", "Set at least one of scheme, host and path for the redirect.")
    reader.close()
    return redirect


def _fixed_response(reader: Reader) -> FixedResponse:
    response = FixedResponse(
        status=reader.required("status", grammar.status_code),
        content_type=reader.optional("content_type", grammar.content_type, "text/plain; charset=utf-8"),
        body=reader.optional("body", grammar.body, ""),
    )
    reader.close()
    return response


def _shares(action: Reader) -> tuple[ShareSpec, ...]:
    children, found = action.children("pools"), []
    for child in children:
        found.append(ShareSpec(child.required("pool", reference), child.optional("weight", grammar.route_weight, 100)))
        child.close()
    _refuse_twins(children, "pool", [share.pool for share in found])
    if len(found) > MAX_POOLS_OF_ROUTE:
        action.fault("pools", "too_many", f"Use at most {MAX_POOLS_OF_ROUTE} pools in one route.")
    if not found or all(share.weight == 0 for share in found):
        action.fault("pools", "missing", "Name at least one pool with a weight above 0.")
    return tuple(found)


def _action(
    reader: Reader | None,
) -> tuple[tuple[ShareSpec, ...], Redirect | None, FixedResponse | None]:
    shares: tuple[ShareSpec, ...] = ()
    redirect = fixed = None
    if reader is None:
        return shares, redirect, fixed
    chosen = [field for field in ("pools", "redirect", "fixed_response") if reader.has(field)]
    if len(chosen) != 1:
        reader.fault("", "one_action", "Use exactly one of pools, redirect and fixed_response.")
    elif chosen == ["pools"]:
        shares = _shares(reader)
    elif child := reader.child(chosen[0]):
        if chosen == ["redirect"]:
            redirect = _redirect(child)
        else:
            fixed = _fixed_response(child)
    reader.close()
    return shares, redirect, fixed


def _route(reader: Reader) -> RouteSpec:
    kind = reader.optional("path_kind", choice(PathKind), PathKind.PREFIX)
    action = reader.child("action")
    if action is None:
        reader.fault("action", "missing", "Fill in pools, redirect or fixed_response.")
    shares, redirect, fixed = _action(action)
    headers = tuple(_header(child) for child in reader.children("headers"))
    methods = reader.values("methods", grammar.method)
    hostname = reader.required("hostname", grammar.hostname)
    spec = RouteSpec(
        load_balancer=reader.required("load_balancer", grammar.name),
        hostname=hostname,
        path=reader.optional("path", grammar.path if kind is PathKind.EXACT else grammar.prefix_path, "/"),
        path_kind=kind,
        methods=tuple(sorted(method for method in methods if method)),
        headers=tuple(sorted(headers, key=lambda header: (str(header.name).lower(), str(header.value)))),
        pools=shares,
        redirect=redirect,
        fixed_response=fixed,
        prefix_rewrite=reader.optional("prefix_rewrite", grammar.prefix_path, None),
        assertions=read_assertions(reader, hostname),
        scheme=reader.optional("scheme", grammar.url_scheme, None),
    )
    if spec.prefix_rewrite and (kind is PathKind.EXACT or redirect or fixed):
        reader.fault("prefix_rewrite", "prefix_rewrite", "Only a prefix route to pools can rewrite its prefix.")
    return spec


READERS: dict[str, Callable[[Reader], Spec]] = {
    "Account": _account,
    "Region": _region,
    "Fleet": read_fleet,
    "Node": _node,
    "CloudAccount": read_cloud_account,
    "Stack": read_stack,
    "AddressPool": read_address_pool,
    "StaticIP": read_static_ip,
    "Grant": read_grant,
    "Certificate": _certificate,
    "Pool": _pool,
    "LoadBalancer": _load_balancer,
    "Route": _route,
    "Zone": read_zone,
    "Record": read_record,
    "CapacityTest": read_capacity_test,
    "Schedule": lambda reader: read_schedule(reader, read_object),
}


def read_spec(kind: str, spec: object, *, pointer: str = "/spec") -> Spec:
    """The specification of a known kind. Raises Invalid with every fault."""
    faults: list[Fault] = []
    reader = Reader(spec, pointer, faults)
    found = READERS[kind](reader)
    reader.close()
    if faults:
        raise Invalid(faults)
    return found


def _kind(value: object) -> str:
    if isinstance(value, str) and value in READERS:
        return value
    near = difflib.get_close_matches(str(value)[:40], READERS, 1)
    hint = f"did you mean {near[0]}?" if near else f"use one of {', '.join(READERS)}."
    raise grammar.GrammarError("kind", f"There is no such kind; {hint}")


def read_object(data: object, *, pointer: str = "", kind: str | None = None) -> Object:
    """One object with its envelope; `kind` says it where the place (a URL) already does. Raises Invalid."""
    faults: list[Fault] = []
    reader = Reader(data, pointer, faults)
    found = reader.required("kind", _kind) if kind is None else reader.optional("kind", _kind, kind)
    if kind and found and found != kind:
        reader.fault("kind", "kind", f"Objects here are of kind {kind}.")
    name = reader.required("name", grammar.name)
    account = reader.optional("account", grammar.name, None)
    if not reader.has("spec"):
        reader.fault("spec", "missing", "Fill in spec.")
    reader.close()
    spec: Spec | None = None
    if found and reader.data.get("spec") is not None:
        try:
            spec = read_spec(found, reader.data["spec"], pointer=f"{pointer}/spec")
        except Invalid as invalid:
            faults.extend(invalid.faults)
    if faults or spec is None:
        raise Invalid(faults)
    return Object(found, name, account, spec, pointer)

"""For each row of the table of capabilities, a use of its field: compiling it must say what the table says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from apps.compiler.grammars.authentication import ROUNDS
from apps.compiler.model.access import Access, ConnectionAccess
from apps.compiler.model.authentication import ApiKeys, BasicAuth, Jwt, JwtKey
from apps.compiler.model.listener_options import (
    Cache,
    ClientAddress,
    ClientCertificates,
    ClientProtocol,
    ClientVerify,
    Compression,
    ConnectionLimit,
    ListenerTls,
    ProtocolRoute,
    SniRoute,
    TlsPreset,
    Tracing,
)
from apps.compiler.model.listener_options import Connections as ClientConnections
from apps.compiler.model.listener_options import TlsVersion as ClientTls
from apps.compiler.model.policy import (
    Bandwidth,
    Body,
    ClientLimit,
    Cors,
    ErrorPages,
    HeaderChanges,
    Log,
    Maintenance,
    Overflow,
    ResponseHeaders,
    ResponseRewrite,
    Retries,
    Rewrite,
    Rules,
    SecurityHeaders,
    Split,
    Timeouts,
    TypedHeaders,
)
from apps.compiler.model.servers import (
    AgentCheck,
    CheckKind,
    Connections,
    CookieMode,
    HttpVersion,
    Observed,
    OnOverflow,
    OutlierEjection,
    OverflowMode,
    PersistBy,
    Persistence,
    ProxyProtocol,
    Reuse,
    ServerTls,
    TlsVersion,
    Verify,
)
from apps.compiler.model.servers import Retries as PoolRetries
from apps.compiler.model.shared import (
    Balance,
    FixedResponse,
    Limit,
    LimitKind,
    PathKind,
    Redirect,
    ServerState,
    ValueCondition,
    ValueMatch,
    WeightedPool,
    WhenFull,
)
from apps.compiler.portability.table.cells import Column
from tests.authorities import Authority
from tests.conformance.capability_worlds import CHECK, Example
from tests.hostile.policy_examples import JWT_KEY

Examples = Mapping[str, Example]
AUTHORITY = Authority()


def _route(**said: Any) -> Example:
    return Example(route=said)


def _header(match: ValueMatch, value: str = "") -> tuple[ValueCondition, ...]:
    return (ValueCondition("X-Version", match, value),)


def _redirect(code: int = 301, **said: Any) -> Example:
    return Example(route={"pools": (), "redirect": Redirect(code, **({"host": "www.example"} | said))}, https=True)


def _fixed(status: int = 200, **said: Any) -> Example:
    return _route(pools=(), fixed_response=FixedResponse(status, **said))


EQUALS, PREFIX, REGEX = ValueMatch.EQUALS, ValueMatch.PREFIX, ValueMatch.REGEX
PRESENT, ABSENT = ValueMatch.PRESENT, ValueMatch.ABSENT
ROUTES: Examples = {
    "hostname": _route(hostname="*." + ".".join(["a" * 30] * 5) + ".example"),
    "path": _route(path="/" + "a" * 1023),
    "path_kind": _route(path="/a", path_kind=PathKind.EXACT),
    "path_kind: regex": _route(path="/a.*", path_kind=PathKind.REGEX),
    "methods": _route(methods=("GET", "POST")),
    "scheme": _route(scheme="http"),
    "headers": _route(headers=_header(PREFIX, "beta")),
    "headers.match: regex": _route(headers=_header(REGEX, "a.*")),
    "headers.match: present": _route(headers=_header(PRESENT)),
    "headers.match: absent": _route(headers=_header(ABSENT)),
    "query": _route(query=_header(EQUALS, "beta")),
    "query.match: prefix": _route(query=_header(PREFIX, "1")),
    "query.match: regex": _route(query=_header(REGEX, "1.*")),
    "query.match: present": _route(query=_header(PRESENT)),
    "query.match: absent": _route(query=_header(ABSENT)),
    "cookies": _route(cookies=_header(EQUALS, "beta")),
    "client_networks": _route(client_networks=tuple(f"198.51.100.{each}/32" for each in range(4))),
    "prefix_rewrite": _route(path="/a", prefix_rewrite="/b"),
    "mirror": _route(mirror_pool_id="pool-2"),
    "action.pools": _route(pools=(WeightedPool("pool-1", 1), WeightedPool("pool-2", 1))),
    "action.redirect.code": _redirect(308),
    "action.redirect.scheme": _redirect(scheme="http"),
    "action.redirect.host": _redirect(host="a" * 60 + "." + "b" * 60 + ".c" * 10 + ".example"),
    "action.redirect.port": _redirect(port=8443),
    "action.redirect.path": _redirect(path="/" + "a" * 128),
    "action.redirect.prefix": Example(
        route={"path": "/a", "pools": (), "redirect": Redirect(301, host="www.example", prefix="/b")}
    ),
    "action.redirect.keep_query": _redirect(keep_query=False),
    "action.redirect.query": _redirect(query="from=old"),
    "action.fixed_response.status": _fixed(404),
    "action.fixed_response.content_type": _fixed(content_type="image/svg+xml", body="<svg/>"),
    "action.fixed_response.body": _fixed(body="Gone.\n" * 200),
}
_HASH = f"$6$rounds={ROUNDS}$" + "s" * 16 + "$" + "h" * 86


def _rules(**said: Any) -> Example:
    return Example(rules=Rules(**said))


POLICIES: Examples = {
    "rules.access": _rules(access=Access(deny=("net-1",))),
    "rules.basic_auth": _rules(basic_auth=BasicAuth(users=(("anna", _HASH),))),
    "rules.api_keys": _rules(api_keys=ApiKeys(keys=(("shop", "a" * 64),), id="keys-1")),
    "rules.jwt": _rules(jwt=Jwt(issuer="https://a.example", audience="shop", keys=(JwtKey("ES256", JWT_KEY),))),
    "rules.request_headers": _rules(request_headers=HeaderChanges(set=(("X-A", "1"),))),
    "rules.response_headers": _rules(response_headers=ResponseHeaders(set=(("X-A", "1"),))),
    "rules.typed_headers": _rules(typed_headers=TypedHeaders(set=(("X-A", "1"),), types=("text/html",))),
    "rules.security_headers": _rules(security_headers=SecurityHeaders(no_sniff=True)),
    "rules.cors": _rules(cors=Cors(origins=("https://a.example",))),
    "rules.rewrite": _rules(rewrite=Rewrite(host="b.example")),
    "rules.response_rewrite": _rules(response_rewrite=ResponseRewrite(secure_cookies=True)),
    "rules.maintenance": _rules(maintenance=Maintenance(enabled=True)),
    "rules.client_limit": _rules(client_limit=ClientLimit(requests=100)),
    "rules.error_pages": _rules(error_pages=ErrorPages(statuses=(503,), body="Sorry.", content_type="text/plain")),
    "rules.body": _rules(body=Body(max_bytes=1_000_000)),
    "rules.bandwidth": _rules(bandwidth=Bandwidth(download_bytes_per_s=50_000)),
    "rules.timeouts": _rules(timeouts=Timeouts(response_ms=5000)),
    "rules.retries": _rules(retries=Retries(after_sending=False)),
    "rules.retries.attempts": _rules(retries=Retries(attempts=1)),
    "rules.overflow": _rules(overflow=Overflow(mode="never")),
    "rules.split": _rules(split=Split(stick_by="cookie")),
    "rules.log": _rules(log=Log(requests="errors")),
}


def _listener(**said: Any) -> Example:
    return Example(listener=said)


def _tls(**said: Any) -> Example:
    return Example(listener={"tls": ListenerTls(**said)}, https=True)


def _client(**said: Any) -> Example:
    return _listener(client_address=ClientAddress(**said))


_OFFICE = ("192.0.2.0/24",)
LISTENERS: Examples = {
    "listeners.protocol": Example(https=True),
    "listeners.port": _listener(port=8080),
    "listeners.default_pool": _listener(default_pool_id="pool-1"),
    "listeners.certificates": Example(listener={"default_certificate_id": None}, https=True),
    "listeners.default_certificate": Example(listener={"default_certificate_id": "crt-2"}, https=True),
    "listeners.connections": _listener(connections=ClientConnections()),
    "listeners.access": _listener(access=ConnectionAccess(deny=("net-1",))),
    "listeners.client_limit": _listener(client_limit=ConnectionLimit(connections=20)),
    "listeners.client_address.proxy_protocol_from": _client(proxy_protocol_from=_OFFICE),
    "listeners.client_address.forwarded_from": _client(forwarded_from=_OFFICE),
    "listeners.client_address.forwarded_header_from": _client(forwarded_header_from=_OFFICE),
    "listeners.client_address.send_forwarded": _client(send_forwarded=True),
    "listeners.compression": _listener(compression=Compression()),
    "listeners.cache": _listener(cache=Cache()),
    "listeners.tracing": _listener(tracing=Tracing()),
    "listeners.monitor_path": _listener(monitor_path="/up"),
    "listeners.sni_routes": replace(_listener(sni_routes=(SniRoute("db.example", "pool-2"),)), tcp=True),
    "listeners.protocol_routes": replace(
        _listener(protocol_routes=(ProtocolRoute("pool-2", ClientProtocol.SSH),)), tcp=True
    ),
    "listeners.client_certificates": Example(
        listener={"client_certificates": (ClientCertificates(ClientVerify.REQUIRED, AUTHORITY.pem),)}, https=True
    ),
    "listeners.tls.preset": _tls(preset=TlsPreset.MODERN),
    "listeners.tls.minimum_version": _tls(minimum_version=ClientTls.V13),
    "listeners.tls.http2": _tls(http2=False),
    "listeners.tls.http3": _tls(http3=True),
    "listeners.tls.same_certificate": _tls(same_certificate=True),
    "listeners.tls.session_tickets": _tls(session_tickets=False),
    "listeners.tls.alpn": replace(_tls(alpn=("mqtt",)), tcp=True),
}


def _pool(**said: Any) -> Example:
    return Example(pool=said)


def _check(**said: Any) -> Example:
    return _pool(health_check=replace(CHECK, **said))


def _tcp_check(kind: CheckKind, **said: Any) -> Example:
    return replace(_check(path="", kind=kind, **said), tcp=True)


def _way(**said: Any) -> Example:
    return _pool(server_tls=ServerTls(**({"verify": Verify.NONE} | said)))


def _sticky(**said: Any) -> Example:
    return _pool(persistence=Persistence(**said))


def _limited(kind: LimitKind, **said: Any) -> Example:
    return Example(backend={"limit": Limit(kind, 100)}, pool=said)


POOLS: Examples = {
    "protocol": Example(),
    "balance": _pool(balance=Balance.RANDOM),
    "connect_timeout_ms": _pool(connect_timeout_ms=3000),
    "server_timeout_ms": _pool(server_timeout_ms=20_500),
    "queue_timeout_ms": _pool(queue_timeout_ms=3000),
    "server_keepalive_ms": _pool(server_keepalive_ms=5000),
    "tunnel_timeout_ms": _pool(tunnel_timeout_ms=60_000),
    "server_tls": _way(),
    "server_tls.verify": _way(verify=Verify.SYSTEM, server_name="a.example"),
    "server_tls.min_version": _way(min_version=TlsVersion.V1_3),
    "server_tls.client_certificate": _way(client_certificate_id="crt-1"),
    "http_version": _pool(http_version=HttpVersion.HTTP2),
    "host_header": _pool(host_header="b.example"),
    "request_headers": _pool(request_headers=(("X-A", "1"),)),
    "proxy_protocol": _pool(proxy_protocol=ProxyProtocol.V2),
    "proxy_protocol: v1": _pool(proxy_protocol=ProxyProtocol.V1),
    "connection_reuse": _pool(connection_reuse=Reuse.NEVER),
    "persistence": _sticky(),
    "persistence.by: source": _sticky(by=PersistBy.SOURCE),
    "persistence.by: header": _sticky(by=PersistBy.HEADER, header="X-User"),
    "persistence.cookie": _sticky(cookie="SHOP"),
    "persistence.mode": _sticky(cookie="JSESSIONID", mode=CookieMode.PREFIX),
    "persistence.overflow": _sticky(overflow=OnOverflow.KEEPS),
    "health_check": _pool(health_check=None),
    "health_check.path": _check(path="/ready"),
    "health_check.port": _check(port=9000),
    "health_check.method": _check(method="HEAD"),
    "health_check.host": _check(host="a.example"),
    "health_check.expect_status": _check(expect_status=500),
    "health_check.expect_statuses": _check(expect_statuses=("500-599",)),
    "health_check.interval_ms": _check(interval_ms=10_500),
    "health_check.timeout_ms": _check(timeout_ms=2500),
    "health_check.rise": _check(rise=12),
    "health_check.fall": _check(fall=12),
    "health_check.headers": _check(headers=(("X-A", "1"),)),
    "health_check.body": _check(method="POST", body="up?"),
    "health_check.expect_body": _check(expect_body="ready"),
    "health_check.kind: tcp": _tcp_check(CheckKind.TCP),
    "health_check.kind: grpc": _pool(
        http_version=HttpVersion.HTTP2,
        server_tls=ServerTls(Verify.NONE),
        health_check=replace(CHECK, path="", kind=CheckKind.GRPC),
    ),
    "health_check.service": _pool(
        http_version=HttpVersion.HTTP2,
        server_tls=ServerTls(Verify.NONE),
        health_check=replace(CHECK, path="", kind=CheckKind.GRPC, service="shop"),
    ),
    "health_check.kind: postgresql": _tcp_check(CheckKind.POSTGRESQL, user="spillway"),
    "health_check.kind: mysql": _tcp_check(CheckKind.MYSQL, user="spillway"),
    "health_check.kind: redis": _tcp_check(CheckKind.REDIS),
    "health_check.kind: smtp": _tcp_check(CheckKind.SMTP),
    "health_check.kind: ldap": _tcp_check(CheckKind.LDAP),
    "health_check.user": _tcp_check(CheckKind.MYSQL, user="other"),
    "health_check.send": _tcp_check(CheckKind.TCP, send="PING\n"),
    "health_check.expect": _tcp_check(CheckKind.TCP, expect="PONG"),
    "agent_check": _pool(agent_check=AgentCheck(9777)),
    "outlier_ejection": _pool(outlier_ejection=OutlierEjection(Observed.CONNECTIONS)),
    "slow_start_ms": _pool(slow_start_ms=30_000),
    "connections": _pool(connections=Connections(50)),
    "retries": _pool(retries=PoolRetries()),
    "overflow.mode": Example(pool={"overflow_mode": OverflowMode.NEVER}, regions=2),
    "overflow.order": Example(regions=2),
    "overflow.when_full": _limited(LimitKind.RATE, when_full=WhenFull.QUEUE),
    "backends.limit": _limited(LimitKind.RATE),
    "backends.limit.kind: connections": _limited(LimitKind.CONNECTIONS),
    "backends.capacity_scaler": Example(backend={"capacity_scaler": 0.05}),
    "backends.servers.address": Example(server={"address": "2001:db8::1"}),
    "backends.servers.port": Example(server={"port": 9090}),
    "backends.servers.weight": Example(server={"weight": 7}),
    "backends.servers.state": Example(server={"state": ServerState.MAINTENANCE}),
    "backends.servers.backup": Example(server={"backup": True}),
}
# Where a use that one target notices is none that another does.
ELSEWHERE: Mapping[tuple[str, Column], Example] = {
    ("balance", Column.ALB): _pool(balance=Balance.SOURCE),
    ("balance", Column.GOOGLE): replace(_pool(balance=Balance.RANDOM), tcp=True),
    ("server_tls", Column.GOOGLE): replace(_way(), tcp=True),
    ("outlier_ejection", Column.GOOGLE): replace(
        _pool(outlier_ejection=OutlierEjection(Observed.CONNECTIONS)), tcp=True
    ),
    ("persistence", Column.NLB): _sticky(by=PersistBy.SOURCE),
    ("persistence.overflow", Column.NLB): _sticky(by=PersistBy.SOURCE, overflow=OnOverflow.KEEPS),
    ("slow_start_ms", Column.ALB): _pool(slow_start_ms=30_000, balance=Balance.LEASTCONN),
    ("connect_timeout_ms", Column.NLB): _pool(connect_timeout_ms=3000),
}

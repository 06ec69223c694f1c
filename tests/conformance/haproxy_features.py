"""Which features of haproxy.cfg a document can say: `python -m tests.conformance.haproxy_features` writes the page.

The features are those of 93 public repositories' haproxy.cfg, each with the share of files that use it. Each row that
can be said has what is said of the objects in SIMPLE, and what HAProxy then reads: a test compiles it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.pure.compiler_fixtures import certificate_pem

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "haproxy-features.md"
Spec = dict[str, Any]
YES, NO = "yes", "no"
FLEET = "edge"
_HTTPS = {"protocol": "https", "port": 443, "certificates": ["house"]}
_TCP = {"protocol": "tcp", "port": 9000}


@dataclass(frozen=True, slots=True)
class Row:
    """A feature: `how` it is said or why not; `writes` is a pattern of what HAProxy reads because of it.

    `pool`, `listener`, `route`, `rules` and `fleet` are added to the objects of SIMPLE. A row that says nothing is of
    what SIMPLE has already.
    """

    feature: str
    share: int | None
    how: str
    writes: str = ""
    pool: Spec = field(default_factory=dict)
    listener: Spec = field(default_factory=dict)
    route: Spec = field(default_factory=dict)
    rules: Spec = field(default_factory=dict)
    fleet: Spec = field(default_factory=dict)
    answer: str = YES

    @property
    def says(self) -> bool:
        """Whether it adds anything to SIMPLE."""
        return any((self.pool, self.listener, self.route, self.rules, self.fleet))


def documents(row: Row) -> list[Spec]:
    """The objects of SIMPLE with what the row says."""
    found = copy.deepcopy(SIMPLE)
    by_kind = {each["kind"]: each["spec"] for each in found}
    by_kind["Pool"] |= row.pool
    by_kind["LoadBalancer"]["listeners"][0] |= row.listener
    by_kind["Fleet"] |= row.fleet
    by_kind["Policy"]["rules"] |= row.rules
    by_kind["Route"] |= row.route
    is_tcp = by_kind["Pool"].get("protocol") == "tcp"
    unused = {"Route"} if is_tcp else set()
    if not row.rules:
        by_kind["Route"]["policies"] = []
        unused |= {"Policy"}
    return [each for each in found if each["kind"] not in unused]


def _certificate() -> Spec:
    chain, mark, key = certificate_pem("www.example.com").partition("-----BEGIN PRIVATE KEY-----")
    return {"chain": chain, "key": mark + key}


_SERVERS = [{"name": "one", "address": "192.0.2.10", "port": 80}, {"name": "two", "address": "192.0.2.11", "port": 80}]
SIMPLE: list[Spec] = [
    {"kind": "Region", "name": "home", "spec": {"title": "Home"}},
    {"kind": "Fleet", "name": FLEET, "spec": {"region": "home"}},
    {"kind": "Certificate", "name": "house", "spec": _certificate()},
    {"kind": "NetworkList", "name": "bad", "spec": {"entries": [{"network": "198.51.100.0/24"}]}},
    {"kind": "Pool", "name": "shop", "spec": {"backends": [{"region": "home", "servers": _SERVERS}]}},
    {
        "kind": "LoadBalancer",
        "name": "front",
        "spec": {"fleets": [FLEET], "listeners": [{"name": "web", "protocol": "http", "port": 80}]},
    },
    {"kind": "Policy", "name": "web", "spec": {"rules": {}}},
    {
        "kind": "Route",
        "name": "all",
        "spec": {
            "load_balancer": "front",
            "hostname": "www.example.com",
            "policies": ["web"],
            "action": {"pools": [{"pool": "shop"}]},
        },
    },
]
_TO_HTTPS = {"scheme": "http", "action": {"redirect": {"code": 301, "scheme": "https"}}}
_BOUNDS = {"max_per_server": 50, "min_per_server": 5, "full_at": 200}
_DENY = {"access": {"deny": ["bad"]}}
_LIMIT = {"client_limit": {"requests": 100}}
_TARPIT = {"client_limit": {"requests": 100, "action": "tarpit"}}
_STATUSES = {"health_check": {"path": "/up", "expect_statuses": ["200-204"], "expect_body": "ready"}}


def _times(**said: int) -> Spec:
    return {"connections": said}


def _check(**said: Any) -> Spec:
    return {"health_check": said}


def _settings(**said: Any) -> Spec:
    return {"node_settings": said}


ROWS = (
    Row("`bind`", 100, "`listeners[]` of a load balancer", r"^ +bind "),
    Row("`server`", 94, "`backends[].servers[]` of a pool", r"^ +server srv-"),
    Row(
        "`timeout connect`, `timeout server`", 92, "`connect_timeout_ms`, `server_timeout_ms` of a pool",
        r"timeout connect 1234ms\n +timeout server 5678ms",
        pool={"connect_timeout_ms": 1234, "server_timeout_ms": 5678},
    ),
    Row(
        "`timeout client`", 92, "`connections.client_timeout_ms` of a listener", "timeout client 1234ms",
        listener=_times(client_timeout_ms=1234),
    ),
    Row(
        "logs", 84, "every request is logged and found on the pages; `log` of a policy says which, and what of them",
        r"^ +http-response set-log-level silent", rules={"log": {"requests": "errors"}},
    ),
    Row(
        "`default_backend`", 82, "`default_pool` of a listener", r"^ +default_backend pool-",
        listener={"default_pool": "shop"},
    ),
    Row("`check`", 72, "`health_check` of a pool", r"default-server .*\bcheck\b", pool=_check(path="/up")),
    Row("`user`, `chroot`", 66, "They belong to the node: its installation sets them, not a document.", answer=NO),
    Row(
        "global `maxconn`", 62, "`node_settings.max_connections` of a fleet", r"^    maxconn 5000$",
        fleet=_settings(max_connections=5000),
    ),
    Row("stats page", 53, "It shows all customers' servers to everybody; use the pages or the metrics.", answer=NO),
    Row("`stats socket`", 49, "Each node has one for its agent, and no other.", answer=NO),
    Row(
        "`use_backend` with conditions", 48, "routes: `hostname`, `path`, `methods`, `headers` …",
        r"req\.f?hdr\(X-Canary\)", route={"headers": [{"name": "X-Canary", "value": "yes"}]},
    ),
    Row("`option forwardfor`", 48, "always; a client's own header is dropped", r"set-header X-Forwarded-For"),
    Row("`balance roundrobin`", 47, "`balance` of a pool", "balance roundrobin", pool={"balance": "roundrobin"}),
    Row(
        "`mode tcp`", 42, "`protocol: tcp` of a listener and a pool", r"^frontend lst-\d+ from tcp",
        pool={"protocol": "tcp"}, listener=_TCP | {"default_pool": "shop"},
    ),
    Row("`bind ssl`", 41, "`protocol: https` of a listener", "ssl crt-list", listener=_HTTPS),
    Row(
        "rules for a path or header without a host", 39, "`hostname: \"*\"` of a route", r"^\*/api/ route-",
        route={"hostname": "*", "path": "/api"},
    ),
    Row(
        "global `ssl-*`", 35, "`node_settings.tls_preset` of a fleet, `tls` of a listener",
        "ssl-default-bind-options ssl-min-ver TLSv1.3", fleet=_settings(tls_preset="modern"),
    ),
    Row("`inter`", 34, "`health_check.interval_ms`", r"\binter 7000", pool=_check(path="/up", interval_ms=7000)),
    Row("`acl` on paths", 33, "`path` of a route", r"^www\.example\.com/api/ route-", route={"path": "/api"}),
    Row(
        "`timeout http-request`", 33, "`connections.request_timeout_ms` of a listener", "timeout http-request 1234ms",
        listener=_times(request_timeout_ms=1234),
    ),
    Row("`timeout queue`", 32, "`queue_timeout_ms` of a pool", "timeout queue 1234ms", pool={"queue_timeout_ms": 1234}),
    Row("`retries`", 32, "`retries` of a pool or policy", r"^ +retries 5", pool={"retries": {"attempts": 5}}),
    Row(
        "`http-request set-retries`", None, "`retries.attempts` of a policy, on nodes with HAProxy 3.2 or later",
        r"^ +http-request set-retries ", rules={"retries": {"attempts": 1}},
    ),
    Row("`option redispatch`", 31, "always", "option redispatch"),
    Row(
        "`http-request set-header`", 31, "`request_headers` of a policy", "http-request set-header x-zone",
        rules={"request_headers": {"set": {"X-Zone": "a"}}},
    ),
    Row("`option httpchk`", 30, "`health_check.path` and others", r"http-check send .*/up", pool=_check(path="/up")),
    Row(
        "http to https", 28, "`redirect` of a route, for one host or `*`", r"^route-\d+ redirect\|301\|https\|",
        route=_TO_HTTPS,
    ),
    Row(
        "`option http-server-close`", 27, "`connections.keep_alive` of a listener, `connection_reuse` of a pool",
        "option http-server-close", listener={"connections": {"keep_alive": "clients"}},
    ),
    Row("`rise`, `fall`", 26, "`health_check.rise`, `fall`", "rise 4 fall 5", pool=_check(path="/up", rise=4, fall=5)),
    Row(
        "`tune.*`", 25, "`node_settings`: buffers and HTTP/2 streams; the rest is fixed", "tune.bufsize 32768",
        fleet=_settings(buffer_bytes=32768),
    ),
    Row(
        "`http-request deny`", 22, "`access` of a policy with network lists",
        r"return status 403 .*src,map_ip\(maps/net-", rules=_DENY,
    ),
    Row(
        "`timeout http-keep-alive`", 22, "`connections.keepalive_timeout_ms` of a listener",
        "timeout http-keep-alive 1234ms", listener=_times(keepalive_timeout_ms=1234),
    ),
    Row("`X-Forwarded-Port`, `X-Real-IP`", 22, "always", r"set-header X-Real-IP[^\n]*\n(.*\n){0,2}.*X-Forwarded-Port"),
    Row(
        "server `maxconn`", 20, "`connections.max_per_server` of a pool", r"default-server maxconn 50",
        pool={"connections": {"max_per_server": 50}},
    ),
    Row(
        "`http-response set-header`", 20, "`response_headers` of a policy", "http-after-response set-header x-zone",
        rules={"response_headers": {"set": {"X-Zone": "a"}}},
    ),
    Row(
        "HSTS", 16, "`security_headers.hsts_seconds` of a policy", "set-header strict-transport-security",
        listener=_HTTPS, rules={"security_headers": {"hsts_seconds": 3600}},
    ),
    Row("`balance leastconn`", 16, "`balance` of a pool; the default", "balance leastconn"),
    Row("`alpn h2`", 16, "https listeners; `tls.http2: false` turns it off", "alpn h2,http/1.1", listener=_HTTPS),
    Row(
        "`stick-table`", 16, "limits per client and persistence make their own; none without a purpose",
        r"^backend st_clients_second .*\n +stick-table", rules=_LIMIT,
    ),
    Row(
        "own error pages", None, "`error_pages` of a policy", r"http-error status 503",
        rules={"error_pages": {"statuses": [503], "body": "Back soon."}},
    ),
    Row(
        "`http-check expect`", 14, "`health_check.expect_status`, `expect_statuses`",
        "http-check expect status 200-204", pool=_check(path="/up", expect_statuses=["200-204"]),
    ),
    Row(
        "`timeout tunnel`", 14, "`tunnel_timeout_ms` of a pool, `timeouts.tunnel_ms` of a policy",
        "timeout tunnel 1234ms", pool={"tunnel_timeout_ms": 1234},
    ),
    Row(
        "ACME path for any host", 14, "a route for `*` and the path", r"^\*/\.well-known/acme-challenge/ route-",
        route={"hostname": "*", "path": "/.well-known/acme-challenge"},
    ),
    Row(
        "`http-response replace-header` of Location", None, "`response_rewrite` of a policy",
        r"^ +http-response replace-header Location ", rules={
            "response_rewrite": {"location_prefix": "http://app.internal/", "location_replacement": "/"}
        },
    ),
    Row("`set-var`", 13, "Headers, conditions and rewrites read what they need themselves.", answer=NO),
    Row("`nbthread`", 11, "`node_settings.threads` of a fleet", "nbthread 3", fleet=_settings(threads=3)),
    Row(
        "`src` conditions", 10, "`client_networks` of a route, `access` of a policy", r"src 192\.0\.2\.0/24",
        route={"client_networks": ["192.0.2.0/24"]},
    ),
    Row("`cookie`", 9, "`persistence` of a pool", "cookie SERVER insert", pool={"persistence": {"by": "cookie"}}),
    Row(
        "`backup`", 9, "`backup` of a server", r"^ +server srv-.* backup",
        pool={"backends": [{"region": "home", "servers": [_SERVERS[0], _SERVERS[1] | {"backup": True}]}]},
    ),
    Row("`compression`", 8, "`compression` of a listener", "compression algo gzip", listener={"compression": {}}),
    Row(
        "SNI passthrough", 8, "`sni_routes` of a tcp listener", r"req\.ssl_sni|req_ssl_sni",
        pool={"protocol": "tcp"}, listener=_TCP | {"sni_routes": [{"hostname": "a.example.com", "pool": "shop"}]},
    ),
    Row(
        "protocols that share a port", None, "`protocol_routes` of a tcp listener", r"req\.proto_http",
        pool={"protocol": "tcp"}, listener=_TCP | {"protocol_routes": [{"protocol": "http", "pool": "shop"}]},
    ),
    Row(
        "health checks of protocols", 6, "`health_check.kind`: gRPC, PostgreSQL, MySQL, Redis, SMTP, LDAP",
        "option pgsql-check", pool={"protocol": "tcp", "health_check": {"kind": "postgresql", "user": "check"}},
        listener=_TCP | {"default_pool": "shop"},
    ),
    Row("SPOE", 6, "It needs an agent beside HAProxy, which Spillway does not run.", answer=NO),
    Row("`send-proxy`", 6, "`proxy_protocol` of a pool", "send-proxy-v2", pool={"proxy_protocol": "v2"}),
    Row(
        "`accept-proxy`", 5, "`client_address.proxy_protocol_from` of a listener", "expect-proxy layer4",
        listener={"client_address": {"proxy_protocol_from": ["192.0.2.0/24"]}},
    ),
    Row(
        "Host rewrite", 5, "`host_header` of a pool, `rewrite.host` of a policy", "set-header Host inside.example.com",
        pool={"host_header": "inside.example.com"},
    ),
    Row(
        "`minconn`, `fullconn`", 5, "`connections.min_per_server`, `full_at` of a pool", r"minconn 5\n +fullconn 200",
        pool={"connections": _BOUNDS},
    ),
    Row(
        "`maxconn` of a frontend", 5, "`connections.max_connections` of a listener", r"^ +maxconn 700$",
        listener=_times(max_connections=700),
    ),
    Row(
        "several statuses or a body in checks", 5, "`health_check.expect_statuses`, `expect_body`",
        r"http-check expect status 200-204\n(.*\n)*?.*http-check expect string ready", pool=_STATUSES,
    ),
    Row("Lua", 5, "Code of others would run in the process that serves everybody.", answer=NO),
    Row(
        "networks that may connect", None, "`access` of a listener", r"tcp-request connection reject if .*map_ip",
        listener={"access": {"allow": ["bad"]}},
    ),
    Row(
        "limits of new connections by address", None, "`client_limit` of a listener",
        r"tcp-request connection reject if \{ var\(sess.over\)", listener={"client_limit": {"connections": 20}},
    ),
    Row(
        "limits of errors by client (`http_err_rate`)", None, "`client_limit.errors` of a policy",
        r"table_http_err_rate\(st_clients_held_minute\)", rules={"client_limit": {"errors": 20, "per": "minute"}},
    ),
    Row("`tarpit`, `silent-drop`", 4, "`client_limit.action` of a policy", "http-request tarpit", rules=_TARPIT),
    Row(
        "parts and patterns of headers", 3, "`match: regex` or `prefix` of a header of a route",
        r"req\.f?hdr\(X-Mobile\)", route={"headers": [{"name": "X-Mobile", "match": "regex", "value": ".*Android.*"}]},
    ),
    Row(
        "query parameters", 3, "`query` of a route", r"url(p|_param)\(version\)",
        route={"query": [{"name": "version", "value": "2"}]},
    ),
    Row(
        "OCSP stapling", None, "Authorities stop answering for it; certificates that demand it are refused.",
        answer=NO,
    ),
    Row(
        "TLS for tcp", 3, "`certificates` of a tcp listener", r"bind .* ssl crt-list",
        pool={"protocol": "tcp"}, listener=_TCP | {"certificates": ["house"], "default_pool": "shop"},
    ),
    Row(
        "HTTP/3", 3, "`tls.http3` of a listener, where each node has HAProxy 2.8 or later with QUIC (not Debian 12)",
        "alpn h3", listener=_HTTPS | {"tls": {"http3": True}},
    ),
    Row(
        "`filter bwlim-out`, `bwlim-in`", None,
        "`bandwidth` of a policy, on nodes with HAProxy 2.7 or later (not Debian 12)",
        "filter bwlim-out client-out-50000 limit 50000 ", rules={"bandwidth": {"download_bytes_per_s": 50_000}},
    ),
    Row("`monitor-uri`", 3, "`monitor_path` of a listener", "monitor-uri /up", listener={"monitor_path": "/up"}),
    Row(
        "cookie conditions", 2, "`cookies` of a route", r"req\.cook\(beta\)",
        route={"cookies": [{"name": "beta", "value": "1"}]},
    ),
)  # fmt: skip

_INTRODUCTION = """# Features of haproxy.cfg

What 93 public repositories' haproxy.cfg use, by the share of files (give or take ten points), and how a document says
it. For each yes, a test compiles such a document and finds what HAProxy reads. This page is written by
`python -m tests.conformance.haproxy_features`.

| feature of haproxy.cfg | share of files | can be said | how, or why not |
|---|---|---|---|
"""


def page() -> str:
    """The page, with the sum at its end."""
    lines = (
        f"| {row.feature} | {'' if row.share is None else f'{row.share} %'} | {row.answer} | {row.how} |\n"
        for row in ROWS
    )
    counts: Mapping[str, int] = {answer: sum(row.answer == answer for row in ROWS) for answer in (YES, NO)}
    total = f"\n{len(ROWS)} features: {counts[YES]} can be said, {counts[NO]} are refused with a reason.\n"
    return _INTRODUCTION + "".join(lines) + total


if __name__ == "__main__":
    PAGE.write_text(page())

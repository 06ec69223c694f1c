"""Every field of every kind of object, and what it may hold by a definition that knows nothing of ours.

A field accepts a value only if `legal` says so (legal.py): these definitions were written from the standards and the
design, with other means than the product's grammars, so that a hole in a grammar is not copied here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apps.accounts.quota_bounds import DEFAULTS
from apps.definitions.shapes.operations.alert_channel import TYPES
from apps.definitions.shapes.operations.alert_watches import SEVERITIES, WATCHES
from tests.hostile.authority import AUTHORITY, REVOCATION_LIST
from tests.hostile.cloud_examples import CLOUD_EXAMPLES
from tests.hostile.legal import (
    CORS_HEADER,
    CORS_METHOD,
    HEADER,
    ISSUER,
    LABEL,
    LINE,
    LINES,
    LOCATION,
    METHOD,
    MS,
    NAME,
    PORT,
    REFERENCE,
    UNDERSCORED,
    WORD,
    Legal,
    agent_url,
    authorities,
    body,
    boolean,
    check_path,
    credentials,
    dns_server,
    header_name,
    header_text,
    header_value,
    instant,
    is_host,
    is_literal,
    is_network,
    is_path,
    is_pattern,
    is_query,
    is_record_value,
    local_time,
    maybe,
    maybe_empty,
    nothing,
    one_host,
    one_of,
    password,
    public_url,
    real,
    request_text,
    revocation_lists,
    route_host,
    server_address,
    server_host,
    text,
    title,
    whole,
    why,
)
from tests.hostile.pointers import Document, leaves, with_value, without_positions
from tests.hostile.policy_examples import BASIC_AUTH, JWT_KEY, POLICY_RULES
from tests.hostile.telling_examples import TELLING_EXAMPLES

SERVERS: Document = {
    "tunnel_timeout_ms": 100, "slow_start_ms": 100, "http_version": "2", "host_header": "a.example",
    "request_headers": {"X-A": "v"},
    "proxy_protocol": "v2", "connection_reuse": "safe",
    "server_tls": {"verify": "ca", "ca": AUTHORITY, "server_name": "a.example", "min_version": "1.2"},
    "persistence": {
        "by": "cookie", "cookie": "SRV", "mode": "insert", "http_only": True, "secure": True, "same_site": "lax",
        "header": "X-User", "idle_s": 60, "overflow": "breaks",
    },
    "agent_check": {"port": 9777, "interval_ms": 100, "send": "s"},
    "outlier_ejection": {"observe": "responses", "errors": 5, "return_after_ms": 100},
    "connections": {"max_per_server": 200, "min_per_server": 100, "full_at": 100, "max_queue": 100},
    "retries": {"attempts": 1, "on": ["connect"], "budget_percent": 20},
}  # fmt: skip
POOL: Document = {
    "protocol": "http", "balance": "leastconn", "connect_timeout_ms": 100, "server_timeout_ms": 100,
    "queue_timeout_ms": 100, "server_keepalive_ms": 100, "tags": {"customer": "acme"},
    "overflow": {"mode": "anywhere", "when_full": "spread", "order": ["us-central1"]},
    "health_check": {
        "kind": "http", "path": "/up", "method": "POST", "host": "a.example", "headers": {"X-A": "v"}, "body": "b",
        "expect_status": 200, "expect_statuses": ["200-399"], "expect_body": "ok", "port": 8008, "interval_ms": 100,
        "timeout_ms": 100, "rise": 1, "fall": 1,
    },
    **SERVERS, "objective": {"availability": 99.9, "latency_ms": 100, "latency_share": 99},
    "backends": [
        {
            "region": "us-central1", "capacity_scaler": 0.5,
            "limit": {"kind": "rate", "value": 1, "scope": "backend", "measured_by": "run-1"},
            "servers": [
                {"name": "s", "address": "10.0.0.1", "port": 80, "weight": 1, "state": "ready", "backup": True}
            ],
        }
    ],
}  # fmt: skip
# The same for what only a pool of tcp, or of gRPC, may say.
POOL_OF_TCP: Document = {"protocol": "tcp", "health_check": {"kind": "tcp", "send": "PING", "expect": "+PONG"}}
POOL_OF_A_DATABASE: Document = {"protocol": "tcp", "health_check": {"kind": "postgresql", "user": "spillway"}}
POOL_THAT_LOOKS_UP: Document = {"backends": [{"region": "us-central1", "servers_from": "dns://app.internal:8080"}]}
POOL_OF_GRPC: Document = {
    "http_version": "2", "health_check": {"kind": "grpc", "service": "shop.v1.Orders"},
    "server_tls": {"client_certificate": "c"},
}  # fmt: skip
ROUTE: Document = {
    "load_balancer": "front", "hostname": "hostile.acme.example", "path": "/a", "path_kind": "prefix",
    "methods": ["GET"],
    "scheme": "https",
    "headers": [{"name": "X-A", "match": "equals", "value": "v"}],
    "query": [{"name": "q", "match": "prefix", "value": "v"}],
    "cookies": [{"name": "c", "match": "equals", "value": "v"}], "client_networks": ["192.0.2.0/24"],
    "action": {"pools": [{"pool": "shop", "weight": 1}]}, "prefix_rewrite": "/b",
    "mirror": "acme/static", "policies": ["web"], "rules": POLICY_RULES,
    "assertions": [
        {
            "method": "GET", "host": "hostile.acme.example", "path": "/a/x", "headers": [{"name": "X-A", "value": "v"}],
            "expect": expected,
        }
        for expected in ({"pool": "shop"}, {"route": "hostile"}, {"status": 200}, {"redirect": "https://b.example/x"})
    ],
}  # fmt: skip
NOT_TO_POOLS: Document = ROUTE | {"rules": None, "prefix_rewrite": None, "mirror": None}
SCHEDULE: Document = {
    "when": {"cron": "0 30 2 * * *"}, "zone": "Europe/Berlin", "starts_at": "2027-01-31T00:00:00Z",
    "ends_at": "2028-01-31T00:00:00Z", "window_s": 1, "jitter_s": 1, "overlap": "skip",
    "catch_up": {"policy": "once", "window_s": 1}, "retries": {"attempts": 1, "backoff_s": 1}, "timeout_s": 1,
    "paused": False, "target": {"webhook": {"url": "https://hooks.example.org/x", "body": "b"}},
}  # fmt: skip


def _schedule(when: Document, target: Document) -> tuple[str, Document]:
    return "Schedule", {"when": when, "target": target}


EXAMPLES: dict[str, tuple[str, Document]] = {
    "account": (
        "Account",
        {"title": "Acme", "kind": "customer", "suspended": False, "quotas": dict.fromkeys(DEFAULTS, 10)},
    ),
    "region": (
        "Region",
        {
            "title": "Iowa", "latitude": 1.5, "longitude": 1.5, "drained": False,
            "latency": [{"to": "europe-west1", "ms": 98.5}],
        },
    ),
    "fleet": (
        "Fleet",
        {
            "region": "us-central1", "local_development": True, "peer_port": 9700, "overflow_port": 9800,
            "overflow_tcp_port": 9900, "private_networks": ["10.0.0.0/8"],
            "node_settings": {
                "max_connections": 1000, "threads": 2, "buffer_bytes": 32_768, "http2_streams": 50,
                "old_worker_timeout_ms": 100, "tls_preset": "modern",
            },
            "rollout_settings": {
                "waves": [10], "soak_seconds": 30, "max_error_increase": 2.5, "max_slowdown": 4.5,
                "runtime_changes": True, "stage": 2,
            },
        },
    ),
    "node": (
        "Node",
        {"fleet": "us-central1", "url": "https://10.0.0.1:9440", "address": "10.0.0.1", "port_offset": 1,
         "tags": {"customer": "acme"}},
    ),
    **CLOUD_EXAMPLES,
    "grant": (
        "Grant",
        {
            "account": "acme", "hostname": "*.apps.example.net", "may_load_test": True,
            "expires_at": "2027-01-31T00:00:00Z",
        },
    ),
    "grant_of_tag": ("Grant", {"account": "acme", "tag": "customer=acme"}),
    "certificate": ("Certificate", {"chain": "x", "key": "y"}),
    "schedule": ("Schedule", SCHEDULE),
    "schedule_rate": _schedule({"every_s": 90}, {"topic": {"topic": "nightly", "message": "m"}}),
    "schedule_once": _schedule({"at": "2027-01-31T10:00:00"}, {"capacity_test": {"name": "measure"}}),
    "schedule_trigger": _schedule({"trigger": True}, {"rollout": {"fleet": "us-central1"}}),
    "schedule_change": _schedule(
        {"trigger": True},
        {
            "change": {
                "object": {"kind": "Pool", "name": "shop", "account": "acme", "spec": POOL},
                "restore_after_s": 60,
            }
        },
    ),
    **TELLING_EXAMPLES,
    "network_list": (
        "NetworkList",
        {"entries": [{"network": "192.0.2.0/24", "expires_at": "2027-01-31T00:00:00Z", "reason": "scans"}]},
    ),
    "network_list_of_countries": ("NetworkList", {"countries": ["DE"]}),
    "policy": (
        "Policy",
        {
            "default_for": {"account": True, "hostnames": ["hostile.acme.example"], "load_balancers": ["front"]},
            "rules": POLICY_RULES,
        },
    ),
    "policy_path": ("Policy", {"rules": {"rewrite": {"path": "/x"}}}),
    "route_with_passwords": ("Route", ROUTE | {"rules": {"basic_auth": BASIC_AUTH}}),
    "policy_with_passwords": ("Policy", {"rules": {"basic_auth": BASIC_AUTH}}),
    "pool": ("Pool", POOL),
    "pool_of_tcp": ("Pool", POOL_OF_TCP),
    "pool_of_a_database": ("Pool", POOL_OF_A_DATABASE),
    "pool_of_grpc": ("Pool", POOL_OF_GRPC),
    "pool_that_looks_up": ("Pool", POOL_THAT_LOOKS_UP),
    "load_balancer": (
        "LoadBalancer",
        {
            "fleets": ["us-central1"], "stacks": ["aws-eu"],
            "listeners": [
                {
                    "name": "l", "protocol": "https", "port": 443, "static_ip": "ip", "certificates": ["c"],
                    "default_pool": "acme/shop", "default_certificate": "c",
                    "tls": {
                        "preset": "intermediate", "minimum_version": "1.2", "http2": False, "http3": False,
                        "same_certificate": True, "session_tickets": False,
                    },
                    "client_address": {
                        "proxy_protocol_from": ["192.0.2.0/24"], "forwarded_from": ["198.51.100.0/24"],
                        "forwarded_header_from": ["203.0.113.0/24"], "send_forwarded": True,
                    },
                    "access": {"allow": ["offices"], "deny": ["offices"]}, "connections": {
                        "max_connections": 10, "client_timeout_ms": 100, "request_timeout_ms": 100,
                        "keepalive_timeout_ms": 100, "keep_alive": "clients",
                    },
                    "client_limit": {
                        "connections": 10, "per": "second", "burst": 20, "ipv4_prefix": 32, "ipv6_prefix": 64,
                        "log_only": False, "exempt": ["192.0.2.0/24"], "clients": 1000,
                    }, "compression": {"types": ["text/html"]}, "monitor_path": "/up",
                    "cache": {"total_mb": 64, "max_object_bytes": 65_536, "max_age_s": 60},
                    "tracing": {"mode": "make", "sample_percent": 5.0, "sampled_from": ["192.0.2.0/24"]},
                }
            ],
        },
    ),
    "listener_of_known_clients": (
        "LoadBalancer",
        {
            "fleets": ["us-central1"],
            "listeners": [
                {
                    "name": "l", "protocol": "https", "port": 443, "certificates": ["c"],
                    "client_certificates": [
                        {"mode": "required", "ca": AUTHORITY, "crl": REVOCATION_LIST, "hostnames": ["a.acme.example"]}
                    ],
                }
            ],
        },
    ),
    "listener_of_tcp": (
        "LoadBalancer",
        {
            "fleets": ["us-central1"],
            "listeners": [
                {
                    "name": "t", "protocol": "tcp", "port": 5432, "certificates": ["c"], "tls": {"alpn": ["x"]},
                    "sni_routes": [{"hostname": "db.acme.example", "pool": "acme/database", "passthrough": True}],
                    "protocol_routes": [{"protocol": "ssh", "pool": "acme/database"}, {"alpn": "x", "pool": "acme/d"}],
                }
            ],
        },
    ),
    "route": ("Route", ROUTE),
    "capacity_test": (
        "CapacityTest",
        {
            "target": {
                "pool": "shop", "region": "us-central1", "hostname": "shop.acme.example", "path": "/", "server": "",
            },
            "load": {
                "kind": "ramp", "rate": 5.0, "to_rate": 20.0, "step": 5.0, "users": 0, "duration_s": 30,
                "arrivals": "constant", "protocol": "http1", "tls": False, "keep_alive": True, "method": "GET",
            },
            "objective": {"percentile": 95, "max_latency_ms": 600, "max_error_rate": 0.01},
            "guards": {"max_rate": 100, "max_connections": 50, "max_duration_s": 60, "headroom": 0.5},
            "policy": {"apply": "by_hand", "margin": 0.1, "max_change": 0.2},
        },
    ),
    "redirect": (
        "Route",
        NOT_TO_POOLS
        | {
            "action": {
                "redirect": {
                    "code": 301, "scheme": "https", "host": "b.example", "path": "/x", "keep_query": True, "port": 8443,
                    "query": "from=old",
                }
            },
        },
    ),
    "redirect_prefix": (
        "Route",
        NOT_TO_POOLS | {"action": {"redirect": {"code": 308, "prefix": "/x"}}},
    ),
    "fixed_response": (
        "Route",
        NOT_TO_POOLS
        | {
            "rules": {"rewrite": {"path": "/x"}, "log": {"requests": "all"}}, "objective": POOL["objective"],
            "action": {"fixed_response": {"status": 200, "content_type": "text/plain", "body": "x"}},
        },
    ),
}  # fmt: skip

# Whether an installation calls it is asked when it is stored.
CALLED = text(2048, r"https?://[A-Za-z0-9.:\[\]-]+(/[!-~]*)?")
# What a field may hold, by the end of its pointer without list positions; the longest end that fits counts.
RULES: dict[str, Legal] = {
    "title": title,
    "default_for/account": boolean, "default_for/hostnames": is_host, "load_balancers": NAME, "policies": REFERENCE,
    "request_headers/set/X-A": request_text, "request_headers/add/X-B": request_text, "set/X-A": header_text,
    "add/X-B": header_text, "set_if_absent/X-D": header_text, "remove": HEADER, "exposed_headers": HEADER,
    "cors/headers": CORS_HEADER, "cors/methods": CORS_METHOD, "hsts_seconds": whole(0, 10**8),
    "hsts_subdomains": boolean, "no_sniff": boolean, "frames": one_of("deny", "sameorigin"),
    "referrer": one_of("no-referrer", "same-origin", "strict-origin", "strict-origin-when-cross-origin"),
    "origins": text(300, r"\*|https?://(\*\.)?[a-z0-9.-]+(:[0-9]+)?"), "cors/credentials": boolean,
    "path_regex": is_pattern, "path_replacement": text(256, r"/([A-Za-z0-9._~+=:@&!/-]|\\[1-9])*"),
    "query_keep": text(64, r"[A-Za-z0-9_.-]+"), "query_drop": text(64, r"[A-Za-z0-9_.-]+"),
    "query_set/a": maybe(text(256, r"([A-Za-z0-9._~:@!/+-]|%[2-9A-F][0-9A-F])*")),
    "caching": one_of("no-store", "no-cache", "private", "hour", "immutable"), "max_age_s": whole(0, 86_400),
    "jwks_grace_s": whole(0, 86_400), "rewrite/host": server_host, "rewrite/path": is_path, "drop_query": boolean,
    "location_prefix": LOCATION, "location_replacement": LOCATION, "secure_cookies": boolean, "users/anna": password,
    "realm": text(64, r"[A-Za-z0-9][A-Za-z0-9 ._-]*"), "keep_header": boolean, "api_keys/header": header_name,
    "keys/shop": maybe_empty(text(128, r"[A-Za-z0-9_-]{24,}")), "name_header": header_name, "issuer": ISSUER,
    "audience": ISSUER, "leeway_s": whole(0, 300), "algorithm": one_of("ES256"), "keys/pem": one_of(JWT_KEY),
    "kid": text(128, r"[A-Za-z0-9._~=+/:-]*"), "claims/sub": header_name, "watches": one_of(*WATCHES),
    "jwks_url": text(512, r"https://[A-Za-z0-9.-]+(:[0-9]+)?(/.*)?"), "threshold": real(0, 10**6),
    "only": text(127, r"[a-z0-9*-]{1,63}(/[a-z0-9*-]{1,63})?"),
    "for_s": whole(0, 86_400), "severity": one_of(*SEVERITIES), "severities": one_of(*SEVERITIES),
    "wait_minutes": whole(0, 1440), "secret": text(2048, r"[!-~]+"), "quiet/end": text(5, r"[0-2][0-9]:[0-5][0-9]"),
    "quiet/start": text(5, r"[0-2][0-9]:[0-5][0-9]"), "to": text(254, r"[A-Za-z0-9._%+'-]+@[A-Za-z0-9.-]+"),
    "public": boolean, "components/name": title, "components/routes": NAME, "rules": NAME,
    "access/allow": NAME, "access/deny": NAME, "access/status": whole(400, 599),
    "entries/network": is_network, "entries/expires_at": instant, "entries/reason": why,
    "countries": text(2, r"[A-Z]{2}"),
    "enabled": boolean, "retry_after_s": whole(1, 86_400), "allow": is_network,
    "client_limit/requests": whole(1, 10**6), "in_flight": whole(1, 10**5), "client_limit/connections": whole(1, 10**6),
    "bytes_out": whole(1000, 2 * 10**8), "bytes_in": whole(1000, 2 * 10**8), "client_limit/errors": whole(1, 10**6),
    "client_limit/per": one_of("second", "minute"),
    "client_limit/burst": whole(1, 10**6), "client_limit/key": one_of("address", "header", "cookie"),
    "client_limit/key_name": text(64, r"[A-Za-z][A-Za-z0-9_-]*"), "ipv4_prefix": whole(8, 32),
    "ipv6_prefix": whole(16, 128), "counted_for": one_of("account", "hostname", "route"),
    "client_limit/action": one_of("reject", "tarpit", "silent_drop"), "log_only": boolean, "exempt": is_network,
    "client_limit/clients": whole(100, 2_000_000), "ban_after": whole(1, 10**6), "ban_within_s": whole(10, 3600),
    "ban_for_s": whole(10, 86_400), "split/max_age_s": whole(1, 31_536_000),
    "statuses": whole(400, 599), "intercept": boolean, "max_bytes": whole(0, 10**12), "buffered": boolean,
    "log/requests": one_of("all", "errors", "sampled", "none"), "one_in": whole(2, 100_000), "log/headers": HEADER,
    "download_bytes_per_s": whole(10_000, 10**9), "upload_bytes_per_s": whole(10_000, 10**9),
    "bandwidth/per": one_of("client", "request"), "query": boolean,
    "response_ms": MS, "tunnel_ms": MS, "after_sending": boolean, "stick_by": one_of("cookie", "address", "header"),
    "split/header": header_name, "split/cookie": text(64, r"[A-Za-z][A-Za-z0-9_-]*"),
    "kind": one_of("operator", "customer", "none", "rate", "connections"),
    "account": NAME, "suspended": boolean, **{f"quotas/{name}": whole(0, 10**9) for name in DEFAULTS},
    "latitude": real(-90, 90), "longitude": real(-180, 180), "drained": boolean, "latency/to": NAME,
    "latency/ms": real(0, 60_000),
    "region": NAME, "local_development": boolean, "peer_port": PORT, "overflow_port": PORT, "overflow_tcp_port": PORT,
    "fleet": NAME, "url": lambda value: agent_url(value) or CALLED(value), "address": is_literal,
    "port_offset": whole(0, 60_000),
    "hostname": route_host, "target/hostname": is_host,
    "tag": text(127, r"[a-z0-9-]{1,63}=[a-z0-9-]{1,63}"), "may_load_test": boolean,
    "expires_at": instant, "chain": nothing, "key": nothing,
    # What a calendar makes of the signs is asked in tests/pure/test_calendars*.py; here: signs of cron and no others.
    "when/cron": text(200, r"@[a-z]+|[0-9A-Za-z*/,#?-]+( +[0-9A-Za-z*/,#?-]+){4,6}"), "every_s": whole(1, 366 * 86_400),
    "when/at": local_time, "when/trigger": lambda value: value is True, "zone": text(63, r"[A-Za-z0-9_+/-]+"),
    "starts_at": instant, "ends_at": instant, "window_s": whole(0, 7 * 86_400), "jitter_s": whole(0, 86_400),
    "overlap": one_of("skip", "queue", "allow"), "policy": one_of("skip", "once", "all"), "attempts": whole(1, 20),
    "backoff_s": whole(1, 3600), "timeout_s": whole(1, 300), "paused": boolean, "webhook/url": public_url,
    "topic/topic": NAME, "topic/message": body, "object/kind": one_of("Pool"),
    "restore_after_s": whole(1, 30 * 86_400),
    "target/server": maybe(NAME), "load/kind": one_of("search", "constant", "users", "ramp", "soak"),
    "rate": real(0, 10**6), "to_rate": real(0, 10**6), "step": real(0, 10**6), "users": whole(0, 20_000),
    "duration_s": whole(1, 86_400), "arrivals": one_of("constant", "poisson"),
    "load/protocol": one_of("http1"), "tls": boolean, "keep_alive": boolean,
    "load/method": one_of("GET", "HEAD", "OPTIONS"),
    "percentile": lambda value: type(value) is int and value in (95, 99),
    "max_latency_ms": whole(1, 600_000), "max_error_rate": real(0.0001, 1), "max_rate": whole(1, 10**6),
    "max_connections": whole(1, 20_000), "max_duration_s": whole(5, 86_400), "headroom": real(0, 10),
    "apply": one_of("by_hand", "automatic"), "margin": real(0, 0.9), "max_change": real(0, 0.2),
    "protocol": one_of("http", "https", "tcp"), "balance": one_of("leastconn", "roundrobin", "source", "random"),
    "connect_timeout_ms": MS, "server_timeout_ms": MS, "queue_timeout_ms": MS, "server_keepalive_ms": MS,
    "tags/customer": WORD, "when_full": one_of("spread", "queue", "refuse"), "order": NAME,
    "overflow/mode": one_of("anywhere", "listed", "never"), "backup": boolean,
    "tunnel_timeout_ms": MS, "slow_start_ms": MS, "http_version": one_of("1.1", "2"), "host_header": maybe(server_host),
    "proxy_protocol": one_of("none", "v1", "v2"), "connection_reuse": one_of("safe", "always", "never", "close"),
    "verify": one_of("system", "ca", "none"), "server_tls/ca": maybe(authorities),
    "server_name": maybe(server_host), "min_version": one_of("1.2", "1.3"), "client_certificate": NAME,
    "by": one_of("cookie", "header", "source"), "cookie": text(64, r"[A-Za-z][A-Za-z0-9_-]*"),
    "persistence/mode": one_of("insert", "prefix"), "http_only": boolean, "secure": boolean,
    "same_site": one_of("lax", "strict", "none"), "persistence/header": maybe(header_name),
    "idle_s": whole(1, 31 * 86_400), "persistence/overflow": one_of("breaks", "keeps"),
    "agent_check/port": PORT, "agent_check/send": maybe(LINE), "health_check/send": maybe(LINES),
    "observe": one_of("responses", "connections"), "errors": whole(1, 1000), "return_after_ms": MS,
    "max_per_server": whole(1, 10**6), "min_per_server": whole(1, 10**6), "full_at": whole(1, 10**6),
    "max_queue": whole(1, 10**6), "retries/attempts": whole(0, 10), "budget_percent": whole(1, 100),
    "availability": real(50, 99.999), "objective/latency_ms": whole(1, 10_000), "latency_share": real(50, 99.999),
    "on": one_of("connect", "no_answer", "timeout", "junk", "404", "408", "425", "500", "501", "502", "503", "504"),
    "health_check/kind": one_of("http", "tcp", "grpc", "postgresql", "mysql", "redis", "smtp", "ldap"),
    "headers/X-A": header_value, "request_headers/X-A": header_value,
    "health_check/body": maybe(LINE), "expect_body": maybe(LINE),
    "health_check/expect": maybe(LINE), "expect_statuses": text(7, r"[1-5][0-9][0-9](-[1-5][0-9][0-9])?"),
    "service": maybe(text(639, r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*")), "user": maybe(text(32, r"[A-Za-z0-9_-]+")),
    "health_check/path": check_path, "method": METHOD, "methods": METHOD, "host": maybe(server_host),
    "expect_status": whole(200, 599), "interval_ms": MS, "timeout_ms": MS, "rise": whole(1, 100), "fall": whole(1, 100),
    "capacity_scaler": real(0, 1), "limit/value": whole(0, 10_000_000), "scope": one_of("backend", "server"),
    "measured_by": maybe(NAME), "servers_from": maybe(text(400, r"(dns|srv|https|heartbeat|kubernetes)://[!-~]+")),
    "name": NAME, "servers/address": server_address, "port": PORT, "weight": whole(0, 1000),
    "waves": whole(1, 99), "soak_seconds": whole(10, 3600), "max_error_increase": real(0.1, 100),
    "max_slowdown": real(1.1, 100), "stage": whole(1, 20), "runtime_changes": boolean,
    "state": one_of("ready", "drain", "maintenance"), "directory_url": public_url, "terms_agreed": boolean,
    "external_key_id": maybe(text(256, r"[!-~]+")), "external_hmac_key": text(516, r"[A-Za-z0-9_-]+=*"),
    "trusted_ca": maybe(authorities), "profile": maybe(text(63, r"[a-z0-9][a-z0-9_-]*")), "position": whole(1, 100),
    "for_customers": boolean, "automatic/hostnames": is_host, "contacts": text(254, r"[^@\s]+@[^@\s]+\.[A-Za-z]+"),
    "cloud": one_of("aws", "google"), "credentials": maybe(credentials), "endpoint_url": maybe(public_url),
    "project": maybe(text(30, r"[a-z][a-z0-9-]{4,28}[a-z0-9]")), "cloud_account": NAME,
    "cloud_region": text(40, r"global|[a-z]{2}(-[a-z]+)+-[0-9]+"),
    "approval": one_of("by_hand", "automatic_safe", "automatic"),
    "vpc": maybe(text(200, r"vpc-[0-9a-f]{8,17}|[a-z0-9.:/-]+")), "subnets": text(24, r"subnet-[0-9a-f]{8,17}"),
    "client_networks": is_network, "vpc_networks": is_network, "blocks": is_network,
    "private_networks": is_network, "sampled_from": is_network, "sample_percent": real(0, 100),
    "log_bucket": maybe(text(63, LABEL)),
    "zones/us-central1": text(40, r"[a-z]+-[a-z]+[0-9]+-[a-z]"), "owner": NAME, "protected": boolean,
    "router_id": whole(1, 255), "stack": NAME, "stacks": NAME,
    "domain": one_host, "driver": one_of("rfc2136", "powerdns", "route53", "memory"), "server": maybe(dns_server),
    "key_name": maybe(text(253, r"[a-z0-9_.-]+")), "key_algorithm": maybe(text(20, r"hmac-sha(256|384|512)")),
    "resolvers": text(80, r"[0-9a-f.:\[\]]+"), "label": text(253, rf"@|(\*|{UNDERSCORED})(\.{UNDERSCORED})*"),
    "ttl": whole(30, 86_400), "type": one_of("A", "AAAA", "CNAME", "MX", "TXT", "SRV", "CAA", "NS", *TYPES),
    "values": is_record_value, "node_settings/max_connections": whole(100, 10_000_000), "threads": whole(1, 64),
    "http2_streams": whole(1, 1000), "buffer_bytes": whole(16_384, 262_144), "old_worker_timeout_ms": MS,
    "tls_preset": one_of("modern", "intermediate"), "alpn": text(64, r"[A-Za-z0-9][A-Za-z0-9._/+-]*"),
    "preset": one_of("modern", "intermediate"), "minimum_version": one_of("1.2", "1.3"), "http2": boolean,
    "http3": boolean, "same_certificate": boolean, "session_tickets": boolean, "passthrough": boolean,
    "client_certificates/mode": one_of("required", "optional"), "client_certificates/ca": authorities,
    "client_certificates/crl": maybe_empty(revocation_lists), "client_certificates/hostnames": is_host,
    "protocol_routes/protocol": one_of("tls", "http", "websocket", "ssh", "rdp", "socks5", "silent"),
    "proxy_protocol_from": is_network, "forwarded_from": is_network, "forwarded_header_from": is_network,
    "listeners/connections/max_connections": whole(1, 1_000_000), "client_timeout_ms": MS, "request_timeout_ms": MS,
    "send_forwarded": boolean, "keepalive_timeout_ms": MS, "connections/keep_alive": one_of("both", "clients", "none"),
    "tracing/mode": one_of("keep", "make"), "total_mb": whole(1, 4095), "max_object_bytes": whole(1024, 16_777_216),
    "cache/max_age_s": whole(1, 3600), "types": text(97, r"[a-z]{1,32}/[a-z0-9.+-]{1,64}"), "monitor_path": is_path,
    "default_certificate": REFERENCE, "static_ip": NAME, "certificates": REFERENCE, "default_pool": REFERENCE,
    "fleets": NAME, "load_balancer": NAME, "path": is_path, "path_kind": one_of("exact", "prefix", "regex"),
    "headers/name": header_name, "query/name": text(64, r"([A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})+"),
    "cookies/name": text(64, r"([A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})+"), "query/value": maybe(header_value),
    "match": one_of("equals", "prefix", "regex", "present", "absent"), "headers/value": maybe(header_value),
    "cookies/value": maybe(header_value), "pool": REFERENCE, "mirror": REFERENCE, "prefix_rewrite": is_path,
    "assertions/headers/value": header_value,
    "code": lambda value: value in (301, 302, 303, 307, 308) and type(value) is int,
    "scheme": one_of("http", "https"), "redirect/host": one_host, "redirect/port": whole(1, 65535),
    "redirect/prefix": is_path, "redirect/query": is_query, "keep_query": boolean, "status": whole(200, 599),
    "content_type": text(128, r"[a-z0-9.+-]+/[a-z0-9.+-]+(; ?charset=[a-z0-9-]+)?"), "body": body,
    "assertions/path": is_path, "assertions/host": maybe(one_host), "expect/pool": REFERENCE, "expect/route": NAME,
    "expect/status": whole(200, 599), "expect/redirect": lambda value: value is True or text(1300, r"https?://[a-z0-9.-]+(:[0-9]+)?(/[!-~]*)?")(value),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Field:
    """One field of one example: its pointer below `/spec`, and what it may hold."""

    example: str
    kind: str
    pointer: str
    legal: Legal

    def document(self, value: Any) -> Document:
        """The example with this value in the field."""
        return with_value(EXAMPLES[self.example][1], self.pointer, value)


def rule_for(pointer: str) -> Legal:
    """The rule with the longest end; a field without one is an error of this table."""
    plain = without_positions(pointer)
    ends = [end for end in RULES if plain == end or plain.endswith(f"/{end}")]
    if not ends:
        raise LookupError(f"no rule says what {pointer} may hold")
    return RULES[max(ends, key=len)]


FIELDS = [
    Field(example, kind, pointer, rule_for(pointer))
    for example, (kind, spec) in EXAMPLES.items()
    for pointer, _ in leaves(spec)
]

"""Every field of every kind of object, and what it may hold by a definition that knows nothing of ours.

A field accepts a value only if `legal` says so: these definitions were written from the standards and the design, with
other means than the product's grammars, so that a hole in a grammar is not copied here.
"""

from __future__ import annotations

import copy
import ipaddress
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from apps.accounts.quotas import DEFAULTS

Document = dict[str, Any]
Legal = Callable[[Any], bool]

LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
SEGMENTS = re.compile(r"/([A-Za-z0-9._~+=:@&!%-]+/?)*")


def text(longest: int, form: str) -> Legal:
    """A string of at most so many characters that has this form from its beginning to its end."""
    pattern = re.compile(form)
    return lambda value: isinstance(value, str) and len(value) <= longest and bool(pattern.fullmatch(value))


def one_of(*words: str) -> Legal:
    """One of a few words."""
    return lambda value: isinstance(value, str) and value in words


def whole(lowest: int, highest: int) -> Legal:
    """An integer and nothing that only looks like one."""
    return lambda value: type(value) is int and lowest <= value <= highest


def real(lowest: float, highest: float) -> Legal:
    """A finite number."""
    return lambda value: type(value) in (int, float) and math.isfinite(value) and lowest <= value <= highest


def nothing(value: Any) -> bool:
    """No value of a corpus is a certificate or a key."""
    del value
    return False


def boolean(value: Any) -> bool:
    """true or false."""
    return isinstance(value, bool)


def is_host(value: Any, *, wildcard: bool = True) -> bool:
    """A canonical DNS name of two labels or more whose last is no number; `*.` before it where that is allowed."""
    if not isinstance(value, str) or len(value) > 253:
        return False
    rest = value.removeprefix("*.") if wildcard else value
    labels = rest.split(".")
    numeric = re.fullmatch(r"[0-9]+|0x[0-9a-f]*", labels[-1])
    return len(labels) >= 2 and not numeric and all(re.fullmatch(LABEL, label, re.ASCII) for label in labels)


def one_host(value: Any) -> bool:
    """A name without wildcard."""
    return is_host(value, wildcard=False)


def is_path(value: Any) -> bool:
    """An absolute path without empty or dot segments, query, fragment, and without encoded separators."""
    if not isinstance(value, str) or len(value) > 1024 or not SEGMENTS.fullmatch(value) or "//" in value:
        return False
    if any(part in (".", "..") for part in value.split("/")):
        return False
    return all(re.match(r"20|[89A-F][0-9A-F]", found) for found in re.findall(r"%(.{0,2})", value))


def check_path(value: Any) -> bool:
    """Empty, or a path with a plain query."""
    if value == "" and isinstance(value, str):
        return True
    before, _, query = value.partition("?") if isinstance(value, str) else ("", "", "")
    return is_path(before) and bool(re.fullmatch(r"[A-Za-z0-9._~=&-]*", query))


def is_literal(value: Any) -> bool:
    """An IP address as Python itself writes it."""
    try:
        return isinstance(value, str) and str(ipaddress.ip_address(value)) == value and "%" not in value
    except ValueError:
        return False


def server_address(value: Any) -> bool:
    """A canonical address that is no metadata service, no multicast and hides nothing, or a plain lower-case name."""
    if not isinstance(value, str):
        return False
    if is_literal(value):
        return _may_serve(ipaddress.ip_address(value))
    # A host name never looks like a number, whatever base it is written in.
    labels = value.split(".")
    numeric = re.fullmatch(r"[0-9]+|0x[0-9a-f]*", labels[-1])
    named = len(value) <= 253 and not numeric and all(re.fullmatch(LABEL, label, re.ASCII) for label in labels)
    return named and not value.startswith(("metadata", "instance-data"))


def _may_serve(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if address.is_link_local or address.is_multicast or address.is_unspecified:
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return int(address) >> 28 != 15 and int(address) >> 24 != 0
    hides = address.ipv4_mapped or address.sixtofour or address.teredo
    nat64 = address in ipaddress.ip_network("64:ff9b::/96") or address in ipaddress.ip_network("::ffff:0:0:0/96")
    compatible = int(address) >> 32 == 0 and int(address) != 1
    return not (hides or nat64 or compatible or address in ipaddress.ip_network("fd00:ec2::/32"))


def title(value: Any) -> bool:
    """Printable text without markup and template signs."""
    plain = isinstance(value, str) and 0 < len(value) <= 120 and value.isprintable() and value == value.strip()
    return plain and not re.search(r"[<>\"`{}$%\\;|=@]", value)


def body(value: Any) -> bool:
    """Printable text, tabs and line feeds; at most 8 192 bytes."""
    if not isinstance(value, str) or re.search(r"[\ud800-\udfff]", value):
        return False
    # Line separators and what steers the direction of text or a terminal are no text.
    hidden = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")
    return len(value.encode()) <= 8192 and not hidden.search(value)


def agent_url(value: Any) -> bool:
    """Where an agent listens."""
    forms = (
        r"unix:///[A-Za-z0-9._/-]{1,96}|memory://[a-z0-9-]{1,63}|https://([a-z0-9.-]+|\[[0-9a-f:]+\]):[1-9][0-9]{0,4}"
    )
    return isinstance(value, str) and bool(re.fullmatch(forms, value, re.ASCII)) and ".." not in value


def instant(value: Any) -> bool:
    """A moment in UTC to the second that exists, before the year 2201."""
    if not isinstance(value, str) or not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", value, re.ASCII):
        return False
    try:
        return datetime.fromisoformat(value).year <= 2200
    except ValueError:
        return False


def local_time(value: Any) -> bool:
    """A time of a clock on a wall, on a day that exists."""
    return isinstance(value, str) and len(value) == 19 and instant(f"{value}Z")


def public_url(value: Any) -> bool:
    """A URL of a name that is not local; http only because tests run as on a developer's machine."""
    plain = (
        isinstance(value, str) and value.startswith(("https://", "http://")) and value.isascii() and value.isprintable()
    )
    return plain and is_host(urlsplit(value).hostname or "", wildcard=False) and not re.search(r"[ @#]", value)


def is_network(value: Any) -> bool:
    """A network in CIDR as Python itself writes it."""
    try:
        return isinstance(value, str) and "/" in value and str(ipaddress.ip_network(value)) == value
    except ValueError:
        return False


def credentials(value: Any) -> bool:
    """Where a secret is kept; never one of the platform's own."""
    forms = r"env:[A-Z][A-Z0-9_]*|profile:[A-Za-z0-9_.-]+|role:arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]+"
    plain = isinstance(value, str) and bool(re.fullmatch(forms, value, re.ASCII))
    return plain and not value.startswith(("env:SPILLWAY", "env:DJANGO"))


def dns_server(value: Any) -> bool:
    """host:port, or a URL of an API."""
    if not isinstance(value, str) or not value.isascii() or not value.isprintable() or " " in value:
        return False
    rest = re.sub(r"^https?://", "", value).partition("/")[0]
    host = rest.rpartition(":")[0] if re.search(r":[0-9]+$", rest) else rest
    return server_address(host.strip("[]")) and not re.search(r"[@?#\\]", value)


def is_record_value(value: Any) -> bool:
    """Printable ASCII without comments; names and addresses in one spelling (their forms: test_record_values.py)."""
    plain = isinstance(value, str) and 0 < len(value) <= 4096 and value.isascii() and value.isprintable()
    if not plain:
        return False
    if '"' in value:
        return bool(re.fullmatch(r'([0-9]+ [a-z]+ )?"([^"\\]|\\["\\])*"( "([^"\\]|\\["\\])*")*', value))
    return is_literal(value) or bool(re.fullmatch(r"([0-9]+ ){0,3}([a-z0-9_-]{1,63}\.)+|[0-9 ]+ \.", value))


def maybe(legal: Legal) -> Legal:
    """As `legal`, or an empty text where the field may be blank."""
    return lambda value: (isinstance(value, str) and value == "") or legal(value)


NAME = text(63, LABEL)
UNDERSCORED = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
REFERENCE = text(127, f"({LABEL}/)?{LABEL}")
METHOD = one_of("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")
MS = whole(1, 3_600_000)
PORT = whole(1, 65_535)
WORD = text(63, r"[a-z0-9-]+")
HEADER = text(64, r"[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?")
RESERVED = re.compile(
    r"(?i)host|connection|te|trailer|upgrade|keep-alive|content-length|transfer-encoding|forwarded|x-real-ip"
    r"|proxy-.*|x-forwarded-.*|x-spillway-.*"
)


def header_name(value: Any) -> bool:
    """A header that belongs to the request and neither to the connection nor to us."""
    return HEADER(value) and not RESERVED.fullmatch(value)


def header_value(value: Any) -> bool:
    """Plain signs; no word that HAProxy reads as part of a condition."""
    form = r"[A-Za-z0-9][A-Za-z0-9 ._~+=:@/*!&?<>-]*"
    return text(256, form)(value) and value not in ("if", "or", "unless")


POOL: Document = {
    "protocol": "http", "balance": "leastconn", "connect_timeout_ms": 100, "server_timeout_ms": 100,
    "queue_timeout_ms": 100, "server_keepalive_ms": 100, "tags": {"customer": "acme"},
    "overflow": {"when_full": "spread", "order": ["us-central1"]},
    "health_check": {
        "path": "/up", "method": "GET", "host": "a.example", "expect_status": 200, "interval_ms": 100,
        "timeout_ms": 100, "rise": 1, "fall": 1,
    },
    "backends": [
        {
            "region": "us-central1", "capacity_scaler": 0.5,
            "limit": {"kind": "rate", "value": 1, "scope": "backend", "measured_by": "run-1"},
            "servers": [{"name": "s", "address": "10.0.0.1", "port": 80, "weight": 1, "state": "ready"}],
        }
    ],
}  # fmt: skip
ROUTE: Document = {
    "load_balancer": "front", "hostname": "hostile.acme.example", "path": "/a", "path_kind": "prefix",
    "methods": ["GET"],
    "headers": [{"name": "X-A", "match": "equals", "value": "v"}],
    "action": {"pools": [{"pool": "shop", "weight": 1}]}, "prefix_rewrite": "/b",
    "assertions": [
        {
            "method": "GET", "host": "hostile.acme.example", "path": "/a/x", "headers": [{"name": "X-A", "value": "v"}],
            "expect": expected,
        }
        for expected in ({"pool": "shop"}, {"route": "hostile"}, {"status": 200}, {"redirect": "https://b.example/x"})
    ],
}  # fmt: skip
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
            "overflow_tcp_port": 9900,
        },
    ),
    "node": (
        "Node",
        {"fleet": "us-central1", "url": "https://10.0.0.1:9440", "address": "10.0.0.1", "port_offset": 1},
    ),
    "cloud_account": (
        "CloudAccount",
        {"cloud": "aws", "credentials": "env:AWS_PROD", "endpoint_url": "https://aws.example.org"},
    ),
    "cloud_project": ("CloudAccount", {"cloud": "google", "credentials": "env:GOOGLE", "project": "acme-prod-1"}),
    "stack": (
        "Stack",
        {
            "cloud_account": "prod", "cloud_region": "eu-central-1", "region": "europe-west1", "approval": "by_hand",
            "network": {
                "vpc": "vpc-0a1b2c3d", "subnets": ["subnet-0a1b2c3d", "subnet-1a1b2c3d"],
                "client_networks": ["0.0.0.0/0"], "log_bucket": "logs", "zones": {"us-central1": "us-central1-a"},
                "vpc_networks": ["10.0.0.0/16"],
            },
        },
    ),
    "address_pool": ("AddressPool", {"blocks": ["203.0.113.0/27"], "region": "us-central1"}),
    "static_ip": (
        "StaticIP",
        {
            "kind": "vip", "address": "203.0.113.1", "region": "us-central1", "pool": "addresses", "owner": "acme",
            "protected": True, "router_id": 7,
        },
    ),
    "static_ip_in_cloud": ("StaticIP", {"kind": "elastic", "stack": "aws-eu"}),
    "zone": (
        "Zone",
        {
            "domain": "example.net", "driver": "rfc2136", "server": "192.0.2.1:53", "key_name": "key.example",
            "key_algorithm": "hmac-sha512", "credentials": "env:TSIG", "resolvers": ["192.0.2.53"],
            "tags": {"customer": "acme"},
        },
    ),
    "zone_of_powerdns": (
        "Zone",
        {
            "domain": "example.net", "driver": "powerdns", "server": "https://dns.example.org:8081",
            "credentials": "env:PDNS",
        },
    ),
    "zone_in_stack": ("Zone", {"domain": "example.net", "driver": "route53", "stack": "aws-eu"}),
    "record": (
        "Record",
        {
            "zone": "operator/zone", "label": "www", "type": "A", "ttl": 300, "values": ["192.0.2.1"],
            "tags": {"customer": "acme"},
        },
    ),
    "record_of_address": ("Record", {"zone": "zone", "label": "www", "type": "A", "static_ip": "front"}),
    "record_of_balancer": ("Record", {"zone": "zone", "label": "www", "type": "CNAME", "load_balancer": "front"}),
    **{
        f"record_{kind.lower()}": ("Record", {"zone": "zone", "label": label, "type": kind, "values": [value]})
        for kind, label, value in (
            ("AAAA", "www", "2001:db8::1"), ("CNAME", "www", "web.example.org."), ("MX", "mail", "10 mx.example.org."),
            ("TXT", "_dmarc", '"v=DMARC1; p=none"'), ("SRV", "_sip._tcp", "10 5 5060 sip.example.org."),
            ("CAA", "www", '0 issue "ca.example.org"'), ("NS", "sub", "ns1.example.org."),
        )
    },
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
    "pool": ("Pool", POOL),
    "load_balancer": (
        "LoadBalancer",
        {
            "fleets": ["us-central1"], "stacks": ["aws-eu"],
            "listeners": [
                {
                    "name": "l", "protocol": "https", "port": 443, "static_ip": "ip", "certificates": ["c"],
                    "default_pool": "acme/shop",
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
            "objective": {"percentile": 95, "below_ms": 600, "errors_below": 0.01},
            "guards": {"max_rate": 100, "max_connections": 50, "max_duration_s": 60, "headroom": 0.5},
            "policy": {"apply": "by_hand", "margin": 0.1, "max_change": 0.2},
        },
    ),
    "redirect": (
        "Route",
        ROUTE
        | {
            "prefix_rewrite": None,
            "action": {
                "redirect": {"code": 301, "scheme": "https", "host": "b.example", "path": "/x", "keep_query": True}
            },
        },
    ),
    "fixed_response": (
        "Route",
        ROUTE
        | {
            "prefix_rewrite": None,
            "action": {"fixed_response": {"status": 200, "content_type": "text/plain", "body": "x"}},
        },
    ),
}  # fmt: skip

# What a field may hold, by the end of its pointer without list positions; the longest end that fits counts.
RULES: dict[str, Legal] = {
    "title": title,
    "kind": one_of("operator", "customer", "none", "rate", "connections"),
    "account": NAME, "suspended": boolean, **{f"quotas/{name}": whole(0, 10**9) for name in DEFAULTS},
    "latitude": real(-90, 90), "longitude": real(-180, 180), "drained": boolean, "latency/to": NAME,
    "latency/ms": real(0, 60_000),
    "region": NAME, "local_development": boolean, "peer_port": PORT, "overflow_port": PORT, "overflow_tcp_port": PORT,
    "fleet": NAME, "url": agent_url, "address": is_literal, "port_offset": whole(0, 60_000),
    "hostname": is_host, "tag": text(127, r"[a-z0-9-]{1,63}=[a-z0-9-]{1,63}"), "may_load_test": boolean,
    "expires_at": instant,
    "chain": nothing, "key": nothing,
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
    "load/protocol": one_of("http1", "http2"), "tls": boolean, "keep_alive": boolean,
    "load/method": one_of("GET", "HEAD", "OPTIONS"),
    "percentile": lambda value: type(value) is int and value in (95, 99),
    "below_ms": whole(1, 600_000), "errors_below": real(0.0001, 1), "max_rate": whole(1, 10**6),
    "max_connections": whole(1, 20_000), "max_duration_s": whole(5, 86_400), "headroom": real(0, 10),
    "apply": one_of("by_hand", "automatic"), "margin": real(0, 0.9), "max_change": real(0, 0.2),
    "protocol": one_of("http", "https", "tcp"), "balance": one_of("leastconn", "roundrobin", "source", "random"),
    "connect_timeout_ms": MS, "server_timeout_ms": MS, "queue_timeout_ms": MS, "server_keepalive_ms": MS,
    "tags/customer": WORD, "when_full": one_of("spread", "queue", "refuse"), "order": NAME,
    "health_check/path": check_path, "method": METHOD, "methods": METHOD, "host": maybe(one_host),
    "expect_status": whole(200, 599), "interval_ms": MS, "timeout_ms": MS, "rise": whole(1, 100),
    "fall": whole(1, 100),
    "capacity_scaler": real(0, 1), "limit/value": whole(0, 10_000_000), "scope": one_of("backend", "server"),
    "measured_by": maybe(NAME), "name": NAME, "servers/address": server_address, "port": PORT,
    "weight": whole(0, 1000),
    "state": one_of("ready", "drain", "maintenance"),
    "cloud": one_of("aws", "google"), "credentials": maybe(credentials), "endpoint_url": maybe(public_url),
    "project": maybe(text(30, r"[a-z][a-z0-9-]{4,28}[a-z0-9]")), "cloud_account": NAME,
    "cloud_region": text(40, r"global|[a-z]{2}(-[a-z]+)+-[0-9]+"),
    "approval": one_of("by_hand", "automatic_safe", "automatic"),
    "vpc": maybe(text(200, r"vpc-[0-9a-f]{8,17}|[a-z0-9.:/-]+")), "subnets": text(24, r"subnet-[0-9a-f]{8,17}"),
    "client_networks": is_network, "vpc_networks": is_network, "blocks": is_network,
    "log_bucket": maybe(text(63, LABEL)),
    "zones/us-central1": text(40, r"[a-z]+-[a-z]+[0-9]+-[a-z]"), "owner": NAME, "protected": boolean,
    "router_id": whole(1, 255), "stack": NAME, "stacks": NAME,
    "domain": one_host, "driver": one_of("rfc2136", "powerdns", "route53", "memory"), "server": maybe(dns_server),
    "key_name": maybe(text(253, r"[a-z0-9_.-]+")), "key_algorithm": maybe(text(20, r"hmac-sha(256|384|512)")),
    "resolvers": text(80, r"[0-9a-f.:\[\]]+"),
    "label": text(253, rf"@|(\*|{UNDERSCORED})(\.{UNDERSCORED})*"), "ttl": whole(30, 86_400),
    "type": one_of("A", "AAAA", "CNAME", "MX", "TXT", "SRV", "CAA", "NS"), "values": is_record_value,
    "static_ip": NAME, "certificates": REFERENCE, "default_pool": REFERENCE, "fleets": NAME,
    "load_balancer": NAME, "path": is_path, "path_kind": one_of("exact", "prefix"), "headers/name": header_name,
    "match": one_of("equals", "present", "absent"), "headers/value": header_value, "pool": REFERENCE,
    "prefix_rewrite": is_path,
    "code": lambda value: value in (301, 302, 303, 307, 308) and type(value) is int,
    "scheme": one_of("http", "https"), "redirect/host": one_host, "keep_query": boolean, "status": whole(200, 599),
    "content_type": text(128, r"[a-z0-9.+-]+/[a-z0-9.+-]+(; ?charset=[a-z0-9-]+)?"), "body": body,
    "assertions/path": is_path, "assertions/host": maybe(one_host), "expect/pool": REFERENCE, "expect/route": NAME,
    "expect/status": whole(200, 599),
    "expect/redirect": lambda value: value is True or text(1300, r"https?://[a-z0-9.-]+(:[0-9]+)?(/[!-~]*)?")(value),
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


def leaves(value: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """Pointer and value of every plain value of a document."""
    if isinstance(value, dict | list) and value:
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        for key, entry in entries:
            yield from leaves(entry, f"{pointer}/{key}")
    elif value is not None:
        yield pointer, value


def without_positions(pointer: str) -> str:
    """`/backends/0/servers/0/port` → `backends/servers/port`."""
    return "/".join(part for part in pointer.strip("/").split("/") if not part.isdecimal())


def rule_for(pointer: str) -> Legal:
    """The rule with the longest end; a field without one is an error of this table."""
    plain = without_positions(pointer)
    ends = [end for end in RULES if plain == end or plain.endswith(f"/{end}")]
    if not ends:
        raise LookupError(f"no rule says what {pointer} may hold")
    return RULES[max(ends, key=len)]


def with_value(spec: Document, pointer: str, value: Any) -> Document:
    """A copy of the document with one value replaced."""
    changed = copy.deepcopy(spec)
    *parents, last = pointer.strip("/").split("/")
    place: Any = changed
    for part in parents:
        place = place[int(part) if isinstance(place, list) else part]
    place[int(last) if isinstance(place, list) else last] = value
    return changed


FIELDS = [
    Field(example, kind, pointer, rule_for(pointer))
    for example, (kind, spec) in EXAMPLES.items()
    for pointer, _ in leaves(spec)
]

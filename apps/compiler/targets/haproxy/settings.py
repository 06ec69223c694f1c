"""The settings that are always there, whatever the definitions say; each line has a test.

What differs between nodes (user, chroot, directories, addresses) comes from the agent's `node.cfg` and from
environment variables, see `apps/compiler/bundle.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from apps.compiler.model.capabilities import GLITCHES
from apps.compiler.model.listener_options import TlsPreset
from apps.compiler.model.node_settings import NodeSettings
from apps.compiler.targets.haproxy.actions import LENGTHS, REDIRECT
from apps.compiler.targets.haproxy.request_log import add_target
from apps.compiler.targets.haproxy.writer import Call, Document, Expanded, Section, Value

HTTP = "http"
TCP = "tcp"
ROUTE_TABLE = "st_routes"
LATENCY_TABLE = "st_latency"
REDIRECT_BACKEND = "redirect"
_USUAL_PORT = (
    *("{", "var(txn.scheme),concat(:,txn.to_port)", "-m", "str"),
    *("http:0", "https:0", "http:80", "https:443", "}"),
)
_ADDED = "%[var(txn.action),field(9,|)]"
_HAS_QUERY = ("{", "var(txn.to_path)", "-m", "sub", "?", "}")
REPEATABLE = ("GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE")

LATENCY_MAP = "maps/latency.map"
LATENCY_BOUNDS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 400, 600, 1000, 2000, 5000, 10_000)

DEFAULTS = NodeSettings()
# A connection of HTTP/2 that breaks the protocol, or cancels requests, this often is closed. Browsers cancel some, too.
MOST_GLITCHES = 1000
# Every such interval closes half of the idle connections to a server; pools of http say it for themselves (pools.py).
SERVER_IDLE_MS = 5000

CIPHERS = ":".join(
    (
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        "ECDHE-RSA-AES128-GCM-SHA256",
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        "ECDHE-RSA-AES256-GCM-SHA384",
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        "ECDHE-RSA-CHACHA20-POLY1305",
    )
)
CIPHERSUITES = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"


def add_global(document: Document, said: NodeSettings | None, *, resumes_sessions: bool = True) -> None:
    """Process-wide settings; `said` are those that an operator chose, by which accounts' shares are counted as well."""
    wanted = said or NodeSettings()
    section = document.section("global")
    section.add("default-path", "config")
    section.add("master-worker")
    section.add(
        "stats",
        "socket",
        Expanded("${SPILLWAY_RUN}/worker.sock"),
        "mode",
        "600",
        "level",
        "admin",
        "expose-fd",
        "listeners",
    )
    add_target(section)
    _add_sizes(section, wanted)
    section.add(".if", GLITCHES.condition)
    section.add("tune.h2.fe.glitches-threshold", str(MOST_GLITCHES))
    section.add(".endif")
    section.add("ssl-default-bind-ciphers", CIPHERS)
    section.add("ssl-default-bind-ciphersuites", CIPHERSUITES)
    oldest = "TLSv1.3" if wanted.tls_preset is TlsPreset.MODERN else "TLSv1.2"
    section.add("ssl-default-bind-options", "ssl-min-ver", oldest)
    section.add("tune.ssl.default-dh-param", "2048")
    if not resumes_sessions:
        section.add("tune.ssl.cachesize", "0")


def _add_sizes(section: Section, wanted: NodeSettings) -> None:
    """How much a node takes; what it is not told is HAProxy's own."""
    if wanted.max_connections is not None:
        most = Value(str(wanted.max_connections))
        section.add("maxconn", most)
        section.add("setenv", "SPILLWAY_CONNECTIONS", most)  # of which accounts' shares are parts
    if wanted.threads is not None:
        section.add("nbthread", Value(str(wanted.threads)))
    if wanted.buffer_bytes != DEFAULTS.buffer_bytes:
        section.add("tune.bufsize", Value(str(wanted.buffer_bytes)))
    if wanted.http2_streams != DEFAULTS.http2_streams:
        section.add("tune.h2.max-concurrent-streams", Value(str(wanted.http2_streams)))
    patience = wanted.old_worker_timeout_ms
    is_default = patience == DEFAULTS.old_worker_timeout_ms
    section.add("hard-stop-after", "30s" if is_default else Call((Value(str(patience)), "ms")))


def add_resolvers(document: Document) -> None:
    """Server names are resolved while running, by the agent: it looks at each address first (agent/names/resolver.py).

    HAProxy keeps an address while nobody answers, and gives it up ten seconds after the agent refused the name.
    """
    section = document.section("resolvers", "dns")
    section.add(".if", "defined(SPILLWAY_RESOLVER)")
    section.add("nameserver", "spillway", Expanded("${SPILLWAY_RESOLVER-unset}"))  # 3.2 warns of empty words even here
    section.add(".else")  # an agent of before
    section.add("parse-resolv-conf")
    section.add(".endif")
    section.add("accepted_payload_size", "1232")
    section.add("resolve_retries", "3")
    section.add("timeout", "resolve", "1s")
    section.add("timeout", "retry", "1s")
    section.add("hold", "valid", "10s")
    section.add("hold", "obsolete", "30s")
    section.add("hold", "refused", "10s")
    section.add("hold", "timeout", "24h")
    section.add("hold", "other", "24h")


def add_defaults(document: Document) -> None:
    """Two sets of defaults, one per mode; every proxy says which one it takes."""
    http = document.section("defaults", HTTP)
    http.add("mode", "http")
    http.add("option", "idle-close-on-response")  # without it a reload loses keep-alive requests
    http.add("option", "http-restrict-req-hdr-names", "reject")  # X_Forwarded_For is no twin of X-Forwarded-For
    http.add("option", "redispatch")
    http.add("retry-on", "conn-failure")  # safe: nothing of the request was sent yet
    http.add("timeout", "http-request", "10s")
    http.add("timeout", "http-keep-alive", "60s")
    http.add("timeout", "tunnel", "1h")
    _add_common(http)
    tcp = document.section("defaults", TCP)
    tcp.add("mode", "tcp")
    tcp.add("option", "redispatch")
    tcp.add("timeout", "tunnel", "1h")
    _add_common(tcp)


def _add_common(section: Section) -> None:
    # A new worker takes servers for up until its checks say otherwise; the agent tells it which ones were down.
    section.add("load-server-state-from-file", "global")
    section.add("retries", "3")
    section.add("timeout", "client", "60s")
    section.add("timeout", "client-fin", "10s")
    section.add("timeout", "connect", "2s")
    section.add("timeout", "server", "30s")
    section.add("timeout", "queue", "10s")
    # One name that does not resolve must not make the whole file invalid; the agent hands on what one resolved to.
    section.add(
        "default-server", "init-addr", "last,none", "resolvers", "dns", "pool-purge-delay", f"{SERVER_IDLE_MS}ms"
    )


def add_tables(document: Document) -> None:
    """Counters that HAProxy keeps per route and per pool and latency bucket; the agent reads them."""
    routes = document.section("backend", ROUTE_TABLE, "from", HTTP)
    routes.add(
        "stick-table", "type", "string", "len", "32", "size", "200k", "store", "http_req_cnt,http_err_cnt,http_fail_cnt"
    )
    latency = document.section("backend", LATENCY_TABLE, "from", HTTP)
    latency.add("stick-table", "type", "string", "len", "32", "size", "100k", "store", "gpc0")


def add_redirects(document: Document, *, told: bool) -> None:
    """One backend answers every redirect from its action in the map (`actions.py` says which field is what).

    `told`: a proxy in front may have said the scheme. A redirect that names the scheme drops the port of the request,
    which belonged to the old one. The scheme's own port is not written.
    """
    section = document.section("backend", REDIRECT_BACKEND, "from", HTTP)
    rules = (
        ("set-var(txn.scheme)", "str(http)"),
        ("set-var(txn.scheme)", "str(https)", "if", "{", "ssl_fc", "}"),
        *((("set-var(txn.scheme)", "var(txn.proto)", "if", "{", "var(txn.proto)", "-m", "found", "}"),) * told),
        ("set-var(txn.to_host)", "var(txn.host)"),
        ("set-var(txn.to_port)", "req.fhdr(host),port_only"),
        ("set-var(txn.to_path)", "path"),
        ("set-var(txn.to_port)", "int(0)", *_if_field(3)),
        ("set-var(txn.scheme)", "var(txn.action),field(3,|)", *_if_field(3)),
        ("set-var(txn.to_host)", "var(txn.action),field(4,|)", *_if_field(4)),
        ("set-var(txn.to_path)", "var(txn.action),field(5,|)", *_if_field(5)),
        ("set-var(txn.to_port)", "var(txn.action),field(7,|)", *_if_field(7)),
        ("set-var-fmt(txn.to_host)", "%[var(txn.to_host)]:%[var(txn.to_port)]", "if", "!", *_USUAL_PORT),
        *_below_prefixes(),
        ("set-var-fmt(txn.to_path)", "%[var(txn.to_path)]?%[query]", *_if_field(6), "{", "query", "-m", "found", "}"),
        ("set-var-fmt(txn.to_path)", f"%[var(txn.to_path)]&{_ADDED}", *_if_field(9), *_HAS_QUERY),
        ("set-var-fmt(txn.to_path)", f"%[var(txn.to_path)]?{_ADDED}", *_if_field(9), "!", *_HAS_QUERY),
    )
    for rule in rules:
        section.add("http-request", *rule)
    location = "%[var(txn.scheme)]://%[var(txn.to_host)]%[var(txn.to_path)]"
    for code in ("301", "302", "303", "307", "308"):
        begins = ("{", "var(txn.action)", "-m", "beg", f"{REDIRECT}{code}|", "}")
        section.add("http-request", "redirect", "location", location, "code", code, "if", *begins)


def _below_prefixes() -> Iterator[tuple[str, ...]]:
    """What stands behind the matched prefix, behind what replaces it.

    HAProxy 2.6 cuts by constant lengths only: powers of two, of which any length is a sum.
    """
    replaced = _if_field(8)
    yield "set-var(txn.rest)", "path", *replaced
    for power, letter in enumerate(LENGTHS):
        cuts = ("{", "var(txn.action),field(8,|)", "-m", "sub", letter, "}")
        yield "set-var(txn.rest)", f"var(txn.rest),bytes({1 << power})", "if", *cuts
    yield "set-var-fmt(txn.to_path)", "%[var(txn.action),field(5,|)]%[var(txn.rest)]", *replaced
    yield "set-var(txn.to_path)", "str(/)", "if", "{", "var(txn.to_path)", "-m", "len", "0", "}"


def _if_field(number: int) -> tuple[str, ...]:
    return ("if", "{", f"var(txn.action),field({number},|)", "-m", "len", "gt", "0", "}")


def latency_entries() -> dict[str, str]:
    """Milliseconds → upper bound of their bucket, as ranges of HAProxy's `map_int`; above all is -1 by default."""
    lower = (0, *(bound + 1 for bound in LATENCY_BOUNDS_MS[:-1]))
    return {f"{low}:{high}": str(high) for low, high in zip(lower, LATENCY_BOUNDS_MS, strict=True)}

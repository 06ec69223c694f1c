"""Pools as backends, servers as their lines, fixed responses as backends of their own."""

from __future__ import annotations

from apps.compiler.limits import slots_per_node
from apps.compiler.model.fleet import Pool
from apps.compiler.model.shared import Balance, FixedResponse, HealthCheck, Protocol, Route, Server, ServerState
from apps.compiler.targets.haproxy.settings import HTTP, REPEATABLE, SERVER_IDLE_MS
from apps.compiler.targets.haproxy.writer import Argument, Call, Document, Opaque, Section, Value

# How soon a server is asked again while its state is in doubt.
QUICK_CHECK_MS = 250
# Servers that close idle connections after a second are the most impatient that are usual.
IMPATIENT_MS = 1000
LEAST_PURGE_MS = 10
# Bytes that fit into HAProxy's buffer beside the headers.
MAX_REPEATED_BODY = 8192

_ALGORITHMS = {
    Balance.ROUNDROBIN: "roundrobin",
    Balance.LEASTCONN: "leastconn",
    Balance.SOURCE: "source",
    Balance.RANDOM: "random",
}


def add_pool(document: Document, pool: Pool, defaults: str) -> None:
    """One backend; without servers HAProxy answers 503 for it."""
    section = document.section("backend", pool.id, "from", defaults, owner=pool.id)
    section.add("balance", _ALGORITHMS[pool.balance])
    if pool.balance is Balance.SOURCE:
        section.add("hash-type", "consistent")  # the map-based hash refuses weights at run time
    section.add("timeout", "connect", Call((Value(str(pool.connect_timeout_ms)), "ms")))
    section.add("timeout", "server", Call((Value(str(pool.server_timeout_ms)), "ms")))
    section.add("timeout", "queue", Call((Value(str(pool.queue_timeout_ms)), "ms")))
    _add_repetition(section, pool)
    if pool.protocol is Protocol.HTTPS:
        section.add("default-server", "ssl", "verify", "none", "sni", "req.fhdr(host),host_only", "check-ssl")
    if pool.health_check is not None:
        _add_health_check(section, pool.health_check)
    for server in sorted(pool.servers, key=lambda server: (len(server.id), server.id)):
        section.add("server", *_server(server), owner=server.id)


def _add_repetition(section: Section, pool: Pool) -> None:
    """A server may close an idle connection just when a request goes out on it.

    What may be sent twice is sent again, as far as it is whole in the buffer, so a small body is waited for. For the
    rest, a connection does not idle long enough.
    """
    if pool.protocol is Protocol.TCP:
        return
    section.add("retry-on", "conn-failure", "empty-response")
    section.add("http-request", "disable-l7-retry", "if", "!", "{", "method", *REPEATABLE, "}")
    small = ("{", "req.hdr_val(content-length)", "-m", "int", f"1:{MAX_REPEATED_BODY}", "}")
    section.add("http-request", "wait-for-body", "time", "60s", "if", "{", "method", "PUT", "DELETE", "}", *small)
    section.add("default-server", "pool-purge-delay", Call((Value(str(purge_interval_ms(pool))), "ms")))


def purge_interval_ms(pool: Pool) -> int:
    """How often half of the idle connections to a server are closed, so that none is left when the server closes it.

    Sixteen times is enough for tens of thousands. Who does not say how long servers wait is taken for impatient.
    """
    return min(max((pool.server_keepalive_ms or IMPATIENT_MS) // 16, LEAST_PURGE_MS), SERVER_IDLE_MS)


def _add_health_check(section: Section, check: HealthCheck) -> None:
    """A request when there is a path, else a bare connect."""
    if check.path:
        section.add("option", "httpchk")
        version: tuple[Argument, ...] = ("ver", "HTTP/1.1", "hdr", "Host", Value(check.host)) if check.host else ()
        section.add("http-check", "send", "meth", Value(check.method), "uri", Value(check.path), *version)
        section.add("http-check", "expect", "status", Value(str(check.expect_status)))
    section.add("timeout", "check", Call((Value(str(check.timeout_ms)), "ms")))
    interval = Call((Value(str(check.interval_ms)), "ms"))
    quick = Call((Value(str(min(check.interval_ms, QUICK_CHECK_MS))), "ms"))
    times = ("inter", interval, "fastinter", quick, "rise", Value(str(check.rise)), "fall", Value(str(check.fall)))
    section.add("default-server", "check", *times)
    # Three connections in a row that fail, and one failed check, asked for at once, is enough: a region that dies is
    # left within a moment, and one that is only slow to accept stays while its checks pass.
    section.add("default-server", "observe", "layer4", "error-limit", "3", "on-error", "sudden-death")


def _server(server: Server) -> tuple[Argument, ...]:
    """Name, address and state.

    Drain is weight 0, which a runtime `set weight` and a restart both understand in the same way; maintenance
    is `disabled`, which `set server state` turns on and off.
    """
    host = f"[{server.address}]" if ":" in server.address else server.address
    weight = 0 if server.state is ServerState.DRAIN else server.weight
    address = Call((Value(host), ":", Value(str(server.port))))
    disabled = ("disabled",) if server.state is ServerState.MAINTENANCE else ()
    return (server.id, address, "weight", Value(str(weight)), *disabled)


def add_queue(document: Document, pool: Pool, nodes: int, defaults: str) -> None:
    """The pool's twin in which requests wait when every region is full: each server takes a few, the rest queue."""
    section = document.section("backend", pool.id.replace("pool-", "queue-"), "from", defaults, owner=pool.id)
    section.add("balance", _ALGORITHMS[Balance.LEASTCONN])
    section.add("timeout", "connect", Call((Value(str(pool.connect_timeout_ms)), "ms")))
    section.add("timeout", "server", Call((Value(str(pool.server_timeout_ms)), "ms")))
    section.add("timeout", "queue", Call((Value(str(pool.queue_timeout_ms)), "ms")))
    _add_repetition(section, pool)
    if pool.protocol is Protocol.HTTPS:
        section.add("default-server", "ssl", "verify", "none", "sni", "req.fhdr(host),host_only")
    slots = str(slots_per_node(pool.limit, pool.capacity_scaler, len(pool.servers), nodes))
    for server in sorted(pool.servers, key=lambda server: (len(server.id), server.id)):
        tracked = ("track", f"{pool.id}/{server.id}") if pool.health_check is not None else ()
        section.add("server", *_server(server), "maxconn", slots, *tracked, owner=server.id)


def add_fixed_response(document: Document, route: Route, response: FixedResponse) -> None:
    """A backend that answers by itself, named after its route."""
    section = document.section("backend", route.id, "from", HTTP, owner=route.id)
    answer: list[Argument] = ["return", "status", Value(str(response.status))]
    if response.body:
        answer += ["content-type", Value(response.content_type), "string", Opaque(response.body)]
    section.add("http-request", *answer)

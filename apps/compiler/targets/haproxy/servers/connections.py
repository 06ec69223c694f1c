"""Connections to servers: how many, which requests share one, what is sent first, what is tried again."""

from __future__ import annotations

from apps.compiler.model.fleet import Pool
from apps.compiler.model.servers import ProxyProtocol, Retries, RetryOn, Reuse
from apps.compiler.model.shared import Protocol
from apps.compiler.targets.haproxy.servers.own_region import OwnRegion
from apps.compiler.targets.haproxy.servers.retry_budget import add_retry_budget
from apps.compiler.targets.haproxy.settings import REPEATABLE, SERVER_IDLE_MS
from apps.compiler.targets.haproxy.writer import Argument, Call, Section, Value

# Servers that close idle connections after a second are the most impatient that are usual.
IMPATIENT_MS = 1000
LEAST_PURGE_MS = 10
# Bytes that fit into HAProxy's buffer beside the headers.
MAX_REPEATED_BODY = 8192
_DEFAULT = Retries()
_CAUSES = {
    RetryOn.CONNECT: "conn-failure",
    RetryOn.NO_ANSWER: "empty-response",
    RetryOn.TIMEOUT: "response-timeout",
    RetryOn.JUNK: "junk-response",
}


def milliseconds(number: int) -> Call:
    """`2000ms`."""
    return Call((Value(str(number)), "ms"))


def add_repetition(section: Section, pool: Pool) -> None:
    """A server may close an idle connection just when a request goes out on it.

    What may be sent twice is sent again, as far as it is whole in the buffer, so a small body is waited for. For the
    rest, a connection does not idle long enough.
    """
    if pool.retries is not None:
        section.add("retries", Value(str(pool.retries.attempts)))
    if pool.protocol is Protocol.TCP:
        return
    causes = (pool.retries or _DEFAULT).on
    if causes:
        section.add("retry-on", *(_CAUSES.get(cause, cause.value) for cause in causes))
    else:
        section.add("retry-on", "none")
    section.add("http-request", "disable-l7-retry", "if", "!", "{", "method", *REPEATABLE, "}")
    add_retry_budget(section, pool)
    small = ("{", "req.hdr_val(content-length)", "-m", "int", f"1:{MAX_REPEATED_BODY}", "}")
    section.add("http-request", "wait-for-body", "time", "60s", "if", "{", "method", "PUT", "DELETE", "}", *small)
    section.add("default-server", "pool-purge-delay", milliseconds(purge_interval_ms(pool)))


def purge_interval_ms(pool: Pool) -> int:
    """How often half of the idle connections to a server are closed, so that none is left when the server closes it.

    Sixteen times is enough for tens of thousands. Who does not say how long servers wait is taken for impatient.
    """
    return min(max((pool.server_keepalive_ms or IMPATIENT_MS) // 16, LEAST_PURGE_MS), SERVER_IDLE_MS)


def add_way(section: Section, pool: Pool) -> None:
    """What is sent on connections to servers, and which requests share one."""
    if pool.tunnel_timeout_ms is not None:
        section.add("timeout", "tunnel", milliseconds(pool.tunnel_timeout_ms))
    if pool.proxy_protocol is not ProxyProtocol.NONE:
        section.add("default-server", "send-proxy-v2" if pool.proxy_protocol is ProxyProtocol.V2 else "send-proxy")
    if pool.protocol is Protocol.TCP:
        return
    if pool.host_header:
        section.add("http-request", "set-header", "Host", Value(pool.host_header))
    for name, value in sorted(pool.request_headers):
        section.add("http-request", "set-header", Value(name), Value(value))
    if pool.connection_reuse is Reuse.CLOSE:
        section.add("option", "http-server-close")
        section.add("http-reuse", "never")
    elif pool.connection_reuse is not Reuse.SAFE:
        section.add("http-reuse", pool.connection_reuse.value)


def add_bounds(section: Section, pool: Pool, region: OwnRegion, slots: int | None = None) -> None:
    """How many requests a server gets at once and how many wait for it; `slots` is what its limit leaves."""
    bounds = pool.connections
    if bounds is not None:
        words: list[Argument] = []
        least = bounds.min_per_server
        if slots is None:
            words += ["maxconn", Value(str(region.part_of(bounds.max_per_server)))]
            words += ["minconn", Value(str(region.part_of(least)))] if least else []
        words += ["maxqueue", Value(str(region.part_of(bounds.max_queue)))] if bounds.max_queue else []
        if words:
            section.add("default-server", *words)
        if bounds.full_at and slots is None:
            section.add("fullconn", Value(str(region.part_of(bounds.full_at))))
    if pool.slow_start_ms is not None:
        section.add("default-server", "slowstart", milliseconds(pool.slow_start_ms))
    if any(server.backup for server in pool.servers):
        section.add("option", "allbackups")

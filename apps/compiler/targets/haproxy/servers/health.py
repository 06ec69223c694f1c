"""Health checks, agent checks, and servers that are left out for what they answer."""

from __future__ import annotations

from apps.compiler.model.fleet import Pool
from apps.compiler.model.servers import CheckKind, Observed
from apps.compiler.model.shared import HealthCheck
from apps.compiler.targets.haproxy.servers.connections import milliseconds
from apps.compiler.targets.haproxy.servers.grpc import SERVING, health_request
from apps.compiler.targets.haproxy.writer import Argument, Opaque, Section, Value

# How soon a server is asked again while its state is in doubt.
QUICK_CHECK_MS = 250
_WORDS = {CheckKind.REDIS: "redis-check", CheckKind.LDAP: "ldap-check"}
_USERS = {CheckKind.POSTGRESQL: "pgsql-check", CheckKind.MYSQL: "mysql-check"}
GREETING = "spillway.invalid"


def add_health(section: Section, pool: Pool) -> None:
    """The checks of a pool; without any, every server counts as up."""
    if pool.health_check is not None:
        _add_question(section, pool, pool.health_check)
        _add_times(section, pool, pool.health_check)
    if pool.agent_check is not None:
        agent = pool.agent_check
        words: list[Argument] = ["agent-check", "agent-port", Value(str(agent.port))]
        words += ["agent-inter", milliseconds(agent.interval_ms)]
        section.add("default-server", *words, *(("agent-send", Opaque(agent.send + "\n")) if agent.send else ()))


def _add_question(section: Section, pool: Pool, check: HealthCheck) -> None:
    """What a server is asked, and what it must answer; nothing for a bare connect."""
    kind = check.kind
    if kind is CheckKind.HTTP and check.path:
        _add_request(section, check)
    elif kind is CheckKind.TCP and (check.send or check.expect):
        _add_words(section, check)
    elif kind is CheckKind.GRPC:
        request = health_request(check.service, check.host, secure=pool.server_tls is not None)
        section.add("option", "tcp-check")
        section.add("tcp-check", "connect", "default", "proto", "none")
        section.add("tcp-check", "send-binary", request.hex())
        section.add("tcp-check", "expect", "binary", SERVING.hex())
    elif kind is CheckKind.SMTP:
        section.add("option", "smtpchk", "EHLO", Value(check.host or GREETING))
    elif kind in _USERS:
        section.add("option", _USERS[kind], "user", Value(check.user))
    elif kind in _WORDS:
        section.add("option", _WORDS[kind])


def _add_request(section: Section, check: HealthCheck) -> None:
    section.add("option", "httpchk")
    words: list[Argument] = ["meth", Value(check.method), "uri", Value(check.path)]
    words += ["ver", "HTTP/1.1", "hdr", "Host", Value(check.host)] if check.host else []
    for name, value in check.headers:
        words += ["hdr", Value(name), Value(value)]
    words += ["body", Opaque(check.body)] if check.body else []
    section.add("http-check", "send", *words)
    status = ",".join(check.expect_statuses) or str(check.expect_status)
    section.add("http-check", "expect", "status", Opaque(status) if check.expect_statuses else Value(status))
    if check.expect_body:
        section.add("http-check", "expect", "string", Opaque(check.expect_body))


def _add_words(section: Section, check: HealthCheck) -> None:
    """Each line of what is sent ends on the wire with CR and LF."""
    section.add("option", "tcp-check")
    section.add("tcp-check", "connect", "default")
    if check.send:
        section.add("tcp-check", "send", Opaque(check.send.replace("\n", "\r\n")))
    if check.expect:
        section.add("tcp-check", "expect", "string", Opaque(check.expect))


def _add_times(section: Section, pool: Pool, check: HealthCheck) -> None:
    section.add("timeout", "check", milliseconds(check.timeout_ms))
    quick = milliseconds(min(check.interval_ms, QUICK_CHECK_MS))
    times: list[Argument] = ["inter", milliseconds(check.interval_ms), "fastinter", quick]
    times += ["rise", Value(str(check.rise)), "fall", Value(str(check.fall))]
    times += ["port", Value(str(check.port))] if check.port else []
    section.add("default-server", "check", *times)
    ejection = pool.outlier_ejection
    if ejection is None:
        # Three connections in a row that fail, and one failed check, asked for at once, is enough: a region that dies
        # is left within a moment, and one that is only slow to accept stays while its checks pass.
        section.add("default-server", "observe", "layer4", "error-limit", "3", "on-error", "sudden-death")
        return
    observed = "layer7" if ejection.observe is Observed.RESPONSES else "layer4"
    words: list[Argument] = ["observe", observed, "error-limit", Value(str(ejection.errors)), "on-error", "mark-down"]
    section.add("default-server", *words, "downinter", milliseconds(ejection.return_after_ms))

"""Lines that HAProxy itself ignores where they stand: of http in tcp sections, of backends in frontends, and back."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace

from apps.importing.haproxy.pools.backends import protocol_of
from apps.importing.haproxy.text.keywords import fact_of
from apps.importing.haproxy.text.sections import PROXIES, Configuration, Section
from apps.importing.haproxy.text.tables.classes import Kind
from apps.importing.haproxy.traffic.context import Context
from apps.importing.verdicts import Line, Verdict

OF_FRONTENDS = frozenset({"bind", "use_backend", "default_backend", "monitor-uri", "monitor", "monitor-net", "maxconn"})
OF_BACKENDS = frozenset(
    {
        *(
            "balance",
            "cookie",
            "appsession",
            "retries",
            "retry-on",
            "http-reuse",
            "use-server",
            "hash-type",
            "dispatch",
        ),
        *("hash-balance-factor", "fullconn", "http-send-name-header", "source", "http-check", "tcp-check", "stick"),
        *("default-server", "server-template"),
    }
)
OF_HTTP = frozenset(
    {
        *("http-request", "http-response", "http-after-response", "redirect", "block", "errorfile", "errorfiles"),
        *("errorloc", "errorloc302", "errorloc303", "http-error", "monitor-uri", "compression", "cookie", "appsession"),
        *("http-reuse", "http-send-name-header"),
    }
)
OPTIONS_OF_HTTP = frozenset(
    {
        *("forwardfor", "originalto", "forwarded", "httpclose", "forceclose", "http-server-close", "http-keep-alive"),
        *("http-tunnel", "http-buffer-request", "http-restrict-req-hdr-names", "http-drop-request-trailers"),
        *("http-drop-response-trailers", "http_proxy", "checkcache", "accept-invalid-http-request"),
        *("accept-invalid-http-response", "accept-unsafe-violations-in-http-request"),
        "accept-unsafe-violations-in-http-response",
    }
)
# Of these the last one counts.
ONCE = frozenset(
    {
        *("balance", "maxconn", "fullconn", "retries", "retry-on", "cookie", "mode", "monitor-uri", "http-reuse"),
        *("default_backend", "contimeout", "clitimeout", "srvtimeout"),
    }
)
OF_SERVERS = OF_BACKENDS | {
    *("timeout connect", "timeout server", "timeout queue", "timeout check", "timeout tunnel"),
    *("contimeout", "srvtimeout", "srvexp"),
}
OPTIONS_OF_SERVERS = frozenset({"redispatch", "allbackups", "prefer-last-server", "abortonclose", "persist"})
CHECKS = frozenset(
    {
        *("external-check", "httpchk", "tcp-check", "mysql-check", "pgsql-check", "redis-check", "smtpchk"),
        *("ldap-check", "ssl-hello-chk"),
    }
)
NO_REQUESTS = "A tcp section has no requests, so HAProxy ignores this line."
PASSED = (
    "Connections of a section of tcp reach these servers as they are, so nothing is asked or changed here; give the "
    "section mode http, or such hosts a section of their own."
)
NOT_INHERITED = "No section that is used takes this from its defaults."


def why_ignored(section: Section, line: Line, *, speaks_http: bool) -> str:
    """Why HAProxy does nothing with the line in this section; empty where it does."""
    if section.kind == "backend" and line.keyword in OF_FRONTENDS:
        return "HAProxy ignores this line in a backend."
    if section.kind == "frontend" and line.keyword in OF_BACKENDS:
        return "HAProxy ignores this line in a frontend."
    words = line.words
    key = words[:2] if line.keyword == "timeout" else words[:1]
    if (line.keyword in ONCE or line.keyword == "timeout") and section.last(*key) is not line:
        return "Another line below it says this otherwise."
    checks = _is_check(line)
    if checks and [each for each in section.each("option") if _is_check(each)][-1:] != [line]:
        return "Another line below it says this otherwise."
    if _is_of_servers(line) and line.keyword != "server" and not _has_servers(section):
        return "This section has no servers."
    return NO_REQUESTS if not speaks_http and _is_of_http(line) else ""


def _is_of_http(line: Line) -> bool:
    """Whether the line says something of requests or responses."""
    words = line.words
    is_option = line.keyword == "option" and words[1:2] != () and words[1] in OPTIONS_OF_HTTP
    is_rule = line.keyword in OF_HTTP or line.keyword.startswith(("req", "rsp"))
    return is_rule or is_option or words[:2] == ("timeout", "http-request")


def _is_check(line: Line) -> bool:
    return line.keyword == "option" and line.words[1:2] != () and line.words[1] in CHECKS


def _is_of_servers(line: Line) -> bool:
    """Whether the line says something of servers alone."""
    pair = " ".join(line.words[:2])
    named = line.keyword in OF_SERVERS | {"server"} or pair in OF_SERVERS or _is_check(line)
    return named or (line.keyword == "option" and line.words[1:2] != () and line.words[1] in OPTIONS_OF_SERVERS)


def _has_servers(section: Section) -> bool:
    return any(line.keyword in ("server", "server-template", "dispatch") for line in section.lines)


def becomes_http(configuration: Configuration, section: Section) -> bool:
    """Whether a tcp frontend has http backends alone, which read the requests of its connections."""
    words = [line.words[1] for line in section.all_lines() if line.keyword in ("use_backend", "default_backend")
             and len(line.words) > 1]  # fmt: skip
    chosen = [configuration.proxy(word) for word in words]
    return (
        section.kind == "frontend"
        and bool(chosen)
        and all(each is not None and protocol_of(each) == "http" for each in chosen)
    )


def without_requests(section: Section) -> Section:
    """The frontend without the lines that it ignores as one of tcp."""

    def left(lines: Iterable[Line]) -> list[Line]:
        return [line for line in lines if not why_ignored(section, line, speaks_http=False)]

    return replace(section, lines=left(section.lines), inherited=tuple(left(section.inherited)))


def mark_passed(context: Context, passed: Iterable[str]) -> None:
    """What backends of http say of the requests of connections that reach their servers as they are."""
    for section in filter(None, map(context.configuration.proxy, passed)):
        for line in section.lines:
            fact = fact_of(section.kind, line.words) if _is_of_http(line) else None
            if fact is not None and fact.kind is Kind.TRAFFIC and context.ledger.verdict_of(line) is None:
                context.ledger.impossible(line, PASSED)


def mark_ignored(context: Context, http: frozenset[int], reached: Container[str]) -> None:
    """Lines without a verdict of sections that are used; `http` are numbers of the headers of http sections.

    `reached` are sections whose servers get requests; what others say of theirs decides nothing.

    A line of defaults is ignored where each section that is used and inherits it ignores it.
    """
    wanted: set[Line] = set()
    ignored: dict[Line, str] = {}
    for section in context.configuration.of_kind(*PROXIES):
        if not context.ledger.is_part(section.header):
            continue
        for line in section.all_lines():
            if context.ledger.verdict_of(line) is None:
                why = why_ignored(section, line, speaks_http=section.header.number in http)
                if not why and section.kind == "listen" and section.name not in reached and _is_of_servers(line):
                    why = "No request reaches the servers of this section."
                ignored |= {line: why} if why else {}
                wanted |= set() if why else {line}
    for line, why in ignored.items():
        if line not in wanted:
            context.ledger.note(line, Verdict.DEAD, why)
    _mark_defaults(context, wanted)


def _mark_defaults(context: Context, wanted: set[Line]) -> None:
    for section in context.configuration.of_kind("defaults"):
        for line in section.lines:
            fact = fact_of(section.kind, line.words)
            is_open = line not in wanted and context.ledger.verdict_of(line) is None
            if is_open and fact is not None and fact.kind is Kind.TRAFFIC:
                context.ledger.note(line, Verdict.DEAD, NOT_INHERITED)

"""The shapes of health checks, agent checks, and of servers that are left out for their errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from apps.compiler import grammar
from apps.compiler.grammars import servers as grammars
from apps.compiler.model.servers import CheckKind, Observed
from apps.definitions.shapes.base.shape import About, Distinct, Grammar, Shape
from apps.definitions.shapes.base.words import (
    LISTED,
    METHODS,
    Pairs,
    Port,
    TimeMs,
    at_most,
    read_pairs,
    sorted_pairs,
    text,
    whole,
    word,
)

MOST_HEADERS = 10
MOST_STATUSES = 8
CHECK_METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT")
KINDS = {
    CheckKind.HTTP: "HTTP, or only a connection",
    CheckKind.TCP: "TCP: send and expect",
    CheckKind.GRPC: "gRPC",
    CheckKind.POSTGRESQL: "PostgreSQL",
    CheckKind.MYSQL: "MySQL",
    CheckKind.REDIS: "Redis",
    CheckKind.SMTP: "SMTP",
    CheckKind.LDAP: "LDAP",
}
OBSERVED = {Observed.RESPONSES: "Answers of 5xx and failed connections", Observed.CONNECTIONS: "Failed connections"}
# Forms offer those that a check has a use for.
CHECK_METHOD = Grammar(
    grammar.method, {"type": "string", "enum": METHODS}, labels={name: name for name in CHECK_METHODS}
)


def _headers(value: Any) -> Pairs:
    if isinstance(value, dict) and len(value) > MOST_HEADERS:
        raise grammar.GrammarError("too_many", f"Use at most {MOST_HEADERS} headers.")
    return read_pairs(value, grammar.header_name, grammar.header_value)


HEADERS = Grammar(
    _headers,
    {
        "type": "object",
        "title": f"at most {MOST_HEADERS} names of headers with a value each",
        "additionalProperties": {"type": "string", "minLength": 1, "maxLength": 256},
    },
    sorted_pairs,
)
Statuses = Annotated[str, text(grammars.statuses, "a status, or two with a hyphen", 7)]


def _line(title: str) -> Grammar:
    return text(grammars.plain_text, title, grammars.MAX_TEXT, blank=True)


@dataclass(frozen=True, slots=True)
class HealthCheckSpec(Shape):
    """How servers are checked; an empty path only connects."""

    component: ClassVar[str] = "HealthCheck"

    kind: Annotated[
        CheckKind,
        word(CheckKind, KINDS),
        About("The protocol of the check; all except http and grpc are for tcp pools.", "Check type", ""),
    ] = CheckKind.HTTP
    path: Annotated[
        str,
        text(grammar.check_path, "a path with an optional query", 1024, blank=True),
        About("The path to request.", "Path", "Leave empty to check only the TCP connection.", "/up"),
    ] = ""
    method: Annotated[str, CHECK_METHOD, About("The HTTP method of the check.", "Method", "")] = "GET"
    host: Annotated[
        str,
        text(grammar.server_host, "a host name without port", 253, blank=True),
        About("The Host header of the check; for smtp, the name in the greeting.", "Host header", ""),
    ] = ""
    headers: Annotated[Pairs, HEADERS, About("Further headers of the check.", "Headers", "")] = ()
    body: Annotated[str, _line("a line of text"), About("The body of a POST or PUT.", "Body", "")] = ""
    expect_status: Annotated[int, whole(200, 599), About("The status of a healthy server.", "Expected status", "")] = (
        200
    )
    expect_statuses: Annotated[
        tuple[Statuses, ...],
        LISTED,
        at_most(MOST_STATUSES, "statuses"),
        Distinct(),
        About("Statuses and ranges, such as `200-399`, instead of `expect_status`.", "Expected statuses", ""),
    ] = ()
    expect_body: Annotated[
        str, _line("a line of text"), About("Text that the response body must contain.", "Expected text", "")
    ] = ""
    send: Annotated[
        str,
        text(grammars.plain_lines, "lines of text", grammars.MAX_TEXT, blank=True),
        About("Text that a tcp check sends; lines end with CR and LF.", "Send", ""),
    ] = ""
    expect: Annotated[str, _line("a line of text"), About("Text that the response must contain.", "Expect", "")] = ""
    service: Annotated[
        str,
        text(grammars.grpc_service, "the name of a gRPC service", 255, blank=True),
        About("The service to check by gRPC's health protocol. Default: the whole server.", "gRPC service", ""),
    ] = ""
    user: Annotated[
        str,
        text(grammars.check_user, "a user of a database", 32, blank=True),
        About("The PostgreSQL or MySQL user of the check; it needs no password and no rights.", "User", ""),
    ] = ""
    port: Annotated[
        Port | None,
        About(
            "The port that is checked, without TLS and the PROXY protocol. Default: that of the server.",
            "Port",
            "Leave empty to check where the server serves.",
        ),
    ] = None
    interval_ms: Annotated[TimeMs, About("The time between two checks.", "Every", "ms")] = 2000
    timeout_ms: Annotated[TimeMs, About("The time a server has to respond.", "Response timeout", "ms")] = 2000
    rise: Annotated[
        int,
        whole(1, 100),
        About("A server is up after this many successful checks.", "Up after", "consecutive successful checks"),
    ] = 2
    fall: Annotated[
        int,
        whole(1, 100),
        About("A server is down after this many failed checks.", "Down after", "consecutive failed checks"),
    ] = 3


@dataclass(frozen=True, slots=True)
class AgentCheck(Shape):
    """A program on each server that reports how much load the server accepts: `75%`, `drain`, `down`."""

    port: Annotated[Port, About("The port of the agent on each server.", "Port", "", 9777)]
    interval_ms: Annotated[TimeMs, About("The time between two checks.", "Every", "ms")] = 2000
    send: Annotated[str, _line("a line of text"), About("A line to send first.", "Send", "")] = ""


@dataclass(frozen=True, slots=True)
class OutlierEjection(Shape):
    """A server that fails several requests in a row is taken out; its checks bring it back."""

    observe: Annotated[
        Observed, word(Observed, OBSERVED), About("What counts as an error.", "Count", "", "responses")
    ] = Observed.RESPONSES
    errors: Annotated[int, whole(1, 1000), About("The number of consecutive errors.", "After", "errors in a row")] = 5
    return_after_ms: Annotated[
        TimeMs, About("The time until the first check that may bring the server back.", "Check again after", "ms")
    ] = 10_000

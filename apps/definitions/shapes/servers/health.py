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
    CheckKind.HTTP: "HTTP, or a connection alone",
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
    """How servers are asked whether they are well; an empty path only connects."""

    component: ClassVar[str] = "HealthCheck"

    kind: Annotated[
        CheckKind,
        word(CheckKind, KINDS),
        About("What is spoken: all but http and grpc are for tcp pools.", "Check by", ""),
    ] = CheckKind.HTTP
    path: Annotated[
        str,
        text(grammar.check_path, "a path with an optional query", 1024, blank=True),
        About("What is asked for.", "Path", "Leave empty to check only the TCP connection.", "/up"),
    ] = ""
    method: Annotated[str, CHECK_METHOD, About("How it is asked.", "Method", "")] = "GET"
    host: Annotated[
        str,
        text(grammar.redirect_host, "a host name without wildcard", 253, blank=True),
        About("The Host header of the question; for smtp who greets.", "Host header", ""),
    ] = ""
    headers: Annotated[Pairs, HEADERS, About("More headers of the question.", "Headers", "")] = ()
    body: Annotated[str, _line("a line of text"), About("What a POST or PUT sends.", "Body", "")] = ""
    expect_status: Annotated[int, whole(200, 599), About("What a well server answers.", "Expected status", "")] = 200
    expect_statuses: Annotated[
        tuple[Statuses, ...],
        LISTED,
        at_most(MOST_STATUSES, "statuses"),
        Distinct(),
        About("Statuses and ranges of them, such as `200-399`, in place of `expect_status`.", "Expected statuses", ""),
    ] = ()
    expect_body: Annotated[
        str, _line("a line of text"), About("What the answer's body contains.", "Expected text", "")
    ] = ""
    send: Annotated[
        str,
        text(grammars.plain_lines, "lines of text", grammars.MAX_TEXT, blank=True),
        About("What a check of tcp sends; lines end with CR and LF.", "Send", ""),
    ] = ""
    expect: Annotated[str, _line("a line of text"), About("What the answer contains.", "Expect", "")] = ""
    service: Annotated[
        str,
        text(grammars.grpc_service, "the name of a gRPC service", 255, blank=True),
        About("The service that gRPC's health protocol asks for; empty for the whole server.", "gRPC service", ""),
    ] = ""
    user: Annotated[
        str,
        text(grammars.check_user, "a user of a database", 32, blank=True),
        About("Who greets PostgreSQL or MySQL; it needs no password and no rights.", "User", ""),
    ] = ""
    interval_ms: Annotated[TimeMs, About("Time between two checks.", "Every", "ms")] = 2000
    timeout_ms: Annotated[TimeMs, About("Time for an answer.", "Response timeout", "ms")] = 2000
    rise: Annotated[
        int, whole(1, 100), About("A server is up after so many.", "Up after", "consecutive successful checks")
    ] = 2
    fall: Annotated[
        int, whole(1, 100), About("A server is down after so many.", "Down after", "consecutive failed checks")
    ] = 3


@dataclass(frozen=True, slots=True)
class AgentCheck(Shape):
    """A program on each server that answers how much the server takes: `75%`, `drain`, `down`."""

    port: Annotated[Port, About("Where it listens on each server.", "Port", "", 9777)]
    interval_ms: Annotated[TimeMs, About("Time between two questions.", "Every", "ms")] = 2000
    send: Annotated[str, _line("a line of text"), About("A line that is sent first.", "Send", "")] = ""


@dataclass(frozen=True, slots=True)
class OutlierEjection(Shape):
    """A server that fails real requests in a row is left out; its checks bring it back."""

    observe: Annotated[
        Observed, word(Observed, OBSERVED), About("What counts as an error.", "Count", "", "responses")
    ] = Observed.RESPONSES
    errors: Annotated[int, whole(1, 1000), About("So many in a row.", "After", "errors in a row")] = 5
    return_after_ms: Annotated[
        TimeMs, About("Time until the first check that may bring it back.", "Check again after", "ms")
    ] = 10_000

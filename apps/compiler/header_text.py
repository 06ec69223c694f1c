"""Values that are written into headers: printable text, with variables in braces that the balancer fills in.

A brace before a letter begins a variable; any other is text, as those of JSON are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from apps.compiler.grammar import FORBIDDEN_HEADERS, GrammarError, header_shape, method
from apps.compiler.grammars.client_certificates import HEADERS as CLIENT_HEADERS

# A value is quoted for HAProxy, which at worst writes five signs for two.
MAX_HEADER_TEXT = 768
ANY = "*"
HEADER, OF_REQUEST = "header", "header:Name"
SERVER = "server"
VARIABLES = {
    "client_address": "the address of the client",
    "host": "the host that was asked for, without port",
    "method": "the method of the request",
    "path": "the path of the request, without its query",
    "port": "the port that the client connected to",
    "request_id": "the id of the request, as X-Request-Id has it",
    "scheme": "http or https",
    SERVER: "the id of the server that answered, or of the node that took the request over; in responses alone",
    "tls_cipher": "such as TLS_AES_128_GCM_SHA256; empty without TLS",
    "tls_version": "such as TLSv1.3; empty without TLS",
    "uri": "the path of the request with its query",
    OF_REQUEST: "that header of the request before policies change it; empty without it",
}
# What servers know the client by, and Spillway says.
_OWN = frozenset(f"x-forwarded-{each}" for each in ("for", "host", "port", "proto"))
_TEXT = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,766}[\x21-\x7e])?")
_VARIABLE = re.compile(r"\{([A-Za-z_][^{}]*)\}")
_OPEN = re.compile(r"\{\s*[A-Za-z_]")
_ORIGIN = re.compile(r"https?://(?:\*\.)?(?:[a-z0-9-]{1,63}\.){0,8}[a-z0-9-]{1,63}(?::[1-9][0-9]{0,4})?")
# Responses cross connections as requests do; these belong to who sends the body, not to a policy.
_KEPT_OF_RESPONSES = frozenset({"content-length", "content-encoding", "content-range", "date", "trailer"})


@dataclass(frozen=True, slots=True)
class Variable:
    """What the balancer fills in; `name` is one of `VARIABLES`, or `header` of the header `of`."""

    name: str
    of: str = ""


def header_text(value: object) -> str:
    """The value of a header that a policy writes. Raises GrammarError."""
    if not isinstance(value, str) or not _TEXT.fullmatch(value):
        raise GrammarError(
            "header_text", f"Use 1 to {MAX_HEADER_TEXT} printable ASCII characters, without spaces at the ends."
        )
    for name in _VARIABLE.findall(value):
        if not _is_variable(name):
            raise GrammarError("variable", f"Use one of these variables: {', '.join(f'{{{v}}}' for v in VARIABLES)}.")
    if begins_variable(_VARIABLE.sub("", value)):
        raise GrammarError("variable", "Close each brace: a variable is written as {host}.")
    return value


def begins_variable(text: str) -> bool:
    """Whether a brace in it would be taken for that of a variable."""
    return _OPEN.search(text) is not None


def request_text(value: object) -> str:
    """The same for a header of requests, which know no server yet. Raises GrammarError."""
    text = header_text(value)
    if any(each.name == SERVER for each in variables(text)):
        raise GrammarError("variable", "Use {server} in headers of responses only; no server is chosen before.")
    return text


def _is_variable(name: str) -> bool:
    kind, colon, header = name.partition(":")
    if not colon:
        return name in VARIABLES
    return kind == HEADER and bool(header_shape(header))


def of_request(header: str) -> str:
    """The name of the variable that is this header as clients send it; empty for what Spillway writes into each."""
    return "" if header.lower() in _OWN | FORBIDDEN_HEADERS else f"{HEADER}:{header}"


def written(variable: str) -> str:
    """The variable as a value has it; a sign that no value may have where there is none, so that nobody takes it."""
    return f"{{{variable}}}" if variable else "\0"


def is_format(value: str) -> bool:
    """Whether it holds variables."""
    return any(variables(value))


def variables(value: str) -> Iterator[Variable]:
    """Those of a value, in order."""
    return (part for part in parts(value) if isinstance(part, Variable))


def parts(value: str) -> Iterator[str | Variable]:
    """The text and the variables of a value, in order."""
    end = 0
    for match in _VARIABLE.finditer(value):
        if match.start() > end:
            yield value[end : match.start()]
        name, _, of = match[1].partition(":")
        yield Variable(name, of)
        end = match.end()
    if end < len(value):
        yield value[end:]


def request_header(value: object) -> str:
    """A request header that a policy may change: none that the connection or the balancer owns. Raises GrammarError."""
    name = header_shape(value)
    lower = name.lower()
    if lower in FORBIDDEN_HEADERS or lower in _OWN or lower.startswith(("x-spillway-", CLIENT_HEADERS)):
        raise GrammarError("header_reserved", f"Choose another header; the balancer sets {name} itself.")
    return name


def response_header(value: object) -> str:
    """A response header that a policy may change. Raises GrammarError."""
    name = header_shape(value)
    lower = name.lower()
    if lower in FORBIDDEN_HEADERS | _KEPT_OF_RESPONSES or lower.startswith("x-spillway-"):
        raise GrammarError("header_reserved", f"Choose another header; {name} belongs to the connection or the body.")
    return name


def cors_method(value: object) -> str:
    """A method that pages of other origins may use, or `*` for each. Raises GrammarError."""
    return ANY if value == ANY else method(value)


def cors_header(value: object) -> str:
    """The name of a header that pages of other origins may send, or `*` for each. Raises GrammarError."""
    return ANY if value == ANY else header_shape(value)


def origin(value: object) -> str:
    """An origin as browsers send it (RFC 6454), `https://*.example.com` for those below a domain, or `*`."""
    if value == ANY or (isinstance(value, str) and len(value) <= 300 and _ORIGIN.fullmatch(value)):
        return str(value)
    raise GrammarError("origin", "Write an origin such as https://app.example.com, https://*.example.com, or *.")

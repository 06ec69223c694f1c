"""The one allow-list grammar of every field, asked at every entry point and again at render time.

Each function takes one value, returns it unchanged when it is allowed, and raises :class:`GrammarError` with a
sentence that says what to do. Nothing is repaired silently: an upper-case host name is refused, with the spelling
to use in the message, because two spellings of one name are two owners of one name.

All text is ASCII and compared with `fullmatch`; `$` and `\\d` would let a final newline and `٨` through.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_network

from apps.compiler.address_spelling import spelled
from apps.compiler.addresses import (
    PRIVATE_NETWORKS,
    Network,
    OwnAddresses,
    refusal_of_address,
    refusal_of_name,
    refusal_of_private,
)

MAX_PATH = 1024
MAX_HOSTNAME = 253
MAX_BODY = 8192
MAX_PEM = 64 * 1024
MAX_TIME_MS = 3_600_000
MAX_CLIENTS = 1_000_000
BANDWIDTH = (10_000, 1_000_000_000)  # bytes per second; HAProxy sends some 3 000 at a time
CACHE_MB = (1, 4095)  # HAProxy's own bounds
CACHE_OBJECT = (1024, 16 * 1024 * 1024)
# Short, so that nothing is kept beyond the cooldown of a hostname.
CACHE_AGE = (1, 3600)
NODE_CONNECTIONS = (100, 10_000_000)
NODE_THREADS = (1, 64)  # what HAProxy 2.6 is built for
# HTTP/2 needs the default; a smaller one would also hang the agent's commands.
NODE_BUFFER = (16_384, 262_144)
NODE_STREAMS = (1, 1000)
# Who believes a larger network believes half of the world: somebody has mistyped the length.
WIDEST_TRUSTED = {4: 8, 6: 16}

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
REDIRECT_CODES = frozenset({301, 302, 303, 307, 308})

_LABEL = r"(?!-)[a-z0-9-]{1,63}(?<!-)"
_HOSTNAME = re.compile(rf"(?:{_LABEL}\.)+(?=[a-z0-9-]*[a-z]){_LABEL}")
_SERVER_NAME = re.compile(rf"(?:{_LABEL}\.)*(?=[a-z0-9-]*[a-z])(?!0x){_LABEL}")
# Containers have names such as `shop_api_1`, which resolvers and HAProxy take.
_SERVER_ADDRESS = re.compile(_SERVER_NAME.pattern.replace("[a-z0-9-]", "[a-z0-9_-]"))
_LOOKS_NUMERIC = re.compile(r"[0-9.]+|(?:0[xX][0-9a-fA-F]*|[0-9]+)(?:\.(?:0[xX][0-9a-fA-F]*|[0-9]+))*|.*:.*")
_PATH = re.compile(
    r"/(?:[A-Za-z0-9._~+=:@&!-]|%20|%[89A-F][0-9A-F])*(?:/(?:[A-Za-z0-9._~+=:@&!-]|%20|%[89A-F][0-9A-F])+)*/?"
)
_QUERY = re.compile(r"[A-Za-z0-9._~=&-]{1,256}")
_DOTS = re.compile(r"(?:^|/)\.{1,2}(?:/|$)")
_HEADER_VALUE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._~+=:@/*!&?<>-]{0,254}[A-Za-z0-9._~+=:@/*!&?>-])?")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_GENERATED = re.compile(
    r"(?:lb|lst|route|pool|queue|srv|crt|group|ip|node|fleet|rgn)-[0-9]+|(?:to|tcp)-rgn-[0-9]+(?:-[a-z0-9-]+)?"
)
_ENVIRONMENT_REFERENCE = re.compile(r"env:([A-Z][A-Z0-9_]{0,60})")
_BODY = re.compile(r"[\n\t\x20-\x7e\xa1-\u1fff\u2010-\u2027\u2030-\ud7ff\uf900-\ufdff]*")
_PEM = re.compile(r"(?:-----BEGIN [A-Z ]{1,40}-----\n(?:[A-Za-z0-9+/]{1,76}={0,2}\n)+-----END [A-Z ]{1,40}-----\n)+")
_PEM_BEGIN = re.compile(r"-----BEGIN ([A-Z ]{1,40})-----")
_KEYS = frozenset({"PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"})

_RESERVED_NAMES = frozenset(
    {
        "global", "defaults", "frontend", "backend", "listen", "resolvers", "peers", "userlist", "cache",
        "program", "ring", "mailers", "if", "unless", "or", "and", "not", "true", "false", "none", "null",
        "default", "st-routes", "st-latency", "redirect",
    }
)  # fmt: skip
FORBIDDEN_HEADERS = frozenset(
    {
        "host", "content-length", "connection", "keep-alive", "proxy-authenticate", "proxy-authorization",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "forwarded", "x-real-ip",
        "x-request-id",
    }
)  # fmt: skip


class GrammarError(ValueError):
    """A value is not in the grammar of its field; `message` is a sentence that says what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def _text(value: object, longest: int) -> str:
    """A text of 1 to `longest` characters that has no control character and nothing outside ASCII."""
    if not isinstance(value, str):
        raise GrammarError("not_text", "Write this value as text.")
    if not value:
        raise GrammarError("blank", "Fill in a value; this one is empty.")
    if len(value) > longest:
        raise GrammarError("too_long", f"Use at most {longest} characters; this value has {len(value)}.")
    if not value.isascii():
        raise GrammarError("not_ascii", "Use plain ASCII characters; write an international name in its xn-- form.")
    if not value.isprintable():
        raise GrammarError("control_character", "Remove the line break or control character from this value.")
    return value


def printable(value: object, longest: int) -> str:
    """The same for grammars that stand elsewhere (matching/patterns.py)."""
    return _text(value, longest)


def integer(value: object, lowest: int, highest: int) -> int:
    """A whole number between the two bounds; `true`, `80.0` and `"80"` are none."""
    if type(value) is not int:
        raise GrammarError("not_integer", "Write this value as a whole number, without quotes.")
    if not lowest <= value <= highest:
        raise GrammarError("out_of_range", f"Use a number from {lowest} to {highest}; this one is {value}.")
    return value


def between(lowest: int, highest: int) -> Callable[[object], int]:
    """The grammar of whole numbers between the two bounds."""
    return partial(integer, lowest=lowest, highest=highest)


def matching(form: str, code: str, message: str, *, longest: int = 0) -> Callable[[object], str]:
    """The grammar of a text that is wholly of a form; one with a `longest` length says what is wrong with any text."""
    compiled = re.compile(form)

    def read(value: object) -> str:
        text = _text(value, longest) if longest else value
        if isinstance(text, str) and compiled.fullmatch(text):
            return text
        raise GrammarError(code, message)

    return read


def one_of(words: Iterable[str]) -> Callable[[object], str]:
    """The grammar of a closed list of words."""
    known = tuple(words)

    def read(value: object) -> str:
        if isinstance(value, str) and value in known:
            return value
        raise GrammarError("choice", f"Use one of {', '.join(known)}.")

    return read


port = between(1, 65535)
server_weight = between(0, 256)  # HAProxy's own range
route_weight = between(0, 1000)
# Requests per second, or connections: sums over regions stay far from overflowing.
limit_value = between(0, 10_000_000)
time_ms = between(1, MAX_TIME_MS)
check_count = between(1, 100)  # in a row (rise, fall)
status_code = between(200, 599)  # final ones
clients = between(1, MAX_CLIENTS)  # connected at once
bandwidth = between(*BANDWIDTH)


def fixed_status(value: object) -> int:
    """A status that a fixed response may have: 200 to 599 without 3xx, which are redirects; 204 carries no body."""
    if 300 <= status_code(value) <= 399:
        raise GrammarError("fixed_status", "Use a redirect for a 3xx response.")
    return int(str(value))


def redirect_code(value: object) -> int:
    """One of the five codes that carry a Location."""
    if integer(value, 300, 399) not in REDIRECT_CODES:
        raise GrammarError("redirect_code", "Use 301, 302, 303, 307 or 308 for a redirect.")
    return int(str(value))


def name(value: object) -> str:
    """What people call a pool, a server, a load balancer: lower-case letters, digits and inner hyphens, at most 63."""
    text = _text(value, 63)
    if not _NAME.fullmatch(text):
        raise GrammarError(
            "name", "Use lower-case letters, digits and hyphens, beginning and ending with a letter or digit."
        )
    if text in _RESERVED_NAMES or _GENERATED.fullmatch(text):
        raise GrammarError("reserved_name", f"Choose another name; {text!r} is reserved.")
    return text


# One of our own: `pool-17`.
region_id = matching(r"rgn-(?:0|[1-9][0-9]{0,17})", "region_id", "Save the route again; a region has no number.")
object_id = matching(
    r"(?:lb|lst|route|pool|srv|crt|ip)-(?:0|[1-9][0-9]{0,17})",
    "object_id",
    "Spillway creates identifiers: a prefix, a hyphen and a number.",
    longest=32,
)
digest = matching(r"[0-9a-f]{64}", "digest", "A digest is 64 hexadecimal digits in lower case.", longest=64)
content_type = matching(
    r"[a-z]{1,32}/[a-z0-9.+-]{1,64}(?:; charset=[a-z0-9-]{1,32})?",
    "content_type",
    "Write a media type such as text/plain; charset=utf-8.",
    longest=128,
)
media_type = matching(
    r"[a-z]{1,32}/[a-z0-9.+-]{1,64}",
    "media_type",
    "Write a media type without parameters, such as text/html.",
    longest=97,
)
# A protocol that is negotiated in a handshake of TLS, by its registered name.
alpn = matching(
    r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,63}",
    "alpn",
    "Write the registered name of a protocol, such as h2 or mqtt.",
    longest=64,
)
# The name of any header.
header_shape = matching(
    r"[A-Za-z](?:[A-Za-z0-9-]{0,62}[A-Za-z0-9])?",
    "header_name",
    "Use letters, digits and inner hyphens, beginning with a letter.",
    longest=64,
)


@lru_cache(maxsize=200_000)
def _is_hostname(text: str) -> bool:
    rest = text.removeprefix("*.")
    return len(text) <= MAX_HOSTNAME and _HOSTNAME.fullmatch(rest) is not None


def hostname(value: object) -> str:
    """A host: a canonical DNS name of two labels or more, or `*.` and such a name for exactly one label."""
    if type(value) is str and _is_hostname(value):
        return value
    raise _hostname_error(_text(value, MAX_HOSTNAME))


def _hostname_error(text: str) -> GrammarError:
    """Why `text` is no host name, as precisely as can be said."""
    rest = text.removeprefix("*.")
    if text != text.lower():
        return GrammarError("upper_case", f"Write the host name in lower case: {text.lower()!r}.")
    if text.endswith("."):
        return GrammarError("final_dot", f"Write the host name without the final dot: {text.rstrip('.')!r}.")
    if _LOOKS_NUMERIC.fullmatch(rest):
        return GrammarError("address_as_host", "Write a DNS name; addresses and ports are not host names.")
    if "*" in rest or text == "*":
        return GrammarError("wildcard", "A wildcard is `*.` at the start, followed by a name of at least two labels.")
    if "." not in rest:
        return GrammarError(
            "too_few_labels",
            "Write the full name with at least two labels after any wildcard, such as shop.example.com.",
        )
    return GrammarError("hostname", "Use labels of 1 to 63 letters, digits and inner hyphens, joined by single dots.")


@lru_cache(maxsize=200_000)
def _is_path(text: str) -> bool:
    return (
        len(text) <= MAX_PATH
        and _PATH.fullmatch(text) is not None
        and not text.startswith("//")
        and not ("/." in text and _DOTS.search(text))
    )


def path(value: object) -> str:
    """A path as clients send it: `/` and segments of unreserved characters; no query, no dot segments, no `//`."""
    if type(value) is str and _is_path(value):
        return value
    raise _path_error(_text(value, MAX_PATH))


def _path_error(text: str) -> GrammarError:
    """Why `text` is no path, as precisely as can be said."""
    if not text.startswith("/"):
        return GrammarError("path_start", "Begin the path with a slash.")
    if "?" in text or "#" in text:
        return GrammarError("path_query", "Leave out the query and the fragment; routes compare only the path.")
    if "//" in text:
        return GrammarError("empty_segment", "Remove the double slash; servers treat empty segments differently.")
    if _DOTS.search(text):
        return GrammarError("dot_segment", "Remove the `.` and `..` segments and write the resolved path.")
    if "%" in text:
        return GrammarError(
            "percent",
            "Write plain characters as themselves; only %20 and bytes from %80 on (upper case) may be encoded.",
        )
    if "*" in text:
        return GrammarError(
            "path_wildcard", "Leave out the `*`; a prefix route already matches everything below its path."
        )
    return GrammarError("path", "Use letters, digits and . _ ~ - + = : @ & ! in path segments.")


def prefix_path(value: object) -> str:
    """A path prefix: a path without a final slash, except the root."""
    text = path(value)
    if text != "/" and text.endswith("/"):
        raise GrammarError("final_slash", f"Write the prefix without the final slash: {text.rstrip('/')!r}.")
    return text


def check_path(value: object) -> str:
    """The path of a health check, with an optional simple query; empty for a bare connect."""
    if value == "":
        return ""
    before, mark, query = _text(value, MAX_PATH).partition("?")
    path(before)
    if mark and not _QUERY.fullmatch(query):
        raise GrammarError("check_query", "Use letters, digits and . _ ~ = & - in the query of a health check.")
    return str(value)


def method(value: object) -> str:
    """An HTTP method in upper case."""
    text = _text(value, 16)
    if text not in METHODS:
        raise GrammarError("method", f"Use one of {', '.join(sorted(METHODS))}.")
    return text


def header_name(value: object) -> str:
    """A request header that a route may look at: not hop-by-hop, not one that we or the framing set."""
    text = header_shape(value)
    lower = text.lower()
    if lower in FORBIDDEN_HEADERS or lower.startswith(("x-forwarded-", "x-spillway-")):
        raise GrammarError(
            "header_reserved", f"Choose another header; {text!r} belongs to the connection or is set by the balancer."
        )
    return text


def header_value(value: object) -> str:
    """The value that a header is compared with."""
    text = _text(value, 256)
    if not _HEADER_VALUE.fullmatch(text) or text in ("if", "or", "unless"):
        raise GrammarError(
            "header_value",
            "Begin with a letter or digit and use letters, digits, spaces and . _ ~ + = : @ / * ! & ? < > - only.",
        )
    return text


def server_address(
    value: object,
    *,
    local_development: bool = False,
    own: OwnAddresses | None = None,
    private: Iterable[Network] = PRIVATE_NETWORKS,
) -> str:
    """A server's address: canonical IPv4 or IPv6, or a resolvable name; never this machine or a metadata service.

    Nor one of `own`, where the installation itself is reached, nor a private one outside of `private`. What a name
    leads to is looked at by the agent that resolves it, with the same rules (`refused_networks`).
    """
    text = _text(value, MAX_HOSTNAME)
    if _LOOKS_NUMERIC.fullmatch(text):
        address = _literal(text)
        reason = refusal_of_address(address, local_development=local_development)
        reason = reason or refusal_of_private(address, private)
    elif _SERVER_ADDRESS.fullmatch(text):
        reason = refusal_of_name(text, local_development=local_development)
    else:
        raise GrammarError(
            "address", "Write an IPv4 or IPv6 address or a lower-case host name, without port, scheme or path."
        )
    reason = reason or (own.refusal(text) if own else None)
    if reason:
        raise GrammarError("address_refused", f"Choose another address; {text} {reason}.")
    return text


def listen_address(value: object) -> str:
    """A static address that a listener binds: a canonical IP literal."""
    text = _text(value, 45)
    _literal(text)
    return text


def _literal(text: str) -> IPv4Address | IPv6Address:
    """An IP literal in its canonical spelling: Python reads fewer forms than HAProxy does, which is the point."""
    try:
        address = IPv6Address(text) if ":" in text else IPv4Address(text)
    except AddressValueError:
        raise GrammarError(
            "address", "Write the address as four decimal numbers or as plain IPv6, without port."
        ) from None
    if spelled(address) != text or getattr(address, "scope_id", None):
        raise GrammarError("address_spelling", f"Write the address in its canonical form: {spelled(address)}.")
    return address


def url_scheme(value: object) -> str:
    """http or https."""
    if _text(value, 8) not in ("http", "https"):
        raise GrammarError("scheme", "Use http or https.")
    return str(value)


def redirect_host(value: object) -> str:
    """Where a redirect leads: a full name without wildcard or port."""
    text = hostname(value)
    if text.startswith("*"):
        raise GrammarError("wildcard", "A redirect needs a single host; leave out the wildcard.")
    return text


def server_host(value: object) -> str:
    """The host that servers are asked for, or that their certificates name: without port; one label will do."""
    text = _text(value, MAX_HOSTNAME)
    if _SERVER_NAME.fullmatch(text) is None:
        raise GrammarError("hostname", "Write a lower-case host name, such as api or api.example.com, without port.")
    return text


def environment_name(reference: object) -> str:
    """NAME of a reference `env:NAME` to a secret: an end of the names of variables, never the whole of one."""
    match = _ENVIRONMENT_REFERENCE.fullmatch(reference) if isinstance(reference, str) else None
    if match is None:
        raise GrammarError(
            "credentials",
            "Write a reference to the secret, never the secret itself: env:NAME with capitals, digits and underscores.",
        )
    return match[1]


def largest_object(total_mb: int) -> int:
    """The largest object of a cache, in bytes: HAProxy takes half of the whole at most."""
    return total_mb * 1024 * 1024 // 2


def some(values: tuple[object, ...]) -> tuple[object, ...]:
    """A list of which an empty one would mean everything."""
    if not values:
        raise GrammarError("missing", "Name at least one, or leave the list out.")
    return values


def trusted_network(value: object) -> str:
    """A network whose word is believed: CIDR in its canonical form, and no half of the world."""
    text = _text(value, 43)
    try:
        found = ip_network(text, strict=False)
    except ValueError:
        raise GrammarError("network", "Write a network as address/length, such as 192.0.2.0/24.") from None
    if "/" not in text or spelled(found) != text:
        raise GrammarError("network_spelling", f"Write the network in its canonical form: {spelled(found)}.")
    if found.prefixlen < WIDEST_TRUSTED[found.version]:
        raise GrammarError("too_wide", f"Use a network of length {WIDEST_TRUSTED[found.version]} or more.")
    return text


def body(value: object) -> str:
    """The text of a fixed response: printable characters, tabs, line feeds; at most 8 192 bytes; may be empty."""
    if not isinstance(value, str):
        raise GrammarError("not_text", "Write the body as text.")
    if not _BODY.fullmatch(value):
        raise GrammarError("body", "Use printable characters, tabs and line feeds in the body.")
    if len(value.encode()) > MAX_BODY:
        raise GrammarError("too_long", f"Use at most {MAX_BODY} bytes for the body.")
    return value


def pem(value: object) -> str:
    """A certificate chain and exactly one private key, in PEM, nothing else in between, at most 64 kB."""
    if not isinstance(value, str) or not value:
        raise GrammarError("blank", "Paste the certificate chain and its private key in PEM.")
    if len(value) > MAX_PEM:
        raise GrammarError("too_long", f"Use at most {MAX_PEM} characters of PEM.")
    if not value.isascii() or not _PEM.fullmatch(value):
        raise GrammarError("pem", "Paste only PEM blocks, each from its BEGIN to its END line, with line feeds.")
    kinds = _PEM_BEGIN.findall(value)
    if sum(kind in _KEYS for kind in kinds) != 1 or not set(kinds) <= _KEYS | {"CERTIFICATE"} or len(kinds) < 2:
        raise GrammarError(
            "pem_blocks", "Give at least one CERTIFICATE block and exactly one unencrypted PRIVATE KEY block."
        )
    return value

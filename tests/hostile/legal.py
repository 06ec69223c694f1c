"""What a value may be, written from the standards and the design and not from the code that reads it."""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from apps.compiler.grammar import GrammarError
from apps.compiler.matching import patterns

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
    return False


def authorities(value: Any) -> bool:
    """Certificates of authorities: blocks of PEM and nothing else."""
    block = r"-----BEGIN CERTIFICATE-----\n([A-Za-z0-9+/=]+\n)+-----END CERTIFICATE-----\n"
    return isinstance(value, str) and bool(re.fullmatch(f"({block})+", value))


def revocation_lists(value: Any) -> bool:
    """Lists of revoked certificates: blocks of PEM and nothing else."""
    block = r"-----BEGIN X509 CRL-----\n([A-Za-z0-9+/=]+\n)+-----END X509 CRL-----\n"
    return isinstance(value, str) and bool(re.fullmatch(f"({block})+", value))


def boolean(value: Any) -> bool:
    """true or false."""
    return isinstance(value, bool)


def is_host(value: Any, *, wildcard: bool = True) -> bool:
    """A canonical DNS name of two labels or more whose last is no number; `*.` before it where that is allowed."""
    if not isinstance(value, str) or len(value) > 253:
        return False
    rest = value.removeprefix("*.") if wildcard else value
    return "." in rest and server_host(rest)


def route_host(value: Any) -> bool:
    """What a route is for: any host, or a name with one or two stars and a dot before it."""
    return value == "*" or is_host(value[1:] if isinstance(value, str) and value.startswith("**.") else value)


def one_host(value: Any) -> bool:
    """A name without wildcard."""
    return is_host(value, wildcard=False)


def server_host(value: Any) -> bool:
    """A canonical DNS name of any number of labels, which never looks like a number, whatever its base."""
    labels = value.split(".") if isinstance(value, str) and len(value) <= 253 else [""]
    numeric = re.fullmatch(r"[0-9]+|0x[0-9a-f]*", labels[-1])
    return not numeric and all(re.fullmatch(LABEL, label, re.ASCII) for label in labels)


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


def is_query(value: Any) -> bool:
    """A query without its question mark: signs that stand for themselves, others encoded."""
    return text(256, r"([A-Za-z0-9._~:@!/+=&-]|%[2-9A-F][0-9A-F])+")(value)


def is_literal(value: Any) -> bool:
    """An IP address as Python itself writes it."""
    try:
        return isinstance(value, str) and str(ipaddress.ip_address(value)) == value and "%" not in value
    except ValueError:
        return False


def server_address(value: Any) -> bool:
    """A canonical address that is no metadata service, no multicast and hides nothing, or the name of a container."""
    if not isinstance(value, str):
        return False
    if is_literal(value):
        return _may_serve(ipaddress.ip_address(value))
    return server_host(value.replace("_", "x")) and not value.startswith(("metadata", "instance-data"))


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


def password(value: Any) -> bool:
    """Printable, of 8 to 128 characters; nothing keeps the stored one."""
    return isinstance(value, str) and (value == "" or (8 <= len(value) <= 128 and value.isprintable()))


def maybe_empty(legal: Legal) -> Legal:
    """A text, or an empty one."""
    return lambda value: value == "" or legal(value)


def why(value: Any) -> bool:
    """What people write of an entry: up to 120 printable characters without spaces at the ends."""
    return isinstance(value, str) and len(value) <= 120 and value.isprintable() and value == value.strip()


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


def is_pattern(value: Any) -> bool:
    """A regular expression that cannot stall an engine; what those are is tested with the grammar itself."""
    try:
        return bool(patterns.pattern(value)) and text(256, r"[ -~]+")(value)
    except GrammarError:
        return False


NAME = text(63, LABEL)
ISSUER = text(256, r"[A-Za-z0-9][A-Za-z0-9:/._~@-]*")
UNDERSCORED = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
REFERENCE = text(127, f"({LABEL}/)?{LABEL}")
LINE = text(512, r"[ -~]+")
LINES = text(512, r"[\n -~]+")
METHOD = one_of("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")
MS = whole(1, 3_600_000)
PORT = whole(1, 65_535)
WORD = text(63, r"[a-z0-9-]+")
HEADER = text(64, r"[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?")
CORS_HEADER = text(64, r"[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?|\*")
LOCATION = text(700, r"(?=.)(https?://([A-Za-z0-9.-]{1,253}(:[1-9][0-9]{0,4})?)?)?(/[A-Za-z0-9._~+=:@&!/-]{0,255})?")
CORS_METHOD = one_of("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "*")
RESERVED = re.compile(
    r"(?i)host|connection|te|trailer|upgrade|keep-alive|content-length|transfer-encoding|forwarded|x-real-ip"
    r"|proxy-.*|x-forwarded-.*|x-spillway-.*"
)


def header_name(value: Any) -> bool:
    """A header that belongs to the request and neither to the connection nor to us."""
    return HEADER(value) and not RESERVED.fullmatch(value)


def header_text(value: Any) -> bool:
    """What a policy may write as a header: RFC 9110's visible characters and spaces, variables."""
    variables = (
        r"\{(client_address|host|method|path|port|request_id|scheme|server|tls_cipher|tls_version|uri"
        r"|header:[A-Za-z]([A-Za-z0-9-]{0,62}[A-Za-z0-9])?)\}"
    )
    return text(768, r"[!-~]([ -~]*[!-~])?")(value) and not re.search(r"\{ *[A-Za-z_]", re.sub(variables, "", value))


def request_text(value: Any) -> bool:
    """No server is chosen while the headers of a request are written."""
    return header_text(value) and "{server}" not in value


def header_value(value: Any) -> bool:
    """Plain signs; no word that HAProxy reads as part of a condition."""
    form = r"[A-Za-z0-9][A-Za-z0-9 ._~+=:@/*!&?<>-]*"
    return text(256, form)(value) and value not in ("if", "or", "unless")

"""Lines of a segment, as HAProxy wrote them (compiler/targets/haproxy/request_log.py), become plain values; pure.

What clients chose stays printable: bytes that are no readable text are written as `%0A`, whatever they are. A line that
cannot be read is counted and left out. What HAProxy says of itself (that a listener stopped) is no line.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_from_bytes, unquote_to_bytes

from apps.compiler.targets.haproxy.request_log import (
    CONNECTION,
    CONNECTION_FIELDS,
    LONGEST_LINE,
    REQUEST,
    REQUEST_FIELDS,
    TRACED,
    TRACED_FIELDS,
)

LONGEST_TEXT = 2048
# At a reload HAProxy writes a letter of its own into the pipe, without an end of line. Clients cannot write a tab.
_OURS = re.compile(r"[^\t]{0,200}?([A-Z][0-9]{1,3}\t.*)")
_NAMES = {REQUEST: tuple(REQUEST_FIELDS), TRACED: tuple(TRACED_FIELDS), CONNECTION: tuple(CONNECTION_FIELDS)}
_ID = re.compile(r"[0-9a-f]{32}")
_CHANCE = re.compile(r"[0-9a-f]{18}")
_TRACE = re.compile(r"00-(?P<trace_id>[0-9a-f]{32})-(?P<span_id>[0-9a-f]{16})-0(?P<sampled>[01])")
_SPAN = re.compile(r"[0-9a-f]{16}")
_ENCODED = re.compile(r"#([0-9A-F]{2})")
_ENCODED_END = re.compile(r"[#%][0-9A-Fa-f]?$")
_WORDS = ("listener", "backend", "server", "pool", "flow", "capped", "tls", "cipher", "client")
NONE = "-"
CACHE = "<CACHE>"


@dataclass(frozen=True, slots=True)
class Line:
    """One line: identifiers of the bundle, numbers (None where HAProxy has none), texts that are safe to show.

    `at_ms` are Unix milliseconds of the request or the connection, `host` is the name of the handshake of a connection.
    `cached` says that a listener's cache answered. `over` is found where a client is over its limit, `capped` where an
    account is over its share of the node. The line stands for `one_in` requests of its route. `span_id` is our span of
    a trace, below the caller's `parent_span_id`; `sampled` says whether it is wanted, None where there is no trace.
    """

    is_request: bool
    id: str
    at_ms: int
    listener: str
    backend: str
    server: str
    pool: str
    flow: str
    capped: str
    termination: str
    queue_ms: int | None
    connect_ms: int | None
    total_ms: int | None
    bytes_in: int
    bytes_out: int
    tls: str
    cipher: str
    client: str
    host: str
    route: str = ""
    served_by: str = ""
    refused_by: str = ""
    over: str = ""
    bypass: str = ""
    one_in: int = 1
    cached: bool = False
    status: int | None = None
    request_ms: int | None = None
    response_ms: int | None = None
    method: str = ""
    parent: str = ""
    path: str = ""
    query: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str = ""
    sampled: bool | None = None


class Segment:
    """The lines of a segment; `damaged` counts those that could not be read, once all were looked at."""

    def __init__(self, raw: bytes, batch_id: str) -> None:
        self._raw, self._batch_id = raw, batch_id
        self.damaged = 0

    def __iter__(self) -> Iterator[Line]:
        """Every line that can be read, in the order in which HAProxy wrote them."""
        self.damaged = 0
        for number, text in enumerate(self._raw.decode("latin-1").split("\n")):
            found = _OURS.fullmatch(text)
            if found is None:
                continue
            try:
                yield _line(found.group(1), f"{self._batch_id} {number}")
            except (ValueError, KeyError):
                self.damaged += 1


def read_segment(raw: bytes, batch_id: str = "") -> Segment:
    """The lines of a segment; two nodes may write the same line, so the id of its batch makes ids of lines without."""
    return Segment(raw, batch_id)


def _line(text: str, origin: str) -> Line:
    """Raises ValueError or KeyError for a line that is not ours."""
    parts = text.split("\t")
    names = _NAMES[parts[0]]
    if len(parts) < len(names) and len(text) >= LONGEST_LINE - 16:
        parts[-1] = _ENCODED_END.sub("", parts[-1])  # HAProxy cut it off somewhere
        parts += [NONE] * (len(names) - len(parts))
    said = dict(zip(names, parts, strict=True))
    return _connection(said) if parts[0] == CONNECTION else _request(said, text, origin)


def _request(said: dict[str, str], text: str, origin: str) -> Line:
    at_ms = int(said["seconds"]) * 1000 + int(said["milliseconds"])
    name = said["id"]
    if name == NONE:  # it was no request that HAProxy could read, so nobody asked for its id
        chance = hashlib.sha256(f"{origin} {text}".encode()).hexdigest()
        name = id_of(at_ms, chance[:18])
    elif not _ID.fullmatch(name):
        raise ValueError(name)
    return Line(
        is_request=True,
        id=name,
        at_ms=int(name[:12], 16),
        **_both(said),
        route=_word(said["route"]),
        served_by=_word(said["served_by"]),
        refused_by=_word(said["refused_by"]),
        over=_word(said["over"]),
        bypass=_word(said["bypass"]),
        one_in=_number(said["one_in"]) or 1,
        cached=said["server"] == CACHE,
        status=_number(said["status"]) or None,
        request_ms=_number(said["request_ms"]),
        response_ms=_number(said["response_ms"]),
        method=_of_request_line(said["method"])[:32],
        parent=_percent(said["parent"]),
        path=_of_request_line(said["path"]),
        query=_percent(said["query"]),
        headers=_headers(said["headers"]),
        **_trace(said),
    )


def _trace(said: dict[str, str]) -> dict[str, Any]:
    """What stands in the traceparent that the server got, and whose span is above ours."""
    ours, caller = said.get("trace", NONE), said.get("caller", NONE)
    if ours == NONE:
        return {}
    found = _TRACE.fullmatch(ours)
    if found is None or not (caller == NONE or _SPAN.fullmatch(caller)):
        raise ValueError(ours)
    ids = {name: found[name] for name in ("trace_id", "span_id")}
    return {**ids, "parent_span_id": _word(caller), "sampled": found["sampled"] == "1"}


def _connection(said: dict[str, str]) -> Line:
    if not _CHANCE.fullmatch(said["chance"]):
        raise ValueError(said["chance"])
    at_ms = int(said["seconds"]) * 1000 + int(said["milliseconds"])
    return Line(is_request=False, id=id_of(at_ms, said["chance"]), at_ms=at_ms, **_both(said))


def _both(said: dict[str, str]) -> dict[str, Any]:
    """What requests and connections have in common."""
    return {
        **{name: _word(said[name]) for name in _WORDS},
        **{name: _number(said[name]) for name in ("queue_ms", "connect_ms", "total_ms")},
        **{name: _number(said[name]) or 0 for name in ("bytes_in", "bytes_out")},
        "termination": said["termination"],
        "host": _percent(said["host"]),
    }


def id_of(at_ms: int, chance: str) -> str:
    """An id as HAProxy makes them: twelve digits of milliseconds, then chance with the marks of a UUIDv7."""
    return f"{at_ms & 0xFFFFFFFFFFFF:012x}7{chance[:3]}8{chance[3:]}"


def _word(text: str) -> str:
    return "" if text == NONE or text.startswith("<") else text


def _number(text: str) -> int | None:
    """None for -1 and for what is not there; `+12` is a transfer that went on when the line was written."""
    return None if text[:1] == "-" else int(text)


def _of_request_line(text: str) -> str:
    """A method or a path: HAProxy wrote what is not plain as `#0A`."""
    if text in (NONE, "<BADREQ>"):
        return ""
    return _ENCODED.sub(_restored, text)[:LONGEST_TEXT]


def _restored(found: re.Match[str]) -> str:
    byte = int(found.group(1), 16)
    return chr(byte) if 0x20 < byte < 0x7F else f"%{byte:02X}"


def _percent(text: str) -> str:
    return "" if text == NONE else _readable(unquote_to_bytes(text))[:LONGEST_TEXT]


def _readable(content: bytes) -> str:
    """Text where it is that; else its bytes, the unreadable ones as `%0A`."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return quote_from_bytes(content, safe=_PLAIN)
    return text if text.isprintable() else "".join(c if c.isprintable() else quote_from_bytes(c.encode()) for c in text)


_PLAIN = bytes(range(0x20, 0x7F))


def _headers(text: str) -> dict[str, str]:
    """`user-agent=curl&referer=…`, each value encoded once more than a query is."""
    found: dict[str, str] = {}
    for pair in text.split("&") if text != NONE else ():
        name, equals, value = pair.partition("=")
        if equals:
            found[name] = _percent(value)
    return found

"""One HTTP/2 connection of the engine (RFC 9113): as many requests at a time as the server allows."""

from __future__ import annotations

import asyncio
import struct
from typing import TYPE_CHECKING, cast

from apps.drivers.load.contract import LoadError, Plan
from apps.drivers.load.hpack import request_block, status_of

if TYPE_CHECKING:
    from apps.drivers.load.engine import Engine, Lane

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE = 3, 4
CANCEL = 8

USUAL_STREAMS = 100
MOST_STREAMS = 1000
LAST_STREAM = 0x7FFFFFFF
WINDOW = 0x7FFFFFFF
FIRST_WINDOW = 65_535
REFILL = 1 << 28
LONGEST_FRAME = 16_384  # neither side was told of a longer one


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """The bytes of a frame."""
    return struct.pack(">IBI", len(payload) << 8 | kind, flags, stream) + payload


PREFACE = (
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    # No table of headers (hpack.py), no pushes, and windows that never close.
    + frame(SETTINGS, 0, 0, struct.pack(">HIHIHI", 1, 0, 2, 0, INITIAL_WINDOW_SIZE, WINDOW))
    + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", WINDOW - FIRST_WINDOW))
)


def block_of(plan: Plan) -> bytes:
    """The header block of the plan's request; raises LoadError when it is too long for a frame."""
    request, scheme = plan.request, "https" if plan.tls is not None else "http"
    headers = dict(request.headers)
    if request.body:
        headers["content-length"] = str(len(request.body))
    block = request_block(request.method, scheme, request.host, request.path, headers)
    if max(len(block), len(request.body)) > LONGEST_FRAME:
        raise LoadError(f"Over HTTP/2, the headers and the body of a request have at most {LONGEST_FRAME} bytes each.")
    return block


class _Stream:
    """A request under way: when it was due, its status once known, how long the answer is so far."""

    __slots__ = ("due", "received", "status")

    def __init__(self, due: float) -> None:
        self.due, self.status, self.received = due, 0, 0


class Http2Connection(asyncio.Protocol):
    """Stands in its lane's `idle` while it has room for a request. `due`, `used`, `received` tell of the last event."""

    __slots__ = (
        "_buffer", "_engine", "_limit", "_number", "_streams", "_taken", "_transport", "_window",
        "due", "lane", "leaving", "opening", "received", "used",
    )  # fmt: skip

    def __init__(self, engine: Engine, lane: Lane, due: float) -> None:
        self._engine, self.lane, self.due = engine, lane, due
        self._transport: asyncio.Transport | None = None
        self.opening: asyncio.Task[None] | None = None
        self._streams: dict[int, _Stream] = {}
        self._number = 1
        self._limit, self._window, self._taken = USUAL_STREAMS, FIRST_WINDOW, 0
        self._buffer = b""
        self.leaving = False
        self.used = self.received = 0
        self.send(due)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The preface, and the requests that wait for it."""
        self._transport = cast("asyncio.Transport", transport)
        secured = transport.get_extra_info("ssl_object")
        if secured is not None and secured.selected_alpn_protocol() != "h2":
            self.fail("protocol")
            return
        self._transport.write(PREFACE + b"".join(map(self._request, self._streams)))

    def send(self, due: float) -> None:
        """One more request on this connection; it waits while the connection is not open yet."""
        number, self._number = self._number, self._number + 2
        self._streams[number] = _Stream(due)
        self._window -= len(self._engine.plan.request.body)
        if self._transport is not None:
            self._transport.write(self._request(number))
        self._offer()

    def _request(self, number: int) -> bytes:
        body = self._engine.plan.request.body
        head = frame(HEADERS, END_HEADERS | (0 if body else END_STREAM), number, self._engine.wire)
        return head + frame(DATA, END_STREAM, number, body) if body else head

    def _offer(self) -> None:
        """Stand where the engine looks while there is room for one more, and not there when there is none."""
        room = len(self._streams) < self._limit and self._window >= len(self._engine.plan.request.body)
        room = room and self._engine.plan.keep_alive and not self.leaving and self._number < LAST_STREAM
        stands = self in self.lane.idle
        if room and not stands:
            self.lane.idle.append(self)
        elif stands and not room:
            self.lane.idle.remove(self)

    def data_received(self, data: bytes) -> None:
        """Frame after frame."""
        buffer, place = self._buffer + data if self._buffer else data, 0
        while len(buffer) - place >= 9 and self._transport is not None:
            first, flags, stream = struct.unpack_from(">IBI", buffer, place)
            end = place + 9 + (first >> 8)
            if first >> 8 > LONGEST_FRAME:
                self.fail("protocol")
                return
            if end > len(buffer):
                break
            try:
                self._frame(first & 0xFF, flags, stream & LAST_STREAM, buffer[place + 9 : end])
            except (ValueError, struct.error):
                self.fail("protocol")
                return
            place = end
        self._buffer = buffer[place:]

    def _frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        """One frame; kinds that say nothing to us are passed over. Raises ValueError of a broken one."""
        if kind in (HEADERS, DATA):
            self._part(kind, flags, stream, payload)
        elif kind == RST_STREAM and stream in self._streams:
            self._lose(stream, "reset")
        elif kind == SETTINGS and not flags & ACK:
            self._agree(payload)
        elif kind == PING and not flags & ACK:
            self._write(frame(PING, ACK, 0, payload))
        elif kind == GOAWAY:
            self._go(struct.unpack_from(">I", payload)[0] & LAST_STREAM)
        elif kind == WINDOW_UPDATE and not stream:
            self._window += struct.unpack(">I", payload)[0]
            self._offer()

    def _part(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        """A part of an answer; those that we gave up are read over."""
        if kind == DATA:
            self._taken += len(payload)
            if self._taken >= REFILL:
                self._write(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", self._taken)))
                self._taken = 0
        stream = self._streams.get(number)
        if stream is None:
            return
        stream.received += len(payload)
        if kind == HEADERS and stream.status < 200:
            stream.status = status_of(_without_padding(flags, payload))
        if stream.received > self._engine.plan.max_answer_bytes:
            self._write(frame(RST_STREAM, 0, number, struct.pack(">I", CANCEL)))
            self._lose(number, "too_big")
        elif flags & END_STREAM:
            self._answered(number, stream)

    def _answered(self, number: int, stream: _Stream) -> None:
        if stream.status < 200:
            raise ValueError("An answer without a status.")
        del self._streams[number]
        self.due = stream.due
        self.used += 1
        self._engine.answered(self, stream.status)
        self._after()

    def _lose(self, number: int, kind: str, *, untouched: bool = False) -> None:
        """A request came to nothing; the others go on."""
        stream = self._streams.pop(number)
        self.due, self.received = stream.due, stream.received
        self._engine.failed(self, kind, untouched=untouched)
        self._after()

    def _after(self) -> None:
        """There is room again, or it was the last one here."""
        if not self._streams and (self.leaving or not self._engine.plan.keep_alive):
            self.close()
        else:
            self._offer()

    def _agree(self, payload: bytes) -> None:
        """The server's settings."""
        for name, value in struct.iter_unpack(">HI", payload):
            if name == MAX_CONCURRENT_STREAMS:
                self._limit = min(value, MOST_STREAMS)
            elif name == INITIAL_WINDOW_SIZE and value < len(self._engine.plan.request.body):
                raise ValueError("The server does not take a body of this length at once.")
        self._offer()  # it may allow fewer than were taken for granted
        self._write(frame(SETTINGS, ACK, 0))

    def _go(self, last: int) -> None:
        """The server answers up to this stream and no further."""
        self._leave()
        for number in [each for each in self._streams if each > last]:
            self._lose(number, "reset", untouched=True)
        if not self._streams:
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # as asyncio calls it
        """Whatever was under way is lost."""
        self._transport = None
        self.fail("reset")
        self._engine.closed(self)

    def expire(self, late: float) -> None:
        """Give up what was due before an instant; while the connection is not even open, give that up too."""
        for number in [number for number, stream in self._streams.items() if stream.due <= late]:
            self._write(frame(RST_STREAM, 0, number, struct.pack(">I", CANCEL)))
            self._lose(number, "timeout")
        if self.opening is not None and not self._streams:
            self.close()

    def fail(self, kind: str) -> None:
        """All requests came to nothing; so does the connection."""
        self._leave()
        for number in list(self._streams):
            self._lose(number, kind)
        self.close()

    def close(self) -> None:
        """At once, whatever is under way."""
        self._leave()
        self._streams.clear()
        if self._transport is not None:
            self._transport.abort()
        elif self.opening is not None:
            self.opening.cancel()

    def _leave(self) -> None:
        """Take no more requests."""
        self.leaving = True
        if self in self.lane.idle:
            self.lane.idle.remove(self)

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)


def _without_padding(flags: int, payload: bytes) -> bytes:
    """The header block of a HEADERS frame."""
    begin, end = 0, len(payload)
    if flags & PADDED:
        begin, end = 1, end - payload[0] if payload else 0
    if flags & PRIORITY:
        begin += 5
    return payload[begin:end]

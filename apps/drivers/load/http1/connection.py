"""One connection of the HTTP/1.1 engine: sends a request, reads the answer, says what became of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import httptools

if TYPE_CHECKING:
    from apps.drivers.load.http1.engine import Engine, Lane

# Of an answer without these, the end of the connection is the end.
LENGTHS = (b"\r\ncontent-length:", b"\r\ntransfer-encoding:")


class Connection(asyncio.Protocol):
    """Idle, or busy with the request that was due at `due` (seconds of the engine's clock)."""

    __slots__ = ("_engine", "_first", "_parser", "_transport", "busy", "due", "lane", "opening", "received", "used")

    def __init__(self, engine: Engine, lane: Lane, due: float) -> None:
        self._engine, self.lane = engine, lane
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self.opening: asyncio.Task[None] | None = None
        self.busy, self.due = True, due
        self.used = self.received = 0
        self._first = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The request that it was opened for goes out, unless it has timed out meanwhile."""
        self._transport = cast("asyncio.Transport", transport)
        self._parser = httptools.HttpResponseParser(self)
        if self.busy:
            self._transport.write(self._engine.wire)
        else:
            self._transport.abort()

    def send(self, due: float) -> None:
        """Ask once more on this idle connection."""
        self.busy, self.due, self.received = True, due, 0
        if self._transport is not None:
            self._transport.write(self._engine.wire)

    def data_received(self, data: bytes) -> None:
        """A part of the answer; anything that was not asked for ends the connection."""
        if not self.busy or self._parser is None:
            self.close()
            return
        if not self.received:
            self._first = data
        self.received += len(data)
        if self.received > self._engine.plan.max_answer_bytes:
            self.fail("too_big")
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.fail("protocol")

    def on_headers_complete(self) -> None:
        """The answer to HEAD ends here, which the parser cannot know: it gets a fresh one."""
        if self._engine.headless and self._parser is not None and self._parser.get_status_code() >= 200:
            self._answered(self._parser)
            self._parser = httptools.HttpResponseParser(self)

    def on_message_complete(self) -> None:
        """A whole answer; interim ones (1xx) are not the answer yet."""
        if self._engine.headless:
            return
        if self._parser is not None and self._parser.get_status_code() >= 200:
            self._answered(self._parser)

    def connection_lost(self, exc: Exception | None) -> None:
        """Where nothing else says how long an answer is, this is its end; else the request is lost."""
        parser, self._parser, self._transport = self._parser, None, None
        if self.busy and parser is not None:
            if exc is None and self._ends_with_connection():
                self.busy = False
                self._engine.answered(self, parser.get_status_code())
            else:
                self.fail("reset")
        self._engine.closed(self)

    def fail(self, kind: str) -> None:
        """The request came to nothing; so does the connection."""
        if self.busy:
            self.busy = False
            self._engine.failed(self, kind)
        self.close()

    def expire(self, late: float) -> None:
        """Give up a request that was due before this instant."""
        if self.busy and self.due <= late:
            self.fail("timeout")

    def close(self) -> None:
        """At once, whatever is under way."""
        self.busy = False
        if self in self.lane.idle:
            self.lane.idle.remove(self)
        if self._transport is not None:
            self._transport.abort()
        elif self.opening is not None:
            self.opening.cancel()

    def _answered(self, parser: httptools.HttpResponseParser) -> None:
        """Count it; then the connection is idle, or closes."""
        if not self.busy:
            self.close()
            return
        self.busy = False
        self.used += 1
        self._engine.answered(self, parser.get_status_code())
        if self._engine.plan.keep_alive and parser.should_keep_alive():
            self.lane.idle.append(self)
        elif self._transport is not None:
            self._transport.close()

    def _ends_with_connection(self) -> bool:
        head, whole, _ = self._first.partition(b"\r\n\r\n")
        return bool(whole) and not any(length in head.lower() for length in LENGTHS)

"""A server to be tested against: its paths misbehave in every way that a generator must understand; it counts."""

from __future__ import annotations

import asyncio
import itertools
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
FIXED: Mapping[str, bytes] = {
    "/": OK,
    "/no-content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "/chunked": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
    "/early-hints": b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + OK,
    "/unavailable": b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n",
    "/elsewhere": b"HTTP/1.1 302 Found\r\nlocation: /followed\r\ncontent-length: 0\r\n\r\n",
    "/garbage": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "/twice": OK + OK,
    "/head": b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n",
    "/big": b"HTTP/1.1 200 OK\r\ncontent-length: 300000\r\n\r\n" + b"x" * 300_000,
}
THEN_CLOSED: Mapping[str, bytes] = {
    "/until-the-end": b"HTTP/1.1 200 OK\r\n\r\nas long as it takes",
    "/cut-short": b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nonly this",
    "/says-close": b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
    "/nothing": b"",
}


@dataclass
class Seen:
    """What reached the server; `asked` are the instants (monotonic) of the requests, `open` the connections now."""

    port: int = 0
    asked: list[float] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    most_open: int = 0
    delay_s: float = 0.0
    closes_after: int = 0  # a connection is closed, after this many answers, when the next request comes

    def since(self, instant: float) -> int:
        """Requests that came after an instant."""
        return sum(at > instant for at in list(self.asked))


def wait_until(done: Callable[[], bool], within_s: float = 120.0) -> bool:
    """Look again and again; whether it came true."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if done():
            return True
        time.sleep(0.02)
    return done()


async def _serve(seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    seen.connections += 1
    seen.open += 1
    seen.most_open = max(seen.most_open, seen.open)
    try:
        for number in itertools.count():
            head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii")
            if seen.closes_after and number >= seen.closes_after:
                return
            await _answer(seen, head, reader, writer)
    except (asyncio.IncompleteReadError, OSError):
        pass
    finally:
        seen.open -= 1
        with suppress(OSError):
            writer.close()


async def _answer(seen: Seen, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One request; raises ConnectionError where the path ends the connection."""
    seen.asked.append(time.monotonic())
    seen.heads.append(head)
    length = head.lower().partition("content-length: ")[2].partition("\r\n")[0]
    if length:
        seen.bodies.append(await reader.readexactly(int(length)))
    if seen.delay_s:
        await asyncio.sleep(seen.delay_s)
    path = head.split()[1]
    writer.write(FIXED.get(path, b"") or THEN_CLOSED.get(path, b""))
    await writer.drain()
    if path in THEN_CLOSED:
        raise ConnectionError
    if path == "/reset":
        writer.transport.abort()
        raise ConnectionError
    if path == "/never":
        await reader.read()
    if head.lower().count("connection: close"):
        raise ConnectionError


@contextmanager
def load_server(tls: ssl.SSLContext | None = None, **behaviour: Any) -> Iterator[Seen]:
    """A server on a free port of 127.0.0.1, in a thread of its own."""
    seen = Seen(**behaviour)
    started, ending = threading.Event(), threading.Event()

    async def run() -> None:
        server = await asyncio.start_server(
            lambda reader, writer: _serve(seen, reader, writer), "127.0.0.1", 0, ssl=tls, backlog=1024
        )
        seen.port = server.sockets[0].getsockname()[1]
        started.set()
        await asyncio.to_thread(ending.wait)
        server.close()

    thread = threading.Thread(target=asyncio.run, args=(run(),), daemon=True)
    thread.start()
    started.wait()
    try:
        yield seen
    finally:
        ending.set()
        thread.join(5)

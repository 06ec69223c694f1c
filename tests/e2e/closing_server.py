"""A server that has closed a connection which idled too long, as one learns by using it, and its clients."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

IDLE_S = 1.0
PATIENCE_S = 60.0
END = b"\r\n\r\n"


class ClosingServer:
    """A connection that idled for a second is dead when the next request arrives, before any of it is read.

    Real ones say so a moment before; that their word is always on its way makes the race certain. `dies` are how many
    requests it reads and does not answer at first. `read` counts what it read, by method.
    """

    def __init__(self, dies: int = 0) -> None:
        self.dies = dies
        self.read: Counter[str] = Counter()
        self.port = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[ClosingServer]:
        """Listens on `port`."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        last = time.monotonic()
        try:
            while True:
                head = await reader.readuntil(END)
                if time.monotonic() - last > IDLE_S:
                    break
                await reader.readexactly(_length(head))
                method = head.split(b" ", 1)[0].decode()
                self.read[method] += 1
                if self.read.total() <= self.dies:
                    break
                body = b"" if method == "HEAD" else b"ok"
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d" % len(body) + END + body)
                await writer.drain()
                last = time.monotonic()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()


def _length(head: bytes) -> int:
    lines = (line.lower().partition(b":") for line in head.split(b"\r\n"))
    return next((int(value) for name, _, value in lines if name == b"content-length"), 0)


async def ask(port: int, method: str, times: int, pause: tuple[float, float] = (0.0, 0.0)) -> Counter[str]:
    """So many requests on one connection, with pauses; the statuses, and `lost` for what was never answered."""
    found: Counter[str] = Counter()
    body = b"x" * 20 if method in ("PUT", "POST") else b""
    request = b"%s / HTTP/1.1\r\nHost: a.example\r\nContent-Length: %d" % (method.encode(), len(body)) + END + body
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(times):
        writer.write(request)
        try:
            head = await asyncio.wait_for(reader.readuntil(END), PATIENCE_S)
            await reader.readexactly(0 if method == "HEAD" else _length(head))
            found[head.split()[1].decode()] += 1
        except (OSError, asyncio.IncompleteReadError):
            found["lost"] += 1
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.sleep(random.uniform(*pause))
    writer.close()
    return found

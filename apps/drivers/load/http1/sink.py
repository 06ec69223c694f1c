"""What the engine is calibrated against: answers anything at once, on this machine only, for some seconds.

`python -m apps.drivers.load.http1.sink` writes its port on stdout and ends when stdin closes, at the latest after
`LONGEST_S`. It reads no more of a request than where it ends, so that it is never what the calibration measures.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from typing import cast

import uvloop

LONGEST_S = 15.0
BACKLOG = 1024
END = b"\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
LAST_ANSWER = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok"
CLOSES = b"Connection: close"


class Answerer(asyncio.Protocol):
    """One connection: an answer for each end of a head; requests of the engine have no bodies here."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """The engine writes whole requests and asks the next one after the answer: a head is never in two parts."""
        if self._transport is None:
            return
        if CLOSES in data:
            self._transport.write(LAST_ANSWER)
            self._transport.close()
        else:
            self._transport.write(ANSWER * data.count(END))


async def answer() -> None:
    """Until nobody wants it any more."""
    loop = asyncio.get_running_loop()
    asker = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(asker), sys.stdin)
    server = await loop.create_server(Answerer, "127.0.0.1", 0, backlog=BACKLOG)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    with suppress(TimeoutError):
        async with asyncio.timeout(LONGEST_S):
            await asker.read()
    server.close()


if __name__ == "__main__":
    uvloop.run(answer())

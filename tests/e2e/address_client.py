"""A client of the tests for addresses that move: asks once, or all the time and writes down when and how it went.

    python -m tests.e2e.address_client HOST:PORT [FILE]

An open loop: every few milliseconds a request begins on a new connection, whatever became of the others. Each line of
FILE is `[began, ended, ok]`, by the monotonic clock that all processes of a machine share. After SIGTERM nothing more
is begun, and what is under way comes to its end.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from typing import TextIO

EVERY = 0.01
# Long enough for any answer that is only slow: whoever has none by then is lost.
PATIENCE = 15.0
REQUEST = b"GET / HTTP/1.1\r\nhost: a.example\r\nconnection: close\r\n\r\n"


async def fetch(address: str) -> bytes:
    """All that comes back for one request on a new connection; raises OSError."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    try:
        writer.write(REQUEST)
        return await reader.read()
    finally:
        writer.transport.abort()


async def ask(address: str) -> bool:
    """Whether one request is answered with 200 and a body, however late within PATIENCE."""
    try:
        async with asyncio.timeout(PATIENCE):
            head, _, body = (await fetch(address)).partition(b"\r\n\r\n")
    except OSError:  # refused, reset, out of time
        return False
    return head.startswith(b"HTTP/1.1 200 ") and bool(body)


async def note(address: str, out: TextIO) -> None:
    """Ask once and write a line."""
    began = time.monotonic()
    ok = await ask(address)
    out.write(json.dumps([began, time.monotonic(), ok]) + "\n")


async def keep_asking(address: str, out: TextIO) -> None:
    """Until SIGTERM."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async with asyncio.TaskGroup() as under_way:
        while not ended.is_set():
            under_way.create_task(note(address, out))
            await asyncio.sleep(EVERY)


def main(words: list[str]) -> int:
    """Once without a file, else until SIGTERM."""
    if len(words) == 1:
        return int(not asyncio.run(ask(words[0])))
    with open(words[1], "w", encoding="ascii", buffering=1) as out:  # noqa: PTH123
        asyncio.run(keep_asking(words[0], out))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

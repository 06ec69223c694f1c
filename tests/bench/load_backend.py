"""A server whose times are known: constant, exponentially distributed, or with pauses."""

from __future__ import annotations

import asyncio
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import uvloop

from tests.bench.backends import stop
from tests.ports import spare_port

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
CONSTANT, EXPONENTIAL, PAUSES = "constant", "exponential", "pauses"
PAUSE_EVERY_S, PAUSE_S = 2.0, 0.2


class Server(asyncio.Protocol):
    """Answers each request after its time; pauses are the same for all: what comes in one is answered at its end."""

    def __init__(self, kind: str, ms: float) -> None:
        self._kind, self._ms = kind, ms
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Kept to answer on."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Requests without bodies, one at a time on a connection."""
        for _ in range(data.count(b"\r\n\r\n")):
            asyncio.get_running_loop().call_later(self._wait_s(), self._answer)

    def _wait_s(self) -> float:
        if self._kind == EXPONENTIAL:
            return random.expovariate(1000 / self._ms)
        if self._kind == PAUSES:
            return max(0.0, PAUSE_S - time.monotonic() % PAUSE_EVERY_S)
        return self._ms / 1000

    def _answer(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(ANSWER)


async def serve(port: int, kind: str, ms: float) -> None:
    """Until the process ends."""
    server = await asyncio.get_running_loop().create_server(lambda: Server(kind, ms), "127.0.0.1", port, backlog=4096)
    print("ready", flush=True)
    await server.serve_forever()


@contextmanager
def backend(kind: str, ms: float = 0.0) -> Iterator[int]:
    """The port of such a server, in a process of its own."""
    port = spare_port()
    words = [sys.executable, "-m", "tests.bench.load_backend", str(port), kind, str(ms)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield port
    finally:
        stop(process)


@contextmanager
def haproxy(folder: Path, server: str) -> Iterator[int]:
    """A real HAProxy in front of it (`server` is the end of its line); its port."""
    port = spare_port()
    config = folder / "haproxy.cfg"
    config.write_text(
        "global\n    maxconn 8000\ndefaults\n    mode http\n    timeout client 60s\n    timeout server 60s\n"
        "    timeout connect 5s\n    timeout queue 60s\n"
        f"frontend one\n    bind 127.0.0.1:{port}\n    default_backend all\n"
        f"backend all\n    http-reuse always\n    server one {server}\n"
    )
    process = subprocess.Popen([shutil.which("haproxy") or "/usr/sbin/haproxy", "-db", "-f", str(config)])
    try:
        time.sleep(0.5)
        yield port
    finally:
        stop(process)


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), sys.argv[2], float(sys.argv[3])))

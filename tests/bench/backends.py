"""Servers to balance over, instant ones and ones as slow as the tutorial's virtual machines.

Instant: one HAProxy that answers by itself with 200 and the name of the region. Slow: the demo's machine (two lanes of
384 ms each, 5.2 requests/s), many of them in one process, because their work is a sleep.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from deploy.demo.backend import Machine
from deploy.demo.http1 import listen
from tests.ports import spare_port

SERVICE_MS = 384
LANES = 2


@contextmanager
def instant_backends(directory: Path, regions: Sequence[str]) -> Iterator[list[int]]:
    """A port for each region that answers `200` with `x-served-in: <region>` at once."""
    ports = [spare_port() for _ in regions]
    lines = ["global", "    maxconn 8000", "defaults", "    mode http", "    timeout client 60s"]
    for port, region in zip(ports, regions, strict=True):
        lines += [f"frontend {region}", f"    bind 127.0.0.1:{port}"]
        lines.append(f"    http-request return status 200 hdr x-served-in {region}")
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "instant.cfg").write_text("\n".join(lines) + "\n")
    program = shutil.which("haproxy") or "/usr/sbin/haproxy"
    process = subprocess.Popen([program, "-db", "-f", str(directory / "instant.cfg")])
    try:
        yield ports
    finally:
        stop(process)


@contextmanager
def slow_machines(regions: Sequence[str]) -> Iterator[list[int]]:
    """A port for each region named: one machine of the tutorial."""
    ports = [spare_port() for _ in regions]
    words = [f"{region}={port}" for region, port in zip(regions, ports, strict=True)]
    process = subprocess.Popen([sys.executable, "-m", "tests.bench.backends", *words], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield ports
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask it to end, wait, and insist."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)


async def serve(words: Sequence[str]) -> None:
    """Serve `<region>=<port>` machines until told to stop."""
    for number, word in enumerate(words):
        region, _, port = word.partition("=")
        await listen(Machine(f"vm-{number}", region, SERVICE_MS, LANES).answer, int(port))
    print("ready", flush=True)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1:]))

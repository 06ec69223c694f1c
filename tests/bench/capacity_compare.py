"""The table of comparisons: A B A B by the product's engine and judged by its comparison.

`python -m tests.bench.capacity_compare [--rounds 4] [--seconds 4]`: the balancer against its server directly, HAProxy
against nginx, TLS against plain. Users keep so many requests in flight; the server answers by itself at once. What
cannot be run here (no nginx) is said, not left out.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from apps.capacity.measure.comparing import Observation, compare
from apps.capacity.measure.measuring import measure
from apps.definitions.shapes.operations.capacity_test import ObjectiveSpec
from apps.drivers.load.contract import Endpoint, Plan, Request, Second, Tls
from apps.drivers.load.registry import open_generator
from tests.bench.backends import instant_backends, stop
from tests.bench.tables import facts, table
from tests.ports import spare_port
from tests.pure.compiler_fixtures import certificate_pem

USERS = 16
HOST = "a.example"
NGINX = "/usr/sbin/nginx"


@dataclass(frozen=True, slots=True)
class Way:
    """One of the two: its name, its port, whether TLS is spoken there."""

    name: str
    port: int
    tls: bool = False


@contextmanager
def haproxy(folder: Path, server: int) -> Iterator[tuple[int, int]]:
    """A HAProxy in front of the server: its ports for plain HTTP and for TLS."""
    plain, secure = spare_port(), spare_port()
    (folder / "site.pem").write_text(certificate_pem(HOST))
    config = folder / "front.cfg"
    config.write_text(
        "global\n    maxconn 8000\ndefaults\n    mode http\n    timeout client 60s\n    timeout server 60s\n"
        "    timeout connect 5s\nfrontend one\n"
        f"    bind 127.0.0.1:{plain}\n    bind 127.0.0.1:{secure} ssl crt {folder / 'site.pem'}\n"
        f"    default_backend all\nbackend all\n    http-reuse always\n    server one 127.0.0.1:{server}\n"
    )
    with _running([shutil.which("haproxy") or "/usr/sbin/haproxy", "-db", "-f", str(config)]):
        yield plain, secure


@contextmanager
def nginx(folder: Path, server: int) -> Iterator[int]:
    """An nginx in front of the server, one worker with kept connections, as HAProxy has."""
    port, config = spare_port(), folder / "nginx.conf"
    config.write_text(
        f"worker_processes 1;\ndaemon off;\npid {folder}/nginx.pid;\nerror_log {folder}/nginx.log;\n"
        "events { worker_connections 4096; }\nhttp {\n  access_log off;\n"
        f"  upstream one {{ server 127.0.0.1:{server}; keepalive 64; }}\n"
        f"  server {{ listen 127.0.0.1:{port}; keepalive_requests 1000000;\n"
        '    location / { proxy_pass http://one; proxy_http_version 1.1; proxy_set_header Connection ""; } }\n}\n'
    )
    with _running([NGINX, "-c", str(config), "-p", str(folder)]):
        yield port


@contextmanager
def _running(words: Sequence[str]) -> Iterator[None]:
    process = subprocess.Popen(words)
    try:
        time.sleep(0.5)
        yield
    finally:
        stop(process)


async def _offer(way: Way, seconds: float) -> list[Second]:
    plan = Plan(
        (Endpoint("127.0.0.1", way.port),),
        Request(HOST),
        users=USERS,
        duration_s=seconds,
        max_connections=USERS,
        tls=Tls(HOST, verify=False) if way.tls else None,
    )
    generator, found = open_generator(plan), list[Second]()
    await generator.start(plan)
    async for second in generator.seconds():
        await generator.renew()
        found.append(second)
    await generator.stop()
    return found[1:-1] or found


def observe(way: Way, seconds: float) -> Observation:
    """One round of one way, without its first and its last second."""
    found = measure(asyncio.run(_offer(way, seconds)), ObjectiveSpec())
    return Observation(
        throughput=found.answered,
        p50_ms=found.p50_ms,
        p95_ms=found.p95_ms,
        p99_ms=found.p99_ms,
        error_rate=found.error_rate,
    )


def lines(first: Way, second: Way, rounds: int, seconds: float) -> list[list[str]]:
    """A B A B, and a line for each number."""
    seen: tuple[list[Observation], list[Observation]] = ([], [])
    for _ in range(rounds):
        for way, into in zip((first, second), seen, strict=True):
            into.append(observe(way, seconds))
    found = compare(seen[0], seen[1], names=(first.name, second.name))
    title = f"{first.name} / {second.name}"
    return [
        [title, each.field, f"{each.first:.4g}", f"{each.second:.4g}", each.unit, each.message]
        for each in found
        if each.field != "error_rate" or each.first or each.second
    ]


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args(arguments)
    print(facts(), flush=True)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        (server,) = stack.enter_context(instant_backends(folder, ["here"]))
        plain, secure = stack.enter_context(haproxy(folder, server))
        direct, through, tls = Way("direct", server), Way("HAProxy", plain), Way("TLS", secure, tls=True)
        pairs = [(direct, through), (Way("plain", plain), tls)]
        if Path(NGINX).exists():
            pairs.insert(1, (through, Way("nginx", stack.enter_context(nginx(folder, server)))))
        else:
            print("nginx is not installed: it is not compared.")
        rows = [line for first, second in pairs for line in lines(first, second, options.rounds, options.seconds)]
    print(table(("A / B", "number", "A", "B", "unit", "verdict"), rows))


if __name__ == "__main__":
    main(sys.argv[1:])

"""The clients: small steady traffic to every node, so that every page of the demo shows life.

Open loop: requests leave by the clock (Poisson) whether or not answers come back, as people do. Nodes of a region
are asked in turn. The rate of each region is bounded by `--most` and can be changed at run time:

    python -m deploy.demo.client --node us-central1=http://127.0.0.1:8080 --rate us-central1=3 \\
        --request acme.example/ --request globex.example/api=2
    curl -X PUT http://127.0.0.1:9190/rate -d '{"us-central1": 12}'
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import time
from collections import defaultdict
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from deploy.demo.http1 import MalformedError, Request, Response, listen, read_headers

TIMEOUT_S = 60
LOOK_AGAIN_S = 0.5
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Tally:
    """What a region's clients saw since the last report."""

    sent: int = 0
    by_status: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    latencies_ms: list[float] = field(default_factory=list)

    def line(self, region: str, seconds: float) -> str:
        """One line for people: rate, answers by class, mean and 95th percentile in ms."""
        ordered = sorted(self.latencies_ms) or [0.0]
        mean, p95 = sum(ordered) / len(ordered), ordered[int(len(ordered) * 0.95)]
        answers = " ".join(f"{status}={count}" for status, count in sorted(self.by_status.items())) or "no answers"
        return f"{region}: {self.sent / seconds:.1f}/s sent, {answers}, mean {mean:.0f} ms, p95 {p95:.0f} ms"


class Node:
    """One listener URL with its idle connections."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.host, self.port = parts.hostname or "127.0.0.1", parts.port or 80
        self._idle: list[Stream] = []

    async def get(self, hostname: str, path: str) -> int:
        """Status of one GET. A kept connection that the node closed meanwhile is replaced once by a new one."""
        if self._idle:
            try:
                return await self._exchange(self._idle.pop(), hostname, path)
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
        return await self._exchange(await asyncio.open_connection(self.host, self.port), hostname, path)

    async def _exchange(self, stream: Stream, hostname: str, path: str) -> int:
        reader, writer = stream
        kept = False
        try:
            writer.write(f"GET {path} HTTP/1.1\r\nhost: {hostname}\r\nuser-agent: spillway-demo\r\n\r\n".encode())
            line = await reader.readline()
            if not line:
                raise ConnectionResetError("closed without an answer")
            headers = await read_headers(reader)
            await reader.readexactly(int(headers.get("content-length", "0")))
            kept = headers.get("connection", "").lower() != "close" and "content-length" in headers
            return int(line.split()[1])
        finally:
            if kept:
                self._idle.append(stream)
            else:
                writer.close()


class Region:
    """The clients of one region: a rate, the nodes they ask in turn, what they saw."""

    def __init__(self, name: str, nodes: list[Node], rate: float) -> None:
        self.name, self.nodes, self.rate = name, nodes, rate
        self.tally = Tally()
        self._running: set[asyncio.Task[None]] = set()

    async def run(self, requests: list[tuple[str, str]], weights: list[float]) -> None:
        """Send for ever, each request when its time has come."""
        turn, due = 0, time.monotonic()
        while True:
            if self.rate <= 0:
                await asyncio.sleep(LOOK_AGAIN_S)
                due = time.monotonic()
                continue
            due += random.expovariate(self.rate)
            if (wait := due - time.monotonic()) > LOOK_AGAIN_S:
                # Poisson arrivals have no memory: drawing anew is exact, and sees a rate that was changed meanwhile.
                await asyncio.sleep(LOOK_AGAIN_S)
                due = time.monotonic()
                continue
            await asyncio.sleep(max(0.0, wait))
            hostname, path = random.choices(requests, weights)[0]
            task = asyncio.create_task(self._one(self.nodes[turn % len(self.nodes)], hostname, path))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
            turn += 1

    async def _one(self, node: Node, hostname: str, path: str) -> None:
        self.tally.sent += 1
        started = time.monotonic()
        try:
            status = await asyncio.wait_for(node.get(hostname, path), TIMEOUT_S)
            self.tally.by_status[f"{status // 100}xx"] += 1
            self.tally.latencies_ms.append((time.monotonic() - started) * 1000)
        except TimeoutError:
            self.tally.by_status["timeout"] += 1
        except (OSError, asyncio.IncompleteReadError, MalformedError, ValueError):
            self.tally.by_status["failed"] += 1


class Traffic:
    """All regions, and the small HTTP server that changes their rates."""

    def __init__(self, regions: dict[str, Region], most: float) -> None:
        self.regions, self.most = regions, most

    async def answer(self, request: Request) -> Response:
        """GET or PUT /rate: `{region: requests per second}`."""
        if request.path != "/rate":
            return Response(404)
        if request.method == "PUT":
            try:
                self._set(json.loads(request.body))
            except (ValueError, TypeError) as error:
                return Response(400, f"{error}\n".encode())
        return Response.of_json({name: region.rate for name, region in self.regions.items()})

    def _set(self, wanted: object) -> None:
        if not isinstance(wanted, dict):
            raise TypeError("Send {region: requests per second}.")
        for name, rate in wanted.items():
            if name not in self.regions:
                raise ValueError(f"There is no region {name!r}.")
            if not isinstance(rate, (int, float)) or not 0 <= rate <= self.most:
                raise ValueError(f"A rate is a number from 0 to {self.most:g}.")
        for name, rate in wanted.items():
            self.regions[name].rate = rate

    async def report(self, every_s: float) -> None:
        """Print a line per region, for ever."""
        while True:
            await asyncio.sleep(every_s)
            for name, region in self.regions.items():
                tally, region.tally = region.tally, Tally()
                print(tally.line(name, every_s), flush=True)


def pairs(options: list[str]) -> list[tuple[str, str]]:
    """`name=value` options as pairs."""
    return [(name, value) for name, _, value in (option.partition("=") for option in options)]


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--node", action="append", required=True, metavar="REGION=URL", help="a listener; repeatable")
    parser.add_argument("--rate", action="append", default=[], metavar="REGION=N", help="requests/s, 2 unless said")
    parser.add_argument("--request", action="append", required=True, metavar="HOST/PATH[=WEIGHT]", help="repeatable")
    parser.add_argument("--most", type=float, default=60, help="highest rate per region that will be sent")
    parser.add_argument("--port", type=int, default=9190, help="port on 127.0.0.1 for /rate; 0: the kernel chooses")
    parser.add_argument("--every", type=float, default=10, help="seconds between two reports")
    return parser.parse_args()


def traffic_from(options: argparse.Namespace) -> Traffic:
    """Regions as the command line describes them."""
    nodes: dict[str, list[Node]] = defaultdict(list)
    for region, url in pairs(options.node):
        nodes[region].append(Node(url))
    rates = {region: min(float(rate), options.most) for region, rate in pairs(options.rate)}
    regions = {name: Region(name, members, rates.get(name, 2.0)) for name, members in nodes.items()}
    return Traffic(regions, options.most)


async def main() -> None:
    """Send until told to stop."""
    options = arguments()
    traffic = traffic_from(options)
    split = [(target.partition("/"), float(weight or 1)) for target, weight in pairs(options.request)]
    requests, weights = [(host, f"/{path}") for (host, _, path), _ in split], [weight for _, weight in split]
    async with await listen(traffic.answer, options.port), asyncio.TaskGroup() as group:
        tasks = [group.create_task(region.run(requests, weights)) for region in traffic.regions.values()]
        tasks.append(group.create_task(traffic.report(options.every)))
        for sign in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(sign, lambda: [task.cancel() for task in tasks])


if __name__ == "__main__":
    asyncio.run(main())

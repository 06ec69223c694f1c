"""Servers whose capacity is known because their queue is kept in virtual time.

Each request is answered when the model says, however late this process wakes up: a sleep that lasts too long makes no
server slower. `contention` makes the service slower by that share for each other request inside (a soft knee);
`thrashes_at` makes it three times as slow from so many inside on (a sudden cliff).
"""

from __future__ import annotations

import asyncio
import heapq
import random
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

import uvloop

from apps.definitions.shapes.operations.capacity_test import ObjectiveSpec
from tests.bench.backends import stop
from tests.ports import spare_port

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
THRASHING = 3


@dataclass(frozen=True, slots=True)
class Model:
    """Servers of one region: how many, each with `lanes` that take `service_ms` for a request."""

    servers: int
    service_ms: float
    lanes: int = 1
    exponential: bool = False
    contention: float = 0.0
    thrashes_at: int = 0

    @property
    def ceiling(self) -> float:
        """Requests/s that it finishes when all lanes are always busy and nothing contends."""
        return self.servers * self.lanes * 1000 / self.service_ms


class Queue:
    """One server in virtual time, first come first served."""

    def __init__(self, model: Model, seed: int) -> None:
        self._model, self._seeded = model, random.Random(seed)
        self._free = [0.0] * model.lanes
        self._leaving: deque[float] = deque()

    def inside(self, now: float) -> int:
        """How many requests are in it."""
        while self._leaving and self._leaving[0] <= now:
            self._leaving.popleft()
        return len(self._leaving)

    def serve(self, now: float) -> float:
        """When a request that comes now is done."""
        model, inside = self._model, self.inside(now)
        took = model.service_ms / 1000 * (self._seeded.expovariate(1.0) if model.exponential else 1.0)
        took *= 1 + model.contention * inside
        took *= THRASHING if model.thrashes_at and inside >= model.thrashes_at else 1
        done = max(now, heapq.heappop(self._free)) + took
        heapq.heappush(self._free, done)
        self._leaving.append(max(done, self._leaving[-1] if self._leaving else done))
        return done


class Server(asyncio.Protocol):
    """Answers each request when the queue says."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Kept to answer on."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Requests without bodies, one at a time on a connection."""
        loop = asyncio.get_running_loop()
        for _ in range(data.count(b"\r\n\r\n")):
            loop.call_at(self._queue.serve(loop.time()), self._answer)

    def _answer(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(ANSWER)


async def serve(model: Model, ports: list[int]) -> None:
    """All servers of the model, until the process ends."""
    loop = asyncio.get_running_loop()
    for number, port in enumerate(ports):
        queue = Queue(model, number)
        await loop.create_server(lambda queue=queue: Server(queue), "127.0.0.1", port, backlog=4096)  # type: ignore[misc]
    print("ready", flush=True)
    await asyncio.Event().wait()


@contextmanager
def backends(model: Model) -> Iterator[list[int]]:
    """The ports of such servers, in a process of their own."""
    ports = [spare_port() for _ in range(model.servers)]
    fields = [model.servers, model.service_ms, model.lanes, int(model.exponential), model.contention, model.thrashes_at]
    words = [sys.executable, "-m", "tests.bench.capacity_backends", *map(str, fields), *map(str, ports)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield ports
    finally:
        stop(process)


def truth(model: Model, objective: ObjectiveSpec, *, constant: bool, requests: int = 60_000) -> float:
    """The highest rate that meets the objective in the long run, by simulating the same queues behind leastconn.

    Even arrivals at servers of constant time need no simulation: the queue does not grow up to all lanes' rate.
    """
    if constant and not (model.exponential or model.contention):
        return model.ceiling
    low, high = 0.0, model.ceiling
    while (high - low) / high > 0.005:
        rate = (low + high) / 2
        slow = _slow_share(model, rate, objective.max_latency_ms / 1000, requests, constant=constant)
        low, high = (rate, high) if slow < 1 - objective.percentile / 100 else (low, rate)
    return (low + high) / 2


def _slow_share(model: Model, rate: float, below_s: float, requests: int, *, constant: bool) -> float:
    queues, seeded, now, slow = [Queue(model, 100 + n) for n in range(model.servers)], random.Random(5), 0.0, 0
    for _ in range(requests):
        now += 1 / rate if constant else seeded.expovariate(rate)
        queue = min(queues, key=lambda each: (each.inside(now), seeded.random()))
        slow += queue.serve(now) - now > below_s
    return slow / requests


if __name__ == "__main__":
    given = sys.argv[1:]
    made = Model(int(given[0]), float(given[1]), int(given[2]), given[3] == "1", float(given[4]), int(given[5]))
    uvloop.run(serve(made, [int(port) for port in given[6:]]))

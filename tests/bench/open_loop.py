"""An open-loop load generator; requests leave when the schedule says, whatever came back so far.

    python -m tests.bench.open_loop --port 8080 --host shop.example --rate 2000 --seconds 10 --kind poisson

One thread, kept connections, no pipelining: a request takes an idle connection or opens one. Latency counts from the
time in the schedule, so a slow answer or a late generator is never hidden (no coordinated omission); how late requests
left is recorded too. Several thousand requests/s take about half a core. Load goes to 127.0.0.1 only.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import random
import select
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

CONSTANT, POISSON = "constant", "poisson"
SERVED_IN = b"x-served-in: "
MOST_LINES = 8000
HEAD_START_S = 0.2


class Way(NamedTuple):
    """Where a request goes: a port on 127.0.0.1 and the host it asks for."""

    port: int
    host: str


class Shot(NamedTuple):
    """One request of a schedule: when (s after the start), and which of the ways."""

    at: float
    way: int


class Outcome(NamedTuple):
    """What became of a request: times in s after the start; status 0 is no answer; region is empty when unsaid."""

    at: float
    way: int
    sent: float
    took: float
    status: int
    region: str


def arrivals(kind: str, rate: float, seconds: float, seed: int = 1) -> list[float]:
    """Times in s at which requests leave; exponential gaps for Poisson, equal ones otherwise."""
    if kind == CONSTANT:
        return [number / rate for number in range(int(rate * seconds))]
    draw, found = random.Random(seed), list[float]()
    now = draw.expovariate(rate)
    while now < seconds:
        found.append(now)
        now += draw.expovariate(rate)
    return found


def schedule(times: Sequence[float], ways: Sequence[int], weights: Sequence[int] = (1,), seed: int = 1) -> list[Shot]:
    """Give each time one of the ways, by weight."""
    chosen = random.Random(seed).choices(ways, weights, k=len(times))
    return [Shot(at, way) for at, way in zip(times, chosen, strict=True)]


def merged(*schedules: Sequence[Shot]) -> list[Shot]:
    """Several schedules as one."""
    return sorted(itertools.chain(*schedules))


@dataclass(slots=True)
class _Line:
    """A connection; `shot` is the request on it, or none."""

    wire: socket.socket
    port: int
    shot: Shot | None = None
    sent: float = 0.0
    got: bytes = b""


class Generator:
    """Runs one schedule."""

    def __init__(self, ways: Sequence[Way], patience: float = 60.0) -> None:
        self.requests = [f"GET / HTTP/1.1\r\nhost: {way.host}\r\n\r\n".encode() for way in ways]
        self.ports = [way.port for way in ways]
        self.patience = patience
        self.outcomes: list[Outcome] = []
        self._idle: dict[int, list[_Line]] = {port: [] for port in self.ports}
        self._lines: dict[int, _Line] = {}
        self._poll = select.epoll()
        self._busy = 0
        self._start = 0.0

    def run(self, shots: Sequence[Shot]) -> list[Outcome]:
        """Send every shot at its time; returns when all are answered or the patience behind the last one is over."""
        gc.collect()
        gc.disable()
        try:
            self._start = time.monotonic() + HEAD_START_S
            self._send_all(shots)
            self._wait_for_the_rest(shots[-1].at + self.patience if shots else 0)
        finally:
            gc.enable()
            for line in self._lines.values():
                line.wire.close()
            self._poll.close()
        return self.outcomes

    def _send_all(self, shots: Sequence[Shot]) -> None:
        for shot in shots:
            wait = shot.at - self._now()
            while wait > 0:
                self._receive(wait)
                wait = shot.at - self._now()
            self._fire(shot)
            if self._busy > 64 and wait < -0.002:
                self._receive(0)

    def _wait_for_the_rest(self, until: float) -> None:
        while self._busy and self._now() < until:
            self._receive(0.1)
        for line in self._lines.values():
            if line.shot is not None:
                self._done(line, 0, "")

    def _now(self) -> float:
        return time.monotonic() - self._start

    def _fire(self, shot: Shot) -> None:
        line = self._line(self.ports[shot.way])
        if line is None:
            self.outcomes.append(Outcome(shot.at, shot.way, shot.at, 0.0, 0, ""))
            return
        line.shot, line.sent, line.got = shot, self._now(), b""
        self._busy += 1
        try:
            line.wire.send(self.requests[shot.way])
        except OSError:
            self._drop(line)

    def _line(self, port: int) -> _Line | None:
        if self._idle[port]:
            return self._idle[port].pop()
        if len(self._lines) >= MOST_LINES:
            return None
        try:
            wire = socket.create_connection(("127.0.0.1", port), timeout=5)
        except OSError:
            return None
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wire.setblocking(False)
        line = self._lines[wire.fileno()] = _Line(wire, port)
        self._poll.register(wire, select.EPOLLIN)
        return line

    def _receive(self, wait: float) -> None:
        for number, _ in self._poll.poll(wait, 256):
            line = self._lines.get(number)
            if line is None:
                continue
            try:
                arrived = line.wire.recv(65536)
            except BlockingIOError:
                continue
            except OSError:
                arrived = b""
            if not arrived:
                self._drop(line)
                continue
            line.got = line.got + arrived if line.got else arrived
            self._read(line)

    def _read(self, line: _Line) -> None:
        """Finish the request when its answer is complete."""
        head, found, body = line.got.partition(b"\r\n\r\n")
        if not found or line.shot is None:
            return
        lower = head.lower()
        length = lower.partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if len(body) < int(length or 0):
            return
        region = lower.partition(SERVED_IN)[2].partition(b"\r\n")[0].decode()
        self._done(line, int(lower[9:12]), region)
        if b"connection: close" in lower:
            self._drop(line)
        else:
            self._idle[line.port].append(line)

    def _done(self, line: _Line, status: int, region: str) -> None:
        shot = line.shot
        if shot is not None:
            self._busy -= 1
            self.outcomes.append(Outcome(shot.at, shot.way, line.sent, self._now() - shot.at, status, region))
        line.shot = None

    def _drop(self, line: _Line) -> None:
        self._done(line, 0, "")
        self._lines.pop(line.wire.fileno(), None)
        if line in self._idle[line.port]:
            self._idle[line.port].remove(line)
        line.wire.close()


def offer(ways: Sequence[Way], shots: Sequence[Shot], patience: float = 60.0) -> list[Outcome]:
    """Run a schedule; outcomes in the order in which answers came."""
    return Generator(ways, patience).run(shots)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of the values do not exceed; 0 of nothing."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def most_in_one_second(times: Sequence[float]) -> int:
    """Most times within any one second."""
    ordered, first, most = sorted(times), 0, 0
    for index, at in enumerate(ordered):
        while ordered[first] <= at - 1:
            first += 1
        most = max(most, index - first + 1)
    return most


def by_hand() -> None:
    """Offer load from the command line and say what came back."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True, help="port on 127.0.0.1")
    parser.add_argument("--host", default="localhost")
    parser.add_argument("--rate", type=float, default=100)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--kind", choices=(CONSTANT, POISSON), default=CONSTANT)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    times = arrivals(given.kind, given.rate, given.seconds, given.seed)
    began = time.process_time()
    outcomes = offer([Way(given.port, given.host)], schedule(times, [0]))
    used = time.process_time() - began
    late = percentile([each.sent - each.at for each in outcomes], 0.99)
    took = percentile([each.took for each in outcomes], 0.99)
    failed = sum(each.status != 200 for each in outcomes)
    print(f"sent {len(outcomes)}, not 200: {failed}, p99 {took * 1000:.1f} ms, left late by p99 {late * 1000:.1f} ms")
    print(f"own CPU {used / given.seconds:.0%} of a core")


if __name__ == "__main__":
    by_hand()

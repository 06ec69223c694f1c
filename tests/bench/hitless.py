"""Requests that fail during pushes with a reload; none may, and without the safeguard some must.

`python -m tests.bench.hitless [--requests 200000] [--pushes 20] [--without-idle-close]`. Load goes to 127.0.0.1
only. 80 % of the requests are sent on kept connections, 20 % on new ones. A kept connection that is closed
without an announcement (`connection: close`) while a request is on it is a failed request; nothing is retried.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import threading
import time
from dataclasses import dataclass, field

from tests.conformance.bundles import make_bundle
from tests.conformance.real_agent import RealAgent, running_agent

CLIENTS = 16
KEPT = b"GET / HTTP/1.1\r\nhost: a.example\r\n\r\n"
CLOSED = b"GET / HTTP/1.1\r\nhost: a.example\r\nconnection: close\r\n\r\n"


@dataclass
class Tally:
    """What the clients saw; `left` requests are still to be sent."""

    left: int
    sent: int = 0
    kept: int = 0
    failed: list[str] = field(default_factory=list)
    answers: dict[str, int] = field(default_factory=dict)


@dataclass
class Connection:
    """A connection that is being kept."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self, request: bytes) -> tuple[str, bool]:
        """The body of a 200 and whether the connection goes on; raises OSError, EOFError or ValueError."""
        self.writer.write(request)
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        body = (await self.reader.readexactly(length)).decode()
        if " 200 " not in head.partition("\r\n")[0] + " ":
            raise ValueError(head.partition("\r\n")[0])
        return body, "connection: close" not in head


async def client(port: int, tally: Tally, number: int) -> None:
    """Four requests on a kept connection, then one on a new one, and so on."""
    kept: Connection | None = None
    turn = number
    while tally.left > 0:
        tally.left -= 1
        turn += 1
        fresh = turn % 5 == 0
        try:
            if fresh:
                connection = Connection(*await asyncio.open_connection("127.0.0.1", port))
                body, _ = await asyncio.wait_for(connection.ask(CLOSED), 10)
                connection.writer.close()
            else:
                kept = kept or Connection(*await asyncio.open_connection("127.0.0.1", port))
                body, goes_on = await asyncio.wait_for(kept.ask(KEPT), 10)
                tally.kept += 1
                if not goes_on:
                    kept.writer.close()
                    kept = None
            tally.answers[body] = tally.answers.get(body, 0) + 1
        except (OSError, EOFError, ValueError, TimeoutError) as error:
            tally.failed.append(f"{'new' if fresh else 'kept'}: {error!r}")
            kept = kept if fresh else None
        tally.sent += 1
        await asyncio.sleep(0)


async def load(port: int, tally: Tally) -> None:
    """All clients until no request is left."""
    await asyncio.gather(*(client(port, tally, number) for number in range(CLIENTS)))


def push_all(agent: RealAgent, tally: Tally, pushes: int, seconds: list[float], idle_close: bool) -> None:
    """Push evenly over the requests, so that each reload falls into traffic."""
    total = tally.left
    for number in range(1, pushes + 1):
        while tally.sent < total * number // (pushes + 1):
            time.sleep(0.01)
        began = time.monotonic()
        agent.driver.push_bundle(make_bundle(agent.port, answer=f"g{number + 1}", idle_close=idle_close), number + 1)
        seconds.append(time.monotonic() - began)


def measure(requests: int, pushes: int, idle_close: bool) -> dict[str, object]:
    """Run once; the figures as plain data."""
    with running_agent("unix") as agent:
        agent.driver.push_bundle(make_bundle(agent.port, answer="g1", idle_close=idle_close), 1)
        tally, seconds = Tally(requests), list[float]()
        pusher = threading.Thread(target=push_all, args=(agent, tally, pushes, seconds, idle_close))
        began = time.monotonic()
        pusher.start()
        asyncio.run(load(agent.port, tally))
        took = time.monotonic() - began
        pusher.join()
        state = agent.state()
    seconds.sort()
    return {
        "requests": tally.sent,
        "kept_alive": tally.kept,
        "failed": len(tally.failed),
        "first_failures": tally.failed[:3],
        "generations_seen": len(tally.answers),
        "reloads": state.reloads - 1,
        "seconds": round(took, 1),
        "push_median_s": round(seconds[len(seconds) // 2], 3),
        "push_max_s": round(seconds[-1], 3),
        "idle_close_on_response": idle_close,
    }


def main() -> int:
    """Print the figures; 1 when a request failed (or, for the negative control, when none did)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--pushes", type=int, default=20)
    parser.add_argument("--without-idle-close", action="store_true", help="the negative control: requests must fail")
    given = parser.parse_args()
    figures = measure(given.requests, given.pushes, not given.without_idle_close)
    print(json.dumps(figures, indent=1))
    return int(bool(figures["failed"]) != given.without_idle_close)


if __name__ == "__main__":
    raise SystemExit(main())

"""Bench of SHOW: how soon open tabs show a sample, with a real console, collectors, PostgreSQL, Redis and light agents.

`python -m tests.bench.open_tabs [--tabs 200] [--nodes 1000] [--routes 100000] [--seconds 60]`: each tab is another
person's, with an event stream of its own and a page that asks for its live part after a sample, as pages do. Half of
the tabs are operators', half are customers' of as many accounts. The console is gunicorn with four processes and
uvicorn. What counts is the time from a sample's event to the last byte of the part, beside how old nodes' numbers are.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests import waiting
from tests.bench.collecting import ROOT, agents, define, installation, processor_s
from tests.bench.many_customers import console, listens
from tests.bench.pages import TUTORIAL, multiply
from tests.bench.sample_lag import ages, collectors
from tests.bench.tables import facts, table
from tests.ports import spare_port

if TYPE_CHECKING:
    from apps.accounts.models import Account
    from apps.fleet.models import Node

OF_OPERATORS = ("/?partial=now", "/overflow?partial=now", "/regions?partial=rows", "/pools?partial=rows")
OF_CUSTOMERS = ("/?partial=now", "/pools?partial=rows", "/routes?partial=rows")
# As the pages say for samples (`throttle:2s`).
THROTTLE_S, WARM_UP_S, FEW = 2.0, 75.0, 100
HEADS = (
    "tabs", "nodes", "updates/s", "p50 ms", "p95 ms", "p99 ms", "not 200", "cores of web", "of events",
    "of collectors", "age p50 s", "p99 s",
)  # fmt: skip
PROCESSES = {"web": "gunicorn", "events": "uvicorn", "collectors": "collect"}


@dataclass(slots=True)
class Tab:
    """One page that somebody looks at: what it asks for, as whom, and (milliseconds, status) of each update."""

    path: str
    session: str
    updates: list[tuple[float, int]] = field(default_factory=list)

    async def live(self, web: int, events: int) -> None:
        """Ask for the part after a sample, at most each two seconds, until cancelled."""
        stream, _ = await self._ask(events, "/events?topics=samples,definitions,nodes,rollouts")
        heard = asyncio.Event()
        listening = asyncio.create_task(_listen(stream, heard))
        asking = await asyncio.open_connection("127.0.0.1", web)
        try:
            while await heard.wait():
                heard.clear()
                began = time.monotonic()
                asking[1].write(self._request(self.path))
                status = await _answered(asking[0])
                self.updates.append((1000 * (time.monotonic() - began), status))
                await asyncio.sleep(max(0.0, began + THROTTLE_S - time.monotonic()))
        finally:
            listening.cancel()

    async def _ask(self, port: int, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(self._request(path))
        return reader, writer

    def _request(self, path: str) -> bytes:
        heads = f"Host: 127.0.0.1\r\nCookie: sessionid={self.session}\r\nHX-Request: true"
        return f"GET {path} HTTP/1.1\r\n{heads}\r\n\r\n".encode()


async def _listen(stream: asyncio.StreamReader, heard: asyncio.Event) -> None:
    while line := await stream.readline():
        if line.strip() == b"event: samples":
            heard.set()
    raise ConnectionError("the stream of events ended")


async def _answered(reader: asyncio.StreamReader) -> int:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    if length := re.search(r"(?i)content-length: (\d+)", head):
        await reader.readexactly(int(length[1]))
    else:
        await reader.readuntil(b"0\r\n\r\n")  # the last chunk
    return int(head.split()[1])


def tabs_of(count: int) -> list[Tab]:
    """Half of them operators', half customers' of as many accounts as there are."""
    from apps.accounts.bootstrap import OPERATOR
    from apps.accounts.models import Account

    operator = Account.objects.get(name=OPERATOR)
    customers = list(Account.objects.filter(kind=Account.Kind.CUSTOMER).order_by("-pk")[: count // 2])
    every = [
        (operator, path) for _, path in zip(range(count - count // 2), itertools.cycle(OF_OPERATORS), strict=False)
    ]
    paths = zip(itertools.islice(itertools.cycle(customers), count // 2), itertools.cycle(OF_CUSTOMERS), strict=False)
    return [Tab(path, session_of(account, at)) for at, (account, path) in enumerate([*every, *paths])]


def session_of(account: Account, number: int) -> str:
    """The session of a new member of the account."""
    from django.test import Client

    from apps.accounts.models import Membership, User

    user = User.objects.create(username=f"looks-{number}")
    Membership.objects.create(account=account, user=user, role=Membership.Role.ADMIN)
    client = Client()
    client.force_login(user)
    return client.cookies["sessionid"].value


@contextmanager
def event_streams(port: int) -> Iterator[None]:
    """The process that streams events, as in production."""
    command = [sys.executable, "-m", "uvicorn", "controlplane.events:app", "--port", str(port), "--no-access-log"]
    server = subprocess.Popen([*command, "--log-level", "error"], cwd=ROOT)
    try:
        waiting.until(lambda: listens(port))
        yield
    finally:
        server.terminate()
        server.wait(20)


async def watch(tabs: Sequence[Tab], web: int, events: int, seconds: float) -> None:
    """Keep all tabs open: first until they are warm, then for so long that counts. Raises what a tab raised."""
    open_now = [asyncio.create_task(each.live(web, events)) for each in tabs]
    done, _ = await asyncio.wait(open_now, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    for each in done:
        each.result()
    for each in open_now:
        each.cancel()
    await asyncio.gather(*open_now, return_exceptions=True)


def measure(tabs: Sequence[Tab], nodes: Sequence[Node], web: int, events: int, seconds: float) -> list[float]:
    """A row of the table."""
    asyncio.run(watch(tabs, web, events, WARM_UP_S))
    for each in tabs:
        each.updates.clear()
    old: list[float] = []
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.5):
            old.extend(ages(nodes))

    looking = threading.Thread(target=look)
    looking.start()
    before, began = {name: processor_s(sys.executable, word) for name, word in PROCESSES.items()}, time.monotonic()
    asyncio.run(watch(tabs, web, events, seconds))
    took = time.monotonic() - began
    cores = [(processor_s(sys.executable, word) - before[name]) / took for name, word in PROCESSES.items()]
    ended.set()
    looking.join()
    updates = sorted(ms for each in tabs for ms, _ in each.updates)
    old.sort()
    wrong = sum(status != 200 for each in tabs for _, status in each.updates)
    waited = [_at(updates, share) for share in (0.5, 0.95, 0.99)]
    return [len(tabs), len(nodes), len(updates) / took, *waited, wrong, *cores, _at(old, 0.5), _at(old, 0.99)]


def _at(values: Sequence[float], share: float) -> float:
    return values[int(share * (len(values) - 1))]


def fill(routes: int) -> None:
    """The operator, and so many routes of a hundredth as many accounts; no node of the tutorial is there to be read."""
    from django.core.management import call_command
    from django.db import connection

    from apps.accounts.bootstrap import found_operator
    from apps.fleet.models import Node

    found_operator(username="bench", password="a password of the bench")
    call_command("apply", str(TUTORIAL), verbosity=0)
    call_command("seed", routes=FEW, accounts=FEW // 10, verbosity=0)
    multiply(routes)
    Node.objects.all().delete()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")  # as the database does by itself, minutes later


def stand(fleets: int = 5) -> None:
    """Put the load balancer of all routes on so many fleets of twenty nodes."""
    from apps.definitions.models import LoadBalancer
    from apps.fleet.models import Fleet

    LoadBalancer.objects.get(name="front").fleets.add(*Fleet.objects.order_by("-pk")[:fleets])


def main() -> int:
    """Print a table and one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tabs", type=int, nargs="+", default=[200])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--routes", type=int, default=100_000)
    parser.add_argument("--collectors", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60.0)
    asked = parser.parse_args()
    web, events = spare_port(), spare_port()
    rows = []
    with ExitStack() as stack:
        folder = stack.enter_context(installation())
        fill(asked.routes)
        nodes = define(asked.nodes)
        stand()
        every = tabs_of(max(asked.tabs))
        stack.enter_context(agents(folder / "agents", nodes))
        stack.enter_context(console(web))
        stack.enter_context(event_streams(events))
        stack.enter_context(collectors(asked.collectors))
        for count in asked.tabs:
            some = [every[at * len(every) // count] for at in range(count)]
            rows.append(measure(some, nodes, web, events, asked.seconds))
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    print(facts())
    print(table(HEADS, [[f"{value:,.3g}" for value in row] for row in rows]))
    print(json.dumps(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())

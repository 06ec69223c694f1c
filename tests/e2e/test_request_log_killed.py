"""Two real nodes under load: each request is one stored line, whoever is killed, restarted or reloaded meanwhile.

They have one thread: of several HAProxy gives a line up, and counts it, when another one is just writing.
"""

from __future__ import annotations

import http.client
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from apps.compiler.model.shared import Limit
from apps.drivers.proxy.contract import Unreachable
from apps.logs.lines import read_segment
from apps.logs.meaning import Named, Names, record_of
from tests.conformance.real_agent import RealAgent, running_agent, wait_until
from tests.e2e.agents import push
from tests.e2e.test_agent_overflow import Regions, a_server, rate

pytestmark = pytest.mark.e2e

CLIENTS = 2
BETWEEN = 50  # requests of each client between two of the things that happen


@pytest.fixture
def regions(both: tuple[RealAgent, RealAgent]) -> Iterator[Regions]:
    """Two agents with a server."""
    with a_server() as port:
        yield Regions(both, port)


class Console:
    """Fetches segments as the console does, and believes one acknowledgement in two to be lost."""

    def __init__(self, agent: RealAgent) -> None:
        self.agent = agent
        self.batches: dict[str, bytes] = {}
        self.fetched: Counter[str] = Counter()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while not self.ended.is_set():
            try:
                self.fetch()
            except Unreachable:
                self.ended.wait(0.05)

    def fetch(self) -> int:
        """One round; answers with how many segments waited."""
        waiting = self.agent.driver.log_segments(0.2).segments
        for each in waiting:
            self.fetched[each.id] += 1
            self.batches[each.id] = self.agent.driver.read_log_segment(each.id)
            if self.fetched[each.id] > 1:
                self.agent.driver.acknowledge_log_segment(each.id)
        return len(waiting)

    def finish(self, lines: int = 0) -> list[str]:
        """The ids of all requests, once nothing waits any more and so many are there: an agent reads when it can."""
        self.ended.set()
        self.thread.join()
        wait_until(lambda: self._waits_for_nothing() and len(self._ids()) >= lines, "all is fetched")
        return self._ids()

    def _waits_for_nothing(self) -> bool:
        return self.agent.driver.log_segments(1).segments == () or not self.fetch()

    def _ids(self) -> list[str]:
        found = [read_segment(raw) for raw in self.batches.values()]
        ids = [line.id for lines in found for line in lines if line.is_request]
        assert sum(each.damaged for each in found) == 0
        return ids


def asked(port: int, answered: list[str], happens: Callable[[], bool]) -> None:
    """Ask until nothing happens any more; the ids that the answers have."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    while happens():
        for _ in range(BETWEEN):
            try:
                connection.request("GET", "/a?b=c", headers={"host": "a.example"})
                response = connection.getresponse()
                response.read()
                answered.append(response.headers["x-request-id"])
            except (OSError, http.client.HTTPException):
                connection.close()


@pytest.mark.exhaustive  # of a collector that dies it is asked in tests/apps/test_logs_collecting.py
def test_each_request_is_stored_once_whatever_dies(regions: Regions) -> None:
    home, other = regions.agents
    for index, agent in enumerate(regions.agents):
        push(agent, regions.bundle(index, Limit(), threads=1))
    before = [Console(agent).finish() for agent in regions.agents]  # of an earlier test, whose nodes had threads
    dropped = [agent.driver.log_segments().dropped for agent in regions.agents]
    consoles = [Console(agent) for agent in regions.agents]
    going, answered = threading.Event(), list[list[str]]()
    clients = []
    for agent in regions.agents:
        answered.append([])
        for _ in range(CLIENTS):
            words = (agent.port, answered[-1], lambda: not going.is_set())
            clients.append(threading.Thread(target=asked, args=words))
    for client in clients:
        client.start()
    home.kill()
    home.start()
    for index, agent in enumerate(regions.agents):
        push(agent, regions.bundle(index, Limit(), threads=1))
    other.kill()
    other.start()
    going.set()
    for client in clients:
        client.join()
    for console, ids, earlier, dropped_before in zip(consoles, answered, before, dropped, strict=True):
        stored = console.finish()
        assert len(stored) == len(set(stored))
        assert len(ids) > 2 * BETWEEN
        assert set(ids) - set(stored) == set(), "missing"
        assert set(stored) - set(ids) - set(earlier) == set(), "of nobody"
        assert console.agent.driver.log_segments().dropped == dropped_before
        assert max(console.fetched.values()) > 1


def test_a_request_that_another_region_serves_is_one_line_with_both_regions_and_the_server(regions: Regions) -> None:
    home, other = regions.agents
    push(other, regions.bundle(1, rate(1)))
    push(home, regions.bundle(0, rate(1)))
    wait_until(lambda: "rgn-2" in home.driver.read_counters().distances_ms, "the way to the other region is known")
    for agent in regions.agents:
        Console(agent).finish()
    assert [home.get()[0] for _ in range(20)] == [200] * 20
    consoles = [Console(agent) for agent in regions.agents]
    ids, ids_elsewhere = consoles[0].finish(lines=20), consoles[1].finish()
    assert (len(ids), ids_elsewhere) == (20, [])
    names = Names(
        "us-1", "f", "here", {"lst-1": (Named("front", 1), "web")}, {}, {"pool-1": Named("shop", 1)},
        {"srv-1": "one"}, {"rgn-1": "here", "rgn-2": "there"},
    )  # fmt: skip
    lines = [line for raw in consoles[0].batches.values() for line in read_segment(raw) if line.is_request]
    found = [record for line in lines if (record := record_of(line, names))]
    moved = [each for each in found if each.why]
    assert 10 <= len(moved) < 20
    said = {(each.why, each.decided_by, each.region, each.home_region, each.pool, each.server) for each in moved}
    assert said == {("overflow", "limit of shop", "there", "here", "shop", "one")}
    stayed = {(each.region, each.server) for each in found if not each.why}
    assert stayed == {("here", "one")}


def test_beyond_the_ceiling_old_lines_go_and_are_counted() -> None:
    with running_agent("unix", "--log-megabytes", "1") as agent:
        pipe = os.open(agent.state_dir / "run" / "requests", os.O_WRONLY)
        wrote = 0
        for _ in range(30):
            lines = b"".join(os.urandom(100).hex().encode() + b"\n" for _ in range(500))
            wrote += 500
            os.write(pipe, lines)  # waits for the agent, as HAProxy would not
        os.close(pipe)

        def counted() -> int:
            found = agent.driver.log_segments()
            assert sum(each.size for each in found.segments) <= 1024 * 1024
            return found.dropped + sum(each.lines for each in found.segments)

        wait_until(lambda: counted() == wrote, "every line waits or is counted")
        assert 0 < agent.driver.log_segments().dropped < wrote
        agent.kill()
        agent.start()
        assert counted() == wrote

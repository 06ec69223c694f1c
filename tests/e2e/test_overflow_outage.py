"""A region dies under load: at most what was in flight fails, what may be repeated is, and the rest goes on at once."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from apps.compiler.model import Limit, WhenFull
from tests.e2e.overflow_stage import POOL, Node, Place, rate, regions, wait_until

pytestmark = pytest.mark.e2e

CLIENTS = 8
DELAY_S = 0.04
CHECK_S = 1.0
ENOUGH = 200


@dataclass
class Load:
    """Clients that ask one after the other; what came back, with the instant of each question."""

    node: Node
    method: str
    answers: list[tuple[float, str]] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def _client(self) -> None:
        while not self.stopped.is_set():
            asked = time.monotonic()
            try:
                answer = self.node.ask(self.method, body=b"x" if self.method == "POST" else None)
                word = answer.region if answer.status == 200 else f"status {answer.status}"
            except (OSError, http.client.HTTPException) as error:
                word = type(error).__name__
            self.answers.append((asked, word))

    def during(self, event: Callable[[], None]) -> float:
        """Two seconds of load, the event, three seconds more and `ENOUGH` answers; returns when the event was over."""
        threads = [threading.Thread(target=self._client) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        time.sleep(2)
        event()
        happened = time.monotonic()
        answered = len(self.answers)
        time.sleep(3)
        try:
            wait_until(lambda: len(self.answers) > answered + ENOUGH, "there are enough answers")
        finally:
            self.stopped.set()
        for thread in threads:
            thread.join()
        return happened

    def failed(self) -> list[tuple[float, str]]:
        """Everything that is no answer of a server."""
        return [entry for entry in self.answers if not entry[1].startswith("rgn-")]


def places(home: Limit) -> list[Place]:
    """Three regions: little room at home, then two that are slow enough to have requests in flight."""
    return [Place(home), Place(rate(10_000), delay_s=DELAY_S), Place(rate(10_000), delay_s=DELAY_S)]


def test_requests_that_may_be_repeated_survive_the_region_that_they_were_sent_to() -> None:
    with regions(*places(rate(2)), when_full=WhenFull.REFUSE) as stage:
        load = Load(stage.nodes[0][0], "GET")
        happened = load.during(stage.nodes[1][0].kill)
        assert load.failed() == []
        late = [at - happened for at, word in load.answers if word == "rgn-2" and at > happened]
        assert all(after < CHECK_S for after in late)
        assert sum(word == "rgn-3" for at, word in load.answers if at > happened) > 100


def test_requests_that_may_not_be_repeated_fail_only_when_they_were_in_flight() -> None:
    with regions(*places(rate(2)), when_full=WhenFull.REFUSE) as stage:
        load = Load(stage.nodes[0][0], "POST")
        happened = load.during(stage.nodes[1][0].kill)
        # Dying takes a few milliseconds, in which the kernel still accepts: each client may meet that once more.
        assert len(load.failed()) <= 2 * CLIENTS
        assert all(at - happened < CHECK_S / 4 for at, _ in load.failed())


def test_a_region_without_servers_is_left_within_one_interval_of_its_health_check() -> None:
    with regions(Place(servers=2, delay_s=DELAY_S), Place(rate(10_000), delay_s=DELAY_S)) as stage:
        load = Load(stage.nodes[0][0], "GET")
        happened = load.during(stage.stop_servers[0])
        assert [word for at, word in load.answers if at > happened + CHECK_S and word != "rgn-2"] == []
        assert stage.nodes[0][0].flows()[f"{POOL}/to/rgn-2/down"] > 50
        assert len(load.failed()) <= 4 * CLIENTS  # those in flight, and those that met only servers that had just died

"""A region dies under load: at most what was in flight fails, what may be repeated is, and the rest goes on at once."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from apps.compiler.model.shared import Limit, WhenFull
from tests.e2e.overflow_env import POOL, Node, RegionSetup, rate, regions, wait_until

pytestmark = pytest.mark.e2e

CLIENTS = 8
DELAY_S = 0.04
ENOUGH = 100


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: whose it was, when it was asked, and the region that answered, or what came instead."""

    client: int
    at: float
    word: str

    @property
    def failed(self) -> bool:
        """Whether it is no answer of a server."""
        return not self.word.startswith("rgn-")


@dataclass
class Load:
    """Clients that ask one after the other; what came back, in the order in which it came."""

    node: Node
    method: str
    answers: list[Asked] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def client(self, number: int) -> None:
        """Ask until it is stopped."""
        while not self.stopped.is_set():
            asked = time.monotonic()
            try:
                answer = self.node.ask(self.method, body=b"x" if self.method == "POST" else None)
                word = answer.region if answer.status == 200 else f"status {answer.status}"
            except (OSError, http.client.HTTPException) as error:
                word = type(error).__name__
            self.answers.append(Asked(number, asked, word))

    def failed(self) -> list[Asked]:
        """Everything that is no answer of a server."""
        return [each for each in self.answers if each.failed]

    def relapsed(self) -> list[Asked]:
        """What failed for a client that had been answered since its first failure."""
        found, failing, recovered = [], set[int](), set[int]()
        for each in self.answers:
            if each.failed and each.client in recovered:
                found.append(each)
            elif each.failed:
                failing.add(each.client)
            elif each.client in failing:
                recovered.add(each.client)
        return found


def during(event: Callable[[], None], seconds: float, *loads: Load) -> float:
    """Some answers, and so many seconds of load, before the event and after it; returns when the event was over."""
    threads = [threading.Thread(target=load.client, args=(number,)) for number in range(CLIENTS) for load in loads]
    for thread in threads:
        thread.start()
    try:
        _go_on(seconds, 5 * CLIENTS, loads)
        event()
        happened = time.monotonic()
        _go_on(seconds, ENOUGH, loads)
    finally:
        for load in loads:
            load.stopped.set()
    for thread in threads:
        thread.join()
    return happened


def _go_on(seconds: float, answers: int, loads: Sequence[Load]) -> None:
    wanted = [len(load.answers) + answers for load in loads]
    time.sleep(seconds)
    wait_until(
        lambda: all(len(load.answers) > enough for load, enough in zip(loads, wanted, strict=True)),
        "there are enough answers",
    )


def setups(home: Limit) -> list[RegionSetup]:
    """Three regions: little room at home, then two that are slow enough to have requests in flight."""
    return [RegionSetup(home), RegionSetup(rate(10_000), delay_s=DELAY_S), RegionSetup(rate(10_000), delay_s=DELAY_S)]


# So long there is load before and after: as long as it takes, and so long that a health check may come in between.
LASTING = pytest.mark.parametrize("seconds", [0.0, pytest.param(3.0, marks=pytest.mark.exhaustive)])


@LASTING
def test_a_region_that_dies_fails_only_what_was_in_flight_and_may_not_be_repeated(seconds: float) -> None:
    with regions(*setups(rate(2)), when_full=WhenFull.REFUSE) as env:
        node, dying = env.nodes[0][0], env.nodes[1][0]
        gets, posts = Load(node, "GET"), Load(node, "POST")
        happened = during(dying.kill, seconds, gets, posts)
    assert gets.failed() == []
    # Dying takes a few milliseconds, in which the kernel still accepts: each client may meet that once more.
    assert len(posts.failed()) <= 2 * CLIENTS
    assert posts.relapsed() == []
    for load in (gets, posts):
        assert [each for each in load.answers if each.word == "rgn-2" and each.at > happened] == []
        assert sum(each.word == "rgn-3" for each in load.answers if each.at > happened) > 50


@LASTING
def test_a_region_without_servers_is_left_as_soon_as_that_is_known(seconds: float) -> None:
    with regions(RegionSetup(servers=2, delay_s=DELAY_S), RegionSetup(rate(10_000), delay_s=DELAY_S)) as env:
        node = env.nodes[0][0]
        load = Load(node, "GET")
        known: list[float] = []

        def stop_servers() -> None:
            env.stop_servers[0]()
            wait_until(lambda: f"{POOL}/to/rgn-2/down" in node.flows(), "the servers are known to be down")
            known.append(time.monotonic())

        during(stop_servers, seconds, load)
        assert [each for each in load.answers if each.at > known[0] and each.word != "rgn-2"] == []
        assert node.flows()[f"{POOL}/to/rgn-2/down"] > 50
        assert len(load.failed()) <= 4 * CLIENTS  # those in flight, and those that met only servers that had just died

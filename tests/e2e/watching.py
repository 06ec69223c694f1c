"""Callers of nodes and of consoles while something is done to the machines: what failed, and how long writes paused."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.installation import wait_until
from tests.e2e.machines import CONSOLES, HOST, NODES, Machines

WRITTEN = (200, 201, 202)
REQUESTS_PER_S = 40
WRITE_EVERY_S = 0.2
PATIENCE_S = 4.0
KEPT = "/kept/0"


def route(name: str, path: str, text: str) -> dict[str, Any]:
    """The definition of a route that answers with a text."""
    action = {"fixed_response": {"status": 200, "body": text}}
    spec = {"load_balancer": "front", "hostname": HOST, "path": path, "action": action}
    return {"kind": "Route", "name": name, "spec": spec}


def fill(machines: Machines, routes: int) -> None:
    """Routes that nobody changes, the first of which is asked for."""
    objects = [route(f"kept-{number}", f"/kept/{number}", f"kept {number}") for number in range(routes)]
    answer = machines.api("a", "apply", "PUT", {"objects": objects}, timeout=120)
    assert answer.status in WRITTEN, answer.text
    for node in NODES:
        wait_until(lambda: machines.ask(f"{node}{KEPT}", host=HOST).status == 200, "it is served")  # noqa: B023


@dataclass
class Watched:
    """What callers met, by the step that was on: answers of nodes, writes that failed, and the longest pause.

    Each write is a route of its own; `stored` has the numbers of those that were answered as stored, and `nowhere`
    how many no console took.
    """

    machines: Machines
    doors: tuple[str, ...] = CONSOLES
    nodes: tuple[str, ...] = NODES
    step: str = "before"
    answers: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    failed: list[tuple[str, str, int, str]] = field(default_factory=list)
    nowhere: Counter[str] = field(default_factory=Counter)
    stored: list[int] = field(default_factory=list)
    written_at: float = field(default_factory=time.monotonic)
    pause_s: float = 0.0
    paused_in: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)

    def use_nodes(self) -> None:
        """Requests to the nodes in turn."""
        while not self.over.wait(1 / REQUESTS_PER_S):
            for node in self.nodes:
                answer = self.machines.ask(f"{node}{KEPT}", timeout=10, host=HOST)
                self.answers[self.step, node, answer.status] += 1

    def write(self) -> None:
        """A write each 200 ms at one door, and where that fails at once at the next one."""
        number = 0
        while not self.over.wait(WRITE_EVERY_S):
            number += 1
            doors = [self.doors[(number + turn) % len(self.doors)] for turn in range(len(self.doors))]
            if not any(self._written(number, door) for door in doors):
                self.nowhere[self.step] += 1

    def _written(self, number: int, door: str) -> bool:
        document = {"objects": [route(f"write-{number}", f"/write/{number}", f"text {number}")]}
        answer = self.machines.api(door, "apply", "PUT", document, PATIENCE_S)
        if answer.status not in WRITTEN:
            self.failed.append((self.step, door, answer.status, answer.text[:160]))
            return False
        self.stored.append(number)
        now = time.monotonic()
        pause, self.written_at = now - self.written_at, now
        if pause > self.pause_s:
            self.pause_s, self.paused_in = pause, self.step
        return True

    @contextmanager
    def during(self, step: str) -> Iterator[None]:
        """Name a step and count its seconds."""
        self.step, began = step, time.monotonic()
        yield
        self.seconds[step] = round(time.monotonic() - began, 1)

    def writes_again(self, since: float, patience: float = 120.0) -> float:
        """Wait for the next write after a moment of the monotonic clock; the seconds from then."""
        wait_until(lambda: self.written_at > since, "writes go on", patience)
        return self.written_at - since

    def requests_failed(self) -> int:
        """How many of those to nodes were not answered with 200."""
        return sum(count for (_, _, status), count in self.answers.items() if status != 200)

    def nothing_is_lost(self) -> None:
        """What was answered as stored is in the database and, in the end, at every node."""
        found = {name for (name,) in self.machines.sql("SELECT name FROM definitions_route WHERE name LIKE 'write-%'")}
        lost = [number for number in self.stored if f"write-{number}" not in found]
        assert not lost, f"answered as stored and lost: {lost}"
        last = self.stored[-1]
        for node in NODES:
            path = f"{node}/write/{last}"
            wait_until(lambda: self.machines.ask(path, host=HOST).text == f"text {last}", "it is served")  # noqa: B023


@contextmanager
def watched(machines: Machines, doors: tuple[str, ...] = CONSOLES, nodes: tuple[str, ...] = NODES) -> Iterator[Watched]:
    """Callers of the nodes and of the consoles, until the end."""
    found = Watched(machines, doors, nodes)
    callers = [threading.Thread(target=each) for each in (found.use_nodes, found.write)]
    for each in callers:
        each.start()
    try:
        yield found
    except BaseException:
        print(Counter(found.failed).most_common(20))
        raise
    finally:
        found.over.set()
        for each in callers:
            each.join()

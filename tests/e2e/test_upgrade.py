"""The release before, with a filled database, becomes today's under load: agents, database, one console, the other.

Who uses the nodes notices nothing, and who writes waits a few seconds at most.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from tests import earlier
from tests.e2e.installation import wait_until
from tests.e2e.machines import CONSOLES, NODES, Machines, five_machines
from tests.e2e.verdicts import trial

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.exhaustive,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(earlier.missing()), reason=earlier.missing() or "-"),
]

WITHOUT_WRITES_S = 5.0
REQUESTS_PER_S = 40
ROUTES = 300
WRITTEN = (200, 201, 202)


@dataclass
class Watched:
    """What callers met, by the step that was on: answers of nodes, writes that failed, and the longest pause."""

    machines: Machines
    step: str = "before"
    answers: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    failed: list[tuple[str, str, int, str]] = field(default_factory=list)
    writes: int = 0
    written_at: float = field(default_factory=time.monotonic)
    pause_s: float = 0.0
    paused_in: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)

    def use_nodes(self) -> None:
        """Requests to both nodes in turn."""
        while not self.over.wait(1 / REQUESTS_PER_S):
            for node in NODES:
                answer = self.machines.ask(f"{node}/kept/0", timeout=10, host="www.example.org")
                self.answers[self.step, node, answer.status] += 1

    def write(self) -> None:
        """A write each 200 ms at one console, and where that fails at once at the other one."""
        number = 0
        while not self.over.wait(0.2):
            number += 1
            for console in (CONSOLES[number % 2], CONSOLES[1 - number % 2]):
                answer = self.machines.write(console, f"text {number}", timeout=4)
                if answer.status in WRITTEN:
                    self._note(time.monotonic())
                    break
                self.failed.append((self.step, console, answer.status, answer.text[:160]))

    def _note(self, now: float) -> None:
        self.writes += 1
        pause, self.written_at = now - self.written_at, now
        if pause > self.pause_s:
            self.pause_s, self.paused_in = pause, self.step

    @contextmanager
    def during(self, step: str) -> Iterator[None]:
        """Name a step and count its seconds."""
        self.step, began = step, time.monotonic()
        yield
        self.seconds[step] = round(time.monotonic() - began, 1)


@contextmanager
def watched(machines: Machines) -> Iterator[Watched]:
    """Callers of the nodes and of the consoles, until the end."""
    found = Watched(machines)
    callers = [threading.Thread(target=each) for each in (found.use_nodes, found.write)]
    for each in callers:
        each.start()
    try:
        yield found
    finally:
        found.over.set()
        for each in callers:
            each.join()


def fill(machines: Machines) -> None:
    """Some hundreds of routes that nobody changes, one of which is asked for."""
    routes = [
        {
            "kind": "Route",
            "name": f"kept-{number}",
            "spec": {
                "load_balancer": "front",
                "hostname": "www.example.org",
                "path": f"/kept/{number}",
                "action": {"fixed_response": {"status": 200, "body": f"kept {number}"}},
            },
        }
        for number in range(ROUTES)
    ]
    answer = machines.api("a", "apply", "PUT", {"objects": routes}, timeout=120)
    assert answer.status in WRITTEN, answer.text
    kept = [lambda node=node: machines.ask(f"{node}/kept/0", host="www.example.org").status == 200 for node in NODES]
    for each in kept:
        wait_until(each, "the kept route is served")


def renew(machines: Machines, console: str) -> None:
    """Today's release on a console, its programs anew."""
    machines.stop_console(console)
    machines.trees.pop(console)
    machines.start_console(console)
    wait_until(lambda: machines.ready(console), f"console {console} is ready")


def upgrade(machines: Machines, seen: Watched) -> None:
    """As docs/operate/compatibility.md says it: agents, the database, one console, the other."""
    before = machines.trees["a"]
    for node in NODES:
        with seen.during(f"agent {node}"):
            machines.stop(node, "agent")
            machines.trees.pop(node)
            machines.start_agent(node)
            time.sleep(3)
    with seen.during("migrate"):
        machines.trees.pop("a")
        machines.manage("a", "migrate", "--verbosity", "0")
        machines.trees["a"] = before
    with seen.during("old consoles, new schema"):
        time.sleep(5)
    for console in CONSOLES:
        with seen.during(f"console {console}"):
            renew(machines, console)


def test_an_upgrade_loses_no_request_and_keeps_writes_waiting_for_seconds() -> None:
    tried = f"an upgrade from {earlier.release()[:12]} under load"
    with five_machines(dict.fromkeys((*CONSOLES, *NODES), earlier.tree())) as machines:
        fill(machines)
        (routes,) = machines.sql("SELECT count(*) FROM definitions_route")[0]
        assert routes >= ROUTES
        with trial(tried, "none: a console of before that fails is found among the writes") as found:
            with watched(machines) as seen:
                time.sleep(3)
                upgrade(machines, seen)
                with seen.during("after"):
                    time.sleep(5)
            found.saw(f"seconds {seen.seconds}")
            found.saw(f"{sum(seen.answers.values())} requests, {seen.writes} writes")
            found.saw(f"failed at one console {dict(Counter(each[:3] for each in seen.failed))}")
            assert {status for _, _, status in seen.answers} == {200}, seen.answers
            assert [each for each in seen.failed if each[0] in ("migrate", "old consoles, new schema")] == []
            found.took(f"the longest pause between writes, in {seen.paused_in}, ended", seen.pause_s, WITHOUT_WRITES_S)
        assert machines.write("b", "the end").status in WRITTEN
        machines.served("the end")
        assert machines.sql("SELECT count(*) FROM definitions_route") == [(routes,)]
        told = machines.sql("SELECT count(*) FROM observe_nodereport WHERE protocols::text LIKE '%2%'")
        assert told == [(len(NODES),)], "agents of this release are known as such"

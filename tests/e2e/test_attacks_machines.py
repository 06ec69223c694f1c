"""Faults of machines: five of them in network namespaces, cables pulled, disks full, keys and clocks wrong.

What is promised in a time is judged by tests/e2e/verdicts.py. Where namespaces are not to be had, this fails.
"""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.e2e.installation import wait_until
from tests.e2e.machines import CONSOLES, NODES, Answer, Machines, clock_off, five_machines
from tests.e2e.verdicts import elapsed, trial

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive, pytest.mark.timeout(600)]

WRITES_AGAIN_S, OTHER_NODE_S, TOLD_S = 15.0, 1.0, 1.0
WRITTEN = (200, 201, 202)
numbers = itertools.count(1)
# A write of the product's own that never comes to its end: the lock is taken, the rows are there, nobody commits.
IN_MID_WRITE = """
import os, sys, time
os.environ["SPILLWAY_PROCESS"] = "web"
import django
django.setup()
from django.db import transaction
from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.definitions.services import save_object
with transaction.atomic():
    spec = {"load_balancer": "front", "hostname": "www.example.org", "path": "/"}
    spec["action"] = {"fixed_response": {"status": 200, "body": "half"}}
    save_object(actor=Actor("somebody", Account.objects.get(kind="operator"), "admin"), kind="Route", name="home",
                spec=spec)
    print("held", flush=True)
    time.sleep(3600)
"""
NOBODY_NOTICES = "?options=" + "%20".join(
    f"-c%20{name}%3D{value}"
    for name, value in (
        ("idle_in_transaction_session_timeout", 0),
        ("tcp_keepalives_idle", 7200),
        ("tcp_user_timeout", 0),
    )
)

BELIEVES_ITSELF = (
    "tests/apps/test_clocks.py::test_control_without_what_the_database_said_the_machines_own_clock_is_believed"
)


@pytest.fixture(scope="module")
def all_five() -> Iterator[Machines]:
    with five_machines() as machines:
        yield machines


@pytest.fixture
def five(all_five: Machines) -> Iterator[Machines]:
    """All is well, before and after."""
    yield all_five
    try:
        for name in CONSOLES:
            wait_until(lambda: all_five.ready(name), f"console {name} is ready again")  # noqa: B023 - called at once
        text = fresh()
        wait_until(lambda: all_five.write("a", text).status in WRITTEN, "console a writes again")
        all_five.served(text)
    except AssertionError:
        print(all_five.logs())
        raise


def fresh() -> str:
    """A text that no route has answered with yet."""
    return f"text-{next(numbers)}"


@contextmanager
def pulled(five: Machines, name: str) -> Iterator[None]:
    """A cable is out, for so long."""
    five.unplug(name)
    try:
        yield
    finally:
        five.plug(name)


@contextmanager
def in_mid_write(five: Machines, query: str = "") -> Iterator[None]:
    """Console a has begun a write."""
    url = five.environment("a")["SPILLWAY_DATABASE_URL"] + query
    before = (five.folder / "a-writer.log").stat().st_size if (five.folder / "a-writer.log").exists() else 0
    five.start("a", "writer", [sys.executable, "-c", IN_MID_WRITE], SPILLWAY_DATABASE_URL=url,
               DJANGO_SETTINGS_MODULE="controlplane.settings", PYTHONPATH=".")  # fmt: skip
    log = five.folder / "a-writer.log"
    wait_until(lambda: b"held" in log.read_bytes()[before:], "a write is under way on console a")
    try:
        yield
    finally:
        five.stop("a", "writer", signal.SIGKILL)


def writes_within(five: Machines, seconds: float) -> tuple[float | None, list[int]]:
    """How long it took until console b wrote, None where it did not within these seconds; what it said until then."""
    begun = time.monotonic()
    said: list[int] = []
    while elapsed(begun) < seconds:
        status = five.write("b", fresh()).status
        if status in WRITTEN:
            return elapsed(begun), said
        said.append(status)
    return None, said


def test_a_console_that_is_cut_off_in_mid_write_keeps_nobody_from_writing(five: Machines) -> None:
    control = "tests/e2e/test_attacks_machines.py::test_control_without_limits_of_sessions_nobody_writes_again"
    with trial("11: console a loses its cable in the middle of a write", control) as seen:
        with in_mid_write(five), pulled(five, "a"):
            took, said = writes_within(five, 120)
            seen.saw(f"b said {said} meanwhile")
            assert took is not None, "console b never wrote again"
            seen.took("b writes", took, WRITES_AGAIN_S)
            assert five.ask("b/healthz").status == 200
        wait_until(lambda: five.write("a", fresh()).status in WRITTEN, "a writes again by itself")


def test_control_without_limits_of_sessions_nobody_writes_again(five: Machines) -> None:
    with in_mid_write(five, NOBODY_NOTICES), pulled(five, "a"):
        took, said = writes_within(five, WRITES_AGAIN_S * 2)
    assert took is None, f"{took} s: the control proves nothing"
    assert set(said) <= {503}


def test_a_node_that_falls_silent_keeps_the_other_one_from_nothing(five: Machines) -> None:
    control = (
        "tests/apps/test_rollouts_pace.py::test_control_a_worker_that_waits_for_all_nodes_keeps_the_healthy_one_waiting"
    )
    with trial("14: node d loses its cable, changes go on", control) as seen:
        with pulled(five, "d"):
            for what in ("the first change", "the next one", "the one after"):
                text = fresh()
                assert five.write("a", text).status in WRITTEN
                seen.took(f"{what} at e", five.served(text, "e"), OTHER_NODE_S)
        begun = time.monotonic()
        five.served(text)
        seen.saw(f"d has it {elapsed(begun):.1f} s after its cable")


def refused_in_time(five: Machines, what: str, took: Callable[[str, float, float], None]) -> None:
    """The API says 503 as a problem with when to ask again, in time, for the first request and for later ones."""
    seconds: list[float] = []
    for _ in range(6):
        for method, path in (("GET", "routes"), ("PUT", "apply")):
            answer = five.api("a", path, method, {"objects": []})
            assert answer.status == 503, answer
            assert answer.headers["content-type"] == "application/problem+json"
            assert int(answer.headers["retry-after"]) > 0
            seconds.append(answer.seconds)
    page = five.ask("a/sign-in")
    assert five.ask("a/healthz").status == 200
    assert five.ask("a/readyz").status == 503
    print("answered after", *(f"{each:.2f}" for each in seconds))
    took(f"{what}: the slowest of 12 answers 503", max(seconds), TOLD_S)
    took(f"{what}: the page {page.status}", page.seconds, TOLD_S)
    assert all(five.serves(node, current(five)) for node in NODES)


_current = ["first"]


def current(five: Machines) -> str:
    """What the nodes serve; written by `settle`."""
    return _current[0]


def settle(five: Machines) -> None:
    """Both nodes serve a text that is known."""
    _current[0] = fresh()
    assert five.write("a", _current[0]).status in WRITTEN
    five.served(_current[0])


@pytest.mark.parametrize("way", ["stopped", "silent"])
def test_without_a_database_who_asks_is_told_at_once_and_nodes_serve(five: Machines, way: str) -> None:
    control = "tests/conformance/test_database_silent.py::test_control_as_django_has_it_each_request_waits_for_the_host"
    settle(five)
    with trial(f"12: PostgreSQL is {way}", control) as seen:
        if way == "silent":
            with pulled(five, "c"):
                refused_in_time(five, way, seen.took)
        else:
            five.postgresql("stop", "-m", "immediate")
            try:
                refused_in_time(five, way, seen.took)
            finally:
                five.postgresql("start")
        begun = time.monotonic()
        wait_until(lambda: five.write("a", fresh()).status in WRITTEN, "console a writes again")
        seen.saw(f"a writes {elapsed(begun):.1f} s after it is back")


def test_without_redis_writes_are_taken_and_reach_the_nodes(five: Machines) -> None:
    control = "mutant:a-broker-away-fails-the-write"
    with trial("12: Redis is off", control) as seen:
        five.stop("c", "redis", signal.SIGKILL)
        try:
            text = fresh()
            answer = five.write("a", text)
            assert answer.status in WRITTEN, answer
            seen.saw(f"a write took {answer.seconds:.1f} s, nodes had it after {five.served(text):.1f} s")
            assert "redis" in five.ask("a/readyz").json()["degraded"]
        finally:
            five.start_redis()


def test_names_that_are_this_machine_or_a_metadata_service_are_no_servers(five: Machines) -> None:
    """What other names resolve to is not asked here."""
    with trial("5: loopback and metadata services by name", "mutant:metadata-services-are-servers") as seen:
        names = ("localhost", "localhost6", "broadcasthost", "metadata.azure.internal", "metadata.google.internal")
        for name in (*names, "169.254.169.254", "127.0.0.1"):
            answer = five.api("a", "pools", "POST", pool_of(name))
            assert answer.status == 422, (name, answer)
            seen.saw(f"{name}: 422")
        answer = five.api("a", "pools", "POST", pool_of("app.internal.example"))
        assert answer.status == 201, "the control, a name of somebody's own"


def pool_of(address: str) -> dict[str, Any]:
    """A pool with a server there."""
    servers = [{"name": "s", "address": address, "port": 8080}]
    return {"name": "names", "spec": {"protocol": "http", "backends": [{"region": "here", "servers": servers}]}}


def test_a_console_with_another_key_is_not_ready_and_takes_no_write(five: Machines) -> None:
    settle(five)
    with trial("13: SPILLWAY_SECRET_KEY of console a is replaced", "mutant:written-with-a-wrong-key") as seen:
        five.stop_console("a")
        five.start_console("a", SPILLWAY_SECRET_KEY="other-" + "o" * 50)
        try:
            wait_until(lambda: five.ask("a/healthz").status == 200, "console a runs")
            ready, write = five.ask("a/readyz"), five.write("a", fresh())
            assert (ready.status, write.status) == (503, 503)
            assert "SPILLWAY_SECRET_KEY" in ready.json()["parts"]["key"]
            assert "SPILLWAY_SECRET_KEY" in write.json()["detail"]
            text = fresh()
            assert five.write("b", text).status in WRITTEN
            took = five.served(text)
            wait_until(lambda: "opens nothing" in five.log("a", "worker"), "a's worker says why it takes nothing")
            seen.saw(f"a says 503 and why, its worker takes nothing, b writes, nodes have it after {took:.1f} s")
        finally:
            five.stop_console("a")
            five.start_console("a")


@contextmanager
def small_disk(five: Machines, folder: str) -> Iterator[Callable[[], None]]:
    """A folder on a disk of its own that is full; the function makes room."""
    path = five.folder / folder
    path.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=0755", "small", str(path)], check=True)
    filler = path / "filler"

    def fill() -> None:
        subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=64k"], check=False, capture_output=True)

    try:
        yield fill
    finally:
        filler.unlink(missing_ok=True)


def test_a_full_disk_on_a_node_holds_up_nobody_and_is_named(five: Machines) -> None:
    with trial("disk of node e full", "mutant:a-full-disk-leaves-the-new-release-live") as seen:
        five.stop("e", "agent", signal.SIGTERM)
        stop = [sys.executable, "-m", "apps.agent", "--name", "e", "--state-dir", str(five.state_dir("e")), "--stop"]
        five.start("e", "stop", stop)
        five.processes["e", "stop"].wait(60)
        try:
            with small_disk(five, "e") as fill:
                five.state_dir("e").chmod(0o711)
                five.start_agent("e")
                settle(five)
                # Clients are served a moment before the agent has written down what it runs.
                wait_until((five.state_dir("e") / "state.json").exists, "the agent remembers its first generation")
                fill()
                text = fresh()
                assert five.write("a", text).status in WRITTEN
                seen.took("the change at d", five.served(text, "d"), OTHER_NODE_S)
                wait_until(lambda: "No space left" in said_of_steps(five), "the step says why")
                shown = five.ask("e/", timeout=5, host="www.example.org")
                assert shown.text == current(five), shown
                seen.saw("e serves on and its step says: No space left on device")
            begun = time.monotonic()
            five.served(text)
            seen.saw(f"e has it {elapsed(begun):.1f} s after room was made")
        finally:
            five.stop("e", "agent", signal.SIGTERM)
            five.start("e", "stop", stop)
            five.processes["e", "stop"].wait(60)
            subprocess.run(["umount", "-l", str(five.state_dir("e"))], check=True)
            five.start_agent("e")


def said_of_steps(five: Machines) -> str:
    """What the last steps of rollouts say."""
    rows = five.sql("SELECT message FROM rollouts_step ORDER BY id DESC LIMIT 6")
    return " ".join(message for (message,) in rows)


def test_a_full_disk_on_a_console_costs_no_write(five: Machines) -> None:
    with trial("disk of console a full", "none: a console keeps nothing on its disk") as seen:
        five.stop_console("a")
        with small_disk(five, "var-a") as fill:
            fill()
            five.start_console("a")
            wait_until(lambda: five.ready("a"), "console a is ready with a full disk")
            text = fresh()
            answer = five.write("a", text)
            assert answer.status in WRITTEN, answer
            seen.saw(f"a starts, writes in {answer.seconds:.1f} s, nodes have it after {five.served(text):.1f} s")
        five.stop_console("a")
        subprocess.run(["umount", "-l", str(five.folder / "var-a")], check=True)
        five.start_console("a")


def conditions(five: Machines, kind: str) -> dict[str, tuple[bool, str]]:
    """What is said of the clocks of this kind of machine."""
    rows = five.sql("SELECT object_kind, object_id, status, message FROM observe_condition WHERE type = 'ClockRight'")
    return {str(number): (status, message) for of, number, status, message in rows if of == kind}


@pytest.mark.parametrize("by", [600, -600])
def test_a_node_whose_clock_is_wrong_is_named_and_serves(five: Machines, by: int) -> None:
    side = "ahead of" if by > 0 else "behind"
    with trial(f"17: clock of node d {by:+} s", BELIEVES_ITSELF) as seen:
        five.stop("d", "agent", signal.SIGTERM)
        five.start_agent("d", **clock_off(by))
        try:
            wait_until(
                lambda: any(f"10 min {side}" in words for _, words in conditions(five, "node").values()), "named"
            )
            text = fresh()
            assert five.write("a", text).status in WRITTEN
            seen.saw(f"10 min {side} the database's, it says; nodes have a change after {five.served(text):.1f} s")
        finally:
            five.stop("d", "agent", signal.SIGTERM)
            five.start_agent("d")
        wait_until(lambda: all(status for status, _ in conditions(five, "node").values()), "it is right again")


@pytest.mark.parametrize("by", [600, -600])
def test_a_console_whose_clock_is_wrong_is_named_and_judges_nobody_by_it(five: Machines, by: int) -> None:
    side = "ahead of" if by > 0 else "behind"
    with trial(f"17: clock of console a {by:+} s", BELIEVES_ITSELF) as seen:
        five.stop_console("b", "collect")  # the one that reads the nodes is the one whose clock is wrong
        five.stop_console("a")
        five.start_console("a", **clock_off(by))
        try:
            wait_until(lambda: f"10 min {side}" in clock_of(five, "a"), "it names its own clock")
            assert clock_of(five, "b") == "ok"
            text = fresh()
            assert five.write("a", text).status in WRITTEN
            took = five.served(text)
            wait_until(lambda: seen_lately(five, text), "nodes are seen at the present moment")
            seen.saw(f"10 min {side} the database's, it says; a change lives after {took:.1f} s, nodes seen just now")
        finally:
            five.stop_console("a")
            five.start_console("a")
            five.start_console("b", "collect")


def clock_of(five: Machines, console: str) -> str:
    """What a console says of its own clock."""
    answer: Answer = five.ask(f"{console}/readyz")
    return str(answer.json()["parts"]["clock"]) if answer.status == 200 else ""


def seen_lately(five: Machines, _text: str) -> bool:
    """Whether all nodes were seen within a few seconds of the present, by the database's clock."""
    rows = five.sql("SELECT abs(extract(epoch FROM now() - seen_at)) FROM observe_nodereport")
    return len(rows) == len(NODES) and all(float(age) < 30 for (age,) in rows)

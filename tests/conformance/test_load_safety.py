"""Whatever becomes of those who asked for it, the load ends: seen from the server that takes it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from apps.drivers.load.contract import LEASE_S, Arrivals, Endpoint, LoadError, Plan, Request
from apps.drivers.load.process import ProcessGenerator
from apps.drivers.load.several import SeveralGenerator
from apps.drivers.load.wire import line_of, plan_to_json
from tests.conformance.load_server import Seen, load_server, wait_until

pytestmark = pytest.mark.slow(reason="a generator is a process, and what has ended must be silent for a while")
ROOT = Path(__file__).resolve().parents[2]
RATE = 100.0
SECRET = "a-word-that-opens-doors"
# What ends at once has this long on a busy machine; what is only not renewed goes on for its lease.
AT_ONCE_S = 2.0
# The product's lease, and a short one with which the same is seen sooner.
LEASES = [pytest.param(0.6, id="short"), pytest.param(LEASE_S, id="as it is", marks=pytest.mark.exhaustive)]
WITH_LEASE = """
import sys
from apps.drivers.load import __main__ as program
from apps.drivers.load.http1 import engine
engine.LEASE_S = float(sys.argv[1])
program.live(program.carry_out())
"""


def plan_of(seen: Seen, rate: float = RATE) -> Plan:
    """A minute of load."""
    request = Request("a.example", headers={"X-Spillway-Test": SECRET})
    endpoints = (Endpoint("127.0.0.1", seen.port),)
    return Plan(endpoints, request, rate=rate, arrivals=Arrivals.CONSTANT, ramp_s=0.0, duration_s=60.0)


def child(seen: Seen, lease_s: float) -> subprocess.Popen[bytes]:
    """A generator's process that has begun, as the asking process has it."""
    words = [sys.executable, "-c", WITH_LEASE, str(lease_s)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
    assert process.stdin is not None
    assert process.stdout is not None
    tell(process, line_of("plan", plan=plan_to_json(plan_of(seen)), phase=1.0))
    assert json.loads(process.stdout.readline()) == {"say": "ready"}
    tell(process, line_of("begin", at=time.monotonic()))
    return process


def tell(process: subprocess.Popen[bytes], line: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(line)
    process.stdin.flush()


@contextmanager
def loaded(lease_s: float = 60.0) -> Iterator[tuple[Seen, subprocess.Popen[bytes]]]:
    """A server under load, and the process that makes it; what ends it is not the lease unless it is a short one."""
    with load_server() as seen:
        process = child(seen, lease_s)
        try:
            assert wait_until(lambda: len(seen.asked) > 20)
            yield seen, process
        finally:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()


def quiet_after(seen: Seen, instant: float, within_s: float = AT_ONCE_S) -> bool:
    """The last request came within so many seconds after the instant, and no connection stays open.

    Load that went on would fill any pause but that of a machine that does nothing at all for a third of a second.
    """

    def over() -> bool:
        return seen.open == 0 and time.monotonic() > max(instant, seen.asked[-1]) + 0.3

    return wait_until(over) and seen.asked[-1] <= instant + within_s


# A generator that a busy machine stops for a lease ends as it must, so the control has a longer one.
@pytest.mark.slow(reason="outlives a lease that a busy machine does not use up")
@pytest.mark.parametrize("lease_s", [pytest.param(2.0, id="short"), LEASES[1]])
def test_it_goes_on_while_somebody_renews(lease_s: float) -> None:
    """The control of all tests below."""
    with loaded(lease_s) as (seen, process):
        for _ in range(7):
            tell(process, line_of("renew"))
            time.sleep(lease_s / 5)
        assert seen.asked[-1] - seen.asked[0] > 1.2 * lease_s


@pytest.mark.parametrize("lease_s", LEASES)
def test_without_renewal_it_ends_with_its_lease(lease_s: float) -> None:
    with loaded(lease_s) as (seen, process):
        assert process.wait() == 0
        assert quiet_after(seen, seen.asked[0], lease_s + 0.3)
        assert len(seen.asked) <= lease_s * RATE + 5


def test_when_its_orders_end_it_ends_at_once() -> None:
    with loaded() as (seen, process):
        assert process.stdin is not None
        process.stdin.close()
        assert quiet_after(seen, time.monotonic())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(number: int) -> None:
    with loaded() as (seen, process):
        process.send_signal(number)
        assert quiet_after(seen, time.monotonic())
        assert process.wait() == 0


def test_when_nobody_hears_it_any_more_it_ends() -> None:
    with loaded() as (seen, process):
        assert process.stdout is not None
        process.stdout.close()
        assert quiet_after(seen, time.monotonic())


@pytest.mark.parametrize("lease_s", LEASES)
def test_one_that_was_frozen_beyond_its_lease_does_not_go_on(lease_s: float) -> None:
    with loaded(lease_s) as (seen, process):
        process.send_signal(signal.SIGSTOP)
        time.sleep(lease_s + 0.2)
        thawed = time.monotonic()
        process.send_signal(signal.SIGCONT)
        assert quiet_after(seen, thawed)
        assert seen.since(thawed) <= 2


PARENT = """
import asyncio, json, sys
from apps.drivers.load.process import ProcessGenerator
from apps.drivers.load.several import SeveralGenerator
from apps.drivers.load.wire import plan_from_json

async def run():
    generator = ProcessGenerator() if sys.argv[1] == "one" else SeveralGenerator(2)
    await generator.start(plan_from_json(json.loads(sys.argv[2])))
    async for _ in generator.seconds():
        await generator.renew()

asyncio.run(run())
"""


@pytest.mark.parametrize("processes", ["one", "two"])
def test_when_its_parent_is_killed_the_load_ends_at_once(processes: str) -> None:
    with load_server() as seen:
        words = [sys.executable, "-c", PARENT, processes, json.dumps(plan_to_json(plan_of(seen)))]
        parent = subprocess.Popen(words, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
        try:
            assert wait_until(lambda: len(seen.asked) > 20)
        finally:
            parent.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        parent.wait()
        assert quiet_after(seen, killed)


async def _killed(generator: ProcessGenerator | SeveralGenerator, seen: Seen) -> None:
    """One of its processes dies under load."""
    await generator.start(plan_of(seen))
    await asyncio.to_thread(wait_until, lambda: len(seen.asked) > 20)
    pid = generator.pid if isinstance(generator, ProcessGenerator) else generator.pids[0]
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    async for _ in generator.seconds():
        await generator.renew()


@pytest.mark.parametrize("make", [ProcessGenerator, lambda: SeveralGenerator(2)], ids=["one", "of several"])
def test_a_generator_that_is_killed_is_missed_and_others_end_with_it(
    make: Callable[[], ProcessGenerator | SeveralGenerator],
) -> None:
    with load_server() as seen:
        with pytest.raises(LoadError, match="lost"):
            asyncio.run(_killed(make(), seen))
        assert quiet_after(seen, time.monotonic())


def test_stop_leaves_no_process_and_no_connection() -> None:
    async def run(seen: Seen) -> int:
        generator = ProcessGenerator()
        await generator.start(plan_of(seen))
        await asyncio.to_thread(wait_until, lambda: len(seen.asked) > 50)
        began = time.monotonic()
        await generator.stop()
        assert time.monotonic() - began < AT_ONCE_S
        assert generator.pid is not None
        return generator.pid

    with load_server() as seen:
        pid = asyncio.run(run(seen))
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert quiet_after(seen, time.monotonic())


def test_secrets_stand_neither_in_its_words_nor_in_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(seen: Seen) -> tuple[str, str]:
        generator = ProcessGenerator()
        await generator.start(plan_of(seen))
        await asyncio.to_thread(wait_until, lambda: len(seen.asked) > 10)
        process = Path(f"/proc/{generator.pid}")
        found = (process / "cmdline").read_text(), (process / "environ").read_text()
        await generator.stop()
        return found

    monkeypatch.setenv("SPILLWAY_SECRET_KEY", SECRET)
    with load_server() as seen:
        words, environment = asyncio.run(run(seen))
        assert f"X-Spillway-Test: {SECRET}" in seen.heads[0]
    assert "apps.drivers.load" in words
    assert SECRET not in words + environment
    assert "SPILLWAY_" not in environment


@pytest.mark.parametrize(
    "first",
    [
        b"nonsense\n",
        line_of("plan", plan={"endpoints": [{"host": "localhost", "port": 80}]}, phase=1.0),
        *(
            pytest.param(each, marks=pytest.mark.exhaustive)
            for each in (b"", b"[]\n", line_of("begin", at=0.0), line_of("plan", plan={}, phase=1.0))
        ),
    ],
)
def test_it_opens_nothing_for_what_is_no_plan(first: bytes) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "apps.drivers.load"], input=first, capture_output=True, cwd=ROOT, check=False
    )
    assert json.loads(done.stdout)["say"] == "refused"


def test_a_plan_out_of_bounds_is_refused_by_the_process_itself() -> None:
    """The asking process checks as well; this is the wall behind it."""
    with load_server() as seen:
        plan = {**plan_to_json(plan_of(seen)), "max_rate": 1e6}
        line = line_of("plan", plan=plan, phase=1.0) + line_of("begin", at=0.0)
        words = [sys.executable, "-m", "apps.drivers.load"]
        done = subprocess.run(words, input=line, capture_output=True, cwd=ROOT, check=False)
        assert "at most" in json.loads(done.stdout)["message"]
        assert seen.connections == 0


def test_an_order_above_the_plan_is_not_obeyed_by_the_process_itself() -> None:
    with loaded() as (seen, process):
        tell(process, line_of("rate", rate=5000.0))
        told = time.monotonic()
        time.sleep(0.5)
        assert 0 < seen.since(told) < 2 * RATE * (time.monotonic() - told)

"""LOAD: whatever becomes of those who asked for it, the load ends: seen from the server that takes it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from apps.drivers.load.contract import Arrivals, Endpoint, LoadError, Plan, Request
from apps.drivers.load.process import ProcessGenerator
from apps.drivers.load.several import SeveralGenerator
from apps.drivers.load.wire import line_of, plan_to_json
from tests.conformance.load_server import Seen, load_server, wait_until

ROOT = Path(__file__).resolve().parents[2]
RATE = 100.0
SECRET = "a-word-that-opens-doors"
# What ends at once has this long on a busy machine; what is only not renewed goes on for five seconds.
AT_ONCE_S = 2.0


def plan_of(seen: Seen, rate: float = RATE) -> Plan:
    """A minute of load."""
    request = Request("a.example", headers={"X-Spillway-Test": SECRET})
    endpoints = (Endpoint("127.0.0.1", seen.port),)
    return Plan(endpoints, request, rate=rate, arrivals=Arrivals.CONSTANT, ramp_s=0.0, duration_s=60.0)


def child(seen: Seen) -> subprocess.Popen[bytes]:
    """A generator's process that has begun, as the asking process has it."""
    words = [sys.executable, "-m", "apps.drivers.load"]
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
def loaded() -> Iterator[tuple[Seen, subprocess.Popen[bytes]]]:
    """A server under load, and the process that makes it."""
    with load_server() as seen:
        process = child(seen)
        try:
            assert wait_until(lambda: len(seen.asked) > 20)
            yield seen, process
        finally:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()


def quiet_after(seen: Seen, instant: float, within_s: float) -> bool:
    """The last request came within so many seconds after the instant, and no connection stays open."""

    def over() -> bool:
        return seen.open == 0 and time.monotonic() > max(instant + within_s, seen.asked[-1]) + 0.3

    return wait_until(over) and seen.asked[-1] <= instant + within_s


def test_it_goes_on_while_somebody_renews() -> None:
    """The control of all tests below: 7 seconds with a lease of 5."""
    with loaded() as (seen, process):
        for _ in range(7):
            tell(process, line_of("renew"))
            time.sleep(1.0)
        assert seen.asked[-1] - seen.asked[0] > 6


def test_without_renewal_it_ends_within_five_seconds() -> None:
    with loaded() as (seen, process):
        assert quiet_after(seen, seen.asked[0], 5.3)
        assert len(seen.asked) <= 5 * RATE + 5
        assert process.wait() == 0


def test_when_its_orders_end_it_ends_at_once() -> None:
    with loaded() as (seen, process):
        assert process.stdin is not None
        process.stdin.close()
        assert quiet_after(seen, time.monotonic(), AT_ONCE_S)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(number: int) -> None:
    with loaded() as (seen, process):
        process.send_signal(number)
        assert quiet_after(seen, time.monotonic(), AT_ONCE_S)
        assert process.wait() == 0


def test_when_nobody_hears_it_any_more_it_ends() -> None:
    with loaded() as (seen, process):
        assert process.stdout is not None
        process.stdout.close()
        assert quiet_after(seen, time.monotonic(), AT_ONCE_S)


def test_one_that_was_frozen_beyond_its_lease_does_not_go_on() -> None:
    with loaded() as (seen, process):
        process.send_signal(signal.SIGSTOP)
        time.sleep(5.2)
        thawed = time.monotonic()
        process.send_signal(signal.SIGCONT)
        assert quiet_after(seen, thawed, AT_ONCE_S)
        assert seen.since(thawed) <= 2


PARENT = """
import asyncio, sys
from tests.conformance.test_load_safety import Seen, plan_of
from apps.drivers.load.process import ProcessGenerator
from apps.drivers.load.several import SeveralGenerator

async def run():
    generator = ProcessGenerator() if sys.argv[2] == "one" else SeveralGenerator(2)
    await generator.start(plan_of(Seen(port=int(sys.argv[1]))))
    async for _ in generator.seconds():
        await generator.renew()

asyncio.run(run())
"""


@pytest.mark.parametrize("processes", ["one", "two"])
def test_when_its_parent_is_killed_the_load_ends_at_once(processes: str) -> None:
    with load_server() as seen:
        words = [sys.executable, "-c", PARENT, str(seen.port), processes]
        parent = subprocess.Popen(words, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
        try:
            assert wait_until(lambda: len(seen.asked) > 150)
        finally:
            parent.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        parent.wait()
        assert quiet_after(seen, killed, AT_ONCE_S)


async def _watched(generator: ProcessGenerator | SeveralGenerator, pids: Sequence[int]) -> None:
    async for _ in generator.seconds():
        await generator.renew()
        os.kill(pids[0], signal.SIGKILL)


def test_a_generator_that_is_killed_is_missed() -> None:
    async def run(seen: Seen) -> None:
        generator = ProcessGenerator()
        await generator.start(plan_of(seen))
        assert generator.pid is not None
        await _watched(generator, [generator.pid])

    with load_server() as seen:
        with pytest.raises(LoadError, match="lost"):
            asyncio.run(run(seen))
        assert quiet_after(seen, time.monotonic(), AT_ONCE_S)


def test_when_one_of_several_is_killed_the_others_end() -> None:
    async def run(seen: Seen) -> None:
        generator = SeveralGenerator(2)
        await generator.start(plan_of(seen))
        await _watched(generator, [pid for pid in generator.pids if pid is not None])

    with load_server() as seen:
        with pytest.raises(LoadError, match="lost"):
            asyncio.run(run(seen))
        assert quiet_after(seen, time.monotonic(), AT_ONCE_S)


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
        assert quiet_after(seen, time.monotonic(), AT_ONCE_S)


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
        b"[]\n",
        line_of("begin", at=0.0),
        line_of("plan", plan={}, phase=1.0),
        line_of("plan", plan={"endpoints": [{"host": "localhost", "port": 80}]}, phase=1.0),
        b"",
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
        time.sleep(2.0)
        assert seen.since(told) < 2 * RATE * (time.monotonic() - told)

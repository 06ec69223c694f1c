"""The engine finds out its own maximum: `python -m apps.drivers.load.http1.calibrating [close]` writes it.

The very engine that makes load later is asked for higher and higher rates of independent callers by a sink of its own
(`sink.py`), each for a moment, until requests do not leave in time; then the border is narrowed to a tenth. A rate that
did not hold is tried once more: something else may have had the processor. All of it takes about two seconds.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from apps.drivers.load.bounds import MOST_RATE
from apps.drivers.load.contract import Arrivals, Endpoint, Plan, Request, Second
from apps.drivers.load.http1.engine import Engine
from apps.drivers.load.processes import ROOT, environment, live, words_of

FIRST, LOWEST = 4_000.0, 100.0
CLOSE_ENOUGH = 1.1
STEP_S, RECORD_S = 0.15, 0.05
TRIES = 2
OFF = 0.01  # of what was due, so much may not have left
LONGEST_S = 3.0
CONNECTIONS = 500


async def highest(holds: Callable[[float], Awaitable[bool]], more_time: Callable[[], bool] = lambda: True) -> float:
    """The highest rate (requests/s) that held, to a tenth: doubling, then between the last two; 0 when none did."""
    low, high, rate = 0.0, float("inf"), FIRST
    while more_time():
        if await holds(rate):
            low = rate
        else:
            high = rate
        if low >= MOST_RATE or high <= LOWEST or (low and high / low <= CLOSE_ENOUGH):
            break
        if not low:
            rate = max(LOWEST, high / 4)
        else:
            rate = min(low * 2, MOST_RATE) if high > MOST_RATE else (low * high) ** 0.5
    return low


async def _holds(port: int, rate: float, *, keep_alive: bool) -> bool:
    for _ in range(TRIES):
        if kept(await _offered(port, rate, keep_alive=keep_alive)):
            return True
    return False


def kept(records: list[Second]) -> bool:
    """Whether all that was due left, and requests still left in time at the end: what is too much gets later and later.

    What the sink did not take in time counts as not kept as well: beyond it nothing is known.
    """
    whole = records[: round(STEP_S / RECORD_S)]
    due, left = sum(each.offered for each in whole), sum(each.sent for each in whole)
    failed = sum(sum(each.errors.values()) for each in whole)
    return left >= (1 - OFF) * due and failed <= OFF * due and not whole[-1].generator_limited


async def _offered(port: int, rate: float, *, keep_alive: bool) -> list[Second]:
    """The records of a moment at this rate, of an engine that has just begun."""
    plan = Plan(
        (Endpoint("127.0.0.1", port),),
        Request("localhost"),
        rate=rate,
        arrivals=Arrivals.POISSON,
        ramp_s=0.0,
        duration_s=STEP_S,
        timeout_s=1.0,
        max_connections=CONNECTIONS,
        keep_alive=keep_alive,
    )
    records: list[Second] = []
    engine = Engine(plan, records.append, record_s=RECORD_S)
    engine.begin(time.monotonic())
    await engine.over.wait()
    return records


@asynccontextmanager
async def _sink() -> AsyncIterator[int]:
    """A sink of our own process group, at this port; it ends with its stdin."""
    process = await asyncio.create_subprocess_exec(
        *words_of("apps.drivers.load.http1.sink"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env=environment(),
    )
    try:
        yield int(await process.stdout.readline())  # type: ignore[union-attr]  # it is a pipe
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def calibrate(*, keep_alive: bool) -> float:
    """What one process holds here and now, requests/s; 0 when it is nothing worth to be named."""
    async with _sink() as port:
        until = time.monotonic() + LONGEST_S
        return await highest(lambda rate: _holds(port, rate, keep_alive=keep_alive), lambda: time.monotonic() < until)


async def _say(*, keep_alive: bool) -> None:
    sys.stdout.write(json.dumps({"rate": await calibrate(keep_alive=keep_alive)}))


if __name__ == "__main__":
    live(_say(keep_alive="close" not in sys.argv[1:]))

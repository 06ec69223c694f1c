"""The generator's own process: `python -m apps.drivers.load` reads orders on stdin, writes records on stdout.

Orders: `plan` (once), `begin`, `renew`, `rate`, `users`, `stop`. Answers: `ready` or `refused`, a `second` each
second, `over` at the end. It stops when told to, when nobody renews its lease, when stdin closes, when its parent is
gone, when nobody reads what it writes, and on SIGTERM. It reads no settings and knows no secret but those in its plan.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from typing import Any

from apps.drivers.load.contract import LEASE_S, LoadError, Second
from apps.drivers.load.http1.engine import Engine
from apps.drivers.load.processes import live
from apps.drivers.load.wire import LONGEST_LINE, line_of, plan_from_json, read_line, second_to_json

MOST_UNREAD = 1024 * 1024
LOOK_S = 0.1


class Outlet(asyncio.Protocol):
    """Where records go; `full` when nobody reads them."""

    def __init__(self) -> None:
        self.transport: asyncio.WriteTransport | None = None
        self.lost = False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # as asyncio calls it
        """The reader closed it."""
        self.lost = True

    @property
    def full(self) -> bool:
        """Whether more waits to be read than anybody will."""
        return self.transport is not None and self.transport.get_write_buffer_size() > MOST_UNREAD

    def say(self, word: str, **values: object) -> None:
        """Write a message, unless there is nobody."""
        if self.transport is not None and not self.lost:
            self.transport.write(line_of(word, **values))

    def second(self, second: Second) -> None:
        """Write a record."""
        self.say("second", **second_to_json(second))


async def carry_out() -> None:
    """Read a plan, carry it out, say what happened."""
    parent = os.getppid()
    loop = asyncio.get_running_loop()
    orders = asyncio.StreamReader(limit=LONGEST_LINE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    transport, outlet = await loop.connect_write_pipe(Outlet, sys.stdout)
    outlet.transport = transport
    engine = await _prepared(orders, outlet)
    if engine is None:
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, engine.stop, "It was stopped by a signal.")
    watching = [loop.create_task(_obey(orders, engine)), loop.create_task(_watch(parent, outlet, engine))]
    await engine.over.wait()
    for task in watching:
        task.cancel()
    outlet.say("over", why=engine.why)
    await _written(outlet)


async def _prepared(orders: asyncio.StreamReader, outlet: Outlet) -> Engine | None:
    """The engine, begun at the instant that the asking process names; None when it did not come to that."""
    try:
        async with asyncio.timeout(LEASE_S):
            word, values = read_line(await orders.readline())
            if word != "plan":
                raise ValueError("The first order is a plan.")
            engine = Engine(plan_from_json(values["plan"]), outlet.second, phase=float(values["phase"]))
            outlet.say("ready")
            word, values = read_line(await orders.readline())
            if word != "begin":
                return None
            engine.begin(float(values["at"]))
    except (LoadError, OSError) as problem:
        outlet.say("refused", message=str(problem))
    except (ValueError, KeyError, TypeError, TimeoutError):
        outlet.say("refused", message="The generator did not understand its plan.")
    else:
        return engine
    await _written(outlet)
    return None


async def _obey(orders: asyncio.StreamReader, engine: Engine) -> None:
    """Orders, until there is nobody who gives them."""
    while line := await orders.readline():
        with suppress(LoadError, ValueError, KeyError):  # the asking process has checked it: this is the second wall
            _obey_one(*read_line(line), engine)
    engine.abandon("The process that started it is gone.")


def _obey_one(word: str, values: dict[str, Any], engine: Engine) -> None:
    if word == "renew":
        engine.renew()
    elif word == "rate":
        engine.set_rate(float(values["rate"]))
    elif word == "users":
        engine.set_users(int(values["users"]))
    elif word == "stop":
        engine.stop("It was told to stop.")


async def _watch(parent: int, outlet: Outlet, engine: Engine) -> None:
    """A pipe may be held open by a stranger; a parent is not."""
    while True:
        await asyncio.sleep(LOOK_S)
        if os.getppid() != parent or outlet.lost or outlet.full:
            engine.abandon("The process that started it is gone.")


async def _written(outlet: Outlet) -> None:
    """Let the last words leave; a reader that does not read them has a second."""
    for _ in range(100):
        if outlet.lost or outlet.transport is None or not outlet.transport.get_write_buffer_size():
            return
        await asyncio.sleep(0.01)


if __name__ == "__main__":
    live(carry_out())

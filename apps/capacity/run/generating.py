"""A generator for code that waits: its coroutines run on a loop in a thread of their own.

The database is asked by the thread that carries the run out, the generator is spoken to by this one, so that neither
waits for the other longer than it should. A generator that says nothing for `SILENCE_S` counts as dead.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import AsyncIterator, Coroutine
from typing import Any, Self, TypeVar

from apps.drivers.load.contract import LoadError, Plan, Second
from apps.drivers.load.registry import open_generator

T = TypeVar("T")
BEGIN_S = 15.0
SILENCE_S = 4.0
STOP_S = 5.0
DEAD = "The load generator exited unexpectedly, so the load stopped."


class Load:
    """One plan being carried out; leaving the context ends the load whatever happened. Methods raise LoadError."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._generator = open_generator(plan)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="load", daemon=True)
        self._seconds: AsyncIterator[Second] | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._do(self._generator.start(self._plan), BEGIN_S)
        except BaseException:
            self.__exit__()
            raise
        self._seconds = self._generator.seconds()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(LoadError):
            self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_S)
        if not self._thread.is_alive():
            self._loop.close()

    def next_second(self) -> Second | None:
        """The next record; None when the plan is over."""
        return self._do(self._next(), SILENCE_S)

    def renew(self) -> None:
        """Another lease."""
        self._do(self._generator.renew(), SILENCE_S)

    def set_rate(self, rate: float) -> None:
        """From now on so many requests/s."""
        self._do(self._generator.set_rate(rate), SILENCE_S)

    def set_users(self, users: int) -> None:
        """From now on so many requests in flight."""
        self._do(self._generator.set_users(users), SILENCE_S)

    def stop(self) -> None:
        """No load any more when this returns."""
        self._do(self._generator.stop(), STOP_S)

    async def _next(self) -> Second | None:
        if self._seconds is None:
            return None
        async for second in self._seconds:
            return second
        return None

    def _do(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(seconds)
        except concurrent.futures.TimeoutError:
            future.cancel()
            raise LoadError(DEAD) from None

"""A generator in a process of its own: started, ordered about and listened to over its pipes."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

from apps.drivers.load.bounds import check, check_rate, check_users
from apps.drivers.load.contract import LoadError, Maximum, Plan, Second
from apps.drivers.load.maximum import stated
from apps.drivers.load.processes import ROOT, environment, words_of
from apps.drivers.load.wire import LONGEST_LINE, line_of, plan_to_json, read_line, second_from_json

READY_S = 20.0
HEAD_START_S = 0.05
END_S = 2.0

clock = time.monotonic


class ProcessGenerator:
    """A Generator of HTTP/1.1; `phase` is its position among several (see Timetable)."""

    def __init__(self, phase: float = 1.0) -> None:
        self._phase = phase
        self._process: asyncio.subprocess.Process | None = None
        self._plan: Plan | None = None
        self._over = False

    @property
    def pid(self) -> int | None:
        """The process, once started."""
        return self._process.pid if self._process else None

    async def maximum(self, plan: Plan) -> Maximum:
        """As this machine was found to be able to."""
        check(plan)
        return await asyncio.to_thread(stated, plan)

    async def start(self, plan: Plan) -> None:
        """Begin at once."""
        await self.prepare(plan)
        await self.begin(clock() + HEAD_START_S)

    async def prepare(self, plan: Plan) -> None:
        """Start the process and let it read its plan; no connection is opened yet."""
        check(plan)
        self._process = await asyncio.create_subprocess_exec(
            *words_of("apps.drivers.load"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=ROOT,
            env=environment(),
            start_new_session=True,
            limit=LONGEST_LINE,
        )
        self._plan = plan
        try:
            await self._tell("plan", plan=plan_to_json(plan), phase=self._phase)
            async with asyncio.timeout(READY_S):
                word, values = await self._hear()
        except TimeoutError:
            word, values = "refused", {"message": "The generator was not ready in time."}
        if word != "ready":
            await self._end()
            raise LoadError(str(values.get("message", "The generator did not start.")))

    async def begin(self, at: float) -> None:
        """Let the first second start at this instant of the machine's monotonic clock."""
        await self._tell("begin", at=at)

    async def seconds(self) -> AsyncIterator[Second]:
        """Its records as they come."""
        while True:
            word, values = await self._hear()
            if word == "second":
                yield second_from_json(values)
            elif word == "over":
                self._over = True
                await self._end()
                return
            else:
                await self._end()
                raise LoadError(str(values.get("message", "The generator was lost.")))

    async def renew(self) -> None:
        """Another LEASE_S."""
        await self._tell("renew")

    async def set_rate(self, rate: float) -> None:
        """Checked here, where it can be said, and again there."""
        check_rate(self._asked(), rate)
        await self._tell("rate", rate=rate)

    async def set_users(self, users: int) -> None:
        """Checked here, where it can be said, and again there."""
        check_users(self._asked(), users)
        await self._tell("users", users=users)

    async def stop(self) -> None:
        """It has a second for the answers under way; then the process is ended."""
        if self._process is not None:
            await self._tell("stop")
            await self._end()

    def _asked(self) -> Plan:
        if self._plan is None:
            raise LoadError("The generator was not started.")
        return self._plan

    async def _tell(self, word: str, **values: object) -> None:
        """An order; one that comes after the end is no error: `seconds` says how it ended."""
        if self._process is None or self._process.stdin is None:
            raise LoadError("The generator was not started.")
        if self._over or self._process.returncode is not None:
            return
        with contextlib.suppress(OSError):
            self._process.stdin.write(line_of(word, **values))
            await self._process.stdin.drain()

    async def _hear(self) -> tuple[str, dict[str, object]]:
        """The next message; `lost` when there are no more."""
        if self._process is None or self._process.stdout is None:
            raise LoadError("The generator was not started.")
        try:
            line = await self._process.stdout.readline()
            return read_line(line) if line else ("lost", {})
        except ValueError:
            return "lost", {"message": "The generator sent an unreadable message."}

    async def _end(self) -> None:
        """Wait for the end of the process, and insist on it."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        try:
            async with asyncio.timeout(END_S):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

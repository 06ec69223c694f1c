"""One plan over several processes: each carries out its share from the same instant on, the records are added."""

from __future__ import annotations

import asyncio
import math
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from apps.drivers.load.bounds import check, check_rate, check_users, highest_rate
from apps.drivers.load.contract import Generator, LoadError, Maximum, Plan, Second
from apps.drivers.load.histogram import merged
from apps.drivers.load.maximum import per_process
from apps.drivers.load.process import HEAD_START_S, ProcessGenerator, clock

Key = TypeVar("Key", int, str)


def process_generator(plan: Plan) -> Generator:
    """One process, or as many as the plan's highest rate needs and the machine has cores for."""
    wanted = math.ceil(highest_rate(plan) / per_process(plan))
    most = min(os.cpu_count() or 1, plan.max_connections // len(plan.endpoints), plan.users or wanted)
    processes = max(1, min(wanted, most))
    return ProcessGenerator() if processes == 1 else SeveralGenerator(processes)


class SeveralGenerator:
    """A Generator of so many processes."""

    def __init__(self, processes: int) -> None:
        self._all = [ProcessGenerator(phase=(number + 1) / processes) for number in range(processes)]
        self._plan: Plan | None = None

    @property
    def pids(self) -> list[int | None]:
        """The processes, once started."""
        return [each.pid for each in self._all]

    async def maximum(self, plan: Plan) -> Maximum:
        """As of one: it counts all that the machine has cores for."""
        return await self._all[0].maximum(plan)

    async def start(self, plan: Plan) -> None:
        """All are ready before any begins; when one cannot, none does."""
        check(plan)
        self._plan = plan
        try:
            shares = zip(self._all, shares_of(plan, len(self._all)), strict=True)
            await asyncio.gather(*(each.prepare(share) for each, share in shares))
        except LoadError:
            await self.stop()
            raise
        begins_at = clock() + HEAD_START_S
        await asyncio.gather(*(each.begin(begins_at) for each in self._all))

    async def seconds(self) -> AsyncIterator[Second]:
        """The n-th records of all, added; raises LoadError when one of them was lost, and ends the others."""
        readers = [each.seconds() for each in self._all]
        while True:
            found = await asyncio.gather(*(anext(reader, None) for reader in readers), return_exceptions=True)
            for problem in found:
                if isinstance(problem, BaseException):
                    await self.stop()
                    raise problem
            seconds = [each for each in found if isinstance(each, Second)]
            if not seconds:
                return
            yield sum_of(seconds)

    async def renew(self) -> None:
        """All of them."""
        await asyncio.gather(*(each.renew() for each in self._all))

    async def set_rate(self, rate: float) -> None:
        """An even share for each."""
        check_rate(self._asked(), rate)
        await asyncio.gather(*(each.set_rate(rate / len(self._all)) for each in self._all))

    async def set_users(self, users: int) -> None:
        """A share for each."""
        check_users(self._asked(), users)
        shares = parts(users, len(self._all))
        await asyncio.gather(*(each.set_users(share) for each, share in zip(self._all, shares, strict=True)))

    async def stop(self) -> None:
        """All of them at once."""
        await asyncio.gather(*(each.stop() for each in self._all))

    def _asked(self) -> Plan:
        if self._plan is None:
            raise LoadError("The generator was not started.")
        return self._plan


def shares_of(plan: Plan, processes: int) -> list[Plan]:
    """What each process does; together they do what the plan says."""
    users, connections = parts(plan.users, processes), parts(plan.max_connections, processes)
    return [
        replace(
            plan,
            rate=plan.rate / processes,
            max_rate=highest_rate(plan) / processes,
            users=users[number],
            max_connections=connections[number],
            seed=plan.seed + number,
        )
        for number in range(processes)
    ]


def parts(whole: int, number: int) -> list[int]:
    """A number as so many nearly equal ones."""
    each, more = divmod(whole, number)
    return [each + (index < more) for index in range(number)]


def sum_of(seconds: Sequence[Second]) -> Second:
    """One record of all."""
    return Second(
        at=max(each.at for each in seconds),
        target=sum(each.target for each in seconds),
        offered=sum(each.offered for each in seconds),
        sent=sum(each.sent for each in seconds),
        answered=sum(each.answered for each in seconds),
        statuses=_added(each.statuses.items() for each in seconds),
        errors=_added(each.errors.items() for each in seconds),
        in_flight=sum(each.in_flight for each in seconds),
        connections=sum(each.connections for each in seconds),
        histogram=merged(each.histogram for each in seconds).encode(),
        late_ms=max(each.late_ms for each in seconds),
        generator_limited=any(each.generator_limited for each in seconds),
    )


def _added(counts: Iterable[Iterable[tuple[Key, int]]]) -> dict[Key, int]:
    whole: Counter[Key] = Counter()
    for each in counts:
        whole.update(dict(each))
    return dict(whole)

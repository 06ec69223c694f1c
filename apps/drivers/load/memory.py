"""The honest fake: backends with a queueing model in this process, loaded in simulated time.

`memory_backend(host, port, …)` puts a backend at an address; a plan whose endpoints are all such gets this generator
(`registry.py`). A second passes whenever the reader asks for the next record, so a test of many minutes takes
milliseconds; `pace=asyncio.sleep` makes it last as long as it says. What changes on the backend or the plan between
two records acts from there on.
"""

from __future__ import annotations

import heapq
import random
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count

from apps.drivers.load.bounds import MOST_RATE, check, check_rate, check_users
from apps.drivers.load.contract import LEASE_S, Endpoint, LoadError, Maximum, Plan, Second
from apps.drivers.load.http1.arrivals import NEVER, Timetable
from apps.drivers.load.http1.recording import Counting

DRAIN_S = 1.0
AFTER_ERROR_S = 0.1


@dataclass
class MemoryBackend:
    """First come, first served by `servers` that each take `service_ms`; the fields are what a test may change.

    `exponential`: service times vary with that mean; `noise` is the sigma of a lognormal factor on top.
    A soft knee: `contention` makes the service slower by that share for each request in flight per server.
    A sudden cliff: with `thrashes_at` requests in it, each takes `thrashing` times as long; with `full_at`, a new one
    is answered 503 at once. `failing` is the share answered 500; `down` refuses connections. For `stall_s` in each
    `stall_every_s` nothing is begun. `generator_max` is what the generator is able to send per second.
    """

    servers: int = 1
    service_ms: float = 100.0
    exponential: bool = False
    noise: float = 0.0
    contention: float = 0.0
    thrashes_at: int = 0
    thrashing: float = 10.0
    full_at: int = 0
    failing: float = 0.0
    down: bool = False
    stall_every_s: float = 0.0
    stall_s: float = 0.0
    network_ms: float = 0.0
    generator_max: float = NEVER
    seed: int = 0
    received: int = 0
    generators: list[MemoryGenerator] = field(default_factory=list, repr=False)

    @property
    def truth(self) -> float:
        """Requests/s that the servers finish when always busy (not counting contention, cliffs and stalls)."""
        return self.servers * 1000 / self.service_ms


_BACKENDS: dict[Endpoint, MemoryBackend] = {}
_LOCK = threading.Lock()


def memory_backend(host: str, port: int, **model: float) -> MemoryBackend:
    """Put a backend with this model (fields of MemoryBackend) at an address, instead of what was there."""
    made = MemoryBackend(**model)  # type: ignore[arg-type]  # by name
    with _LOCK:
        _BACKENDS[Endpoint(host, port)] = made
    return made


def in_memory(plan: Plan) -> bool:
    """Whether a test has put backends at all endpoints of the plan."""
    return bool(_BACKENDS) and all(endpoint in _BACKENDS for endpoint in plan.endpoints)


def forget_memory_backends() -> None:
    """An empty world again, for the next test."""
    with _LOCK:
        _BACKENDS.clear()


class _SimulatedBackend:
    """A backend in simulated time: when each of its servers is free, and how many requests are in it."""

    def __init__(self, model: MemoryBackend, now: float) -> None:
        self.model = model
        self.inside = 0
        self._began = now
        self._free = [now] * model.servers
        self._seeded = random.Random(model.seed)  # noqa: S311  # a model, not a secret

    def serve(self, now: float) -> tuple[float, int]:
        """When a request that comes now is answered, and with which status."""
        model = self.model
        model.received += 1
        if model.full_at and self.inside >= model.full_at:
            return now + model.network_ms / 1000, 503
        self.inside += 1
        done = self._not_stalled(max(now, self._free[0])) + self._service_s()
        heapq.heapreplace(self._free, done)
        status = 500 if model.failing and self._seeded.random() < model.failing else 200
        return done + model.network_ms / 1000, status

    def _service_s(self) -> float:
        model, seeded = self.model, self._seeded
        took = model.service_ms / 1000 * (seeded.expovariate(1.0) if model.exponential else 1.0)
        took *= seeded.lognormvariate(0.0, model.noise) if model.noise else 1.0
        took *= 1.0 + model.contention * (self.inside - 1) / model.servers
        return took * (model.thrashing if model.thrashes_at and self.inside >= model.thrashes_at else 1.0)

    def _not_stalled(self, instant: float) -> float:
        model = self.model
        if not model.stall_every_s:
            return instant
        since = (instant - self._began) % model.stall_every_s
        left = since - (model.stall_every_s - model.stall_s)
        return instant + (model.stall_s - left if left >= 0 else 0.0)


# Something that will happen: instant and number, which order events; its backend; an answer's status, an error or ""
# (only a server is done); when the request was due; whether it leaves the backend. A tuple: there are very many.
_Event = tuple[float, int, _SimulatedBackend, int | str, float, bool]


class MemoryGenerator:
    """A Generator in simulated time."""

    def __init__(
        self, clock: Callable[[], float] = time.time, pace: Callable[[float], Awaitable[object]] | None = None
    ) -> None:
        self._clock, self._pace = clock, pace
        self._plan: Plan | None = None
        self._stopped = False
        self.users = 0

    async def maximum(self, plan: Plan) -> Maximum:
        """As the backends of the plan give it."""
        check(plan)
        given = (_BACKENDS[endpoint].generator_max for endpoint in plan.endpoints)
        return Maximum(min(MOST_RATE, *given), 1, self._clock(), 1, 0.0)

    async def start(self, plan: Plan) -> None:
        """Begin at the present instant of the clock."""
        check(plan)
        if not in_memory(plan):
            raise LoadError("There is no backend in memory at the endpoints of this plan.")
        self._plan = plan
        self.now = self._renewed_at = self._began = self._clock()
        self._backends = [_SimulatedBackend(_BACKENDS[endpoint], self.now) for endpoint in plan.endpoints]
        for backend in self._backends:
            backend.model.generators.append(self)
        self._events: list[_Event] = []
        self._ready: list[float] = []  # when a user of the closed loop asks again
        self._numbers, self._turn = count(), 0
        self._in_flight = self._most_in_flight = self._users = 0
        self._timetable = Timetable(plan.arrivals, self.now, plan.seed)
        self._timetable.change(self.now, plan.rate, plan.ramp_s)
        self._greet(plan.users, plan.ramp_s)

    async def seconds(self) -> AsyncIterator[Second]:
        """Let a second pass for each record that is asked for."""
        plan = self._asked()
        ends_at = self._began + plan.duration_s
        while not self._stopped and self.now < ends_at and self.now - self._renewed_at < LEASE_S:
            yield await self._pass(min(self.now + 1.0, ends_at))
        self._timetable.change(self.now, 0.0)
        self._users = 0
        if self._in_flight:
            yield await self._pass(self.now + DRAIN_S)
        self._stopped = True

    async def renew(self) -> None:
        """The lease counts in simulated time as well."""
        self._asked()
        self._renewed_at = self.now

    async def set_rate(self, rate: float) -> None:
        """From the next record on."""
        plan = self._asked()
        check_rate(plan, rate)
        self._timetable.change(self.now, rate, plan.ramp_s if rate else 0.0)

    async def set_users(self, users: int) -> None:
        """From the next record on."""
        check_users(self._asked(), users)
        self._greet(users, 0.0)

    async def stop(self) -> None:
        """The next record is the last one."""
        self._stopped = True

    def _asked(self) -> Plan:
        if self._plan is None:
            raise LoadError("The generator was not started.")
        return self._plan

    def _greet(self, users: int, ramp_s: float) -> None:
        """Users who come begin over the ramp; those who leave do so after their answer."""
        fresh = users - self._users
        for number in range(fresh):
            heapq.heappush(self._ready, self.now + ramp_s * number / fresh)
        self._users = users

    async def _pass(self, end: float) -> Second:
        """One second of simulated time."""
        if self._pace is not None:
            await self._pace(end - self.now)
        plan, begin, counting = self._asked(), self.now, Counting()
        self._counting = counting
        self._budget = min(model.generator_max for model in (backend.model for backend in self._backends)) * (
            end - begin
        )
        target = self._timetable.expected(begin, end) / (end - begin) if plan.rate else float(self._users)
        self._go_on(end)
        self.now = end
        connections = min(self._most_in_flight, plan.max_connections)
        return counting.second(at=end, target=target, in_flight=self._in_flight, connections=connections)

    def _go_on(self, end: float) -> None:
        """All that happens before `end`, in its order."""
        events, ready, timetable = self._events, self._ready, self._timetable
        while True:
            happens = events[0][0] if events else NEVER
            due, asks = timetable.next, ready[0] if ready else NEVER
            if happens >= end and due >= end and asks >= end:
                return
            if happens <= due and happens <= asks:
                self._happen(heapq.heappop(events))
            elif due <= asks:
                self._ask(timetable.take())
            else:
                heapq.heappop(ready)
                if self._in_flight < self._users:
                    self._ask(asks)

    def _ask(self, due: float) -> None:
        """A request is due: it leaves, unless the generator cannot or all connections are busy."""
        plan, counting = self._asked(), self._counting
        counting.offered += 1
        if self._in_flight >= plan.max_connections:
            counting.error("refused")
            return
        self._budget -= 1
        if self._budget < 0:
            return
        counting.left(0.0)
        backend = self._backends[self._turn % len(self._backends)]
        self._turn += 1
        self._in_flight += 1
        self._most_in_flight = max(self._most_in_flight, self._in_flight)
        if backend.model.down:
            self._plan_event(due, backend, "connect", due)
            return
        before = backend.inside
        done, status = backend.serve(due)
        inside = backend.inside > before
        if done - due <= plan.timeout_s:
            self._plan_event(done, backend, status, due, inside=inside)
            return
        self._plan_event(due + plan.timeout_s, backend, "timeout", due)
        if inside:
            self._plan_event(done, backend, "", due, inside=True)

    def _plan_event(
        self, at: float, backend: _SimulatedBackend, outcome: int | str, due: float, *, inside: bool = False
    ) -> None:
        heapq.heappush(self._events, (at, next(self._numbers), backend, outcome, due, inside))

    def _happen(self, event: _Event) -> None:
        at, _, backend, outcome, due, inside = event
        backend.inside -= inside
        if outcome == "":
            return
        self._in_flight -= 1
        wait = 0.0
        if isinstance(outcome, int):
            self._counting.answer(outcome, at - due)
        else:
            self._counting.error(outcome)
            wait = AFTER_ERROR_S
        if self._in_flight < self._users:
            heapq.heappush(self._ready, at + wait)

"""The engine of HTTP/1.1: a true open loop (or N users) on one event loop, one record per second.

Requests leave when they are due, whether or not answers come back: on an idle connection, else on a new one. The
engine sleeps only while the next one is more than a millisecond away, and never catches up on what it missed: what is
overdue by more than `MOST_LATE_S` is not sent but counted as offered, so that the record says who was too slow. A
request on a used connection that the server closed at the same moment (within `STALE_S`, before a byte of an answer) is
sent once more on a new one, as every client does, unless that could do something twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import math
import ssl
import time
from collections.abc import Callable

from apps.drivers.load.bounds import check, check_rate, check_users
from apps.drivers.load.contract import LEASE_S, Endpoint, Plan, Request, Second
from apps.drivers.load.http1.arrivals import Timetable
from apps.drivers.load.http1.connection import Connection
from apps.drivers.load.http1.recording import Counting

MOST_LATE_S = 0.25
ROUNDING_S = 1e-6  # an arrival that is due with the end of a second is of this second
SLEEP_S = 0.002  # the loop's timer is exact to a millisecond: what is nearer is waited for awake
BATCH = 64  # requests in a row before answers are read
SCAN_S = 0.1
DRAIN_S = 1.0
AFTER_ERROR_S = 0.1  # a user who got no answer asks again after this, not at once
CLOSING_S = 0.001
STALE_S = 0.1
REPEATABLE = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"}
OWN_ERRORS = {errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM}

clock = time.monotonic


class Lane:
    """One endpoint: its idle connections, how many are open, and how many may be."""

    __slots__ = ("endpoint", "idle", "most", "open")

    def __init__(self, endpoint: Endpoint, most: int) -> None:
        self.endpoint, self.most = endpoint, most
        self.idle: list[Connection] = []
        self.open = 0


class Engine:
    """Carries out one plan on the running event loop; `emit` gets each record.

    `begins_at` is an instant of `time.monotonic()`, the same for all engines of the machine that share a plan.
    A record is of `record_s`, a second but for calibrations.
    """

    def __init__(
        self, plan: Plan, emit: Callable[[Second], None], *, phase: float = 1.0, record_s: float = 1.0
    ) -> None:
        check(plan)
        self.plan, self._emit, self._phase, self._record_s = plan, emit, phase, record_s
        self.wire = wire_of(plan.request, keep_alive=plan.keep_alive)
        self.headless = plan.request.method == "HEAD"
        share, more = divmod(plan.max_connections, len(plan.endpoints))
        self._lanes = [Lane(endpoint, share + (number < more)) for number, endpoint in enumerate(plan.endpoints)]
        self._turn = 0
        self._tls = tls_of(plan)
        self._connections: set[Connection] = set()
        self._counting = Counting()
        self._in_flight = self._users = self._leaving = 0
        self._timer: asyncio.Handle | None = None
        self._stopping = False
        self.over = asyncio.Event()
        self.why = ""

    def begin(self, begins_at: float) -> None:
        """The first second starts at this instant; the lease as well."""
        self._loop = asyncio.get_running_loop()
        self._ends_at = begins_at + self.plan.duration_s
        self._lease_until = begins_at + LEASE_S
        self._second_from, self._boundary = begins_at, min(begins_at + self._record_s, self._ends_at)
        self._unix = time.time() - clock()
        self._table = Timetable(self.plan.arrivals, begins_at, self.plan.seed, self._phase)
        self._table.change(begins_at, self.plan.rate, self.plan.ramp_s)
        self._wanted = 0.0  # what the rate amounted to in this second before its last change
        self._counted_from = begins_at
        self._scan()
        self._pump()
        wait = max(0.0, begins_at - clock())
        self._loop.call_later(wait, self._greet, self.plan.users, self.plan.ramp_s)

    def renew(self) -> None:
        """Go on for another LEASE_S."""
        if not self._stopping:
            self._lease_until = clock() + LEASE_S

    def set_rate(self, rate: float) -> None:
        """Over the plan's ramp; a pause at once. Raises LoadError above the plan's maximum."""
        check_rate(self.plan, rate)
        self._pump()
        self._turn_to(rate, self.plan.ramp_s if rate else 0.0)

    def set_users(self, users: int) -> None:
        """Raises LoadError above the plan's connections."""
        check_users(self.plan, users)
        self._greet(users, 0.0)

    def stop(self, why: str, *, instant: float | None = None) -> None:
        """Send nothing more of what is due from now on, or from an instant that is noticed late.

        `over` is set when the last answer is there, at the latest after a second.
        """
        if self._stopping:
            return
        self._stopping, self.why, self._users = True, why, 0
        self._lease_until = math.inf
        self._turn_to(0.0, 0.0, instant=instant)
        self._loop.call_later(DRAIN_S, self._finish)
        if not self._in_flight:
            self._finish()

    def abandon(self, why: str) -> None:
        """All ends now, answers are not waited for: nobody is there to hear of them."""
        self.stop(why)
        self._finish()

    # Requests

    def _pump(self) -> None:
        """Send what is due, close the seconds that are over, sleep until there is more to do."""
        if self._timer is not None:
            self._timer.cancel()
        now, table, sent = clock(), self._table, 0
        while (due := table.next) <= now < self._lease_until and sent < BATCH:
            if due > self._boundary + ROUNDING_S:
                self._close_second()
                continue
            table.take()
            self._counting.offered += 1
            if now - due <= MOST_LATE_S:
                if not self._fire(due, now):
                    self._counting.error("refused")
                sent += 1
                now = clock()
        if now >= self._lease_until:
            self.stop("Nobody renewed the lease.")
        if self._boundary <= now < table.next and not self.over.is_set():
            self._close_second()
        if not self.over.is_set():
            self._sleep(min(table.next, self._boundary, self._lease_until) - clock())

    def _sleep(self, wait: float) -> None:
        if wait > SLEEP_S:
            self._timer = self._loop.call_later(int(wait * 1000 - 1) / 1000, self._pump)
        else:
            self._timer = self._loop.call_soon(self._pump)

    def _fire(self, due: float, now: float) -> bool:
        """One request, on an idle connection of the endpoint whose turn it is or a new one; False: all are busy."""
        if self._in_flight >= self.plan.max_connections:
            return False
        for _ in self._lanes:
            lane = self._lanes[self._turn]
            self._turn = (self._turn + 1) % len(self._lanes)
            if lane.idle:
                self._in_flight += 1
                self._counting.left(now - due)
                lane.idle.pop().send(due)
                return True
            if lane.open < lane.most:
                self._in_flight += 1
                self._counting.left(now - due)
                self._open(lane, due)
                return True
        return False

    def _open(self, lane: Lane, due: float) -> None:
        lane.open += 1
        connection = Connection(self, lane, due)
        self._connections.add(connection)
        connection.opening = self._loop.create_task(self._connect(connection))

    async def _connect(self, connection: Connection) -> None:
        endpoint, tls = connection.lane.endpoint, self.plan.tls
        kind = "connect"
        try:
            await self._loop.create_connection(
                lambda: connection,
                endpoint.host,
                endpoint.port,
                ssl=self._tls,
                server_hostname=tls.server_name if tls is not None else None,
            )
        except ssl.SSLError:
            kind = "tls"
        except OSError as problem:
            kind = "generator" if problem.errno in OWN_ERRORS else "connect"
        except asyncio.CancelledError:  # it timed out, or the run is over: counted where that was decided
            kind = "timeout"
        else:
            connection.opening = None
            return
        connection.opening = None
        connection.fail(kind)
        self.closed(connection)

    # What connections say

    def answered(self, connection: Connection, status: int) -> None:
        """A whole answer came."""
        self._counting.answer(status, clock() - connection.due)
        self._done(0.0)

    def failed(self, connection: Connection, kind: str) -> None:
        """A request came to nothing; one that the server never saw is sent again."""
        lane = connection.lane
        # A connection that answered nothing yet is not left for a new one: that could go on without end.
        if self._stale(connection, kind) and connection.used and not self._stopping and lane.open <= lane.most:
            self._open(lane, connection.due)
            return
        self._counting.error(kind)
        self._done(AFTER_ERROR_S)

    def _stale(self, connection: Connection, kind: str) -> bool:
        """Whether the server closed a used connection while the request was on its way; it may be repeated."""
        unseen = kind == "reset" and not connection.received
        return unseen and clock() - connection.due < STALE_S and self.plan.request.method in REPEATABLE

    def closed(self, connection: Connection) -> None:
        """It is no more."""
        if connection in self._connections:
            self._connections.remove(connection)
            connection.lane.open -= 1
            with contextlib.suppress(ValueError):
                connection.lane.idle.remove(connection)

    def _done(self, wait: float) -> None:
        """A user of the closed loop asks again, or leaves; the last answer ends a run that stops."""
        self._in_flight -= 1
        if self._stopping:
            if not self._in_flight:
                self._loop.call_soon(self._finish)
        elif self.plan.users:
            if wait:
                self._loop.call_later(wait, self._ask_again)
            else:
                self._loop.call_soon(self._ask_again)

    # Users of the closed loop

    def _greet(self, users: int, ramp_s: float) -> None:
        """Users who come begin over the ramp; those who leave do so after their answer."""
        if self._stopping:
            return
        fresh = users - self._users - self._leaving
        self._users = users
        self._leaving = max(0, -fresh)
        for number in range(fresh):
            self._loop.call_later(ramp_s * number / fresh, self._ask_again)

    def _ask_again(self) -> None:
        if self._stopping:
            return
        if self._leaving:
            self._leaving -= 1
            return
        now = clock()
        if self._fire(now, now):
            self._counting.offered += 1
        else:  # the connection before is still closing
            self._loop.call_later(CLOSING_S, self._ask_again)

    # Seconds

    def _turn_to(self, rate: float, ramp_s: float, *, instant: float | None = None) -> None:
        """Change the rate, now or as of an instant, and remember what it amounted to in this second so far."""
        now = max(clock() if instant is None else instant, self._counted_from)
        self._wanted += self._table.expected(self._counted_from, now)
        self._counted_from = now
        self._table.change(now, rate, ramp_s)
        self._pump_soon()

    def _pump_soon(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_soon(self._pump)

    def _close_second(self) -> None:
        end = self._boundary
        self._say(end)
        self._second_from, self._boundary = end, min(end + self._record_s, self._ends_at)
        if end >= self._ends_at:
            self._boundary = end + DRAIN_S + 1.0
            self.stop("The plan is over.", instant=end)

    def _say(self, end: float) -> None:
        """The record of what was counted until `end`."""
        counting, self._counting = self._counting, Counting()
        wanted = self._wanted + self._table.expected(self._counted_from, max(end, self._counted_from))
        self._wanted, self._counted_from = 0.0, max(end, self._counted_from)
        length = max(end - self._second_from, 1e-6)
        self._emit(
            counting.second(
                at=self._unix + end,
                target=wanted / length if self.plan.rate else float(self._users),
                in_flight=self._in_flight,
                connections=len(self._connections),
            )
        )

    def _scan(self) -> None:
        """What waits for too long is given up."""
        if self.over.is_set():
            return
        late = clock() - self.plan.timeout_s
        for connection in list(self._connections):
            connection.expire(late)
        self._loop.call_later(min(SCAN_S, self.plan.timeout_s / 4), self._scan)

    def _finish(self) -> None:
        """The last record, when it has anything to say; no connection stays."""
        if self.over.is_set():
            return
        if not self._counting.empty or self._in_flight:
            self._say(clock())
        self.over.set()
        if self._timer is not None:
            self._timer.cancel()
        for connection in list(self._connections):
            connection.close()


def wire_of(request: Request, *, keep_alive: bool) -> bytes:
    """The bytes of the request."""
    lines = [f"{request.method} {request.path} HTTP/1.1", f"Host: {request.host}"]
    lines += [f"{name}: {value}" for name, value in request.headers.items()]
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {len(request.body)}")
    if not keep_alive:
        lines.append("Connection: close")
    return "\r\n".join((*lines, "", "")).encode("ascii") + request.body


def tls_of(plan: Plan) -> ssl.SSLContext | None:
    """What TLS is made with; None without."""
    if plan.tls is None:
        return None
    context = ssl.create_default_context(cafile=plan.tls.ca_file or None)
    context.set_alpn_protocols(["http/1.1"])
    if not plan.tls.verify:  # local development only, see the contract
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context

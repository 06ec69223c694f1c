"""The process that reads agents each two seconds, in one asyncio loop: those whose shards it holds."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TypeVar

import redis
from django import db
from django.db import transaction

from apps.core.clock import now, ticks
from apps.fleet.models import Node
from apps.observe.collect import consoles, lease
from apps.observe.collect.readings import Address, Reading, addresses_of, read_node
from apps.observe.collect.recorder import Recorder

INTERVAL = 2.0
# How long a tick waits for slow nodes; what they answer later belongs to the next tick.
DEADLINE = 1.5
# What has answered by then is shown while others are still read: of many nodes, none waits for the whole round.
SHOWN_EACH = 0.25
T = TypeVar("T")

logger = logging.getLogger(__name__)


class Journal:
    """Logs a trouble when it begins, when it changes and when it ends, not with each tick."""

    def __init__(self) -> None:
        self._now: dict[str, str] = {}

    def trouble(self, what: str, text: str) -> None:
        """`what` has this trouble; an empty text ends it."""
        before = self._now.get(what, "")
        if text and not before:
            logger.warning("%s: %s", what, text)
        elif before and not text:
            logger.info("%s: works again", what)
        self._now[what] = text


class Collector:
    """Reads, records, shows; `run` until `stop`.

    Nodes that failed last time are read by threads of their own, so that any number of dead ones never
    keeps the living waiting.
    """

    def __init__(self, read: Callable[[Address], Reading] = read_node, threads: int = 64, holder: str = "") -> None:
        self.holder = (holder or f"{socket.gethostname()}-{os.getpid()}")[:80]
        self.recorder: Recorder | None = None
        self.journal = Journal()
        self._read = read
        self._living = ThreadPoolExecutor(threads, thread_name_prefix="read")
        self._suspects = ThreadPoolExecutor(max(4, threads // 4), thread_name_prefix="suspect")
        self._database = ThreadPoolExecutor(1, thread_name_prefix="database")
        self._sums = ThreadPoolExecutor(1, thread_name_prefix="sums")
        self._failed: set[int] = set()
        self._running: dict[int, asyncio.Future[Reading]] = {}
        self._addresses: list[Address] = []
        self._stopping = asyncio.Event()
        self._without_pauses = threading.Event()
        self._told_clock = float("-inf")
        self._summing: asyncio.Future[None] | None = None

    def stop(self) -> None:
        """End after the present tick."""
        self._stopping.set()
        self._without_pauses.set()

    async def run(self) -> None:
        """Tick until told to stop; then store what was gathered and give the lease back."""
        loop = asyncio.get_running_loop()
        while not self._stopping.is_set():
            began = loop.time()
            await self.tick()
            rest = max(0.05, INTERVAL - (loop.time() - began))
            await _wait(self._stopping, rest)
        if self._summing is not None:
            await self._summing
        await self._in_database("database", self._end)
        for pool in (self._living, self._suspects, self._database, self._sums):
            pool.shutdown(wait=False, cancel_futures=True)

    async def tick(self) -> None:
        """One round: 1. lease and nodes; 2. read and show; 3. store; 4. wake pages up; 5. once a minute, tend."""
        held = await self._in_database("database", self._prepare)
        if held is False:
            self.recorder = None
            return
        if self.recorder is None:
            # The database was away before the first round: nothing is known yet.
            return
        recorder, readings = self.recorder, dict[int, Reading]()
        async for some in self.read(self._addresses):
            recorder.gather(some.values())
            shown = {node_id: reading for node_id, reading in some.items() if recorder.owns(node_id)}
            await self._in_redis(partial(recorder.show, shown))
            readings |= some
        recorder.close_buckets(now().timestamp())
        # Without leases that were renewed just now nothing is stored: another collector may have taken over.
        moved = await self._in_database("database", lambda: recorder.store(readings, now())) if held else None
        await self._in_redis(partial(recorder.tell, moved or [], now()))
        if moved is not None:
            self._tend(recorder)
            await self._in_database("hours", lambda: recorder.make_hour(now()))
            await self._in_database("distances", lambda: recorder.measure(now()))

    async def read(self, addresses: Iterable[Address]) -> AsyncIterator[dict[int, Reading]]:
        """What answers before the deadline, in parts; nodes still being read from an earlier round are not asked again.

        The first part is what has answered since that round ended: these nodes are asked again with all others, not
        every other time, and for what changed since then.
        """
        loop = asyncio.get_running_loop()
        if late := self._done():
            yield late
        for address in addresses:
            if address.node_id not in self._running:
                pool = self._suspects if address.node_id in self._failed else self._living
                seen = self.recorder.seen(address.node_id) if self.recorder else None
                self._running[address.node_id] = loop.run_in_executor(pool, self._read, replace(address, seen=seen))
        until = loop.time() + DEADLINE
        while self._running and (left := until - loop.time()) > 0:
            await asyncio.wait(self._running.values(), timeout=min(left, SHOWN_EACH))
            if some := self._done():
                yield some

    def _done(self) -> dict[int, Reading]:
        done = {node_id: future.result() for node_id, future in self._running.items() if future.done()}
        for node_id, reading in done.items():
            del self._running[node_id]
            self._note(node_id, reading)
        return done

    def _note(self, node_id: int, reading: Reading) -> None:
        (self._failed.discard if reading.state is not None else self._failed.add)(node_id)
        self.journal.trouble(f"node {node_id}", reading.error)

    def _prepare(self) -> bool:
        """Hold our share of the shards and learn their nodes; False while other collectors hold them all."""
        shared = lease.share(self.holder)
        if not shared.held:
            self._note_clock()
            self.journal.trouble("lease", "other collectors read the nodes")
            return False
        self.journal.trouble("lease", "")
        if self.recorder is None:
            self.recorder = Recorder(self.holder, frozenset())
        recorder = self.recorder
        recorder.hold(shared.held)
        if shared.surplus:
            with transaction.atomic():
                recorder.flush(shared.surplus)
                lease.release(shared.surplus, self.holder)
            recorder.hold(shared.held - shared.surplus)
        self._note_clock()
        every = addresses_of(Node.objects.only("name", "url"))
        self._addresses = [address for address in every if recorder.owns(address.node_id)]
        return True

    def _note_clock(self) -> None:
        """Also while another collector reads the nodes: each machine tells of its own clock."""
        if ticks() - self._told_clock >= consoles.EVERY.total_seconds():
            consoles.note_clock(socket.gethostname())
            self._told_clock = ticks()

    def _end(self) -> None:
        try:
            if self.recorder is not None:
                with transaction.atomic():
                    self.recorder.flush(lease.renew(self.holder))
                    lease.leave(self.holder)
            else:
                lease.leave(self.holder)
        finally:
            db.connection.close()

    async def _in_redis(self, work: Callable[[], None]) -> None:
        try:
            await asyncio.to_thread(work)
        except redis.RedisError as error:
            self.journal.trouble("redis", str(error))
        else:
            self.journal.trouble("redis", "")

    def _tend(self, recorder: Recorder) -> None:
        """Have the minute before summed up while nodes are read; once more with the next tick where that failed."""
        if (self._summing is not None and not self._summing.done()) or not recorder.begin_minute(now()):
            return
        instant, existing = now(), recorder.evaluator.existing()

        def sum_up() -> None:
            try:
                recorder.sum_up(instant, existing, self._without_pauses.wait)
            except db.Error as error:
                self.journal.trouble("tending", str(error))
                recorder.tended = 0
            else:
                self.journal.trouble("tending", "")
            finally:
                db.connection.close()

        self._summing = asyncio.get_running_loop().run_in_executor(self._sums, sum_up)

    async def _in_database(self, what: str, work: Callable[[], T]) -> T | None:
        """Run in the one thread that holds the database connection; None when the database failed."""

        def attempt() -> T | None:
            try:
                result = work()
            except db.Error as error:
                db.connection.close()
                self.journal.trouble(what, str(error))
                return None
            self.journal.trouble(what, "")
            return result

        return await asyncio.get_running_loop().run_in_executor(self._database, attempt)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return

"""The process that collects request lines: a thread for each node that it holds, one that tidies, one that measures.

Nothing of it is needed by the nodes: while it is away they keep their lines, and after a kill the same segment comes
again, which the store keeps once.
"""

from __future__ import annotations

import os
import socket
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from django import db
from django.db.models import F

from apps.core.clock import now, ticks
from apps.core.events import publish
from apps.drivers.logs.contract import LogStore, LogStoreError
from apps.drivers.logs.queues import Queues
from apps.drivers.proxy.registry import open_driver
from apps.fleet.certificates.trust import Trust, trust
from apps.fleet.models import Node
from apps.logs import services
from apps.logs.collect import leases
from apps.logs.collect.masking import Masking
from apps.logs.collect.naming import Naming
from apps.logs.collect.reading import Doubts, Source, Turn, take_turn
from apps.logs.forward.spooling import Wanted, forwards, spooler
from apps.logs.meaning import Names
from apps.logs.measuring import measure_due
from apps.logs.models import LogSettings, NodeLog, usual_secrets
from apps.logs.objectives.counting import count_again, count_due
from apps.observe.collect.collector import Journal
from apps.observe.collect.readings import Address, target_of

RENEW_S = 1.5
# A lease that was not renewed for so long may be somebody else's now.
TRUST_S = leases.LEASE.total_seconds() - RENEW_S
TIDY_S = 10.0
SWEEP_S = 600.0
TELL_S = 0.3
PAUSES_S = (0.2, 1.0, 5.0, 15.0)
# A node that has no line is said to have been read so often.
SAY_READ_S = 5.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Common:
    """What the turns of all nodes of this process need of the database."""

    nodes: Mapping[int, Node]
    trust: Trust
    wishes: Mapping[int, Masking]
    forwards: Sequence[Wanted]


def common_to(nodes: Collection[int]) -> Common:
    """As it is now, for these nodes (primary keys). Five queries."""
    rows = Node.objects.select_related("fleet__region").in_bulk(nodes)
    return Common(rows, trust(), _wishes(), forwards())


class LogCollector:
    """Runs until `stop`."""

    def __init__(self, store: LogStore, queues: Queues) -> None:
        self.holder = f"{socket.gethostname()}-{os.getpid()}"[:80]
        self._store, self._queues = store, queues
        self._journal = Journal()
        self._naming = Naming()
        self._naming_lock = threading.Lock()
        self._stopping = threading.Event()
        self._renewed = float("-inf")
        self._news = threading.Event()
        self._held: set[int] = set()
        self._common: Common | None = None
        self._doubts: dict[int, Doubts] = defaultdict(Doubts)
        self._said: dict[int, tuple[float, Turn]] = {}
        self._threads: dict[int, threading.Thread] = {}

    def stop(self) -> None:
        """End after the segments that are being stored."""
        self._stopping.set()

    def run(self) -> None:
        """Hold leases and keep a thread for each node until told to stop; then give the leases back."""
        while not self._stopping.is_set():
            self.renew()
            self._keep_alive(0, self._housekeep)
            self._keep_alive(-1, self._measure)
            self._keep_alive(-2, self._tell)
            for pk in self._held:
                self._keep_alive(pk, partial(self._collect, pk))
            self._stopping.wait(RENEW_S)
        for thread in self._threads.values():
            thread.join()
        self._in_database("lease", lambda: leases.release(self.holder))

    def renew(self) -> None:
        """Learn which nodes are ours. While the database is away, what was held is held until it may be another's."""
        began = ticks()
        held = self._in_database("lease", lambda: leases.share(self.holder))
        if held is not None:
            self._held, self._renewed = held, began
            self._common = self._in_database("lease", lambda: common_to(held)) or self._common

    def collect_once(self, pk: int, common: Common | None = None) -> Turn | None:
        """One turn of one node; None for one that is gone. `common` is read now where it is not given."""
        known = common or common_to([pk])
        node = known.nodes.get(pk)
        if node is None:
            return None
        source = Source(
            pk,
            open_driver(target_of(Address(pk, node.name, node.url, known.trust))),
            partial(self._names_of, node),
            self._doubts[pk],
            known.wishes,
            _masking(LogSettings()),
            spooler(self._queues, known.forwards),
            count_again,
        )
        turn = take_turn(source, self._store)
        self._journal.trouble(f"log of {node.name}", turn.error)
        self._say(pk, turn)
        if turn.stored:
            self._news.set()
        return turn

    def _names_of(self, node: Node) -> Names | None:
        with self._naming_lock:
            return self._naming.of(node)

    def _say(self, pk: int, turn: Turn) -> None:
        """Write down what came of a turn; of one in which nothing came once in a while is enough."""
        at, said = self._said.get(pk, (float("-inf"), None))
        if turn != said or turn.stored or turn.damaged or ticks() - at >= SAY_READ_S:
            _keep(pk, turn)
            self._said[pk] = ticks(), turn

    def _tell(self) -> None:
        """Open pages look again, once for whatever was stored in a moment."""
        while not self._stopping.wait(TELL_S):
            if self._news.is_set():
                self._news.clear()
                publish("lines")

    def _keep_alive(self, key: int, work: Callable[[], None]) -> None:
        """Have a thread do it; one that ended, whatever ended it, begins again."""
        if key not in self._threads or not self._threads[key].is_alive():
            self._threads[key] = threading.Thread(target=work, name=f"log-{key}")
            self._threads[key].start()

    def _collect(self, pk: int) -> None:
        """Turn after turn while the node is ours; slower and slower while something is wrong."""
        failures = 0
        self._doubts.pop(pk, None)  # somebody else may have had it meanwhile
        while self._is_ours(pk):
            turn = self._in_database(f"log of node {pk}", lambda: self.collect_once(pk, self._common))
            failures = 0 if turn and not turn.error else min(failures + 1, len(PAUSES_S))
            if failures:
                self._stopping.wait(PAUSES_S[failures - 1])
        db.connection.close()

    def _is_ours(self, pk: int) -> bool:
        return not self._stopping.is_set() and pk in self._held and ticks() - self._renewed < TRUST_S

    def _housekeep(self) -> None:
        swept = float("-inf")
        while not self._stopping.wait(TIDY_S):
            if not self._in_database("lease", lambda: leases.leads(self.holder)):
                continue
            try:
                self._store.tidy(now())
                self._journal.trouble("log store", "")
                if ticks() - swept >= SWEEP_S:
                    self._in_database("retention", lambda: services.sweep(self._store, now()))
                    swept = ticks()
            except LogStoreError as error:
                self._journal.trouble("log store", error.message)
        db.connection.close()

    def _measure(self) -> None:
        """Objectives of routes and metrics of saved searches, as soon as the lines of a minute are in."""
        while not self._stopping.is_set():
            for what, work in (("objectives", count_due), ("metrics", measure_due)):
                trouble = self._in_database(what, partial(work, self._store, self._goes_on))
                if trouble is not None:
                    self._journal.trouble(what, trouble)
            self._stopping.wait(TIDY_S)
        db.connection.close()

    def _goes_on(self) -> bool:
        return not self._stopping.is_set()

    def _in_database(self, what: str, work: Callable[[], T]) -> T | None:
        """None when the database is away; the connection is opened anew next time."""
        try:
            found = work()
        except db.Error as error:
            self._journal.trouble(what, str(error).strip())
            db.connection.close()
            return None
        self._journal.trouble(what, "")
        return found


def _masking(row: LogSettings) -> Masking:
    return Masking(row.mask_addresses, tuple(row.mask_values_of))


def _wishes() -> dict[int, Masking]:
    """What accounts (primary keys) want that want something else than a new one."""
    others = LogSettings.objects.exclude(mask_addresses=False, mask_values_of=usual_secrets())
    return {row.account_id: _masking(row) for row in others}


def _keep(pk: int, turn: Turn) -> None:
    moment = now()
    rows = NodeLog.objects.filter(node=pk)
    if turn.dropped:
        # A node whose state was made anew counts from zero: any other number than the last one is a new loss.
        rows.exclude(dropped=turn.dropped).update(dropped_at=moment)
    rows.update(stored=F("stored") + turn.stored, damaged=F("damaged") + turn.damaged, error=turn.error[:400])
    if turn.dropped is not None:  # of one that said nothing, nobody knows how long its lines wait
        rows.update(dropped=turn.dropped, waiting_s=turn.waiting_s, read_at=moment)

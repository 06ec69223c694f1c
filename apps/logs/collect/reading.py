"""One node's lines: fetched, named, stored, kept for whom they are forwarded to, and only then acknowledged."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from apps.drivers.logs.contract import LogStore, LogStoreError, Record
from apps.drivers.proxy.contract import ProxyDriver, ProxyError
from apps.logs.collect.masking import NOTHING, Masking, masked
from apps.logs.forward.spooling import Spool, nowhere
from apps.logs.lines import read_segment
from apps.logs.meaning import Names, record_of

WAIT_S = 1.0
# So many segments in one turn; then the lease is looked at again.
MOST_SEGMENTS = 64
# A node closes a segment each second; what it forgot comes back only if it crashed within moments.
REMEMBERED = 300


@dataclass(slots=True)
class Turn:
    """What came of one turn: lines stored and damaged, what the node says of itself, and what went wrong.

    `dropped` is None where the node said nothing.
    """

    segments: int = 0
    stored: int = 0
    damaged: int = 0
    dropped: int | None = None
    waiting_s: float = 0.0
    error: str = ""


class Doubts:
    """Which segments of a node may be stored already: those that waited when this process began to collect it, which
    another one may not have acknowledged, and those that this one tried to store, which a node may show once more.
    """

    def __init__(self) -> None:
        self._found: frozenset[str] | None = None
        self._tried: deque[str] = deque(maxlen=REMEMBERED)

    def look(self, waiting: Iterable[str]) -> None:
        """What waits now."""
        if self._found is None:
            self._found = frozenset(waiting)

    def first_try(self, segment_id: str) -> bool:
        """Whether nobody has tried to store it before; from now on somebody has."""
        first = self._found is not None and segment_id not in self._found and segment_id not in self._tried
        self._tried.append(segment_id)
        return first


@dataclass(frozen=True, slots=True)
class Source:
    """One node: how to reach it, what its identifiers mean, and what accounts want to stay unknown of a line.

    Before a segment is acknowledged its lines are kept for whom they are forwarded to, and counted if they are late.
    """

    node_id: int
    driver: ProxyDriver
    names: Callable[[], Names | None]
    doubts: Doubts = field(default_factory=Doubts)
    wishes: Mapping[int, Masking] = field(default_factory=dict)
    usual: Masking = NOTHING
    spool: Spool = nowhere
    count_again: Callable[[Sequence[Record]], None] = lambda _records: None


def take_turn(source: Source, store: LogStore) -> Turn:
    """Store what the node has, oldest first. A segment that cannot be read does not stop the next.

    Raises django.db.Error where the names of what waits cannot be read, and nothing else.
    """
    turn = Turn()
    try:
        waiting = source.driver.log_segments(WAIT_S)
        turn.dropped, turn.waiting_s, turn.error = waiting.dropped, waiting.oldest_s, waiting.off
        source.doubts.look(each.id for each in waiting.segments)
        if not waiting.segments:
            return turn
        names = source.names()
        if names is None:
            turn.error = "No revision of its fleet says what its lines mean."
            return turn
        for segment in waiting.segments[:MOST_SEGMENTS]:
            _take(source, segment.id, names, store, turn)
    except (ProxyError, LogStoreError) as error:
        turn.error = error.message
    return turn


def _take(source: Source, segment_id: str, names: Names, store: LogStore, turn: Turn) -> None:
    batch_id = f"n{source.node_id}-{segment_id}"
    try:
        lines = read_segment(source.driver.read_log_segment(segment_id), batch_id)
    except ProxyError as error:
        turn.error = error.message
        return
    records = (record for line in lines if (record := record_of(line, names)))
    kept = list(masked(records, source.wishes, source.usual))
    turn.stored += store.store(batch_id, kept, first=source.doubts.first_try(segment_id))
    source.spool(kept)
    source.count_again(kept)
    turn.damaged += lines.damaged
    turn.segments += 1
    source.driver.acknowledge_log_segment(segment_id)

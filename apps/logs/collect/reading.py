"""One node's lines: fetched, named, stored, kept for whom they are forwarded to, and only then acknowledged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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


@dataclass(frozen=True, slots=True)
class Source:
    """One node: how to reach it, what its identifiers mean, and what accounts want to stay unknown of a line.

    Before a segment is acknowledged its lines are kept for whom they are forwarded to, and counted if they are late.
    """

    node_id: int
    driver: ProxyDriver
    names: Names
    wishes: Mapping[int, Masking] = field(default_factory=dict)
    usual: Masking = NOTHING
    spool: Spool = nowhere
    count_again: Callable[[Sequence[Record]], None] = lambda _records: None


def take_turn(source: Source, store: LogStore) -> Turn:
    """Store what the node has, oldest first; never raises. A segment that cannot be read does not stop the next."""
    turn = Turn()
    try:
        waiting = source.driver.log_segments(WAIT_S)
        turn.dropped, turn.waiting_s, turn.error = waiting.dropped, waiting.oldest_s, waiting.off
        for segment in waiting.segments[:MOST_SEGMENTS]:
            _take(source, segment.id, store, turn)
    except (ProxyError, LogStoreError) as error:
        turn.error = error.message
    return turn


def _take(source: Source, segment_id: str, store: LogStore, turn: Turn) -> None:
    batch_id = f"n{source.node_id}-{segment_id}"
    try:
        lines = read_segment(source.driver.read_log_segment(segment_id), batch_id)
    except ProxyError as error:
        turn.error = error.message
        return
    records = (record for line in lines if (record := record_of(line, source.names)))
    kept = list(masked(records, source.wishes, source.usual))
    turn.stored += store.store(batch_id, kept)
    source.spool(kept)
    source.count_again(kept)
    turn.damaged += lines.damaged
    turn.segments += 1
    source.driver.acknowledge_log_segment(segment_id)

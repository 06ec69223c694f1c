"""What comes from a node is kept for each log forward that wants it, before the node may forget it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from apps.core.clock import now
from apps.drivers.logs.contract import Query, Record, Rejected
from apps.drivers.logs.matching import fits
from apps.drivers.logs.queues import Queues
from apps.logs.filters import FilterError, parse
from apps.logs.forward.spans import is_span
from apps.logs.models import LogForward

SPANS = LogForward.Sends.SPANS
Spool = Callable[[Sequence[Record]], None]


def nowhere(records: Sequence[Record]) -> None:
    """Nobody wants them elsewhere."""


# Every time that a line can have; what is forwarded is a matter of the filter alone.
_BEGIN, _END = datetime(1971, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Who wants what: lines of one account, of every account where it is None; perhaps those alone that are spans."""

    pk: int
    account: int | None
    query: Query
    spans: bool = False


def forwards() -> list[Wanted]:
    """Every log forward that is on. One whose filter cannot be read any more is sent nothing, not everything."""
    found = []
    for row in LogForward.objects.filter(enabled=True, account__suspended_at=None).select_related("account"):
        try:
            query = Query(_BEGIN, _END, parse(row.filter))
        except FilterError:
            continue
        account = None if row.account.is_operator else row.account_id
        found.append(Wanted(row.pk, account, query, row.sends == SPANS))
    return found


def spooler(queues: Queues, wanted: Sequence[Wanted]) -> Spool:
    """What keeps a batch for these log forwards; it raises Unavailable when it cannot."""

    def spool(records: Sequence[Record]) -> None:
        for forward in wanted:
            mine = [each for each in records if _is_for(forward, each)]
            if mine:
                queues.append(forward.pk, mine, now())

    return spool


def _is_for(forward: Wanted, record: Record) -> bool:
    if forward.account not in (None, record.account):
        return False
    if forward.spans and not is_span(record):
        return False
    try:
        return fits(record, forward.query)
    except Rejected:
        return False

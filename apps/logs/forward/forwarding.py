"""Send what waits for a log forward, in order of arrival, and write down how far it is.

1. Claim the log forward with a lease (compare and set, by the database's clock); one worker at a time has it.
2. Send the next lines and move the position behind them, if the claim is still ours. A worker that dies between the two
   is missed when its lease ends, and the next one sends the same lines again: each goes at least once.
3. After a failure it is left alone for a while. Its position stays until the receiver takes lines again, or
   until they are as old as the store keeps them; what goes then is counted.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable
from datetime import datetime, timedelta

from django import db
from django.db.models import F, Q, QuerySet

from apps.accounts.models import Account
from apps.core.clock import database_now, now
from apps.core.concurrency.fairness import Owners, Seats, in_turns
from apps.drivers.logs.contract import LogStoreError
from apps.drivers.logs.queues import Frame, Queues
from apps.logs.forward.sending import Outcome, is_syslog, send
from apps.logs.models import LogForward, LogSettings
from apps.webhooks import backoff

THREADS = 4
PAUSE_S, BREATH_S = 0.5, 0.05
TIDY_S = 30.0
LEASE = timedelta(seconds=30)
TURN_S = 2.0
# A connection of syslog carries several frames; a request of OTLP one.
FRAMES_OF_SYSLOG = 5
MOST_WAITING_BYTES = 2**30
SEATS: Seats[int] = Seats(lambda: THREADS)

logger = logging.getLogger(__name__)


class Forwarder:
    """Some threads that send, and one that tidies, until `stop`."""

    def __init__(self, queues: Queues) -> None:
        self._queues = queues
        self._stopping = threading.Event()
        self._threads = [
            *(threading.Thread(target=self._run, args=(self.forward_once, PAUSE_S)) for _ in range(THREADS)),
            threading.Thread(target=self._run, args=(self.tidy_once, TIDY_S)),
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End after what is being sent."""
        self._stopping.set()

    def join(self) -> None:
        """Wait for the end."""
        for thread in self._threads:
            thread.join()

    def forward_once(self) -> int:
        """Send what is due, account by account; the number of log forwards that had their turn."""
        return in_turns(SEATS, self._choose, lambda pk: deliver(self._queues, pk))

    def tidy_once(self) -> int:
        """Take away what is sent, what is too old, and what belongs to nobody."""
        tidy(self._queues, now())
        return 0

    def _choose(self, owners: Owners, done: frozenset[int]) -> tuple[Hashable, int] | None:
        known = self._queues.known()
        if not known:  # as in most installations, and this is asked several times a second
            return None
        rows = _free(database_now()).filter(pk__in=known).exclude(account__in=owners).exclude(pk__in=done)
        # Who failed last goes last, so that dead receivers keep no seat from those that live.
        for row in rows.order_by("failures", "pk"):
            if self._queues.waiting(row.pk, row.positions).bytes:
                return row.account_id, row.pk
        return None

    def _run(self, work: Callable[[], int], pause_s: float) -> None:
        while not self._stopping.is_set():
            busy = 0
            try:
                busy = work()
            except (db.Error, LogStoreError, OSError) as error:
                logger.warning("request lines are not forwarded now: %s", error)
                db.connection.close()
            self._stopping.wait(BREATH_S if busy else pause_s)
        db.connection.close()


def deliver(queues: Queues, pk: int) -> float:
    """Send what waits for the log forward; leave after some seconds, a failure, or when there is no more.

    Returns how many seconds the slowest piece took.
    """
    turn, longest = _claim(pk), 0.0
    if turn is None:
        return longest
    for row in LogForward.objects.filter(pk=pk).only("positions", "forget_before"):
        _forget(queues, row)
    ends, more = time.monotonic() + TURN_S, True
    while more and time.monotonic() < ends:
        began = time.monotonic()
        more = _send_next(queues, pk, turn)
        longest = max(longest, time.monotonic() - began)
    LogForward.objects.filter(pk=pk, turn=turn).update(claimed_until=None)
    return longest


def tidy(queues: Queues, moment: datetime) -> None:
    """Delete what is sent or too old; count what was never sent, and what waits; forget forwards off or gone."""
    rows = {row.pk: row for row in LogForward.objects.filter(enabled=True).select_related("account")}
    days = dict(LogSettings.objects.values_list("account", "retention_days"))
    for pk in queues.known():
        row = rows.get(pk)
        if row is None:
            queues.drop(pk)
            continue
        _forget(queues, row)
        kept = timedelta(days=days.get(row.account_id, LogSettings().retention_days))
        skipped = queues.tidy(pk, row.positions, moment, moment - kept, MOST_WAITING_BYTES)
        LogForward.objects.filter(pk=pk).update(lines_waiting=queues.lines(pk, row.positions))
        if skipped:
            LogForward.objects.filter(pk=pk).update(skipped=F("skipped") + skipped)
            logger.warning("%s request lines for %s were never sent and are too old or too many", skipped, row)


def _forget(queues: Queues, row: LogForward) -> None:
    """Delete what somebody wants to be deleted; it is not counted as lost."""
    if row.forget_before:
        queues.tidy(row.pk, row.positions, now(), row.forget_before)


def _free(instant: datetime) -> QuerySet[LogForward]:
    free = Q(claimed_until=None) | Q(claimed_until__lt=instant)
    rested = Q(not_before=None) | Q(not_before__lte=instant)
    active = Account.objects.filter(suspended_at=None)
    # Columns of the row itself, no join: so that of two updates at once the second looks again and finds it taken.
    return LogForward.objects.filter(free, rested, enabled=True, account__in=active)


def _claim(pk: int) -> int | None:
    instant = database_now()
    if not _free(instant).filter(pk=pk).update(claimed_until=instant + LEASE, turn=F("turn") + 1):
        return None
    return LogForward.objects.values_list("turn", flat=True).get(pk=pk)


def _send_next(queues: Queues, pk: int, turn: int) -> bool:
    """Send the next piece; False when there is none, it failed, or the claim is another's."""
    mine = LogForward.objects.filter(pk=pk, turn=turn, enabled=True)
    if not mine.update(claimed_until=database_now() + LEASE):
        return False
    row = mine.first()
    if row is None:
        return False
    frames = queues.read(pk, row.positions, FRAMES_OF_SYSLOG if is_syslog(row.url) else 1)
    if not frames:
        return False
    records = [record for frame in frames for record in frame.records]
    names = dict(Account.objects.filter(pk__in={each.account for each in records}).values_list("pk", "name"))
    outcome = send(row, records, names)
    return _note(queues, row, turn, outcome, frames) and not outcome.again


def _note(queues: Queues, row: LogForward, turn: int, outcome: Outcome, frames: list[Frame]) -> bool:
    """Write down what came of it; False when the claim went to somebody else meanwhile, who sends it again."""
    mine, moment = LogForward.objects.filter(pk=row.pk, turn=turn), now()
    if outcome.again:
        failures = row.failures + 1
        pause = backoff.pause(failures, outcome.wish)
        since = row.failing_since or moment
        return bool(mine.update(failures=failures, failing_since=since, error=outcome.error, not_before=moment + pause))
    return bool(
        mine.update(
            positions=queues.moved(row.pk, row.positions, frames),
            sent=F("sent") + outcome.sent,
            refused=F("refused") + outcome.refused,
            sent_at=moment,
            failures=0,
            failing_since=None,
            not_before=None,
            error=outcome.error,
        )
    )

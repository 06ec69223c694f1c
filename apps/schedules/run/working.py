"""Second half: take runs that are due, act, and write down what came of each.

1. Claim (claims.py). Targets that take many at once get up to fifty, others one. Those that wait for somebody outside
   have a seat, of which each account has a part: a slow receiver keeps nothing waiting behind it.
2. Act. What is ours is done in the transaction that finishes the run, so it is done once; what is not is done at
   least once, under the key of the run.
3. Done, again later with growing backoff, or dead when the attempts are used up. A dead run is said aloud, stays on
   the page, and may be tried again by hand.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from functools import partial

from django import db
from django.db import transaction
from django.db.models import F

from apps.accounts.actors import Actor
from apps.accounts.models import Membership
from apps.audit import services as audit
from apps.core.clock import database_now, now
from apps.core.concurrency.backoff import pause_after
from apps.core.concurrency.fairness import Owners, Seats
from apps.schedules.models import ScheduleRun
from apps.schedules.run import claims
from apps.schedules.targets import TARGETS
from apps.schedules.targets.contract import Outcome, Target, TargetFailed

logger = logging.getLogger(__name__)
TURN_S = 20.0
SEATS: Seats[list[ScheduleRun]] = Seats()
LONGEST_PAUSE = timedelta(hours=1)
LOST_LEASES = 5
POISONED = "Failed: every worker that started it died before it finished."
BROKE = "Something unexpected went wrong in Spillway; its log says what."


def work_off(*, seconds: float = TURN_S) -> int:
    """Act on what is due until nothing is left or the time is over; the number of runs that were taken."""
    ends, count = time.monotonic() + seconds, 0
    sources = _sources()
    empty = 0
    while empty < len(sources) and time.monotonic() < ends:
        source = sources.pop(0)
        sources.append(source)  # in turn, so that no kind of target waits for another to be through
        with source() as taken:
            empty = 0 if taken else empty + 1
            count += len(taken or ())
            if taken:
                with _renewing(taken):
                    _work_on(taken)
    return count


def recover() -> int:
    """Let runs whose lease ended wait again, or give them up; the number of runs that was about.

    Workers that die under a run do not use up its attempts, but a run under which they all die is given up.
    """
    moment = database_now()
    lost = claims.expired(moment)
    for run in lost.filter(attempt__gte=F("schedule__attempts") + LOST_LEASES).select_related("schedule__account"):
        _give_up(run, moment, POISONED)
    return lost.update(state=ScheduleRun.State.WAITING, next_try_at=moment, lease_until=None)


def pause_before(attempt: int, backoff_s: int) -> timedelta:
    """How long a run waits after its `attempt`-th failure: the back-off, doubled each time, at most an hour."""
    return pause_after(attempt, first=timedelta(seconds=backoff_s), longest=LONGEST_PAUSE)


def _sources() -> list[Callable[[], AbstractContextManager[list[ScheduleRun] | None]]]:
    """Where runs are taken from: each kind that takes many at once, the rest of what is ours, and what waits."""
    many = [kind for kind, target in TARGETS.items() if target.act_on_many is not None]
    waiting = [kind for kind, target in TARGETS.items() if target.waits]
    single = [kind for kind in TARGETS if kind not in (*many, *waiting)]
    sources: list[Callable[[], AbstractContextManager[list[ScheduleRun] | None]]] = []
    sources += [partial(_ours, [kind], claims.AT_ONCE) for kind in many]
    sources += [partial(_ours, single, 1)] if single else []
    sources += [partial(SEATS.seat, partial(_of_whom, waiting))] if waiting else []
    return sources


@contextmanager
def _ours(kinds: Sequence[str], limit: int) -> Iterator[list[ScheduleRun]]:
    yield claims.take(kinds, limit=limit)


def _of_whom(kinds: Sequence[str], owners: Owners) -> tuple[Hashable, list[ScheduleRun]] | None:
    taken = claims.take(kinds, limit=1, but_of=owners)
    return (taken[0].account_id, taken) if taken else None


def _work_on(runs: list[ScheduleRun]) -> None:
    target = TARGETS[runs[0].schedule.target_kind]
    if target.act_on_many is not None:
        _act_on_many(target, runs)
        return
    for run in runs:
        try:
            _act_on_one(target, run)
        except claims.LeaseLost:
            logger.info("%s: another worker has it by now", run)


def _act_on_one(target: Target, run: ScheduleRun) -> None:
    """Act and finish: in one transaction where the effect is ours."""
    if target.in_transaction:
        try:
            with transaction.atomic():
                claims.lock(run)
                claims.finish([run], [target.act(run, now())])
        except claims.LeaseLost:
            raise
        except Exception as error:  # noqa: BLE001 - the transaction is undone; whatever it was, the run is not lost
            _fail(run, _failure(run, error))
        return
    try:
        outcome = target.act(run, now())
    except Exception as error:  # noqa: BLE001 - a target that breaks costs an attempt, not the worker
        _fail(run, _failure(run, error))
    else:
        claims.finish([run], [outcome])


def _act_on_many(target: Target, runs: list[ScheduleRun]) -> None:
    assert target.act_on_many is not None, "asked by the caller"  # noqa: S101
    try:
        outcomes: Sequence[Outcome | TargetFailed] = target.act_on_many(runs, now())
    except Exception as error:  # noqa: BLE001 - as above, for all of them
        outcomes = [_failure(run, error) for run in runs]
    done: list[tuple[ScheduleRun, Outcome]] = []
    with transaction.atomic():
        for run, outcome in zip(runs, outcomes, strict=True):
            if isinstance(outcome, TargetFailed):
                _fail(run, outcome)
            else:
                done.append((run, outcome))
        claims.finish([run for run, _ in done], [outcome for _, outcome in done])


def _failure(run: ScheduleRun, error: Exception) -> TargetFailed:
    if isinstance(error, TargetFailed):
        return error
    logger.error("%s failed", run, exc_info=error)
    return TargetFailed(BROKE)


def _fail(run: ScheduleRun, failure: TargetFailed) -> None:
    """Try again later, or not at all."""
    moment, message = database_now(), failure.message[:400]
    if not failure.final and run.attempt < run.schedule.attempts:
        again = moment + pause_before(run.attempt, run.schedule.backoff_s)
        claims.write([run], state=ScheduleRun.State.WAITING, next_try_at=again, message=message)
        return
    _give_up(run, moment, message)


def _give_up(run: ScheduleRun, moment: datetime, message: str) -> None:
    with transaction.atomic():
        if claims.write([run], state=ScheduleRun.State.DEAD, finished_at=moment, message=message):
            _tell_dead(run, moment, message)


def _tell_dead(run: ScheduleRun, moment: datetime, message: str) -> None:
    schedule = run.schedule
    audit.record(
        actor=Actor("spillway", schedule.account, Membership.Role.ADMIN),
        action="give_up",
        kind="ScheduleRun",
        object_id=run.pk,
        label=f"{schedule.account.name}/{schedule.name} at {run.scheduled_at:%Y-%m-%d %H:%M:%S} UTC",
        after={"attempts": run.attempt, "given_up_at": moment.isoformat()},
        reason=message,
    )


@contextmanager
def _renewing(runs: list[ScheduleRun]) -> Iterator[None]:
    """Renew the leases while the block runs; what takes less than a renewal starts no thread's work."""
    ended = threading.Event()
    timer = threading.Thread(target=_renew_until, args=(runs, ended), daemon=True)
    timer.start()
    try:
        yield
    finally:
        ended.set()
        timer.join()


def _renew_until(runs: list[ScheduleRun], ended: threading.Event) -> None:
    try:
        while not ended.wait(claims.RENEW_SECONDS):
            try:
                claims.renew(runs)
            except db.DatabaseError:
                logger.warning("could not renew leases; the fence keeps what is late from being written")
                db.connection.close()
    finally:
        db.connection.close()

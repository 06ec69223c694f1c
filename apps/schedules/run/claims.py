"""The right to act on a run: a lease by database time, with the number of the attempt as a fence.

A worker takes runs that wait, several at once where their target takes many. While it lives it renews the leases of
all that it holds; when it dies they end, and the runs wait again. Whoever comes back with an older attempt finds the
fence closed: nothing is written.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import Exists, F, Min, OuterRef, Q, QuerySet

from apps.accounts.models import Account
from apps.core.clock import database_now
from apps.definitions.models import Schedule
from apps.schedules.models import ScheduleRun
from apps.schedules.targets.contract import Outcome

LEASE = timedelta(seconds=5)
RENEW_SECONDS = 1.5
AT_ONCE = 50


class LeaseLost(Exception):
    """The attempt is no longer ours: another was begun, or is about to be."""


def take(kinds: Iterable[str], *, limit: int = AT_ONCE, but_of: Collection[int] = ()) -> list[ScheduleRun]:
    """Claim at most `limit` runs of these target kinds that are due, oldest first, with schedule and account.

    Where more are due than that, each account has its part. Runs of the accounts (primary keys) `but_of` are left.
    """
    with transaction.atomic():
        moment = database_now()
        rows = _takeable(moment).filter(schedule__target_kind__in=list(kinds)).exclude(account__in=but_of)
        ids = _oldest(rows, limit)
        if len(ids) == limit > 1:
            ids = _shared(rows, limit)
        if not ids:
            return []
        claimed = ScheduleRun.objects.filter(pk__in=ids, state=ScheduleRun.State.WAITING)
        claimed.update(
            state=ScheduleRun.State.RUNNING, attempt=F("attempt") + 1, lease_until=moment + LEASE, started_at=moment
        )
        return list(
            ScheduleRun.objects.filter(pk__in=ids).select_related("schedule__account").order_by("next_try_at", "pk")
        )


def _oldest(rows: QuerySet[ScheduleRun], limit: int) -> list[int]:
    locked = rows.order_by("next_try_at").select_for_update(skip_locked=True, of=("self",))
    return list(locked.values_list("pk", flat=True)[:limit])


def _shared(rows: QuerySet[ScheduleRun], limit: int) -> list[int]:
    """The oldest of each account, as many of one as of the other, those first that wait longest."""
    first = rows.order_by().values("account").annotate(first=Min("next_try_at")).order_by("first")
    accounts = list(first.values_list("account", flat=True)[:limit])
    part = -(-limit // max(1, len(accounts)))
    return [pk for account in accounts for pk in _oldest(rows.filter(account=account), part)][:limit]


def renew(runs: Sequence[ScheduleRun]) -> None:
    """A full lease again for all of them that are still ours."""
    until = database_now() + LEASE
    for attempt, group in by_attempt(runs).items():
        _held(group, attempt).update(lease_until=until)


def expired(moment: datetime) -> QuerySet[ScheduleRun]:
    """Runs whose worker has not renewed its lease: it died, or the database was away."""
    return ScheduleRun.objects.filter(state=ScheduleRun.State.RUNNING, lease_until__lt=moment)


def lock(run: ScheduleRun) -> None:
    """Lock the row until the transaction ends; raises LeaseLost when the attempt is no longer ours."""
    if not _held([run], run.attempt).select_for_update().exists():
        raise LeaseLost(f"attempt {run.attempt} on {run} is over")


def write(runs: Sequence[ScheduleRun], **columns: object) -> int:
    """Write columns of those runs that are still ours, and give up the lease; the number of them."""
    return sum(_held(group, attempt).update(lease_until=None, **columns) for attempt, group in by_attempt(runs).items())


def finish(runs: Sequence[ScheduleRun], outcomes: Sequence[Outcome]) -> None:
    """Write those that are still ours as done, each with what came of it: one statement, however many."""
    moment = database_now()
    if connection.vendor != "postgresql":
        for run, outcome in zip(runs, outcomes, strict=True):
            write(
                [run],
                state=ScheduleRun.State.DONE,
                finished_at=moment,
                message=outcome.message[:400],
                result=outcome.result,
            )
        return
    columns = (
        [run.pk for run in runs],
        [run.attempt for run in runs],
        [outcome.message[:400] for outcome in outcomes],
        [json.dumps(outcome.result) for outcome in outcomes],
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE schedules_schedulerun AS f"
            " SET state = 'done', lease_until = NULL, finished_at = %s, message = n.message, result = n.result::jsonb"
            " FROM unnest(%s::bigint[], %s::int[], %s::text[], %s::text[]) AS n(id, attempt, message, result)"
            " WHERE f.id = n.id AND f.attempt = n.attempt AND f.state = 'running'",
            (moment, *columns),
        )


def by_attempt(runs: Sequence[ScheduleRun]) -> dict[int, list[ScheduleRun]]:
    """The runs by the number of their attempt."""
    groups: dict[int, list[ScheduleRun]] = {}
    for run in runs:
        groups.setdefault(run.attempt, []).append(run)
    return groups


def due_runs(moment: datetime) -> QuerySet[ScheduleRun]:
    """Runs that wait and may be tried now, whatever else keeps them."""
    return ScheduleRun.objects.filter(state=ScheduleRun.State.WAITING, next_try_at__lte=moment)


def open_in_turn() -> QuerySet[ScheduleRun]:
    """Runs that others of their schedule wait for: all that are open, but no restore, which has its own time."""
    return ScheduleRun.objects.filter(state__in=ScheduleRun.OPEN).exclude(cause=ScheduleRun.Cause.RESTORE)


def _takeable(moment: datetime) -> QuerySet[ScheduleRun]:
    """Due runs of active accounts; of a schedule that may not overlap, the oldest open one only."""
    earlier = open_in_turn().filter(schedule=OuterRef("schedule"), pk__lt=OuterRef("pk"))
    in_turn = Q(schedule__overlap=Schedule.Overlap.ALLOW) | Q(cause=ScheduleRun.Cause.RESTORE) | ~Exists(earlier)
    return due_runs(moment).filter(in_turn, account__in=Account.objects.filter(suspended_at=None))


def _held(runs: Sequence[ScheduleRun], attempt: int) -> QuerySet[ScheduleRun]:
    ids = [run.pk for run in runs]
    return ScheduleRun.objects.filter(pk__in=ids, attempt=attempt, state=ScheduleRun.State.RUNNING)

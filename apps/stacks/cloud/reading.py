"""Each stack's targets and numbers, read by the clouds' own clients, kept beside those of fleets.

1. A stack that has something applied is due every fifteen seconds; one worker at a time reads it (a lease).
2. The health of its targets replaces what was known, and `since` tells when a state began.
3. Whole minutes of numbers are added; the last three are read again, since clouds count late.
4. Weights follow the numbers where weights do the overflow (weight_moves.py).

Reading happens in the `clouds` queue: a cloud that does not answer delays neither nodes nor pushes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from apps.core.clock import database_now, now
from apps.core.concurrency.backoff import pause_after
from apps.core.concurrency.fairness import Owners, Seats, in_turns
from apps.core.concurrency.leases import Lease, LeaseLost, take
from apps.core.events import publish_after_commit
from apps.drivers.clouds.contract import CloudAccess, CloudError, CloudReader, Numbers, TargetHealth
from apps.drivers.clouds.registry import open_reader
from apps.fleet.models import Stack
from apps.stacks.cloud import evaluation
from apps.stacks.cloud import weight_moves as moving
from apps.stacks.models import CloudSample, CloudTarget, StackReading

READ_STACK_TASK = "apps.stacks.tasks.read_stack"
EVERY, LEASE, LONGEST_PAUSE = timedelta(seconds=15), timedelta(seconds=60), timedelta(minutes=5)
AGAIN, FIRST = timedelta(minutes=3), timedelta(minutes=15)
KEPT_FOR = timedelta(hours=24)
SEATS: Seats[int] = Seats(slow_s=20.0)
COUNTED = (
    *("requests", "status_2xx", "status_3xx", "status_4xx", "status_5xx", "connections"),
    *("p50_ms", "p95_ms", "p99_ms"),
)


def due_stacks(instant: datetime) -> list[int]:
    """Stacks with something in their cloud that nobody reads now and whose pause is over."""
    free = Q(reading=None) | Q(reading__claimed_until=None) | Q(reading__claimed_until__lt=instant)
    due = Q(reading=None) | Q(reading__next_at=None) | Q(reading__next_at__lte=instant)
    found = Stack.objects.filter(free, due, sync__applied__isnull=False)
    return list(found.order_by("pk").values_list("pk", flat=True))


def stacks_to_read() -> list[int]:
    """As `due_stacks`, now by the database's clock."""
    return due_stacks(database_now())


def read_in_turns() -> int:
    """Read what is due, cloud account by cloud account, as long as there are seats; the number of stacks."""

    def choose(accounts: Owners, done: frozenset[int]) -> tuple[Hashable, int] | None:
        due = Stack.objects.filter(pk__in=stacks_to_read()).exclude(cloud_account__in=accounts)
        return due.exclude(pk__in=done).order_by("pk").values_list("cloud_account", "pk").first()

    return in_turns(SEATS, choose, lambda stack_id: read_stack(stack_id=stack_id))


def access_of(stack: Stack) -> CloudAccess:
    """Where the stack's cloud is asked; needs its cloud account."""
    account = stack.cloud_account
    return CloudAccess(
        cloud=account.cloud,
        region=stack.cloud_region,
        project=account.project,
        endpoint_url=account.endpoint_url,
        credentials=account.credentials,
        stack=f"stk-{stack.pk}",
    )


def read_stack(*, stack_id: int) -> bool:
    """Read one stack's cloud; False when somebody else does. What goes wrong is written down and tried again."""
    stack = Stack.objects.select_related("cloud_account", "region").filter(pk=stack_id).first()
    if stack is None:
        return True
    lease = take(StackReading, LEASE, stack=stack)
    if lease is None:
        return False
    try:
        try:
            _read(stack, lease)
        except CloudError as error:
            _note_failure(lease, error.message)
    except LeaseLost:
        return False
    finally:
        lease.release()
    return True


def _read(stack: Stack, lease: Lease[StackReading]) -> None:
    reader = open_reader(access_of(stack))
    targets = reader.target_health()
    lease.renew()
    counted = _numbers(reader, lease)
    with transaction.atomic():
        reading = lease.lock()
        moment = now()
        changed = _store_targets(stack, targets, moment)
        _store_numbers(stack, counted)
        reading.read_at, reading.error, reading.failures = moment, "", 0
        reading.next_at = database_now() + EVERY
        reading.counted_until = max([each.at for each in counted], default=reading.counted_until)
        reading.save()
        evaluation.evaluate_pools(stack)
        if changed or counted:
            publish_after_commit("stacks", stack=stack.pk)
    if counted:
        moving.move_weights(stack)


def _numbers(reader: CloudReader, lease: Lease[StackReading]) -> list[Numbers]:
    """New minutes, once a minute."""
    counted_until = StackReading.objects.values_list("counted_until", flat=True).get(pk=lease.pk)
    if counted_until is not None and now() - counted_until < timedelta(minutes=1):
        return []
    since = now() - FIRST if counted_until is None else max(counted_until - AGAIN, now() - KEPT_FOR)
    return list(reader.numbers(since))


def _store_targets(stack: Stack, found: Iterable[TargetHealth], moment: datetime) -> bool:
    """Replace what was known; True when a state changed."""
    known = {(row.group, row.address, row.port): row for row in CloudTarget.objects.filter(stack=stack)}
    changed = False
    for each in {(each.group, each.address, each.port): each for each in found}.values():
        row = known.pop((each.group, each.address, each.port), None)
        if row is None:
            row = CloudTarget(stack=stack, group=each.group, address=each.address, port=each.port)
        if row.state != each.state:
            row.since, changed = moment, True
        row.object_id, row.state, row.reason, row.seen_at = each.object_id, each.state, each.reason[:400], moment
        row.save()
    gone = [row.pk for row in known.values()]
    CloudTarget.objects.filter(pk__in=gone).delete()
    return changed or bool(gone)


def _store_numbers(stack: Stack, counted: Iterable[Numbers]) -> None:
    """Add minutes; one that is there already is counted anew. One statement takes each minute of a group once."""
    rows = {
        (each.group, each.at): CloudSample(
            stack=stack,
            group=each.group,
            object_id=each.object_id,
            at=each.at,
            **{name: getattr(each, name) for name in COUNTED},
        )
        for each in counted
    }
    CloudSample.objects.bulk_create(
        rows.values(), update_conflicts=True, unique_fields=("stack", "group", "at"), update_fields=COUNTED
    )


def _note_failure(lease: Lease[StackReading], message: str) -> None:
    """Write down why, and leave the cloud alone for a while."""
    with transaction.atomic():
        reading = lease.lock()
        reading.failures += 1
        pause = pause_after(reading.failures, first=EVERY, longest=LONGEST_PAUSE)
        reading.error, reading.next_at = message[:1000], database_now() + pause
        reading.save(update_fields=("failures", "error", "next_at"))
        publish_after_commit("stacks", stack=reading.stack_id)


def prune(moment: datetime) -> None:
    """Forget minutes that are too old to be shown, and readings of stacks that have nothing any more."""
    CloudSample.objects.filter(at__lt=moment - KEPT_FOR).delete()
    empty = Stack.objects.filter(Q(sync=None) | Q(sync__applied=None)).values("pk")
    CloudTarget.objects.filter(stack__in=empty).delete()

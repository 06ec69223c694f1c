"""Writes of the topology, intent (raising a fleet's desired generation), and what nodes measured between regions."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction
from django.db.models import F

from apps.core.clock import now
from apps.core.events import publish_after_commit
from apps.core.queue import enqueue_on_commit
from apps.fleet.distances import noticeably_differs
from apps.fleet.models import Fleet, Region, RegionLatency, Stack
from apps.fleet.selectors import overflow_orders

RECONCILE_TASK = "apps.rollouts.tasks.reconcile_fleet"
CHANGED_TASK = "apps.rollouts.tasks.reconcile_changed"
STACK_TASK = "apps.stacks.tasks.reconcile_stack"
MEASURED_AGAIN_S = 60


def request_push(fleets: Iterable[Fleet]) -> None:
    """Raise the desired generation of the fleets and wake a worker for each after commit.

    Call it inside the transaction of the change: that row is the intent, the wake-up only saves the wait
    for the next sweep.
    """
    for fleet_id in sorted({fleet.pk for fleet in fleets}):
        Fleet.objects.filter(pk=fleet_id).update(desired_generation=F("desired_generation") + 1)
        enqueue_on_commit(CHANGED_TASK, fleet_id)
    publish_after_commit("definitions")


def request_stack_push(stacks: Iterable[Stack]) -> None:
    """As `request_push`, for stacks: raise their desired generation, wake a worker for each after commit."""
    for stack_id in sorted({stack.pk for stack in stacks}):
        Stack.objects.filter(pk=stack_id).update(desired_generation=F("desired_generation") + 1)
        enqueue_on_commit(STACK_TASK, stack_id)
    publish_after_commit("definitions")


def record_latency(*, from_region_id: int, to_region_id: int, ms: float) -> None:
    """Keep the round trip in ms that nodes of one region measured to another; called at every reading of a node.

    Small changes are no news, so that two regions that are about as far do not change order every minute. Fleets are
    pushed to only when another region becomes the nearest. A region that is gone meanwhile is passed over.
    """
    if from_region_id == to_region_id:
        return
    ids = (from_region_id, to_region_id)
    known, moment = RegionLatency.objects.filter(from_region=ids[0], to_region=ids[1]).first(), now()
    old = known.measured_ms if known else None
    if not noticeably_differs(old, ms):
        if known and known.measured_at and (moment - known.measured_at).total_seconds() > MEASURED_AGAIN_S:
            RegionLatency.objects.filter(pk=known.pk).update(measured_at=moment)
        return
    with transaction.atomic():
        if Region.objects.filter(pk__in=ids).count() < len(ids):
            return
        before = overflow_orders()
        RegionLatency.objects.update_or_create(
            from_region_id=ids[0], to_region_id=ids[1], defaults={"measured_ms": float(ms), "measured_at": moment}
        )
        if overflow_orders() != before:
            request_push(Fleet.objects.all())
            request_stack_push(Stack.objects.all())

"""Writes on places, and the intent: raising a fleet's desired generation in the transaction of a change."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import F

from apps.core.events import publish_after_commit
from apps.core.queue import wake_after_commit
from apps.fleet.models import Fleet

RECONCILE_TASK = "apps.rollouts.tasks.reconcile_fleet"


def want_push(fleets: Iterable[Fleet]) -> None:
    """Raise the desired generation of the fleets and wake a worker for each after commit.

    Call it inside the transaction of the change: that row is the intent, the wake-up only saves the wait
    for the next sweep.
    """
    for fleet_id in sorted({fleet.pk for fleet in fleets}):
        Fleet.objects.filter(pk=fleet_id).update(desired_generation=F("desired_generation") + 1)
        wake_after_commit(RECONCILE_TASK, fleet_id)
    publish_after_commit("definitions")

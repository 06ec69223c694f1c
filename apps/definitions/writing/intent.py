"""The intent to push zones: a higher desired generation, as apps/fleet/services.py does it for fleets."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import F

from apps.core.events import publish_after_commit
from apps.core.queue import enqueue_on_commit
from apps.definitions.models import Zone

ZONE_TASK = "apps.dns.tasks.reconcile_zone"


def request_zone_push(zones: Iterable[Zone]) -> None:
    """Raise the desired generation of the zones and wake a worker for each after commit; Route 53 has its stack's.

    Call it inside the transaction of the change.
    """
    for zone in sorted(zones, key=lambda each: each.pk):
        Zone.objects.filter(pk=zone.pk).update(desired_generation=F("desired_generation") + 1)
        if zone.driver != Zone.Driver.ROUTE53:
            enqueue_on_commit(ZONE_TASK, zone.pk)
    publish_after_commit("definitions")

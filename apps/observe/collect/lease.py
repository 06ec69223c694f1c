"""One collector per shard, by a lease in the database and by the database's clock."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q
from django.db.models.functions import Now

from apps.core.clock import database_now
from apps.observe.models import CollectorLease

LEASE = timedelta(seconds=15)


def hold(shard: int, holder: str) -> bool:
    """Take or renew the lease; False while somebody else has it. Raises django.db.Error."""
    instant = database_now()
    free = Q(holder=holder) | Q(until__lte=instant)
    if CollectorLease.objects.filter(free, shard=shard).update(holder=holder, until=instant + LEASE):
        return True
    created = CollectorLease.objects.bulk_create(
        [CollectorLease(shard=shard, holder=holder, until=instant + LEASE)], ignore_conflicts=True
    )
    return bool(created) and CollectorLease.objects.filter(shard=shard, holder=holder).exists()


def release(shard: int, holder: str) -> None:
    """Let the next collector begin at once."""
    CollectorLease.objects.filter(shard=shard, holder=holder).update(until=database_now() - timedelta(seconds=1))


def watched() -> bool:
    """Whether some collector looks at the nodes now; without one every verdict is unknown."""
    return CollectorLease.objects.filter(until__gt=Now()).exists()

"""What HAProxy counted while the nodes of a wave were watched, for tests of waves and stages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from apps.core.clock import now
from apps.definitions.models import Pool
from apps.fleet.models import Node
from apps.observe.collect.buckets import SHORT, start_of
from apps.observe.models import Sample
from apps.rollouts.models import Rollout

SOAK_SECONDS = 60


def soaked(rollout: Rollout, *, seconds: int = 80) -> datetime:
    """Have its wave watched for so long already; since when."""
    since = datetime.fromtimestamp(start_of(now().timestamp(), SHORT) - seconds // SHORT * SHORT, UTC)
    rows = Rollout.objects.filter(fleet=rollout.fleet_id)
    rows.filter(pk=rollout.pk).update(soaking_since=since, created_at=since - timedelta(seconds=1))
    rows.exclude(pk=rollout.pk).update(finished_at=since - timedelta(hours=1))
    return since


def counts(name: str, at: datetime, kind: str = "backend", thing: str = "", **numbers: Any) -> None:
    """What HAProxy counted on a node in the ten seconds from an instant."""
    node = Node.objects.get(name=name)
    Sample.objects.update_or_create(
        at=at, resolution=SHORT, node=node, kind=kind, object_id=thing or f"node-{node.pk}", defaults=numbers
    )


def serve(since: datetime, *names: str, failed: int = 0, of: int = 100, pool: str = "blue", **more: Any) -> None:
    """These nodes served so many requests of the pool in the first ten seconds that they are watched."""
    for name in names:
        numbers: dict[str, Any] = {"requests": of, "status_5xx": failed}
        counts(name, since, kind="node", **numbers)
        counts(name, since + timedelta(seconds=SOAK_SECONDS), kind="node")
        counts(name, since, thing=f"pool-{Pool.objects.get(name=pool).pk}", **numbers, **more)

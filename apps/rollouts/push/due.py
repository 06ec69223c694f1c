"""The sweep's question: on which fleets is there something to do that nobody does?"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import F, Q, QuerySet

from apps.fleet.models import Fleet, Node
from apps.rollouts.models import FleetSync, Rollout

# The collector reads each node every two seconds; a report older than this says nothing about now.
OLD_REPORT = timedelta(seconds=30)


def due_fleets(instant: datetime) -> list[int]:
    """Ids of fleets with uncompiled desires, an unfinished rollout, or a node that differs; none that is claimed.

    `instant` is the database's present. Three queries whatever the number of fleets.
    """
    claimed = set(FleetSync.objects.filter(claimed_until__gte=instant).values_list("fleet_id", flat=True))
    never = Q(sync=None, desired_generation__gt=0)
    behind = Q(sync__held_at=None, desired_generation__gt=F("sync__compiled_generation"))
    due = set(Fleet.objects.filter(never | behind).values_list("pk", flat=True))
    due |= set(Rollout.objects.filter(finished_at=None).values_list("fleet_id", flat=True))
    due |= set(_differing_nodes(instant).values_list("fleet_id", flat=True))
    return sorted(due - claimed)


def runs(digest: str | F, node: str = "") -> Q:
    """Of nodes, or of rows with a `node__`: which said last that they run this digest and nothing was edited."""
    expected: dict[str, object] = {"digest": digest, "on_disk": digest, "drift": []}
    return Q(**{f"{node}report__{name}": value for name, value in expected.items()})


def _differing_nodes(instant: datetime) -> QuerySet[Node]:
    """Nodes of fleets that should run something, whose last report says otherwise or is too old to say anything."""
    unknown = Q(report=None) | Q(report__seen_at=None) | Q(report__seen_at__lt=instant - OLD_REPORT)
    differs = ~runs(F("fleet__sync__wanted__digest"))
    return Node.objects.filter(fleet__sync__wanted__isnull=False).filter(unknown | differs)

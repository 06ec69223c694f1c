"""Which nodes get a change in which wave: a few that answer and have traffic first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Sum

from apps.core.clock import now
from apps.fleet.models import Fleet, Node
from apps.observe.collect.buckets import SHORT
from apps.observe.models import Sample
from apps.rollouts.models import Rollout
from apps.rollouts.settings import of_later_stages, settings_of

LATELY = timedelta(minutes=1)


def soaks_until(rollout: Rollout) -> datetime | None:
    """Until when the nodes of the present wave are watched at least; None while they are not."""
    if rollout.soaking_since is None:
        return None
    return rollout.soaking_since + timedelta(seconds=settings_of(rollout.fleet).soak_seconds)


@dataclass(frozen=True, slots=True)
class Waves:
    """With which wave the turn of each node (primary key) comes, and what is awaited before the first."""

    of_nodes: Mapping[int, int]
    last: int = 1
    awaits: list[dict[str, int]] = field(default_factory=list)


def at_once(fleet: Fleet) -> Waves:
    """All nodes of the fleet in one wave, of which nobody waits to see how it does."""
    return Waves(dict.fromkeys(Node.objects.filter(fleet=fleet).values_list("pk", flat=True), 1))


def waves_of(fleet: Fleet, awaits: list[dict[str, int]]) -> Waves:
    """As the settings of the fleet say.

    Where later stages follow, all of its nodes soak: the last wave is for those that could not be reached.
    """
    order = _in_order(fleet)
    ends = sorted({max(1, math.ceil(len(order) * percent / 100)) for percent in settings_of(fleet).waves})
    waves = {node_id: 1 + sum(end <= index for end in ends) for index, node_id in enumerate(order)}
    return Waves(waves, max(waves.values(), default=1) + bool(of_later_stages(fleet)), awaits)


def _in_order(fleet: Fleet) -> list[int]:
    """Those that answer and have traffic first, by name: a node without traffic says little about a change."""
    nodes = list(Node.objects.filter(fleet=fleet).select_related("report").order_by("name"))
    recent = Sample.objects.filter(resolution=SHORT, kind="node", at__gte=now() - LATELY)
    counted = recent.filter(object_id__in=[f"node-{node.pk}" for node in nodes]).values_list("node")
    busy = {node_id for node_id, served in counted.annotate(served=Sum("requests")) if served}

    def rank(node: Node) -> tuple[bool, bool]:
        report = getattr(node, "report", None)
        return (report is None or bool(report.last_contact_error), node.pk not in busy)

    return [node.pk for node in sorted(nodes, key=rank)]

"""Which nodes get a change in which wave: a few that answer and have traffic first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime, timedelta

from django.db.models import Sum

from apps.core.clock import now
from apps.definitions.shapes.base.reading import read_or_raise
from apps.definitions.shapes.platform.rollout_settings import RolloutSettingsSpec
from apps.fleet.models import Fleet, Node
from apps.observe.collect.buckets import SHORT
from apps.observe.models import Sample
from apps.rollouts.models import Rollout

LATELY = timedelta(minutes=1)


def settings_of(fleet: Fleet) -> RolloutSettingsSpec:
    """How changes reach the nodes of a fleet; by default all at once. What a later version stored besides is left."""
    stored = fleet.rollout_settings or {}
    known = {field.name for field in fields(RolloutSettingsSpec)}
    return read_or_raise(RolloutSettingsSpec, {name: value for name, value in stored.items() if name in known})


def soaks_until(rollout: Rollout) -> datetime | None:
    """Until when the nodes of the present wave are watched at least; None while they are not."""
    if rollout.soaking_since is None:
        return None
    return rollout.soaking_since + timedelta(seconds=settings_of(rollout.fleet).soak_seconds)


def at_once(fleet: Fleet) -> dict[int, int]:
    """All nodes of the fleet, by primary key, in one wave."""
    return dict.fromkeys(Node.objects.filter(fleet=fleet).values_list("pk", flat=True), 1)


def waves_of(fleet: Fleet, percents: Sequence[int]) -> dict[int, int]:
    """The wave (from 1) of each node of the fleet, by primary key."""
    order = _in_order(fleet)
    ends = sorted({max(1, math.ceil(len(order) * percent / 100)) for percent in percents})
    return {node_id: 1 + sum(end <= index for end in ends) for index, node_id in enumerate(order)}


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

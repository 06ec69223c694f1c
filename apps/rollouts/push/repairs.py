"""Backoff: a node that refuses its repair, or fails to take a push, is tried again after ever longer pauses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta

from apps.core.clock import now
from apps.core.concurrency.backoff import pause_after
from apps.rollouts.models import FleetSync, Revision, Rollout, Step
from apps.rollouts.push.states import StepState

FIRST_PAUSE = timedelta(seconds=10)
LONGEST_PAUSE = timedelta(minutes=10)
REMEMBERED = timedelta(hours=1)


def may_repair(wanted: Revision, node_ids: Iterable[int], fleet_id: int) -> list[int]:
    """Those of the nodes that did not refuse this revision lately, or since a person asked to try again."""
    wished = list(node_ids)
    asked = FleetSync.objects.values_list("asked_again_at", flat=True).get(fleet_id=fleet_id)
    since = now() - REMEMBERED
    rows = Step.objects.filter(
        rollout__revision=wanted,
        rollout__kind=Rollout.Kind.REPAIR,
        node__in=wished,
        state=StepState.REFUSED,
        finished_at__gt=max(asked, since) if asked else since,
    )
    refusals: dict[int, list[datetime]] = defaultdict(list)
    for node_id, at in rows.order_by("finished_at").values_list("node_id", "finished_at"):
        if at is not None:
            refusals[node_id].append(at)
    return [node_id for node_id in wished if node_id not in refusals or _rested(refusals[node_id])]


def may_try_again(step: Step) -> bool:
    """Whether a node that answers and did not get through with the push (no time, memory or disk) may be asked again.

    At once after the first failure, which is how a node that was away comes back.
    """
    return step.state != StepState.UNREACHABLE or has_rested(step)


def has_rested(step: Step) -> bool:
    """Whether the pause is over that follows the second failure and later ones."""
    return step.tries < 2 or step.finished_at is None or now() > step.finished_at + pause_of(step.tries - 1)


def _rested(refusals: list[datetime]) -> bool:
    return now() > refusals[-1] + pause_of(len(refusals))


def pause_of(refusals: int) -> timedelta:
    """How long to leave a node alone that refused so many times in the last hour."""
    return pause_after(refusals, first=FIRST_PAUSE, longest=LONGEST_PAUSE)

"""Looks at what operators run: rollouts, and Spillway's own parts."""

from __future__ import annotations

from datetime import datetime

from django.db.models import F, Max, Q

from apps.alerts.looking.contract import Look, Seen
from apps.core.clock import database_now
from apps.fleet.models import Fleet, Node
from apps.observe.collect import lease
from apps.observe.models import CollectorLease
from apps.rollouts.models import Rollout
from apps.rollouts.push.states import RolloutState


def look_at_rollouts() -> Look:
    """Fleets whose last change failed or was rolled back."""
    changes = Rollout.objects.exclude(kind=Rollout.Kind.REPAIR).exclude(finished_at=None)
    last = changes.values("fleet").annotate(last=Max("pk")).values("last")
    bad = (RolloutState.FAILED, RolloutState.ROLLED_BACK)
    rows = Rollout.objects.filter(pk__in=last, state__in=bad).select_related("fleet")
    ended = [(row, row.finished_at) for row in rows]
    return Look(tuple(_rollout(row, since) for row, since in ended if since is not None))


def _rollout(row: Rollout, since: datetime) -> Seen:
    words = "failed" if row.state == RolloutState.FAILED else "was rolled back"
    return Seen(
        *("fleet", row.fleet_id, None, "", row.fleet.name, f"Rollout to {row.fleet.name} {words}"),
        *(row.message[:1000], since, f"/rollouts/{row.pk}", (f"fleet:{row.fleet.name}",)),
    )


def look_at_collectors(instant: datetime) -> Look:
    """Whether anybody reads the nodes; without nodes nobody has to."""
    if lease.watched() or not Node.objects.exists():
        return Look()
    since = CollectorLease.objects.aggregate(last=Max("until"))["last"]
    detail = "Nobody knows how the nodes are. Start one: manage.py collect."
    return _part("collector", "No collector watches the nodes", detail, since or instant)


def look_at_workers(instant: datetime) -> Look:
    """Whether a change waits for a worker that takes it up."""
    free = Q(sync__claimed_until=None) | Q(sync__claimed_until__lt=database_now())
    behind = Q(desired_generation__gt=F("sync__compiled_generation"), sync__held_at=None, sync__compile_error="")
    never = Q(sync=None, desired_generation__gt=0)
    waiting = list(Fleet.objects.filter((behind & free) | never).order_by("name").values_list("name", flat=True))
    if not waiting:
        return Look()
    named = ", ".join(waiting[:5]) + (f" and {len(waiting) - 5} more" if len(waiting) > 5 else "")
    return _part("worker", "No worker takes up changes", f"Changes wait for fleets {named}.", instant)


def _part(name: str, title: str, detail: str, since: datetime) -> Look:
    return Look((Seen("Spillway", 0, None, "", name, title, detail, since, "/", (f"spillway:{name}",)),))

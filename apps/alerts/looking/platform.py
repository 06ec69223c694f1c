"""Looks at what operators run: rollouts, the way of request lines, and Spillway's own parts."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import F, Max, Q

from apps.alerts.looking.contract import Look, Seen
from apps.core.clock import database_now
from apps.fleet.models import Fleet, Node
from apps.logs.models import NodeLog
from apps.observe.collect import lease
from apps.observe.models import CollectorLease
from apps.rollouts.models import Rollout
from apps.rollouts.push.states import RolloutState
from apps.rollouts.waves.holding import is_in_waves

# Lines are lost in bursts: one that has just ended is told as well.
LOST_LATELY = timedelta(minutes=5)


def look_at_rollouts() -> Look:
    """Fleets whose last change failed or was rolled back; one that a later change took the place of says nothing."""
    changes = Rollout.objects.exclude(kind=Rollout.Kind.REPAIR).exclude(finished_at=None)
    changes = changes.exclude(state=RolloutState.SUPERSEDED)
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


def look_at_lost_lines(instant: datetime) -> Look:
    """Nodes that lost request lines lately."""
    rows = NodeLog.objects.filter(dropped_at__gt=instant - LOST_LATELY).select_related("node")
    lost = [(row, row.dropped_at) for row in rows]
    return Look(tuple(_of_log(row, "lost request lines", _lost(row.dropped), at) for row, at in lost if at is not None))


def _lost(count: int) -> str:
    lines = "1 line" if count == 1 else f"{count:,} lines"
    return f"{lines} since its agent began: more came than the node could keep. Requests were not held up."


def look_at_waiting_lines(instant: datetime) -> Look:
    """Nodes whose oldest line waits, and for how long; nobody waits where none were ever fetched."""
    found = []
    for row in NodeLog.objects.exclude(read_at=None).select_related("node"):
        waits = row.waits_s(instant)
        detail = row.error or "Nobody fetches them: manage.py collect_logs."
        begin = instant - timedelta(seconds=waits)
        found.append(_of_log(row, "has request lines that wait", detail, begin, waits))
    return Look(tuple(found))


def _of_log(row: NodeLog, words: str, detail: str, since: datetime, value: float | None = None) -> Seen:
    node = row.node.name
    page, causes = f"/nodes/{row.node_id}", (f"node:{node}",)
    return Seen("node", row.node_id, None, "", node, f"Node {node} {words}", detail, since, page, causes, value=value)


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
    rows = Fleet.objects.filter((behind & free & ~is_in_waves("pk")) | never)
    waiting = list(rows.order_by("name").values_list("name", flat=True))
    if not waiting:
        return Look()
    named = ", ".join(waiting[:5]) + (f" and {len(waiting) - 5} more" if len(waiting) > 5 else "")
    return _part("worker", "No worker takes up changes", f"Changes wait for fleets {named}.", instant)


def _part(name: str, title: str, detail: str, since: datetime) -> Look:
    return Look((Seen("Spillway", 0, None, "", name, title, detail, since, "/", (f"spillway:{name}",)),))

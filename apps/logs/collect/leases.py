"""Which process collects which node, and which one tidies: leases by the database's clock, shared among those alive."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q

from apps.core.clock import database_now
from apps.fleet.models import Node
from apps.logs.models import LogCollector, NodeLog

# Who dies leaves its nodes for so long. Two who collect one node store each line once, so a slow one harms nobody.
LEASE = timedelta(seconds=6)


def share(holder: str) -> set[int]:
    """Renew what this process holds, take what is free up to its share, and return its nodes. Raises django.db.Error.

    A process that has more than its share gives the rest back, so that one that just started gets some.
    """
    instant = database_now()
    until = instant + LEASE
    if not LogCollector.objects.filter(holder=holder).update(until=until):
        LogCollector.objects.bulk_create([LogCollector(holder=holder, until=until)], ignore_conflicts=True)
    LogCollector.objects.filter(until__lt=instant - LEASE).delete()
    alive = LogCollector.objects.filter(until__gt=instant).count()
    new = Node.objects.filter(log=None).values_list("pk", flat=True)
    NodeLog.objects.bulk_create([NodeLog(node_id=pk) for pk in new], ignore_conflicts=True)
    most = -(-Node.objects.count() // max(1, alive))
    mine = NodeLog.objects.filter(holder=holder)
    own = list(mine.filter(until__gt=instant).order_by("node_id").values_list("node_id", flat=True))
    held, too_many = set(own[:most]), own[most:]
    mine.filter(Q(until__lte=instant) | Q(node_id__in=too_many)).update(holder="", until=None)
    mine.update(until=until)
    free = Q(until=None) | Q(until__lte=instant)
    for pk in NodeLog.objects.filter(free).order_by("node_id").values_list("node_id", flat=True)[: most - len(held)]:
        if NodeLog.objects.filter(free, node_id=pk).update(holder=holder, until=until):
            held.add(pk)
    return held


def leads(holder: str) -> bool:
    """Whether this process is the one that tidies: the first by name of those alive. Raises django.db.Error.

    Two may think so for a moment; the store bears it.
    """
    alive = LogCollector.objects.filter(until__gt=database_now()).order_by("holder")
    return alive.values_list("holder", flat=True).first() == holder


def release(holder: str) -> None:
    """Let others collect at once."""
    NodeLog.objects.filter(holder=holder).update(holder="", until=None)
    LogCollector.objects.filter(holder=holder).delete()

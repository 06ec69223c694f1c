"""Which collector reads which nodes: shards of them, by leases in the database and by the database's clock."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models.functions import Now

from apps.core.clock import database_now
from apps.core.requests import asked_once
from apps.observe.models import CollectorLease, CollectorMember

# Who dies is missed for so long; who could not renew for so long stores nothing more.
LEASE = timedelta(seconds=10)
SHARDS = 64
# Who holds this shard gives the verdicts on what several collectors see a part of, and tidies.
LEADER = 0
EVERY = frozenset(range(SHARDS))
# Multiples of it lie evenly among the shards, so that a few nodes with neighbouring numbers are shared evenly.
_SCATTER = 39


@dataclass(frozen=True, slots=True)
class Share:
    """The shards that a collector holds, and those of them that are more than its share: to be given back."""

    held: frozenset[int]
    surplus: frozenset[int] = frozenset()


def shard_of(node_id: int) -> int:
    """The shard that a node belongs to, for ever."""
    return node_id * _SCATTER % SHARDS


def share(holder: str) -> Share:
    """Say that this collector lives, renew what it holds, take what is free, up to its share. Raises django.db.Error.

    Nothing is taken from the living: who has too much finds that here, stores what is half gathered and gives it back.
    """
    with transaction.atomic():
        instant = database_now()
        until = instant + LEASE
        if not CollectorMember.objects.filter(holder=holder).update(until=until):
            CollectorMember.objects.bulk_create([CollectorMember(holder=holder, until=until)], ignore_conflicts=True)
        CollectorMember.objects.filter(until__lt=instant - LEASE).delete()
        alive = max(1, CollectorMember.objects.filter(until__gt=instant).count())
    rows = dict(CollectorLease.objects.values_list("shard", "until"))
    if missing := EVERY - rows.keys():
        made = [CollectorLease(shard=shard, holder="", until=instant) for shard in sorted(missing)]
        CollectorLease.objects.bulk_create(made, ignore_conflicts=True)
    own, most = sorted(renew(holder)), -(-SHARDS // alive)
    free = sorted(shard for shard in EVERY - set(own) if shard not in rows or rows[shard] <= instant)
    held = set(own)
    for shard in free[: max(0, most - len(held))]:
        if CollectorLease.objects.filter(shard=shard, until__lte=instant).update(holder=holder, until=until):
            held.add(shard)
    return Share(frozenset(held), frozenset(own[most:]))


def renew(holder: str) -> frozenset[int]:
    """Renew what this collector holds, and return just that: what is too late is another's or nobody's.

    In a transaction it is the fence of what is stored after it: nobody takes these shards before the commit.
    """
    instant = database_now()
    mine = CollectorLease.objects.filter(holder=holder, until__gt=instant)
    if not mine.update(until=instant + LEASE):
        return frozenset()
    return frozenset(CollectorLease.objects.filter(holder=holder, until__gt=instant).values_list("shard", flat=True))


def release(shards: Collection[int], holder: str) -> None:
    """Let others read these at once."""
    rows = CollectorLease.objects.filter(shard__in=sorted(shards), holder=holder)
    rows.update(holder="", until=database_now() - timedelta(seconds=1))


def leave(holder: str) -> None:
    """Give everything back; the others need not wait."""
    release(EVERY, holder)
    CollectorMember.objects.filter(holder=holder).delete()


def watched() -> bool:
    """Whether some collector looks at nodes now; without one every verdict is unknown."""
    return asked_once("watched", lambda: CollectorLease.objects.filter(until__gt=Now()).exists())


def unwatched(node_ids: Iterable[int]) -> set[int]:
    """Those of the nodes that were read by a collector that is gone, and by none since: nobody knows how they are."""
    over = set(CollectorLease.objects.filter(until__lte=Now()).values_list("shard", flat=True))
    return {node_id for node_id in node_ids if shard_of(node_id) in over} if over else set()

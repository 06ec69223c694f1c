"""What pools did on nodes within a time, as HAProxy counted it there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from django.db.models import F, QuerySet, Sum

from apps.observe.collect.buckets import LONG, SHORT, start_of
from apps.observe.models import Sample
from apps.rollouts.waves.gate import Counted

DOWN = "DOWN"
# A pool that rests is told of once in a minute.
TOLD_EVERY = timedelta(seconds=LONG)


def buckets_within(begin: datetime, end: datetime) -> list[datetime]:
    """The starts of the whole ten-second buckets between two instants."""
    first = start_of(begin.timestamp() + SHORT - 1, SHORT)
    return [datetime.fromtimestamp(at, UTC) for at in range(first, start_of(end.timestamp(), SHORT), SHORT)]


def bucket_before(instant: datetime) -> datetime:
    """The start of the ten seconds that hold the instant."""
    return datetime.fromtimestamp(start_of(instant.timestamp(), SHORT), UTC)


def unmeasured(node_ids: Collection[int], times: Collection[datetime]) -> set[int]:
    """Those of the nodes of which nothing is known in that time."""
    rows = _rows(node_ids, times, kind="node")
    return set(node_ids) - set(rows.values_list("node", flat=True).distinct())


def requests_of(node_ids: Collection[int], times: Collection[datetime]) -> tuple[int, int]:
    """Requests, and responses of 5xx among them, on all ports of the nodes together."""
    rows = _rows(node_ids, times, kind="node")
    found = rows.aggregate(served=Sum("requests"), failed=Sum("status_5xx"))
    return found["served"] or 0, found["failed"] or 0


def count_pools(node_ids: Collection[int], times: Collection[datetime]) -> dict[str, Counted]:
    """By model id of the pool; those that had no request on the nodes are missing.

    What a node rejected because no region had room or servers came to none of the pool's servers, and counts as failed.
    """
    took = Sum(F("latency_ms") * F("requests"))
    sums = _rows(node_ids, times).values_list("object_id").annotate(
        served=Sum("requests"), failed=Sum("status_5xx"), took=took
    )  # fmt: skip
    found = {
        pool: Counted(served, failed, took / served if took else None) for pool, served, failed, took in sums if served
    }
    flows = _rows(node_ids, times, kind="flow").filter(object_id__contains="/refuse/")
    for pool, count in flows.values_list("parent_id").annotate(count=Sum("requests")):
        known = found.get(pool, Counted())
        found[pool] = replace(known, requests=known.requests + count, failed=known.failed + count)
    return found


def pools_down(node_ids: Collection[int], times: Collection[datetime], among: Collection[str]) -> dict[str, bool]:
    """Whether each of these pools had no server up on any of the nodes when it was last told; unknown are missing."""
    rows = _rows(node_ids, times).filter(object_id__in=among).exclude(status="").order_by("at")
    last: Mapping[tuple[str, int], str] = {
        (pool, node_id): status for pool, node_id, status in rows.values_list("object_id", "node", "status")
    }
    found: dict[str, list[bool]] = defaultdict(list)
    for (pool, _), status in last.items():
        found[pool].append(status.startswith(DOWN))
    return {pool: all(each) for pool, each in found.items()}


def pools_that_went_down(node_ids: Collection[int], times: Collection[datetime]) -> list[str]:
    """Pools that had no server up on one of the nodes at some time."""
    rows = _rows(node_ids, times).filter(status__startswith=DOWN)
    return list(rows.values_list("object_id", flat=True).distinct())


def _rows(node_ids: Collection[int], times: Iterable[datetime], kind: str = "backend") -> QuerySet[Sample]:
    """Asked for by each of their times: of a stretch of time, all nodes' rows would be looked through."""
    return Sample.objects.filter(resolution=SHORT, at__in=list(times), node__in=node_ids, kind=kind).order_by()

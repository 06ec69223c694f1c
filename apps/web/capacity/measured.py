"""What was measured of a pool in a region, beside the limit that somebody or the run set."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max

from apps.accounts.actors import Actor
from apps.capacity import selectors
from apps.capacity.models import Run
from apps.core.written.numbers import plain
from apps.web.capacity.result import capacity_of, confidence_of

BackendKey = tuple[int, int]  # ids of a pool and of a region


@dataclass(frozen=True, slots=True)
class Measured:
    """The newest number of a pool in a region; requests/s as a number and as text."""

    run_id: int
    capacity: float
    text: str
    confidence: str
    at: datetime | None


def measured(
    actor: Actor,
    *,
    pools: Iterable[int] | None = None,
    region: int | None = None,
    within: tuple[datetime, datetime] | None = None,
) -> dict[BackendKey, Measured]:
    """The newest capacity through the load balancer by pool and region, of what the actor sees. Two queries.

    `within`: of runs that ended between these moments.
    """
    rows = selectors.runs(actor).filter(state=Run.State.DONE, plan__target__server="", pool__isnull=False)
    rows = rows.exclude(result=None).exclude(result__capacity=None).order_by()
    rows = rows if pools is None else rows.filter(pool__in=list(pools))
    rows = rows if region is None else rows.filter(region=region)
    rows = rows if within is None else rows.filter(ended_at__gte=within[0], ended_at__lt=within[1])
    newest = rows.values("pool", "region").annotate(newest=Max("pk")).values_list("newest", flat=True)
    found: dict[BackendKey, Measured] = {}
    for run in Run.objects.filter(pk__in=list(newest)):
        value = capacity_of(run)
        if value is not None and run.pool_id and run.region_id:
            text = f"{plain(value)} requests/s"
            found[run.pool_id, run.region_id] = Measured(run.pk, value, text, confidence_of(run), run.ended_at)
    return found

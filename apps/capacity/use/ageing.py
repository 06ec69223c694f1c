"""The verdict: pools whose measured limit should be measured again are problems like others."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from apps.capacity.use.staleness import Staleness, of_limit
from apps.definitions.models import Backend
from apps.observe.evaluate.conditions import Reason, Type, Verdict
from apps.observe.models import Condition
from apps.observe.services import store_verdicts

FRESH = "Every measured limit is of what serves now."
UNMEASURED = "No limit of this pool was measured."


def evaluate_measurements(instant: datetime) -> list[Verdict]:
    """Store a verdict for every pool with a measured limit, or with an older verdict; returns those that moved.

    A few queries for each measured limit: called every few minutes.
    """
    return store_verdicts(_verdicts(), instant)


def _verdicts() -> Iterator[Verdict]:
    evaluated: dict[int, Staleness] = {}
    rows = Backend.objects.exclude(limit_measured_by="").select_related("region").order_by("pool_id", "region__name")
    regions: dict[int, str] = {}
    for backend in rows:
        found = of_limit(backend)
        if found and (backend.pool_id not in evaluated or (found.stale and not evaluated[backend.pool_id].stale)):
            evaluated[backend.pool_id], regions[backend.pool_id] = found, backend.region.name
    for pool_id, found in evaluated.items():
        reason = Reason.MEASUREMENT_STALE if found.stale else Reason.MEASURED_LATELY
        message = f"{regions[pool_id]}: {found.message}" if found.stale else FRESH
        yield Verdict("pool", pool_id, Type.LIMIT_MEASURED, not found.stale, reason, message)
    before = Condition.objects.filter(object_kind="pool", type=Type.LIMIT_MEASURED.value)
    for pool_id in set(before.values_list("object_id", flat=True)) - evaluated.keys():
        yield Verdict("pool", pool_id, Type.LIMIT_MEASURED, None, Reason.NOT_OBSERVED, UNMEASURED)

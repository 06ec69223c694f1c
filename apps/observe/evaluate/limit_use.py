"""Limits that are always reached, or never, by the minutes that were stored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F, Sum

from apps.compiler.model.shared import LimitKind
from apps.core.written.numbers import plain
from apps.definitions.models import Backend
from apps.definitions.serving import usable_servers
from apps.fleet.models import Node
from apps.observe.collect.buckets import LONG
from apps.observe.evaluate.conditions import Reason, Type, Verdict
from apps.observe.models import Condition, Sample

ALWAYS_FOR = timedelta(hours=1)
ALWAYS_SHARE, ALWAYS_REACHED, ALWAYS_MINUTES = 0.9, 0.95, 30
NEVER_FOR = timedelta(hours=24)
NEVER_REACHED, NEVER_MINUTES = 0.2, 20 * 60


@dataclass(frozen=True, slots=True)
class LimitFacts:
    """A backend with a rate limit: what it may take, and what it served in each observed minute, oldest first."""

    region: str
    per_s: float
    last_hour: Sequence[float]
    last_day: Sequence[float]


def evaluate_limits(pool_id: int, backends: Sequence[LimitFacts]) -> Verdict:
    """Whether the pool's limits say something about its traffic; the worst backend speaks."""
    for facts in backends:
        reached = sum(rate >= ALWAYS_REACHED * facts.per_s for rate in facts.last_hour)
        if len(facts.last_hour) >= ALWAYS_MINUTES and reached >= ALWAYS_SHARE * len(facts.last_hour):
            message = (
                f"{facts.region} has been at its limit of {plain(facts.per_s)} requests/s for most of the last hour."
            )
            return Verdict("pool", pool_id, Type.LIMIT_FITS, False, Reason.LIMIT_ALWAYS_REACHED, message)
    for facts in backends:
        peak = max(facts.last_day, default=0.0)
        if len(facts.last_day) >= NEVER_MINUTES and peak < NEVER_REACHED * facts.per_s:
            message = (
                f"{facts.region} never served more than {peak:.1f} of its {plain(facts.per_s)} requests/s in a day."
            )
            return Verdict("pool", pool_id, Type.LIMIT_FITS, False, Reason.LIMIT_NEVER_REACHED, message)
    return Verdict(
        "pool", pool_id, Type.LIMIT_FITS, True, Reason.LIMIT_FITS, "The region reaches its limit now and then."
    )


def evaluate_all(instant: datetime) -> list[Verdict]:
    """A verdict for every pool with a rate limit, or with an older verdict; five queries, once a minute."""
    limited = Backend.objects.filter(limit_kind=LimitKind.RATE, limit_value__gt=0, capacity_scaler__gt=0)
    backends = list(limited.filter(region__drained=False).select_related("region").annotate(usable=usable_servers()))
    served = _served({backend.pool_id for backend in backends}, instant)
    facts: dict[int, list[LimitFacts]] = defaultdict(list)
    for backend in backends:
        minutes = served.get((backend.pool_id, backend.region_id), {})
        recent = [rate for at, rate in minutes.items() if instant - at <= ALWAYS_FOR]
        if per_s := backend.scaled_limit(backend.usable):
            facts[backend.pool_id].append(LimitFacts(backend.region.name, per_s, recent, list(minutes.values())))
    evaluated = [evaluate_limits(pool_id, each) for pool_id, each in facts.items()]
    return evaluated + [_unlimited(pool_id) for pool_id in _evaluated_before() - facts.keys()]


def _evaluated_before() -> set[int]:
    known = Condition.objects.filter(object_kind="pool", type=Type.LIMIT_FITS.value)
    return set(known.values_list("object_id", flat=True))


def _unlimited(pool_id: int) -> Verdict:
    """What was said of a limit ends with it; otherwise it would be a problem for ever."""
    message = "No limit of requests per second is in force here."
    return Verdict("pool", pool_id, Type.LIMIT_FITS, None, Reason.NOT_OBSERVED, message)


def _served(pools: set[int], instant: datetime) -> Mapping[tuple[int, int], Mapping[datetime, float]]:
    """Requests/s by pool, region and minute of the last day; minutes in which a pool rested were stored as well."""
    regions = dict(Node.objects.values_list("pk", "fleet__region_id"))
    rows = Sample.objects.filter(
        resolution=LONG, kind="backend", object_id__in=[f"pool-{pk}" for pk in pools], at__gte=instant - NEVER_FOR
    )
    found: dict[tuple[int, int], dict[datetime, float]] = defaultdict(lambda: defaultdict(float))
    grouped = rows.filter(seconds__gt=0).values_list("at", "object_id", "node_id")
    for at, name, node_id, rate in grouped.annotate(rate=Sum(F("requests") / F("seconds"))).order_by("at"):
        if node_id in regions:
            found[int(name.removeprefix("pool-")), regions[node_id]][at] += rate
    return found

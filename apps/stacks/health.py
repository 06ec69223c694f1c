"""SHOW clouds: what the cloud's own checks and counts say of a stack's backends, beside what fleets say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.definitions.models import Backend
from apps.stacks.models import BackendWeight, CloudSample, CloudTarget, StackReading

SHOWN = timedelta(minutes=30)
# A cloud counts minutes and has them late: older than this nobody counts any more.
OLD = timedelta(minutes=6)


@dataclass(slots=True)
class BackendHealth:
    """One backend in one stack: its targets, what it did in the newest minute, its weight where weights decide.

    `per_s` and `errors_share` are None where nothing was counted lately; `rates` are requests/s of whole minutes,
    oldest first.
    """

    backend: Backend
    targets: list[CloudTarget] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    per_s: float | None = None
    errors_share: float | None = None
    p95_ms: float | None = None
    counted_at: datetime | None = None
    weight: BackendWeight | None = None

    @property
    def up(self) -> int:
        """Targets that the cloud finds healthy."""
        return sum(target.state == "healthy" for target in self.targets)

    @property
    def state(self) -> str:
        """healthy, degraded or down as for pools; unknown without targets."""
        if not self.targets or all(target.state == "unknown" for target in self.targets):
            return "unknown"
        return "healthy" if self.up == len(self.targets) else "degraded" if self.up else "down"


def reading_of(actor: Actor, stack_id: int) -> StackReading | None:
    """How the stack's cloud is read; customers do not see it."""
    rows = StackReading.objects.filter(stack_id=stack_id)
    return (rows if actor.is_operator else rows.none()).first()


def backends_of(actor: Actor, stack_id: int) -> list[BackendHealth]:
    """The backends of a stack by pool and region, as far as the actor sees them; five queries."""
    targets = list(CloudTarget.objects.filter(stack_id=stack_id).exclude(object_id=""))
    samples = list(CloudSample.objects.filter(stack_id=stack_id, at__gt=now() - SHOWN).order_by("at"))
    weights = {row.backend_id: row for row in BackendWeight.objects.filter(stack_id=stack_id)}
    named = [target.object_id for target in targets] + [sample.object_id for sample in samples]
    ids = {_number(name) for name in named} | weights.keys()
    rows = actor.visible(Backend.objects.filter(pk__in=ids)).select_related("pool__account", "region")
    found = {
        row.pk: BackendHealth(row, weight=weights.get(row.pk)) for row in rows.order_by("pool__name", "region__name")
    }
    for target in targets:
        if (number := _number(target.object_id)) in found:
            found[number].targets.append(target)
    by_backend: dict[int, list[CloudSample]] = defaultdict(list)
    for sample in samples:
        by_backend[_number(sample.object_id)].append(sample)
    for number, health in found.items():
        _count(health, by_backend[number])
    return list(found.values())


def _count(health: BackendHealth, samples: Iterable[CloudSample]) -> None:
    """Minutes of all groups of the backend together: it has one for each load balancer."""
    minutes: dict[datetime, list[CloudSample]] = defaultdict(list)
    for sample in samples:
        minutes[sample.at].append(sample)
    health.rates = [sum(row.requests for row in rows) / 60 for _, rows in sorted(minutes.items())]
    if not minutes:
        return
    newest = max(minutes)
    rows = minutes[newest]
    health.counted_at = newest
    if now() - newest > OLD:
        return
    whole = sum(row.requests for row in rows)
    health.per_s = whole / 60
    health.errors_share = sum(row.status_5xx for row in rows) / whole if whole else None
    health.p95_ms = max((row.p95_ms for row in rows if row.p95_ms is not None), default=None)


def _number(object_id: str) -> int:
    """`bkd-4` → 4; 0 for what is no backend."""
    kind, _, number = object_id.partition("-")
    return int(number) if kind == "bkd" and number.isdecimal() else 0

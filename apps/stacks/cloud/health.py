"""What the cloud's own checks and counts say of a stack's backends, beside what fleets say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Q

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.definitions.models import Backend
from apps.fleet.models import Stack
from apps.stacks.models import BackendWeight, CloudSample, CloudTarget, StackReading

SHOWN = timedelta(minutes=30)
# A cloud counts minutes and has them late: older than this nobody counts any more.
OLD = timedelta(minutes=6)


@dataclass(slots=True)
class BackendHealth:
    """One backend in one stack: its targets, what it did in the newest minute, its weight where weights decide.

    `rps` and `error_rate` are None where nothing was counted lately; `rates` are requests/s of whole minutes,
    oldest first.
    """

    backend: Backend
    stack: Stack
    targets: list[CloudTarget] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    rps: float | None = None
    error_rate: float | None = None
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
    """The backends of a stack by pool and region, as far as the actor sees them; six queries."""
    return _backends(actor, Q(stack_id=stack_id), Q())


def backends_of_pool(actor: Actor, pool_id: int) -> list[BackendHealth]:
    """The backends of a pool in every stack that has them, as far as the actor sees them; at most seven queries."""
    if not Stack.objects.exists():
        return []
    ids = list(Backend.objects.filter(pool_id=pool_id).values_list("pk", flat=True))
    named = Q(object_id__in=[f"bkd-{pk}" for pk in ids])
    return _backends(actor, named, Q(pk__in=ids))


def _backends(actor: Actor, of_rows: Q, of_backends: Q) -> list[BackendHealth]:
    targets = list(CloudTarget.objects.filter(of_rows).exclude(object_id=""))
    samples = list(CloudSample.objects.filter(of_rows, at__gt=now() - SHOWN).exclude(object_id="").order_by("at"))
    pairs = {(row.stack_id, _number(row.object_id)) for row in targets}
    pairs |= {(row.stack_id, _number(row.object_id)) for row in samples}
    stacks = Stack.objects.select_related("cloud_account").in_bulk({stack for stack, _ in pairs})
    weights = {(row.stack_id, row.backend_id): row for row in BackendWeight.objects.filter(stack__in=stacks)}
    rows = Backend.objects.filter(of_backends, pk__in={number for _, number in pairs})
    backends = actor.visible(rows).select_related("pool__account", "region").in_bulk()
    found = {
        (stack, number): BackendHealth(backends[number], stacks[stack], weight=weights.get((stack, number)))
        for stack, number in pairs
        if number in backends
    }
    for target in targets:
        if (health := found.get((target.stack_id, _number(target.object_id)))) is not None:
            health.targets.append(target)
    by_pair: dict[tuple[int, int], list[CloudSample]] = defaultdict(list)
    for sample in samples:
        by_pair[sample.stack_id, _number(sample.object_id)].append(sample)
    for pair, health in found.items():
        _count(health, by_pair[pair])
    return sorted(found.values(), key=_order)


def _order(health: BackendHealth) -> tuple[str, str, str]:
    return health.stack.name, health.backend.pool.name, health.backend.region.name


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
    health.rps = whole / 60
    health.error_rate = sum(row.status_5xx for row in rows) / whole if whole else None
    health.p95_ms = max((row.p95_ms for row in rows if row.p95_ms is not None), default=None)


def _number(object_id: str) -> int:
    """`bkd-4` → 4; 0 for what is no backend."""
    kind, _, number = object_id.partition("-")
    return int(number) if kind == "bkd" and number.isdecimal() else 0

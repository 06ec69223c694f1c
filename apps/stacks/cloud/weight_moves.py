"""Looks at what a stack's pools got and moves their weights; each move is an ordinary change.

The weights are rows; a move raises the stack's desired generation, so that it is compiled, planned and applied like
everything else, and is in the audit log with its reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Sum

from apps.accounts.actors import Actor
from apps.accounts.models import Membership
from apps.audit import services as audit
from apps.compiler.model.shared import LimitKind, LimitScope, ServerState
from apps.compiler.model.stack import Cloud, CloudBackend, CloudPool
from apps.core.clock import now
from apps.definitions.freezing.stack_snapshot import freeze_stack
from apps.fleet.models import Node, Stack
from apps.fleet.services import request_stack_push
from apps.observe.live.windows import numbers_of, read_windows
from apps.stacks.cloud.weights import Move, RegionBackend, next_move
from apps.stacks.models import BackendWeight, CloudSample, StackReading

# Two whole minutes, of which the newest is complete a minute after it ended.
MINUTES, NEWEST = 2, timedelta(minutes=4)
REST = timedelta(seconds=30)


def move_weights(stack: Stack) -> list[Move]:
    """Move the weights of every pool whose traffic asks for it; stale numbers and a move of just now move nothing."""
    moment = now()
    if stack.cloud_account.cloud != Cloud.AWS or _moved_lately(stack, moment):
        return []
    rates = _rates(stack, moment)
    moves: list[tuple[CloudPool, Move]] = []
    snapshot, _ = freeze_stack(stack.pk)
    for pool in snapshot.pools:
        counted = [rates[backend.id] for backend in pool.backends if backend.id in rates]
        if len(pool.backends) > 1 and counted:
            move = next_move(_backends(pool), sum(counted))
            if move is not None:
                moves.append((pool, move))
    if moves:
        _store(stack, moves, moment)
    return [move for _, move in moves]


def _moved_lately(stack: Stack, moment: datetime) -> bool:
    return StackReading.objects.filter(stack=stack, moved_at__gt=moment - REST).exists()


def _rates(stack: Stack, moment: datetime) -> dict[str, float]:
    """Requests/s of each backend (`bkd-4`) over the newest whole minutes; empty when they are old."""
    recent = CloudSample.objects.filter(stack=stack, at__gt=moment - NEWEST)
    minutes = sorted(set(recent.values_list("at", flat=True)))[-MINUTES:]
    rows = recent.filter(at__in=minutes).values("object_id").annotate(whole=Sum("requests")).order_by()
    return {row["object_id"]: row["whole"] / (60 * len(minutes)) for row in rows} if minutes else {}


def _backends(pool: CloudPool) -> list[RegionBackend]:
    busy = _busy(pool)
    return [
        RegionBackend(
            int(each.id.removeprefix("bkd-")), each.region, _limit(each), busy.get(each.region, 0.0), each.weight
        )
        for each in pool.backends
    ]


def _limit(backend: CloudBackend) -> float | None:
    """Requests/s after the scaler; None where nothing limits the rate, 0 where nobody is there."""
    ready = sum(each.state is ServerState.READY and each.weight > 0 for each in backend.servers)
    if not ready or backend.capacity_scaler <= 0:
        return 0.0
    if backend.limit.kind is not LimitKind.RATE:
        return None
    servers = ready if backend.limit.scope is LimitScope.SERVER else 1
    return backend.limit.value * servers * backend.capacity_scaler


def _busy(pool: CloudPool) -> dict[str, float]:
    """Requests/s that the fleets of each region send to the pool now, by the region's name."""
    nodes: dict[str, list[int]] = defaultdict(list)
    for pk, region in Node.objects.values_list("pk", "fleet__region__name"):
        nodes[region].append(pk)
    key = ("backend", pool.id)
    windows = read_windows([key], [pk for each in nodes.values() for pk in each])
    found = {}
    for region, ids in nodes.items():
        rate = numbers_of([windows[pk] for pk in ids if pk in windows], [key]).requests_rps
        found[region] = rate or 0.0
    return found


def _store(stack: Stack, moves: Iterable[tuple[CloudPool, Move]], moment: datetime) -> None:
    spillway = Actor("spillway", stack.account, Membership.Role.ADMIN)
    with transaction.atomic():
        for pool, move in moves:
            before = dict(
                BackendWeight.objects.filter(stack=stack, backend_id__in=move.weights).values_list(
                    "backend_id", "weight"
                )
            )
            for backend_id, weight in move.weights.items():
                BackendWeight.objects.update_or_create(
                    stack=stack,
                    backend_id=backend_id,
                    defaults={"weight": weight, "reason": move.reason[:400], "changed_at": moment},
                )
            audit.record(
                actor=spillway,
                action="move_weights",
                kind="Stack",
                object_id=stack.pk,
                label=f"{stack.name}: {pool.label}",
                before={str(key): weight for key, weight in sorted(before.items())},
                after={str(key): weight for key, weight in sorted(move.weights.items())},
                reason=move.reason,
            )
        StackReading.objects.filter(stack=stack).update(moved_at=moment)
        request_stack_push([stack])


def weights_of(stack_id: int) -> dict[int, int]:
    """The weights in force in a stack, by the backend's primary key, for its snapshot."""
    return dict(BackendWeight.objects.filter(stack=stack_id).values_list("backend_id", "weight"))

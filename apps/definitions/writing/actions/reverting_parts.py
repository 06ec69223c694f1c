"""A change of servers or limits alone is taken back by the same calls that made it, all in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from django.db import transaction

from apps.accounts.actors import Actor
from apps.audit.models import Entry
from apps.core.errors import Conflict
from apps.definitions import selectors
from apps.definitions.models import Backend, Pool
from apps.definitions.reading.describing import limit_of
from apps.definitions.writing.actions.limits import set_limit
from apps.definitions.writing.actions.servers import set_server
from apps.definitions.writing.documents import Plan
from apps.definitions.writing.kinds.registry import KINDS
from apps.definitions.writing.objects import Change
from apps.fleet.selectors import generations


def revert_parts(actor: Actor, entries: Sequence[Entry], reason: str) -> Plan:
    """Set every server and limit of these entries as it was before. Raises Conflict where one moved since."""
    KINDS["Pool"].may_change(actor)
    with transaction.atomic():
        pools = [REVERTS[entry.object_kind](actor, entry, reason) for entry in reversed(entries)]
    made = tuple(Change("Pool", pool.account.name, pool.name, "update") for pool in dict.fromkeys(pools))
    return Plan(made, generations(selectors.fleets_of_pools([pool.pk for pool in pools])), stored=True)


def _server(actor: Actor, entry: Entry, reason: str) -> Pool:
    server = selectors.servers(actor).filter(pk=entry.object_id or 0).first()
    if server is None or {field: getattr(server, field) for field in entry.after or {}} != entry.after:
        raise _moved(entry)
    set_server(actor=actor, server_id=server.pk, reason=reason, **(entry.before or {}))
    return server.backend.pool


def _limit(actor: Actor, entry: Entry, reason: str) -> Pool:
    backend: Backend | None = selectors.backends(actor).filter(pk=entry.object_id or 0).first()
    before = entry.before or {}
    if backend is None or {"limit": limit_of(backend), "capacity_scaler": backend.capacity_scaler} != entry.after:
        raise _moved(entry)
    known = {name: before.get("limit", {}).get(name) for name in ("kind", "value", "scope", "measured_by")}
    scaler = before.get("capacity_scaler")
    pool, region = backend.pool, backend.region.name
    set_limit(actor=actor, pool_id=pool.pk, region=region, capacity_scaler=scaler, reason=reason, **known)
    return pool


def _moved(entry: Entry) -> Conflict:
    return Conflict(f"{entry.object_label} has changed since. Nothing was reverted; change it manually.")


REVERTS: Mapping[str, Callable[[Actor, Entry, str], Pool]] = {"Server": _server, "Backend": _limit}

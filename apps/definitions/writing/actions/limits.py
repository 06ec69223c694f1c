"""DEFINE: one limit in one small call: what a pool may take in one region, and who said so."""

from __future__ import annotations

from typing import Any

from apps.accounts.actors import Actor
from apps.core.errors import NotFound
from apps.definitions import selectors
from apps.definitions.models import Backend, Pool
from apps.definitions.reading.describing import Document, limit_of
from apps.definitions.reading.documents import read_limit
from apps.definitions.sharing import must_own
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.kinds.traffic import note_limit
from apps.definitions.writing.parts import hold, note
from apps.definitions.writing.rules.managed import check_manager
from apps.definitions.writing.transactions import change_set


def set_limit(  # noqa: PLR0913 - a limit has this many parts, all named by the caller
    *,
    actor: Actor,
    pool_id: int,
    region: str,
    kind: object = None,
    value: object = None,
    scope: object = None,
    capacity_scaler: object = None,
    measured_by: object = None,
    expected_version: int | None = None,
    of_run: bool = False,
    reason: str = "",
) -> Backend:
    """Set what the pool's backend in a region takes; None leaves a part as it is. Runs without a reload.

    `kind` none needs no value. `measured_by` names the capacity run that found the limit; it is forgotten when
    somebody sets another limit without one. `expected_version` is that of the pool, whose document this changes.
    `of_run` says that a capacity run sets it, who owns limits that runs set before, whoever manages the pool.
    Raises NotFound for a pool that is not the actor's and a region where it has no backend, Invalid, Stale, Managed.
    """
    sent = {"kind": kind, "value": value, "scope": scope, "measured_by": measured_by}
    sent["capacity_scaler"] = capacity_scaler
    with change_set(actor, reason=reason) as changes:
        pool = selectors.only(selectors.pools(actor), pool_id)
        must_own(actor, pool)
        held = hold(pool, expected_version)
        backend = Backend.objects.select_related("region", "account").filter(pool=pool, region__name=region).first()
        if backend is None:
            raise NotFound("The pool has no servers in this region.")
        if not (of_run and backend.limit_measured_by):
            check_manager(changes, held)
        wanted = read_limit(_merged(backend, sent), pool.when_full)
        before = _shown(backend)
        note_limit(backend, wanted.limit, wanted.measured_by, actor)
        if wanted.capacity_scaler is not None:
            backend.capacity_scaler = wanted.capacity_scaler
        if _shown(backend) != before:
            _store(changes, pool, backend, before)
    return backend


def _merged(backend: Backend, sent: dict[str, Any]) -> dict[str, Any]:
    """What was sent over what is stored; a limit of none has nothing besides."""
    given = {name: entry for name, entry in sent.items() if entry is not None}
    if given.get("kind") == "none" or (backend.limit_kind == "none" and "kind" not in given):
        return {"kind": "none"} | given
    stored: dict[str, Any] = {"kind": backend.limit_kind, "scope": backend.limit_scope}
    if given.get("kind", backend.limit_kind) == backend.limit_kind:
        stored["value"] = backend.limit_value  # a number of one kind says nothing about another kind
    return stored | given


def _shown(backend: Backend) -> Document:
    return {"limit": limit_of(backend), "capacity_scaler": backend.capacity_scaler}


def _store(changes: ChangeSet, pool: Pool, backend: Backend, before: Document) -> None:
    backend.save()
    changes.mark_affected(pool)
    label = f"{pool.account.name}/{pool.name} in {backend.region.name}"
    after, owner = _shown(backend), backend.account
    note(changes, pool, before=before, after=after, kind="Backend", part=backend, label=label, account=owner)

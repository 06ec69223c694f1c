"""One limit in one small call: what a pool may take in one region, and who said so."""

from __future__ import annotations

from functools import partial
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
from apps.definitions.writing.objects import Part, hold, save_partial
from apps.definitions.writing.rules.field_owners import expect_own_limit
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
    Raises NotFound for a pool that is not the actor's and a region where it has no backend, Invalid, Stale, Managed,
    and Conflict for a pipeline that would set a limit of the runs and does not take it over.
    """
    sent = {"kind": kind, "value": value, "scope": scope, "measured_by": measured_by}
    sent["capacity_scaler"] = capacity_scaler
    with change_set(actor, reason=reason) as changes:
        pool = selectors.only(selectors.pools(actor), pool_id)
        must_own(actor, pool)
        hold(changes, pool, expected_version)
        backend = Backend.objects.select_related("region", "account").filter(pool=pool, region__name=region).first()
        if backend is None:
            raise NotFound("The pool has no servers in this region.")
        change = partial(_change, changes, pool, backend, sent, of_run=of_run)
        label = f"{pool.account.name}/{pool.name} in {region}"
        own = of_run and bool(backend.limit_measured_by)
        save_partial(changes, pool, change, part=Part("Backend", backend, label), managed=not own)
    return backend


def _change(
    changes: ChangeSet, pool: Pool, backend: Backend, sent: dict[str, Any], *, of_run: bool
) -> tuple[Document, Document]:
    wanted = read_limit(_merged(backend, sent), pool.when_full)
    if not of_run:
        expect_own_limit(changes, pool, backend, wanted.limit)
    before = _shown(backend)
    note_limit(backend, wanted.limit, wanted.measured_by, changes.actor)
    if wanted.capacity_scaler is not None:
        backend.capacity_scaler = wanted.capacity_scaler
    after = _shown(backend)
    if before != after:
        backend.save()
        changes.mark_affected(pool)
    return before, after


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

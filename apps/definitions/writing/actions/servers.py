"""What changes on one server in a hurry: its state and its weight."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from apps.accounts.actors import Actor
from apps.compiler import grammar
from apps.compiler.model.shared import LimitScope, ServerState
from apps.core.errors import FieldError, Invalid
from apps.definitions import selectors
from apps.definitions.models import Server
from apps.definitions.reading.describing import Document
from apps.definitions.serving import usable_in
from apps.definitions.shapes.base.words import word
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.objects import Part, hold, save_partial
from apps.definitions.writing.transactions import change_set


def set_server(
    *,
    actor: Actor,
    server_id: int,
    state: object = None,
    weight: object = None,
    expected_version: int | None = None,
    reason: str = "",
) -> Server:
    """Set the administrative state and/or the weight (0-256); None leaves as it is. Runs without a reload.

    `expected_version` is that of the server's pool, whose document this changes. Raises NotFound, Invalid, Stale.
    """
    wanted = _wanted(state, weight)
    with change_set(actor, reason=reason) as changes:
        return _set(changes, server_id, wanted, expected_version)


def set_servers(
    *, actor: Actor, server_ids: Iterable[int], state: object = None, weight: object = None, reason: str = ""
) -> None:
    """The same for several servers, all or none. Raises NotFound, Invalid."""
    wanted = _wanted(state, weight)
    with change_set(actor, reason=reason) as changes:
        for server_id in server_ids:
            _set(changes, server_id, wanted)


def _wanted(state: object, weight: object) -> dict[str, Any]:
    field_errors: list[FieldError] = []
    wanted = {
        "state": _allowed("state", state, word(ServerState).read, field_errors),
        "weight": _allowed("weight", weight, grammar.server_weight, field_errors),
    }
    if field_errors:
        raise Invalid(field_errors)
    return wanted


def _set(changes: ChangeSet, server_id: int, wanted: dict[str, Any], expected_version: int | None = None) -> Server:
    server = selectors.only(selectors.servers(changes.actor), server_id)
    pool = server.backend.pool
    hold(changes, pool, expected_version)
    server.refresh_from_db(fields=("state", "weight"))
    part = Part("Server", server, f"{server.account.name}/{pool.name}/{server.name}")
    save_partial(changes, pool, partial(_change, changes, server, wanted), part=part)
    return server


def _allowed(field: str, value: object, allowed: Callable[[object], Any], field_errors: list[FieldError]) -> Any:
    if value is None:
        return None
    try:
        return allowed(value)
    except grammar.GrammarError as error:
        field_errors.append(FieldError(f"/{field}", error.code, error.message))
        return None


def _matters_elsewhere(server: Server, before: int, after: int) -> bool:
    """Whether other regions know less or more room here: the last server, or each where the limit is per server."""
    return before != after and (server.backend.limit_scope == LimitScope.SERVER or 0 in (before, after))


def _change(changes: ChangeSet, server: Server, wanted: dict[str, Any]) -> tuple[Document, Document]:
    after = {field: str(value) if field == "state" else value for field, value in wanted.items() if value is not None}
    before = {field: getattr(server, field) for field in after}
    if before == after:
        return before, after
    usable = usable_in(server.backend_id)
    for field, value in after.items():
        setattr(server, field, value)
    server.save(update_fields=list(after))
    changes.mark_affected(server)
    if _matters_elsewhere(server, usable, usable_in(server.backend_id)):
        changes.mark_affected(server.backend.pool)
    return before, after

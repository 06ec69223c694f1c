"""DEFINE: the two things that people change on one server in a hurry: its state and its weight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apps.accounts.actors import Actor
from apps.compiler import grammar
from apps.compiler.model.fleet import LimitScope, ServerState
from apps.core.errors import Fault, Invalid
from apps.definitions import selectors
from apps.definitions.models import Server
from apps.definitions.reading.fields import choice
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.parts import note, take
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
    faults: list[Fault] = []
    wanted = {
        "state": _allowed("state", state, choice(ServerState), faults),
        "weight": _allowed("weight", weight, grammar.server_weight, faults),
    }
    if faults:
        raise Invalid(faults)
    with change_set(actor, reason=reason) as changes:
        server = selectors.only(selectors.servers(actor), server_id)
        take(changes, server.backend.pool, expected_version)
        _set(changes, server, {field: value for field, value in wanted.items() if value is not None})
    return server


def _allowed(field: str, value: object, allowed: Callable[[object], Any], faults: list[Fault]) -> Any:
    if value is None:
        return None
    try:
        return allowed(value)
    except grammar.GrammarError as error:
        faults.append(Fault(f"/{field}", error.code, error.message))
        return None


def _ready(server: Server) -> int:
    """How many servers of its backend take traffic."""
    return Server.objects.filter(backend=server.backend_id, state=ServerState.READY).count()


def _matters_elsewhere(server: Server, before: int, after: int) -> bool:
    """Whether other regions know less or more room here: the last server, or each where the limit is per server."""
    return before != after and (server.backend.limit_scope == LimitScope.SERVER or 0 in (before, after))


def _set(changes: ChangeSet, server: Server, wanted: dict[str, Any]) -> None:
    before = {field: getattr(server, field) for field in wanted}
    after = {field: str(value) if field == "state" else value for field, value in wanted.items()}
    if before == after:
        return
    pool = server.backend.pool
    ready = _ready(server)
    for field, value in after.items():
        setattr(server, field, value)
    server.save(update_fields=list(after))
    changes.mark_affected(server)
    if _matters_elsewhere(server, ready, _ready(server)):
        changes.mark_affected(pool)
    label = f"{server.account.name}/{pool.name}/{server.name}"
    note(changes, pool, before=before, after=after, kind="Server", part=server, label=label, account=server.account)

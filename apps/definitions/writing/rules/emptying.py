"""Inside a write: what would empty something that carries traffic is refused until it is confirmed by name.

A document replaces whole objects, so one that leaves servers, listeners or routes out takes them away; and an operator
may take a shared pool back from routes that use it. That may be meant; then whoever writes says so, object by object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import starmap

from apps.core.errors import FieldError, Invalid
from apps.definitions.models import LoadBalancer, Pool, Route, RoutePool
from apps.definitions.reading.describing import Document
from apps.definitions.serving import leading_to
from apps.definitions.writing.change_set import ChangeSet

CODE = "would_empty"
NAMED = 5
ANYTHING = "*"  # of dry runs that show what would be lost instead of refusing it
_confirmed: ContextVar[frozenset[str]] = ContextVar("confirmed", default=frozenset())


@dataclass(frozen=True, slots=True)
class Loss:
    """What one object would lose; `name` is what confirms it."""

    pointer: str
    name: str
    sentence: str


@contextmanager
def confirming(names: Iterable[str]) -> Iterator[None]:
    """Writes below may empty the objects with these names (`acme/shop`)."""
    token = _confirmed.set(frozenset(names))
    try:
        yield
    finally:
        _confirmed.reset(token)


def is_confirmed(name: str) -> bool:
    """Whether somebody said of this object that it may lose what it would lose."""
    return not _confirmed.get().isdisjoint({name, ANYTHING})


def note_servers(changes: ChangeSet, row: Pool, before: Document | None, after: Document) -> Document:
    """Note a pool that had servers and would have none any more."""
    return _note(changes, row, _servers, before, after)


def note_listeners(changes: ChangeSet, row: LoadBalancer, before: Document | None, after: Document) -> Document:
    """Note a load balancer that had listeners and would have none any more."""
    return _note(changes, row, _listeners, before, after)


def _note(
    changes: ChangeSet,
    row: Pool | LoadBalancer,
    part: Callable[[Document], list[str]],
    before: Document | None,
    after: Document,
) -> Document:
    if before and part(before) and not part(after):
        changes.deferred.emptied.append((changes.field_errors.pointer, row, part(before)))
    return after


def _servers(spec: Document) -> list[str]:
    """By name; a document never lists what is looked up, so the source stands for it."""
    backends = spec.get("backends") or ()
    looked_up = [f"those of {backend['servers_from']}" for backend in backends if backend.get("servers_from")]
    return [server["name"] for backend in backends for server in backend.get("servers") or ()] + looked_up


def _listeners(spec: Document) -> list[str]:
    return [listener["name"] for listener in spec.get("listeners") or ()]


def reject_emptying(changes: ChangeSet) -> None:
    """In the end: Invalid with what would be lost, unless it was confirmed; `changes.losses` has what was."""
    found = [*_of_objects(changes), *_of_routes(changes), *starmap(Loss, changes.deferred.stopped)]
    missing = [loss for loss in found if not is_confirmed(loss.name)]
    if missing:
        names = ",".join(dict.fromkeys(loss.name for loss in found))
        how = f"Nothing was stored. Name what should stay, or confirm the loss: confirm={names}"
        raise Invalid([FieldError(loss.pointer, CODE, f"{loss.sentence} {how}") for loss in missing])
    changes.losses += [f"{loss.sentence} To apply this, confirm it: confirm={loss.name}" for loss in found]


def _of_objects(changes: ChangeSet) -> Iterator[Loss]:
    for pointer, row, had in changes.deferred.emptied:
        name = f"{row.account.name}/{row.name}"
        if isinstance(row, LoadBalancer):
            said = f"Load balancer {name} would have no listeners: {_list(had)} would be lost."
            yield Loss(f"{pointer}/spec/listeners", name, said)
        elif users := _users(row):
            said = f"Pool {name} is in use by {_list(users)} and would have no servers: {_list(had)} would be lost."
            yield Loss(f"{pointer}/spec/backends", name, said)


def _users(pool: Pool) -> list[str]:
    routes = RoutePool.objects.filter(pool=pool).values_list("route__account__name", "route__name")
    listeners = leading_to([pool]).values_list("load_balancer__name", "name")
    found = [f"route {account}/{name}" for account, name in routes.order_by("route__name")]
    return found + [f"listener {front}/{name}" for front, name in listeners.order_by("name")]


def _of_routes(changes: ChangeSet) -> Iterator[Loss]:
    """Load balancers that a document leaves without a route, by no longer naming those of its manager."""
    rows = LoadBalancer.objects.filter(pk__in=changes.deferred.pruned_routes).select_related("account")
    for row in rows.exclude(pk__in=Route.objects.values("load_balancer")).order_by("name"):
        if row.listeners.filter(default_pool=None).exists():
            name = f"{row.account.name}/{row.name}"
            had = changes.deferred.pruned_routes[row.pk]
            said = f"The listeners of load balancer {name} would have no routes: {_list(had)} would be lost."
            yield Loss("/objects", name, said)


def _list(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more

"""DEFINE, inside a write: what would empty something that carries traffic is refused until it is confirmed by name.

A document replaces whole objects, so one that leaves servers, listeners or routes out takes them away. That may be
meant; then whoever writes says so, object by object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from apps.core.errors import Fault, Invalid
from apps.definitions.models import Listener, LoadBalancer, Pool, Route, RoutePool
from apps.definitions.writing.change_set import Work

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


def watch(work: Work, row: Any, before: dict[str, Any] | None, after: dict[str, Any]) -> None:
    """Note what a pool or a load balancer had and would not have any more."""
    if before is None or not isinstance(row, Pool | LoadBalancer):
        return
    part = _servers if isinstance(row, Pool) else _listeners
    had = part(before)
    if had and not part(after):
        work.emptied.append((work.pointer, row, had))


def _servers(spec: dict[str, Any]) -> list[str]:
    return [server["name"] for backend in spec.get("backends") or () for server in backend.get("servers") or ()]


def _listeners(spec: dict[str, Any]) -> list[str]:
    return [listener["name"] for listener in spec.get("listeners") or ()]


def refuse_emptying(work: Work) -> None:
    """In the end: Invalid with what would be lost, unless it was confirmed; `work.losses` has what was."""
    found = [*_of_objects(work), *_of_routes(work)]
    confirmed = _confirmed.get()
    missing = [loss for loss in found if not confirmed & {loss.name, ANYTHING}]
    if missing:
        names = ",".join(dict.fromkeys(loss.name for loss in found))
        how = f"Nothing was stored. Name what should stay, or confirm the loss: confirm={names}"
        raise Invalid([Fault(loss.pointer, CODE, f"{loss.sentence} {how}") for loss in missing])
    work.losses += [f"{loss.sentence} To apply this, confirm it: confirm={loss.name}" for loss in found]


def _of_objects(work: Work) -> Iterator[Loss]:
    for pointer, row, had in work.emptied:
        name = f"{row.account.name}/{row.name}"
        if isinstance(row, LoadBalancer):
            said = f"Load balancer {name} would have no listeners: {_list(had)} would be lost."
            yield Loss(f"{pointer}/spec/listeners", name, said)
        elif users := _users(row):
            said = f"Pool {name} is in use by {_list(users)} and would have no servers: {_list(had)} would be lost."
            yield Loss(f"{pointer}/spec/backends", name, said)


def _users(pool: Pool) -> list[str]:
    routes = RoutePool.objects.filter(pool=pool).values_list("route__account__name", "route__name")
    listeners = Listener.objects.filter(default_pool=pool).values_list("load_balancer__name", "name")
    found = [f"route {account}/{name}" for account, name in routes.order_by("route__name")]
    return found + [f"listener {front}/{name}" for front, name in listeners.order_by("name")]


def _of_routes(work: Work) -> Iterator[Loss]:
    """Load balancers that a document leaves without a route, by no longer naming those of its manager."""
    rows = LoadBalancer.objects.filter(pk__in=work.pruned_routes).select_related("account")
    for row in rows.exclude(pk__in=Route.objects.values("load_balancer")).order_by("name"):
        if row.listeners.filter(default_pool=None).exists():
            name = f"{row.account.name}/{row.name}"
            had = work.pruned_routes[row.pk]
            said = f"The listeners of load balancer {name} would have no routes: {_list(had)} would be lost."
            yield Loss("/objects", name, said)


def _list(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more

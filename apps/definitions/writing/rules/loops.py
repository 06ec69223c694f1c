"""Inside a write: a redirect that leads to itself is refused, once all that is written together stands."""

from __future__ import annotations

from apps.compiler.matching.hosts import example_of, names_that_cover
from apps.compiler.questions.loops import loop_message, loop_of
from apps.core.errors import FieldError, Invalid
from apps.definitions.freezing.frozen_routes import frozen_front, frozen_routes
from apps.definitions.models import Route, RoutePool
from apps.definitions.writing.change_set import ChangeSet


def reject_loops(changes: ChangeSet) -> None:
    """In the end: Invalid when a redirect that was saved leads to itself on a listener that its load balancer has.

    One that comes to do so later, by other routes or listeners, is left out when it is compiled, and named.
    """
    if not changes.deferred.saved["Route"]:
        return
    rows = Route.objects.filter(pk__in=changes.deferred.saved["Route"], action=Route.Action.REDIRECT)
    field_errors = [
        FieldError(f"{changes.deferred.saved['Route'][row.pk]}/spec/action/redirect", "redirect_loop", sentence)
        for row in rows.select_related("hostname", "load_balancer__account")
        if (sentence := _loop(row))
    ]
    if field_errors:
        raise Invalid(field_errors)


def _loop(row: Route) -> str:
    """What is wrong with the redirect, among the routes around it and around where it leads; empty when nothing is."""
    target = (row.redirect or {}).get("host") or example_of(row.hostname.name)
    names = {row.hostname.name, *names_that_cover(example_of(row.hostname.name)), *names_that_cover(target)}
    rows = Route.objects.filter(load_balancer=row.load_balancer_id, hostname__name__in=names)
    near = frozen_routes(rows, RoutePool.objects.none())[row.load_balancer_id]
    front = frozen_front(row.load_balancer, near)
    found = (loop_of(each, front) for each in near.routes if each.id == f"route-{row.pk}")
    protocol = next(found, None)
    return loop_message(protocol) if protocol else ""

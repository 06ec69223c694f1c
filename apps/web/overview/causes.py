"""Why something needs attention, as far as it is known here: by what it is checked, and what changed before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.db.models import QuerySet

from apps.accounts.actors import Actor
from apps.definitions import selectors as definitions
from apps.fleet import selectors as topology
from apps.observe.evaluate.conditions import Reason
from apps.observe.numbers import Problem
from apps.web.changes.history import recent_change
from apps.web.overview.incidents import Cause, Incident

ROWS: Mapping[str, Callable[[Actor], QuerySet[Any]]] = {
    "pool": definitions.pools,
    "route": definitions.routes,
    "load_balancer": definitions.load_balancers,
    "node": topology.nodes,
    "region": topology.regions,
}
OF_CHECKS = (Reason.NO_SERVER_UP, Reason.SOME_SERVERS_DOWN, Reason.REGION_WITHOUT_SERVERS)


def find_causes(actor: Actor, incidents: Sequence[Incident]) -> None:
    """Note on each its cause, where it is about an object whose changes the actor may read."""
    for kind, rows in ROWS.items():
        about = {each.about[1]: each for each in incidents if each.about and each.about[0] == kind}
        for pk, row in rows(actor).in_bulk(about).items() if about else ():
            if actor.owns(row):
                about[pk].cause = _cause(actor, row, about[pk].problem)


def _cause(actor: Actor, row: Any, problem: Problem | None) -> Cause:
    checked = problem is not None and problem.reason in OF_CHECKS
    change = recent_change(actor, row, problem.since if problem else None)
    return Cause(getattr(row, "health_check", None) if checked else None, change)

"""Inside a write: what no node of a fleet can do, by the HAProxy that it reported, is refused where it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_

from django.db.models import Q

from apps.compiler.model.capabilities import NodeBuild, Reach, named
from apps.compiler.portability.table.asking import TABLE
from apps.compiler.portability.table.cells import Cell, Row, Verdict
from apps.core.errors import FieldError, Invalid
from apps.definitions.freezing.node_builds import builds_by_fleet
from apps.definitions.models import Policy, Route
from apps.definitions.reading.describing import describe
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.rules.unsupported_policies import asked_before, asks, is_asked

_FIELDS = {
    row.field.removeprefix("rules."): row
    for row in TABLE["Policy"]
    if row.since is not None and row.since.reach is Reach.NODE
}


def reject_unable(changes: ChangeSet) -> None:
    """In the end: Invalid when a policy or route that was saved asks for what no node of a fleet can do.

    Where some can, those do, and the fleet's findings name the others. What only comes to such a fleet later is named
    there as well: a limit that is missing is no reason not to serve.
    """
    asking = list(_asking(changes))
    if not asking:
        return
    fleets = changes.affected.fleets
    for fleet, builds in builds_by_fleet(fleets).items():
        for field, row in _FIELDS.items():
            _reject(row, [pointer for asked, pointer in asking if asked == field], fleets[fleet].name, builds)


def _reject(row: Row, pointers: Sequence[str], fleet: str, builds: Sequence[NodeBuild]) -> None:
    cells: list[Cell] = [row.on_build(each) for each in builds]
    if pointers and cells and all(cell.verdict is Verdict.NOT for cell in cells):
        why, remedy = cells[0].message, cells[0].remedy
        detail = f"{why} No node of fleet {fleet} has it: {named(builds)}. {remedy}"
        raise Invalid([FieldError(pointer, "haproxy_version", detail) for pointer in pointers])


def _any_asked(policy: str = "") -> Q:
    return reduce(or_, (asks(field, policy) for field in _FIELDS))


def _asking(changes: ChangeSet) -> Iterator[tuple[str, str]]:
    """The fields, and where the saved policies and routes newly say so, or name a policy that does."""
    for kind, model in (("Policy", Policy), ("Route", Route)):
        saved = changes.deferred.saved.get(kind, {})
        for row in model.objects.filter(_any_asked(), pk__in=list(saved)) if saved else ():
            for field in _FIELDS:
                if is_asked(row.rules, field) and not _as_before(changes, kind, row, field):
                    yield field, f"{saved[row.pk]}/spec/rules/{field.replace('.', '/')}"
    routes = changes.deferred.saved.get("Route", {})
    if routes:
        naming = Route.objects.filter(_any_asked("policy_links__policy__"), pk__in=list(routes)).distinct()
        for route in naming.select_related("load_balancer"):
            before = changes.deferred.before["Route"].get(route.pk)
            for field in _FIELDS:
                if any(is_asked(each.rules, field) for each in route.policies) and not asked_before(
                    route, field, before
                ):
                    yield field, f"{routes[route.pk]}/spec/policies"


def _as_before(changes: ChangeSet, kind: str, row: Policy | Route, field: str) -> bool:
    """Whether it said so before, and now holds for no more than it did."""
    before = changes.deferred.before[kind].get(row.pk)
    if before is None or not is_asked(before.get("rules"), field):
        return False
    reach = "default_for" if kind == "Policy" else "load_balancer"
    return bool(describe(row)[reach] == before[reach])

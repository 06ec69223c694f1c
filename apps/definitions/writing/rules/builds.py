"""Inside a write: what no node of a fleet can do, by the HAProxy that it reported, is refused where it is asked for."""

from __future__ import annotations

from collections.abc import Iterator

from apps.compiler.model.capabilities import named
from apps.compiler.portability.table.asking import row_of
from apps.compiler.portability.table.cells import Verdict
from apps.core.errors import FieldError, Invalid
from apps.definitions.freezing.node_builds import builds_by_fleet
from apps.definitions.models import Policy, Route
from apps.definitions.reading.describing import describe
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.rules.unsupported_policies import asked_before, blocks_of

_BANDWIDTH = row_of("Policy", "rules.bandwidth")


def reject_unable(changes: ChangeSet) -> None:
    """In the end: Invalid when a policy or route that was saved limits bandwidth on a fleet where no node can.

    Where some can, those do, and the fleet's findings name the others. A limit that only comes to such a fleet later is
    named there as well: a limit that is missing is no reason not to serve.
    """
    asking = list(_asking(changes))
    if not asking:
        return
    fleets = changes.affected.fleets
    for fleet, builds in builds_by_fleet(fleets).items():
        cells = [_BANDWIDTH.on_build(each) for each in builds]
        if cells and all(cell.verdict is Verdict.NOT for cell in cells):
            why, remedy = cells[0].message, cells[0].remedy
            detail = f"{why} No node of fleet {fleets[fleet].name} has it: {named(builds)}. {remedy}"
            raise Invalid([FieldError(pointer, "haproxy_version", detail) for pointer in asking])


def _asking(changes: ChangeSet) -> Iterator[str]:
    """Where the saved policies and routes newly say so, or name a policy that does."""
    limiting = {"rules__has_key": "bandwidth"}
    for kind, model in (("Policy", Policy), ("Route", Route)):
        saved = changes.deferred.saved.get(kind, {})
        if saved:
            for pk in model.objects.filter(pk__in=list(saved), **limiting).values_list("pk", flat=True):
                if not _as_before(changes, kind, model, pk):
                    yield f"{saved[pk]}/spec/rules/bandwidth"
    routes = changes.deferred.saved.get("Route", {})
    if routes:
        naming = Route.objects.filter(pk__in=list(routes), policy_links__policy__rules__has_key="bandwidth").distinct()
        for route in naming.select_related("load_balancer"):
            if not asked_before(route, "bandwidth", changes.deferred.before["Route"].get(route.pk)):
                yield f"{routes[route.pk]}/spec/policies"


def _as_before(changes: ChangeSet, kind: str, model: type[Policy] | type[Route], pk: int) -> bool:
    """Whether it said so before, and now holds for no more than it did."""
    before = changes.deferred.before[kind].get(pk)
    if before is None or "bandwidth" not in blocks_of(before.get("rules")):
        return False
    field = "default_for" if kind == "Policy" else "load_balancer"
    return bool(describe(model.objects.get(pk=pk))[field] == before[field])

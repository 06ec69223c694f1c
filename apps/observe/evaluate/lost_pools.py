"""Verdicts on routes whose pool is not shared with their account any more."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from django.db.models import QuerySet

from apps.definitions.models import RoutePool
from apps.definitions.sharing import taken_back
from apps.observe.evaluate.conditions import Reason, Type, Verdict

REMEDY = "Choose another pool, or ask the operator to share it again."


def existing() -> dict[str, Collection[int]]:
    """Primary keys of the routes that have such a verdict; all others have none."""
    return {"route": set(_uses().values_list("route_id", flat=True))}


def evaluate_all() -> Iterator[Verdict]:
    """One for each route."""
    names: dict[int, list[str]] = {}
    for route, owner, pool in _uses().values_list("route_id", "pool__account__name", "pool__name"):
        names.setdefault(route, []).append(f"{owner}/{pool}")
    for route, pools in names.items():
        yield Verdict("route", route, Type.POOLS_SHARED, False, Reason.POOL_TAKEN_BACK, sentence(pools))


def sentence(pools: Collection[str]) -> str:
    """For the owner of the route."""
    named = " and ".join(sorted(pools))
    said = f"Pool {named} is" if len(pools) == 1 else f"Pools {named} are"
    return f"{said} not shared with this account any more. {REMEDY}"


def _uses() -> QuerySet[RoutePool]:
    return taken_back(RoutePool.objects.all()).order_by("route_id", "pool__name")

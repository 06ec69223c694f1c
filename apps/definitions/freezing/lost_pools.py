"""Routes to pools that their owner does not share any more: such a pool gets none of their requests.

Its share goes to the route's other pools. A route that has none left responds with 500 by itself: without it, another
route would take its requests. Assertions that name such a pool are left out, since they would hold back every push.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from django.db.models import QuerySet

from apps.compiler.model import shared as model
from apps.definitions.models import RoutePool
from apps.definitions.sharing import taken_back

STATUS = 500
RESPONSE = model.FixedResponse(STATUS, body="The pool of this route is not shared with its account any more.\n")


@dataclass(frozen=True, slots=True)
class LostPools:
    """Route → the pools that it lost, account → the labels of all of those."""

    by_route: Mapping[str, frozenset[str]]
    by_account: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, uses: QuerySet[RoutePool]) -> LostPools:
        """One query."""
        routes, accounts = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
        fields = ("route_id", "route__account__name", "pool_id", "pool__account__name", "pool__name")
        for route, account, pool, owner, name in taken_back(uses).order_by().values_list(*fields):
            routes[f"route-{route}"].add(f"pool-{pool}")
            accounts[account].add(f"{owner}/{name}")
        return cls(_frozen(routes), _frozen(accounts))

    def __bool__(self) -> bool:
        """Whether any route lost any."""
        return bool(self.by_route)

    def without(self, route: model.Route) -> model.Route:
        """The route without what it lost."""
        labels = self.by_account.get(route.account, frozenset())
        if any(each.pool in labels for each in route.assertions):
            route = replace(route, assertions=tuple(each for each in route.assertions if each.pool not in labels))
        lost = self.by_route.get(route.id)
        if not lost:
            return route
        mirror = None if route.mirror_pool_id in lost else route.mirror_pool_id
        left = tuple(share for share in route.pools if share.pool_id not in lost)
        if any(share.weight for share in left) or not route.pools:
            return replace(route, pools=left, mirror_pool_id=mirror)
        return replace(route, pools=(), mirror_pool_id=None, prefix_rewrite=None, fixed_response=RESPONSE)


def _frozen(found: Mapping[str, set[str]]) -> dict[str, frozenset[str]]:
    return {key: frozenset(values) for key, values in found.items()}

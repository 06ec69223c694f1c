"""How components are now: by the pools that their routes lead to, as the collector judges them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from django.db.models import Q

from apps.definitions.models import Route, RoutePool, StatusPage
from apps.observe.evaluate.conditions import Reason, Type
from apps.observe.models import Condition
from apps.observe.selectors import conditions_of
from apps.status.states import State, together

_BY_REASON: Mapping[str, State] = {
    Reason.ALL_SERVERS_UP: State.OPERATIONAL,
    # The others serve, and visitors notice nothing.
    Reason.SOME_SERVERS_DOWN: State.OPERATIONAL,
    Reason.REGION_WITHOUT_SERVERS: State.DEGRADED,
    Reason.NO_SERVER_UP: State.MAJOR_OUTAGE,
    Reason.NO_SERVERS: State.MAJOR_OUTAGE,
}


@dataclass(frozen=True, slots=True)
class Component:
    """A component of a page: the pools (primary keys) that it stands for, and whether they are all of it."""

    name: str
    pools: frozenset[int]
    whole: bool

    def state(self, pools: Mapping[int, State]) -> State:
        """How it is, where its pools are so."""
        parts = [pools.get(pk, State.UNKNOWN) for pk in sorted(self.pools)]
        return together(parts if self.whole and parts else [*parts, State.UNKNOWN])


def components_of(pages: Collection[StatusPage]) -> dict[int, list[Component]]:
    """The components of pages (by primary key) as their routes are now. Two queries.

    Only routes of the page's own account count, whatever a name says. One that is gone, is not served, has nothing that
    could serve it or leads to no pool leaves its component unknown.
    """
    named = {name for page in pages for each in page.components for name in each["routes"]}
    serving = Q(load_balancer__fleets__nodes__isnull=False) | Q(load_balancer__stacks__isnull=False)
    rows = Route.objects.filter(serving, account__in={page.account_id for page in pages}, name__in=named).distinct()
    routes = {
        (account, name): (pk, bool(served))
        for pk, account, name, served in rows.values_list("pk", "account_id", "name", "hostname__verification")
    }
    led: dict[int, set[int]] = defaultdict(set)
    shares = RoutePool.objects.filter(route__in=[pk for pk, _ in routes.values()], mirror=False, weight__gt=0)
    for route, pool in shares.values_list("route_id", "pool_id"):
        led[route].add(pool)
    return {
        page.pk: [_component(each["name"], [routes.get((page.account_id, name)) for name in each["routes"]], led)
                  for each in page.components]
        for page in pages
    }  # fmt: skip


def _component(name: str, routes: Iterable[tuple[int, bool] | None], led: Mapping[int, set[int]]) -> Component:
    pools: set[int] = set()
    whole = True
    for route in routes:
        found = led.get(route[0], set()) if route and route[1] else set()
        pools |= found
        whole = whole and bool(found)
    return Component(name, frozenset(pools), whole)


def pool_states(pools: Collection[int]) -> dict[int, State]:
    """How pools are now; unknown where nobody looks. Two queries."""
    return {pk: _state(rows) for pk, rows in conditions_of("pool", pools).items()}


def _state(rows: Iterable[Condition]) -> State:
    by_type = {row.type: row for row in rows}
    health, errors = by_type.get(Type.HEALTHY), by_type.get(Type.ERRORS_HIGH)
    found = _BY_REASON.get(health.reason, State.UNKNOWN) if health is not None else State.UNKNOWN
    fails = errors is not None and errors.status
    return State.DEGRADED if fails and found in (State.OPERATIONAL, State.UNKNOWN) else found

"""Crowded routes that leave as manifests and come back: the same route takes each request, or the manifests say why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

import pytest

from apps.accounts.actors import Actor
from apps.compiler.checks.snapshot import examine
from apps.compiler.matching.hosts import covers
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.shared import LoadBalancer, Route, WeightedPool
from apps.compiler.portability.standalone import alone
from apps.compiler.routing import bare_host, number_of, winning_route
from apps.exporting.contract import Export
from apps.exporting.gateway.routes import ONE
from apps.exporting.gateway.rules import PATTERNS
from apps.exporting.gateway.writing import gateway_manifests
from tests.conformance.test_exporting_gateway_api import read_again
from tests.pure.compiler_fixtures import (
    RICH_ASKED_HEADERS,
    RICH_ASKED_HOSTS,
    RICH_ASKED_PATHS,
    crowd,
    pool,
    rich_crowd,
    snapshot,
)

pytestmark = [pytest.mark.django_db, pytest.mark.exhaustive, pytest.mark.slow(reason="many routes are applied")]


def with_pools(front: LoadBalancer) -> Snapshot:
    """Each route leads to a pool of its own, whose port tells them apart."""
    routes = tuple(
        replace(each, fixed_response=None, scheme=None, pools=(WeightedPool(f"pool-{number_of(each.id)}", 1),))
        for each in front.routes
    )
    pools = tuple(pool(number_of(each.id)) for each in routes)
    return examine(snapshot(replace(front, routes=routes), pools=pools)).accepted


def port_of(found: Snapshot, route: Route | None) -> int | None:
    """The port that tells the route, None where none takes the request."""
    ports = {each.id: each.servers[0].port for each in found.pools}
    return ports[route.pools[0].pool_id] if route and route.pools else None


def differences(before: Snapshot, after: Snapshot, export: Export) -> Iterator[str]:
    """Requests that another route takes, although nothing says so."""
    named = {label for said in export.not_said if said.why not in (ONE, PATTERNS) for label in said.objects}
    (old,), (new,) = before.load_balancers, after.load_balancers
    for host, path, method, headers in product(RICH_ASKED_HOSTS, RICH_ASKED_PATHS, ("GET", "POST"), RICH_ASKED_HEADERS):
        winner = winning_route(old, host, path, method, headers, client="127.0.0.1")
        now = winning_route(new, host, path, method, headers, client="127.0.0.1")
        if winner and f"route {winner.label}" in named:
            continue
        if port_of(before, winner) != port_of(after, now) and not several_labels(old, bare_host(host)):
            yield f"{method} {host}{path} {headers}: {winner} and now {now}"


def several_labels(front: LoadBalancer, host: str) -> bool:
    """Whether a wildcard for one label takes this host only in a cluster."""
    return any(
        each.hostname.startswith("*.") and host.endswith(each.hostname[1:]) and not covers(each.hostname, host)
        for each in front.routes
    )


def came_back(operator: Actor, before: Snapshot) -> tuple[Export, Snapshot]:
    """The manifests, and what the importer makes of them."""
    export = gateway_manifests(alone(before, "lb-1"), "lb-1")
    return export, read_again(operator, export)


@pytest.mark.parametrize("make", [crowd, rich_crowd])
@pytest.mark.parametrize("seed", range(4))
def test_the_same_route_takes_each_request(operator: Actor, make: Callable[[int], LoadBalancer], seed: int) -> None:
    before = with_pools(make(seed))
    export, after = came_back(operator, before)
    assert len(after.load_balancers[0].routes) > 4
    assert list(differences(before, after, export)) == []


def test_another_order_is_noticed(operator: Actor) -> None:
    """The control: with its prefixes and whole paths exchanged, other routes take requests."""
    before = with_pools(crowd(1))
    export, after = came_back(operator, before)
    (front,) = after.load_balancers
    longest = max(front.routes, key=lambda each: len(each.path))
    moved = tuple(replace(each, path="/") if each.id == longest.id else each for each in front.routes)
    changed = replace(after, load_balancers=(replace(front, routes=moved),))
    assert list(differences(before, changed, export)) != []

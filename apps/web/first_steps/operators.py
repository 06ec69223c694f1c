"""What an operator does first: from an empty console to the first request that a node serves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlencode

from django.urls import reverse

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.definitions.models import LoadBalancer, Pool, Route
from apps.definitions.selectors import load_balancers, pools, routes
from apps.fleet import selectors as topology
from apps.fleet.models import Node
from apps.observe.selectors import reached, served_before
from apps.web.first_steps.example import MANAGER
from apps.web.first_steps.steps import Step, in_order
from apps.web.load_balancers.curl_examples import ways_to_try

SHOWN_AFTERWARDS = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class _Found:
    """What there is so far beside the example, one of each; `account` is the operator's."""

    account: str
    region: bool
    fleet: bool
    node: Node | None
    node_answers: bool
    balancer: LoadBalancer | None
    listens: bool
    pool: Pool | None
    has_servers: bool
    route: Route | None
    served: bool


def first_steps(actor: Actor) -> list[Step]:
    """The steps of an installation whose nodes have served nothing yet, and for a moment the same, all done.

    Without fleets, but with stacks in clouds, there are none: a stack's own page leads on.
    """
    if served_before(now() - SHOWN_AFTERWARDS) or topology.stacks(actor).exists():
        return []
    found = _found(actor)
    ways = ways_to_try(actor, found.route) if found.route and not found.served else []
    return in_order(_words(found), _done(found), ways[0].command if ways else "")


def _found(actor: Actor) -> _Found:
    node = topology.nodes(actor).first()
    balancers = load_balancers(actor).exclude(manager=MANAGER).exclude(fleets=None).prefetch_related(None).distinct()
    listening = balancers.exclude(listeners=None).first()
    own = pools(actor).exclude(manager=MANAGER).prefetch_related(None)
    with_servers = own.exclude(backends__servers=None).first()
    return _Found(
        actor.account.name,
        topology.regions(actor).exclude(manager=MANAGER).exists(),
        topology.fleets(actor).exclude(manager=MANAGER).exists(),
        node,
        node is not None and reached(actor),
        listening or balancers.first(),
        listening is not None,
        with_servers or own.first(),
        with_servers is not None,
        # Of a hundred thousand routes the one that sorts first takes far longer to find than the oldest.
        routes(actor).exclude(manager=MANAGER).prefetch_related(None).order_by("pk").first(),
        served_before(now()),
    )


def _done(found: _Found) -> Iterator[bool]:
    yield found.region
    yield found.fleet
    yield found.node_answers or found.served
    yield found.balancer is not None
    yield found.listens
    # A route with a fixed response or a redirect needs no servers.
    yield found.has_servers or found.route is not None
    yield found.route is not None
    yield found.served


def _guided(page: str, *args: int, **start: str) -> str:
    """A form that leads back to the first steps (`kit.pages.onward`), with what is known already."""
    return f"{reverse(f'web:{page}', args=args)}?{urlencode({'first': '1'} | start)}"


def _words(found: _Found) -> Iterator[tuple[str, str, str, str]]:
    yield (
        "Add a region",
        "A location with machines and clients, such as a data centre.",
        _guided("region-new"),
        "New region",
    )
    yield (
        "Add a fleet",
        "A group of HAProxy machines in one region that run the same configuration.",
        _guided("fleet-new"),
        "New fleet",
    )
    yield (
        "Enrol a node",
        "Create a token, and run the command with it on a machine that has HAProxy and the agent.",
        reverse("web:fleets") if found.node else _guided("node-enrol"),
        "View nodes" if found.node else "Enrol node",
    )
    yield (
        "Add a load balancer",
        "Clients connect to a load balancer. It runs on every node of its fleets.",
        _guided("load-balancer-new"),
        "New load balancer",
    )
    yield (
        "Open a port",
        "A listener is a port of the load balancer: http, https or tcp.",
        _guided("listener-new", found.balancer.pk) if found.balancer else reverse("web:load-balancers"),
        "New listener",
    )
    yield (
        "Add your servers",
        "A pool is one service: the addresses and ports of its servers in each region, and a health check.",
        _guided("pool-edit", found.pool.pk) if found.pool else _guided("pool-new"),
        "Add servers",
    )
    yield (
        "Route requests to them",
        "A route sends requests for a hostname and path to a pool.",
        _guided("route-new", account=found.account, pool=found.pool.name if found.pool else ""),
        "Create route",
    )
    yield (
        "Send a first request",
        "It arrived. From now on this page shows the traffic, and Requests has a line for each request."
        if found.served
        else "Run this on a machine that reaches the node. The request appears here within seconds."
        if found.route
        else "The command for it will stand here. The request appears on this page within seconds.",
        *_last(found),
    )


def _last(found: _Found) -> tuple[str, str]:
    if found.route is None:
        return "", ""
    if not found.served:
        return reverse("web:route", args=[found.route.pk]), "View route"
    return f"{reverse('web:requests')}?{urlencode({'account': found.route.account.name})}", "View requests"

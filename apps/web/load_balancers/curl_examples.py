"""Where clients reach a listener, and the exact command that tries a route there."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from apps.accounts.actors import Actor
from apps.definitions.models import Listener, LoadBalancer, Route
from apps.definitions.previewing.example_requests import example_request
from apps.fleet.models import Node
from apps.fleet.selectors import nodes

DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One listener as clients reach it: on a static IP, or on one node."""

    listener: Listener
    node: Node | None
    address: str
    port: int

    @property
    def url(self) -> str:
        """The address as a URL, without a path."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        default = DEFAULT_PORTS.get(self.listener.protocol)
        return f"{self.listener.protocol}://{host}" + ("" if self.port == default else f":{self.port}")


@dataclass(frozen=True, slots=True)
class Way:
    """A command that tries a route at one endpoint."""

    endpoint: Endpoint
    command: str


def endpoints_of(actor: Actor, balancer: LoadBalancer) -> list[Endpoint]:
    """All endpoints of all listeners; nodes' own addresses are shown to operators. One query besides the balancer's."""
    fleets = [fleet.pk for fleet in balancer.fleets.all()]
    own = list(nodes(actor).filter(fleet__in=fleets)) if actor.is_operator else []
    return [endpoint for listener in balancer.listeners.all() for endpoint in _endpoints(listener, own)]


def _endpoints(listener: Listener, own: Iterable[Node]) -> list[Endpoint]:
    if listener.static_ip:
        address = listener.static_ip.address
        return [Endpoint(listener, None, address, listener.port)] if address else []  # a cloud has not chosen it yet
    return [Endpoint(listener, node, node.address, listener.port + node.port_offset) for node in own]


def ways_to_try(actor: Actor, route: Route) -> list[Way]:
    """One command per endpoint that serves the route."""
    front = route.load_balancer_id
    rows = Listener.objects.filter(load_balancer=front).select_related("static_ip").order_by("id")
    own = list(nodes(actor).filter(fleet__load_balancers=front).distinct()) if actor.is_operator else []
    endpoints = [endpoint for listener in rows for endpoint in _endpoints(listener, own)]
    schemes = (route.scheme,) if route.scheme else ("http", "https")
    return [
        Way(endpoint, command_for(route, endpoint)) for endpoint in endpoints if endpoint.listener.protocol in schemes
    ]


def command_for(route: Route, endpoint: Endpoint) -> str:
    """A curl that this route answers at this endpoint; a wildcard is tried with one name below it."""
    example = example_request(route)
    host, target = example.host, example.target
    parts = ["curl", "-i"]
    if route.methods and "GET" not in route.methods:
        parts += ["-I"] if route.methods[0] == "HEAD" else ["-X", route.methods[0]]
    for name, value in example.headers.items():
        parts += ["-H", f"{name}: {value}"]
    if endpoint.listener.protocol == "https":
        address = f"[{endpoint.address}]" if ":" in endpoint.address else endpoint.address
        parts += ["--resolve", f"{host}:{endpoint.port}:{address}", f"https://{host}:{endpoint.port}{target}"]
    else:
        parts += ["-H", f"Host: {host}", f"{endpoint.url}{target}"]
    return shlex.join(parts)

"""Routes of http and https as HTTPRoutes: those of one hostname and scheme together, in our order of precedence."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import product
from typing import Any, TypeVar

from apps.compiler.matching.hosts import ANY, ONE_LABEL, SUFFIX, domain_of
from apps.compiler.model.shared import LoadBalancer, Protocol, Route
from apps.compiler.policies import followed
from apps.compiler.routing import ordered
from apps.exporting.contract import Notes
from apps.exporting.gateway.closing import closed_with_others
from apps.exporting.gateway.naming import GROUP, slug
from apps.exporting.gateway.rules import Ruling
from apps.exporting.gateway.services import Services

T = TypeVar("T")
Manifest = dict[str, Any]
MOST_RULES, MOST_PARENTS = 16, 32
ONE = "A wildcard of the Gateway API stands for one label or several, so these also take names with several labels:"
TWICE = "Left out, as the Gateway API has one wildcard for one label and for several, and *. of the same domain stands:"
NO_LISTENER = "Left out, as no listener of its scheme is left:"
FALLS = (
    "A request that no route of its host takes goes on to the routes of a wider hostname; controllers that stop there "
    "answer 404:"
)
# Names decide between equal matches: a route of one scheme comes before one of both.
ORDER = {"http": "http", "https": "https", None: "web"}


def http_routes(
    front: LoadBalancer, gateways: Iterable[Manifest], services: Services, notes: Notes
) -> Iterator[Manifest]:
    """All of a load balancer, in an order in which the first of equal ones is the one that decides."""
    routes = ordered(front.routes)
    ruling = Ruling({each.id: each.rules for each in followed(front)}, services, notes)
    closed = closed_with_others(routes, ruling.keeps_out)
    parents = {scheme: _parents(gateways, scheme) for scheme in ORDER}
    grouped = _grouped(routes, closed, notes)
    if len({route.hostname for route in front.routes}) > 1 and any(host.startswith("*") for host, _ in grouped):
        notes.add(FALLS, f"load balancer {front.label}")
    names: dict[str, int] = {}
    for (hostname, scheme), those in grouped.items():
        if not parents[scheme]:
            for route in those:
                notes.add(NO_LISTENER, f"route {route.label}")
            continue
        rules = [rule for route in those for rule in ruling.rules_of(route, closed.get(route.id, ""))]
        base = f"{slug(domain_of(hostname))}-{'any-' * hostname.startswith('*')}{ORDER[scheme]}"
        hostnames = {} if hostname == ANY else {"hostnames": [_there(hostname)]}
        for some, attached in product(_parts(rules, MOST_RULES), _parts(parents[scheme], MOST_PARENTS)):
            names[base] = names.get(base, 0) + 1
            yield {
                "apiVersion": f"{GROUP}/v1",
                "kind": "HTTPRoute",
                "metadata": {"name": f"{base}-{names[base]:04}"},
                "spec": {"parentRefs": attached, **hostnames, "rules": some},
            }


def _parts(whole: list[T], most: int) -> Iterator[list[T]]:
    return (whole[start : start + most] for start in range(0, len(whole), most))


def _grouped(
    routes: Iterable[Route], closed: Collection[str], notes: Notes
) -> dict[tuple[str, str | None], list[Route]]:
    found: dict[tuple[str, str | None], list[Route]] = {}
    narrow = {domain_of(each.hostname) for each in routes if each.hostname.startswith(ONE_LABEL)}
    for route in routes:
        hostname = route.hostname
        if hostname.startswith(SUFFIX) and domain_of(hostname) in narrow:
            hostname = f"{ONE_LABEL}{domain_of(hostname)}"
            if route.id not in closed:
                notes.add(TWICE, f"route {route.label}")
                continue
        elif hostname.startswith(ONE_LABEL):
            notes.add(ONE, f"route {route.label}")
        found.setdefault((hostname, route.scheme), []).append(route)
    # Of one hostname those of one scheme first: of two objects with equal matches the older one decides.
    return dict(sorted(found.items(), key=lambda each: (each[0][0], each[0][1] or "web")))


def _there(hostname: str) -> str:
    return hostname.removeprefix("*") if hostname.startswith(SUFFIX) else hostname


def _parents(gateways: Iterable[Manifest], scheme: str | None) -> list[dict[str, str]]:
    """A route of both schemes attaches to every listener that takes it, one of one scheme to those that it names."""
    found = []
    for gateway in gateways:
        name = gateway["metadata"]["name"]
        said = [each for each in gateway["spec"]["listeners"] if each["protocol"] in ("HTTP", "HTTPS")]
        if scheme is None:
            found += [{"name": name}] if said else []
        else:
            protocol = Protocol(scheme).value.upper()
            found += [{"name": name, "sectionName": each["name"]} for each in said if each["protocol"] == protocol]
    return found

"""Redirects that lead to themselves: no route may be one, so who would go in a circle gets an answer instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from apps.compiler.model.shared import (
    Listener,
    LoadBalancer,
    PathKind,
    Protocol,
    Redirect,
    Route,
    ValueCondition,
    ValueMatch,
)
from apps.compiler.questions.loops import loop_of
from apps.importing.context import Context
from apps.importing.verdicts import Line

Specs = dict[str, dict[str, Any]]
ANSWER = {"fixed_response": {"status": 404, "body": "This address leads to itself.\n"}}


def end_circles(
    context: Context, load_balancer: Mapping[str, Any], routes: Specs, lines: Mapping[str, Iterable[Line]]
) -> None:
    """Answer where a route leads to itself, and say so at its lines; `lines` has those of each route.

    Where many are sent to one host or path, that alone leads to itself; else all of the route does, on one scheme or
    both. An answer takes the place of the redirect and of nothing else: whoever was kept from the servers still is.
    """
    said: dict[str, tuple[str, str]] = {}
    while circles := list(_circles(load_balancer, routes)):
        for name, protocol in circles:
            said[name] = _end(context, load_balancer, routes, name, protocol, narrowly=name not in said)
    for name, (added, what) in said.items():
        spec = routes[name]
        for line in lines[name]:
            context.ledger.differs(line, f"{spec['hostname']}{spec.get('path', '/')}: {what}; clients get 404 there.")
            context.ledger.belongs(line, f"Route {added}")


def _end(
    context: Context, load_balancer: Mapping[str, Any], routes: Specs, name: str, protocol: Protocol, *, narrowly: bool
) -> tuple[str, str]:
    """The route that answers, and what leads to itself."""
    spec = routes[name]
    answered = {field: value for field, value in spec.items() if field != "prefix_rewrite"} | {"action": ANSWER}
    other = _other_scheme(load_balancer, spec, protocol)
    answered |= {"scheme": protocol.value} if other else {}
    end, on = answered | _end_of(spec), f" on {protocol.value}" if other else ""
    if narrowly and end != answered:
        what, suffix = f"{end['hostname']}{end.get('path', '/')} leads to itself{on}", "itself"
    elif other:
        spec["scheme"], end = other, answered
        what, suffix = f"The redirect leads to itself{on}", protocol.value
    else:
        routes[name] = answered
        return name, "The redirect leads to itself"
    text = f"{name.removeprefix(context.names.prefix)}-{suffix}"
    added = context.free_name("Route", text, routes)
    routes[added] = end
    return added, what


def _other_scheme(load_balancer: Mapping[str, Any], spec: Mapping[str, Any], protocol: Protocol) -> str:
    """The scheme on which a redirect does not lead to itself; empty where it does on all that the route has."""
    if "scheme" in spec or spec["action"]["redirect"].get("scheme") != protocol.value:
        return ""
    spoken = {each["protocol"] for each in load_balancer["listeners"]} & {"http", "https"}
    return next(iter(spoken - {protocol.value}), "")


def _end_of(spec: Mapping[str, Any]) -> dict[str, str]:
    """The place that a redirect names, as fields of a route."""
    redirect = spec["action"]["redirect"]
    found = {"hostname": redirect["host"]} if redirect.get("host") else {}
    return found | ({"path": redirect["path"], "path_kind": "exact"} if redirect.get("path") else {})


def _circles(load_balancer: Mapping[str, Any], routes: Specs) -> Iterator[tuple[str, Protocol]]:
    """Routes that lead to themselves, with the protocol on which they do."""
    if not any("redirect" in spec["action"] for spec in routes.values()):
        return
    made = {name: _route(name, number, spec) for number, (name, spec) in enumerate(routes.items(), 1)}
    listeners = tuple(
        Listener(f"listener-{number}", each["name"], Protocol(each["protocol"]), each["port"])
        for number, each in enumerate(load_balancer["listeners"], 1)
    )
    front = LoadBalancer("lb-1", "", "", listeners, tuple(made.values()))
    for name, route in made.items():
        if (protocol := loop_of(route, front)) is not None:
            yield name, protocol


def _route(name: str, number: int, spec: Mapping[str, Any]) -> Route:
    """The route as far as it decides what a request gets."""
    redirect = spec["action"].get("redirect")

    def asked(field: str) -> tuple[ValueCondition, ...]:
        said = spec.get(field, ())
        return tuple(ValueCondition(each["name"], ValueMatch(each["match"]), each.get("value", "")) for each in said)

    return Route(
        f"route-{number}", name, "", spec["hostname"],
        spec.get("path", "/"), PathKind(spec.get("path_kind", "prefix")), tuple(spec.get("methods", ())),
        asked("headers"), redirect=Redirect(**redirect) if redirect else None, scheme=spec.get("scheme"),
        query=asked("query"), cookies=asked("cookies"), client_networks=tuple(spec.get("client_networks", ())),
    )  # fmt: skip

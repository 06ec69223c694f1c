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
from apps.importing.verdicts import Ledger, Line

Specs = dict[str, dict[str, Any]]
ANSWER = {"fixed_response": {"status": 404, "body": "This address leads to itself.\n"}}


def end_circles(
    ledger: Ledger, load_balancer: Mapping[str, Any], routes: Specs, lines: Mapping[str, Iterable[Line]]
) -> None:
    """Answer where a route leads to itself, and say so at its lines; `lines` has those of each route.

    An answer takes the place of the redirect and of nothing else: whoever was kept from the servers still is.
    """
    for name, (added, said) in _ended(load_balancer, routes).items():
        spec = routes[name]
        for line in lines[name]:
            ledger.differs(line, f"{spec['hostname']}{spec.get('path', '/')}: {said}")
            ledger.belongs(line, f"Route {added}")


def _ended(load_balancer: Mapping[str, Any], routes: Specs) -> dict[str, tuple[str, str]]:
    """By name of the redirect: the route that answers, and what changed for clients.

    Where many are sent to one host or path, that alone leads to itself; else all of the route does, on one scheme or
    both.
    """
    said: dict[str, tuple[str, str]] = {}
    while circles := list(_circles(load_balancer, routes)):
        for name, protocol in circles:
            spec = routes[name]
            others = {each["protocol"] for each in load_balancer["listeners"]} & {"http", "https"} - {protocol.value}
            to_one = (
                bool(others) and "scheme" not in spec and spec["action"]["redirect"].get("scheme") == protocol.value
            )
            answered = {field: value for field, value in spec.items() if field != "prefix_rewrite"} | {"action": ANSWER}
            answered |= {"scheme": protocol.value} if to_one else {}
            on, end = f" on {protocol.value}" if to_one else "", answered | _end_of(spec)
            if name not in said and end != answered:
                added = _free(routes, f"{name}-itself")
                routes[added] = end
                said[name] = (
                    added,
                    f"{end['hostname']}{end.get('path', '/')} leads to itself{on}; clients get 404 there.",
                )
            elif to_one:
                spec["scheme"] = next(iter(others))
                added = _free(routes, f"{name}-{protocol.value}")
                routes[added] = answered
                said[name] = added, f"The redirect leads to itself{on}; clients get 404 there."
            else:
                routes[name] = answered
                said[name] = name, "The redirect leads to itself; clients get 404 instead."
    return said


def _end_of(spec: Mapping[str, Any]) -> dict[str, str]:
    """The place that a redirect names, as fields of a route."""
    redirect = spec["action"]["redirect"]
    found = {"hostname": redirect["host"]} if redirect.get("host") else {}
    return found | ({"path": redirect["path"], "path_kind": "exact"} if redirect.get("path") else {})


def _free(routes: Specs, name: str) -> str:
    while name in routes:
        name += "-more"
    return name


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

"""What conditions see of a request (values of headers, of the query and of cookies, the client's address), and whether
they hold.

A value that stands there several times fulfils a condition where one of them does. Values are compared as they were
sent, with their case; nothing is decoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from apps.compiler.matching.patterns import example_of, matches
from apps.compiler.model.shared import Route, ValueCondition, ValueMatch

# How HAProxy divides a query and a Cookie header; inside of quotes nothing is divided.
_DIVIDERS = re.compile(r"[&;?]")
_COOKIE = re.compile(r'(?:[^",;]|"(?:[^"\\]|\\.)*(?:"|\Z))+')
EXAMPLE = "any"


@dataclass(frozen=True, slots=True)
class Sent:
    """What a client sends besides host, path and method; names of headers are in lower case, no client is nowhere."""

    headers: Mapping[str, str] = field(default_factory=dict)
    query: str = ""
    client: str = ""

    def header(self, name: str) -> Sequence[str]:
        """The values of a header."""
        value = self.headers.get(name.lower())
        return () if value is None else (value,)

    def parameter(self, name: str) -> Sequence[str]:
        """The values of a query parameter; one without `=` is none."""
        parts = (part.partition("=") for part in _DIVIDERS.split(self.query))
        return [value for key, mark, value in parts if mark and key == name]

    def cookie(self, name: str) -> Sequence[str]:
        """The values of a cookie; one without a value is none."""
        parts = (part.partition("=") for part in _COOKIE.findall(self.headers.get("cookie", "")))
        return [value.strip() for key, mark, value in parts if mark and key.strip() == name and value.strip()]


def holds(condition: ValueCondition, values: Sequence[str]) -> bool:
    """Whether a condition holds for these values of what it names."""
    match condition.match:
        case ValueMatch.PRESENT:
            return bool(values)
        case ValueMatch.ABSENT:
            return not values
        case ValueMatch.EQUALS:
            return condition.value in values
        case ValueMatch.PREFIX:
            return any(value.startswith(condition.value) for value in values)
        case ValueMatch.REGEX:
            return any(matches(condition.value, value) for value in values)


def failing(route: Route, sent: Sent) -> tuple[str, str] | None:
    """The first condition of the route that the request does not fulfil: its kind, and what it asks; None for none."""
    for kind, what, conditions, values_of in (
        ("header", "header", route.headers, sent.header),
        ("query", "query parameter", route.query, sent.parameter),
        ("cookie", "cookie", route.cookies, sent.cookie),
    ):
        for condition in conditions:
            if not holds(condition, values_of(condition.name)):
                return kind, f"it requires that the {what} {said(condition)}"
    if route.client_networks and not is_within(sent.client, route.client_networks):
        return "client", f"it matches only clients in {', '.join(route.client_networks)}"
    return None


def said(condition: ValueCondition) -> str:
    """The condition as the end of a sentence."""
    verbs = {ValueMatch.EQUALS: "equals", ValueMatch.PREFIX: "begins with", ValueMatch.REGEX: "matches"}
    verb = verbs.get(condition.match)
    return f"{condition.name} {verb} {condition.value}" if verb else f"{condition.name} is {condition.match}"


def is_within(client: str, networks: Iterable[str]) -> bool:
    """Whether the address is in one of the networks."""
    if not client:
        return False
    address = ip_address(client)
    return any(address in _network(each) for each in networks)


def fulfilling(route: Route) -> Sent:
    """A request that fulfils every condition of the route that one request can."""
    headers = {each.name.lower(): value_for(each) for each in route.headers if each.match is not ValueMatch.ABSENT}
    cookies = _pairs(route.cookies)
    if cookies:
        headers["cookie"] = "; ".join(cookies)
    client = str(_network(route.client_networks[0])[0]) if route.client_networks else ""
    return Sent(headers, "&".join(_pairs(route.query)), client)


def value_for(condition: ValueCondition) -> str:
    """A value that fulfils the condition."""
    return example_of(condition.value) if condition.match is ValueMatch.REGEX else condition.value or EXAMPLE


def _pairs(conditions: Iterable[ValueCondition]) -> list[str]:
    return [f"{each.name}={value_for(each)}" for each in conditions if each.match is not ValueMatch.ABSENT]


@lru_cache(maxsize=4096)
def _network(text: str) -> IPv4Network | IPv6Network:
    return ip_network(text)

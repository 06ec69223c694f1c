"""Networks that are let in or kept out: each list is a map of its own, so that a change of it is no reload.

`maps/net-5.map` says `192.0.2.0/24 1`; `map_ip` finds the longest network that holds the client's address, at a cost
that does not grow with the list. A list of countries says `DE 1`, and one map says of which country a network is: a
node has the networks of a country once, however many lists name it.
"""

from __future__ import annotations

from collections.abc import Iterable

from apps.compiler.model.access import Access, NetworkList
from apps.compiler.model.shared import LoadBalancer
from apps.compiler.policies import REFUSED_BODY, REFUSED_STATUS, REFUSED_TYPE, rules_followed
from apps.compiler.targets.haproxy.writer import Argument, Opaque, Section, Value

COUNTRIES_MAP = "maps/countries.map"


def add(section: Section, when: tuple[str, ...], said: Access) -> None:
    """Deny first; then, where any list is allowed, who is in none of them."""
    answer: list[Argument] = ["return", "status", Value(str(said.status or REFUSED_STATUS))]
    answer += ["content-type", Value(REFUSED_TYPE), "string", Opaque(REFUSED_BODY)]
    for each in said.deny or ():
        _mark(section, each, *when, *holds(each))
        section.add("http-request", *answer, "if", *when, *holds(each))
    outside = [word for each in said.allow or () for word in ("!", *holds(each))]
    if outside:
        _mark(section, "", *when, *outside)
        section.add("http-request", *answer, "if", *when, *outside)


def _mark(section: Section, list_id: str, *given: str) -> None:
    """For the request log: which list refuses; none where the client is in none of those that are let in."""
    section.add("http-request", "set-var(txn.refused_by)", f"str(access:{list_id})", "if", *given)


def holds(list_id: str) -> tuple[str, ...]:
    """Condition: the client's address is in the list."""
    path = list_path(list_id)
    looked_up = f"map_ip({COUNTRIES_MAP}),map_str({path})" if list_id.startswith("geo-") else f"map_ip({path})"
    return ("{", f"src,{looked_up}", "-m", "found", "}")


def list_path(list_id: str) -> str:
    """`net-5` → `maps/net-5.map`."""
    return f"maps/{list_id}.map"


def network_maps(load_balancer: LoadBalancer) -> dict[str, dict[str, str]]:
    """The maps of the lists that any route or listener needs, by path."""
    return {list_path(each.id): dict.fromkeys(each.countries or each.networks, "1") for each in _needed(load_balancer)}


def countries_map(load_balancers: Iterable[LoadBalancer]) -> dict[str, dict[str, str]]:
    """The map from networks to the countries that such lists name; no file where none does."""
    found = {
        code: each.networks
        for front in load_balancers
        for code in {code for each in _needed(front) for code in each.countries}
        for each in front.network_lists
        if each.id == f"country-{code}"
    }
    entries = {network: code for code in sorted(found) for network in found[code]}
    return {COUNTRIES_MAP: entries} if found else {}


def _needed(load_balancer: LoadBalancer) -> list[NetworkList]:
    blocks = [rules.access for rules in rules_followed(load_balancer)]
    named = {
        each
        for access in (*blocks, *(listener.access for listener in load_balancer.listeners))
        if access
        for each in access.lists
    }
    return [each for each in load_balancer.network_lists if each.id in named]

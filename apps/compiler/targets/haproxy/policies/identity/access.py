"""Networks that are let in or kept out: each list is a map of its own, so that a change of it is no reload.

`maps/net-5.map` says `192.0.2.0/24 1`; `map_ip` finds the longest network that holds the client's address, at a cost
that does not grow with the list.
"""

from __future__ import annotations

from collections.abc import Iterator

from apps.compiler.model.access import Access, NetworkList
from apps.compiler.model.shared import LoadBalancer
from apps.compiler.policies import REFUSED_BODY, REFUSED_STATUS, REFUSED_TYPE, rules_followed
from apps.compiler.targets.haproxy.writer import Argument, Opaque, Section, Value


def add(section: Section, when: tuple[str, ...], said: Access) -> None:
    """Deny first; then, where any list is allowed, who is in none of them."""
    answer: list[Argument] = ["return", "status", Value(str(said.status or REFUSED_STATUS))]
    answer += ["content-type", Value(REFUSED_TYPE), "string", Opaque(REFUSED_BODY)]
    for each in said.deny or ():
        _mark(section, each, *when, *_holds(each))
        section.add("http-request", *answer, "if", *when, *_holds(each))
    outside = [word for each in said.allow or () for word in ("!", *_holds(each))]
    if outside:
        _mark(section, "", *when, *outside)
        section.add("http-request", *answer, "if", *when, *outside)


def _mark(section: Section, list_id: str, *given: str) -> None:
    """For the request log: which list refuses; none where the client is in none of those that are let in."""
    section.add("http-request", "set-var(txn.refused_by)", f"str(access:{list_id})", "if", *given)


def _holds(list_id: str) -> tuple[str, ...]:
    return ("{", f"src,map_ip({list_path(list_id)})", "-m", "found", "}")


def list_path(list_id: str) -> str:
    """`net-5` → `maps/net-5.map`."""
    return f"maps/{list_id}.map"


def network_maps(load_balancer: LoadBalancer) -> dict[str, dict[str, str]]:
    """The maps of the lists that any route needs, by path."""
    needed = set(_needed(load_balancer))
    return {list_path(each.id): _entries(each) for each in load_balancer.network_lists if each.id in needed}


def _entries(wanted: NetworkList) -> dict[str, str]:
    return dict.fromkeys(wanted.networks, "1")


def _needed(load_balancer: LoadBalancer) -> Iterator[str]:
    for rules in rules_followed(load_balancer):
        if rules.access:
            yield from lists_of(rules.access)


def lists_of(access: Access) -> tuple[str, ...]:
    """Every list that the block names."""
    return (*(access.allow or ()), *(access.deny or ()))

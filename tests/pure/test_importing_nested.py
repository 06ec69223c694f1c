"""Conditions that lie in each other: networks in networks, methods among methods."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.importing.verdicts import Verdict
from tests.pure.test_importing import DEFAULTS, read

POOLS = ("a", "b", "c")
CLIENTS = ("10.0.0.1", "10.1.0.1", "10.1.2.3", "10.200.0.1", "192.0.2.9", "198.51.100.1")
LISTS = ("10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "10.0.0.0/9 10.128.0.0/9", "192.0.2.0/24 10.1.0.0/16")
METHODS = ("GET", "GET HEAD", "GET HEAD POST", "POST", "PUT")
ASKED = [f"{{ src {each} }}" for each in LISTS] + [f"{{ method {each} }}" for each in METHODS]
CONDITIONS = ASKED + [f"!{each}" for each in ASKED]


def holds(condition: str, client: str, method: str) -> bool:
    """What HAProxy makes of one of the conditions."""
    opens, fetch, *values, _ = condition.split()
    if fetch == "method":
        found = method in values
    else:
        found = any(ipaddress.ip_address(client) in ipaddress.ip_network(each) for each in values)
    return found is not opens.startswith("!")


def is_asked(spec: dict[str, Any], client: str, method: str) -> bool:
    """Whether the route takes the request."""
    networks = map(ipaddress.ip_network, spec.get("client_networks", ()))
    inside = "client_networks" not in spec or any(ipaddress.ip_address(client) in each for each in networks)
    return inside and method in spec.get("methods", (method,))


def rank(spec: dict[str, Any]) -> tuple[bool, bool]:
    """Of equal ones the older comes first (apps/compiler/routing.py)."""
    return "methods" not in spec, "client_networks" not in spec


def specs(rules: list[tuple[list[str], str]]) -> list[dict[str, Any]]:
    """Routes of a frontend with these `use_backend`, in the order of precedence."""
    lines = [f" use_backend {pool} if {' '.join(conditions)}\n" for conditions, pool in rules]
    backends = "".join(f"backend {pool}\n server s 10.0.0.1:80\n" for pool in (*POOLS, "d"))
    found = read(f"{DEFAULTS}frontend fe\n bind :80\n{''.join(lines)} default_backend d\n{backends}")
    assert not [each for each in found.report if each.verdict in (Verdict.NOT_POSSIBLE, Verdict.DIFFERENT)]
    return sorted((each["spec"] for each in found.documents if each["kind"] == "Route"), key=rank)


@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=2, unique=True), st.sampled_from(POOLS)),
        min_size=1,
        max_size=3,
    )
)
def test_each_request_goes_where_the_rules_in_their_order_send_it(rules: list[tuple[list[str], str]]) -> None:
    made = specs(rules)
    matches = [(each.get("methods"), each.get("client_networks")) for each in made]
    assert not [each for each in matches if matches.count(each) > 1 or [] in each]
    for client in CLIENTS:
        for method in ("GET", "HEAD", "POST", "PUT", "DELETE"):
            meant = next((pool for asks, pool in rules if all(holds(each, client, method) for each in asks)), "d")
            taken = next(spec for spec in made if is_asked(spec, client, method))
            assert taken["action"]["pools"][0]["pool"] == meant, (client, method)


@pytest.mark.parametrize(
    "order", [["{ src 10.0.0.0/8 }", "{ src 10.1.0.0/16 }"], ["{ method GET }", "{ method GET HEAD }"]]
)
def test_what_the_narrower_one_asks_is_asked_once(order: list[str]) -> None:
    assert len(specs([(order, "a"), (order[::-1][:1], "b"), (order[:1], "c")])) == 3


def test_networks_that_lie_in_each_other_leave_the_inner_one() -> None:
    inner, outer = "{ src 10.1.0.0/16 }", "{ src 10.0.0.0/8 }"
    assert [spec.get("client_networks") for spec in specs([([outer, inner], "a")])] == [["10.1.0.0/16"], None]

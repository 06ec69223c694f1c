"""What a trace says of who is let in: lists of networks are decided, and what no question tells is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apps.compiler.model.access import Access, ConnectionAccess, NetworkList
from apps.compiler.model.authentication import ApiKeys
from apps.compiler.model.policy import ClientLimit, Maintenance, Rules
from apps.compiler.policies import rule_set
from apps.compiler.questions.assertions import happens
from apps.compiler.questions.trace import Question, Trace, trace
from tests.pure.compiler_fixtures import front, listener, route

LISTS = (
    NetworkList("net-1", "acme/offices", ("192.0.2.0/24", "2001:db8::/32")),
    NetworkList("net-2", "acme/bad", ("192.0.2.7/32",)),
    NetworkList("geo-3", "acme/abroad", countries=("XX",)),
    NetworkList("country-XX", "XX", ("198.51.100.0/24",)),
)
OFFICE, BAD, ABROAD, IPV6 = "192.0.2.1", "192.0.2.7", "198.51.100.9", "2001:db8::9"


def asked(client: str, rules: Rules | None = None, **options: Any) -> Trace:
    """What a client at this address gets of a route with these rules, at a listener with these options."""
    found = rule_set(rules or Rules())
    one = route(1, hostname="a.example", rule_set=found.id if rules else "")
    served = front(one, listeners=(listener(1, **options),))
    question = Question("a.example", scheme=served.listeners[0].protocol, client=client)
    return trace(replace(served, rule_sets=(found,), network_lists=LISTS), question)


@pytest.mark.parametrize(
    ("access", "let_in"),
    [
        (Access(allow=("net-1",)), {OFFICE, BAD, IPV6}),
        (Access(allow=("net-1",), deny=("net-2",)), {OFFICE, IPV6}),
        (Access(deny=("geo-3",)), {OFFICE, BAD, IPV6}),
        (Access(allow=("geo-3", "net-2")), {ABROAD, BAD}),
        (Access(), {OFFICE, BAD, ABROAD, IPV6}),
    ],
)
def test_lists_decide_where_the_client_is_known(access: Access, let_in: set[str]) -> None:
    clients = (OFFICE, BAD, ABROAD, IPV6)
    assert {each for each in clients if asked(each, Rules(access=access)).status is None} == let_in
    at_listener = ConnectionAccess(access.allow, access.deny)
    assert {each for each in clients if not asked(each, access=at_listener).is_closed} == let_in


def test_the_status_of_a_refusal_is_that_of_the_policy() -> None:
    assert asked(ABROAD, Rules(access=Access(allow=("net-1",)))).status == 403
    assert asked(ABROAD, Rules(access=Access(allow=("net-1",), status=404))).status == 404


def test_a_connection_that_is_closed_reaches_no_route() -> None:
    found = asked(ABROAD, access=ConnectionAccess(allow=("net-1",)))
    assert (found.winner, found.status, found.pools) == (None, None, ())
    assert "is disconnected" in happens(found, {})


@pytest.mark.parametrize(
    ("rules", "client", "guards"),
    [
        (Rules(access=Access(allow=("net-1",))), "", ("access",)),
        (Rules(access=Access(allow=("net-1",))), OFFICE, ()),
        (Rules(client_limit=ClientLimit(requests=5)), OFFICE, ("client_limit",)),
        (Rules(client_limit=ClientLimit(requests=5, log_only=True)), OFFICE, ()),
        (Rules(api_keys=ApiKeys(keys=(("ci", "0" * 64),), id="keys-1")), "", ("api_keys",)),
    ],
)
def test_what_no_question_tells_is_named(rules: Rules, client: str, guards: tuple[str, ...]) -> None:
    found = asked(client, rules)
    assert (found.guards, found.status) == (guards, None)


def test_networks_that_pass_maintenance_reach_the_pool() -> None:
    rules = Rules(maintenance=Maintenance(enabled=True, allow=("192.0.2.0/24",)))
    assert asked(OFFICE, rules).status is None
    assert asked(ABROAD, rules).status == 503
    assert asked("", rules).status == 503

"""What must never be served without the rules that protect it, and what no policy may say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apps.compiler import header_text
from apps.compiler.compile import compile_snapshot
from apps.compiler.grammar import GrammarError
from apps.compiler.model.access import Access, NetworkList
from apps.compiler.model.policy import Rules
from apps.compiler.model.shared import LoadBalancer
from apps.compiler.policies import rule_set
from apps.definitions.shapes.traffic.policy import Cors
from tests.pure.compiler_fixtures import front, route, snapshot

CLOSED = rule_set(Rules(access=Access(allow=("net-1",))))
OFFICE = NetworkList("net-1", "acme/office", ("192.0.2.0/24",))


def left_out(served: LoadBalancer) -> list[tuple[str, str]]:
    """Object and code of whatever is not served."""
    return [(each.object_id, each.code) for each in compile_snapshot(snapshot(served)).left_out]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"rule_sets": (CLOSED,), "network_lists": (OFFICE,)}, None),
        ({"rule_sets": (), "network_lists": (OFFICE,)}, "unknown_rules"),
        ({"rule_sets": (CLOSED,), "network_lists": ()}, "unknown_list"),
        ({"rule_sets": (CLOSED,), "network_lists": (replace(OFFICE, networks=("192.0.2.1/24",)),)}, "network_list"),
    ],
)
def test_a_route_is_not_served_without_what_protects_it(
    fields: dict[str, tuple[object, ...]], code: str | None
) -> None:
    wanted = replace(front(route(1, rule_set=CLOSED.id), route(2, "b.example")), **fields)  # type: ignore[arg-type]
    assert left_out(wanted) == ([("route-1", code)] if code else [])


@pytest.mark.parametrize(
    "name", ["X-Forwarded-For", "x-forwarded-proto", "X-Spillway-Key", "Host", "Connection", "Content-Length"]
)
def test_a_policy_writes_no_header_by_which_servers_know_the_client(name: str) -> None:
    with pytest.raises(GrammarError):
        header_text.request_header(name)
    assert header_text.request_header(f"A-{name}") == f"A-{name}"


def test_only_responses_know_which_server_answered() -> None:
    assert header_text.header_text("by {server}") == "by {server}"
    with pytest.raises(GrammarError):
        header_text.request_text("by {server}")


def test_braces_of_json_are_text_and_those_of_variables_must_be_right() -> None:
    value = '{"group":"nel","max_age":86400,"endpoints":[{"url":"https://{host}/report"}]}'
    assert header_text.header_text(value) == value
    assert [each for each in header_text.parts(value) if not isinstance(each, str)] == [header_text.Variable("host")]
    for wrong in ("{hots}", "{host", "{ host }", "a {header:} b", "{HOST}"):
        with pytest.raises(GrammarError):
            header_text.header_text(wrong)


def test_every_origin_together_with_cookies_is_refused() -> None:
    sent = {"origins": ["*"], "credentials": True}
    assert [error.pointer for error in Cors.together(sent)] == ["/credentials"]
    assert not list(Cors.together(sent | {"credentials": False}))
    assert not list(Cors.together(sent | {"origins": ["https://a.example"]}))

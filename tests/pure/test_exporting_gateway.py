"""Manifests of the Gateway API: what protects and cannot be said is closed, and whatever is not said is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from apps.compiler.grammars.authentication import ROUNDS
from apps.compiler.model.access import Access, ConnectionAccess, NetworkList
from apps.compiler.model.authentication import ApiKeys, BasicAuth, Jwt
from apps.compiler.model.fleet import Pool
from apps.compiler.model.listener_options import ClientCertificates, ClientVerify
from apps.compiler.model.policy import (
    ClientLimit,
    HeaderChanges,
    Maintenance,
    ResponseHeaders,
    Rewrite,
    Rules,
    SecurityHeaders,
)
from apps.compiler.model.servers import ServerTls, Verify
from apps.compiler.model.shared import (
    Certificate,
    FixedResponse,
    PathKind,
    Protocol,
    Route,
    ServerState,
    ValueCondition,
    ValueMatch,
    WeightedPool,
)
from apps.compiler.policies import BLOCKS, rule_set
from apps.exporting.contract import Export
from apps.exporting.gateway.rules import duration
from apps.exporting.gateway.writing import FILE, gateway_manifests
from apps.exporting.yaml_text import yaml_text
from tests.authorities import Authority
from tests.pure.compiler_fixtures import certificate_pem, front, listener, pool, route, server, snapshot

JWT = Jwt(issuer="https://id.example", audience="shop")
HASH = f"$6$rounds={ROUNDS}${'a' * 16}${'a' * 86}"
ABSENT = ValueCondition("session", ValueMatch.ABSENT)
NEAR = ("192.0.2.0/24",)
NETWORKS = (NetworkList("net-1", "office", ("192.0.2.0/24",)),)


def exported(*routes: Route, rules: Rules | None = None, pools: tuple[Pool, ...] = (), **more: Any) -> Export:
    """The export of a load balancer with these routes, which follow the rules."""
    sets = (rule_set(rules),) if rules else ()
    followed = tuple(replace(each, rule_set=sets[0].id) if sets else each for each in routes)
    found = replace(front(*followed, **more), rule_sets=sets, network_lists=NETWORKS)
    shown = (Certificate("crt-1", "a.example", "acme", certificate_pem("a.example"), ("a.example",)),)
    return gateway_manifests(snapshot(found, pools=pools or (pool(1),), certificates=shown), found.id)


def of_kind(export: Export, kind: str) -> list[dict[str, Any]]:
    """Manifests of one kind."""
    return [each for each in yaml.load_all(export.files[FILE], yaml.CSafeLoader) if each["kind"] == kind]


def rules_of(export: Export) -> list[dict[str, Any]]:
    """Rules of all HTTPRoutes."""
    return [rule for each in of_kind(export, "HTTPRoute") for rule in each["spec"]["rules"]]


def said(export: Export) -> str:
    """What is not said, as one text."""
    return "\n".join(map(str, export.not_said))


@pytest.mark.parametrize(
    "rules",
    [
        Rules(access=Access(allow=("net-1",))),
        Rules(basic_auth=BasicAuth(users=(("alice", HASH),))),
        Rules(api_keys=ApiKeys(keys=(("ci", "0" * 64),), id="keys-1")),
        Rules(jwt=JWT),
        Rules(maintenance=Maintenance(enabled=True)),
        Rules(rewrite=Rewrite(path_regex="/a/(.*)", path_replacement="/b/\\1")),
        Rules(rewrite=Rewrite(query_drop=("debug",))),
    ],
    ids=lambda rules: next(name for name in BLOCKS if getattr(rules, name)),
)
def test_a_route_with_rules_that_cannot_be_said_sends_nowhere_and_is_named(rules: Rules) -> None:
    found = exported(route(1), rules=rules)
    assert [rule.keys() for rule in rules_of(found)] == [{"matches"}]
    assert "500" in said(found)
    assert "route route-1-label" in said(found)


def test_without_such_rules_it_is_served() -> None:
    assert rules_of(exported(route(1)))[0]["backendRefs"] == [{"name": "pool-1-label", "port": 8001, "weight": 1}]


def test_a_limit_per_client_is_named_and_the_route_is_served() -> None:
    found = exported(route(1), rules=Rules(client_limit=ClientLimit(requests=5)))
    assert rules_of(found)[0]["backendRefs"]
    assert "Limits per client" in said(found)


@pytest.mark.parametrize("conditions", [{"cookies": (ABSENT,)}, {"headers": (ABSENT,)}, {"client_networks": NEAR}])
def test_a_route_to_pools_whose_conditions_cannot_be_said_is_left_out(conditions: dict[str, Any]) -> None:
    found = exported(route(1), route(2, path="/admin", **conditions))
    assert [rule["matches"][0]["path"]["value"] for rule in rules_of(found)] == ["/"]
    assert "route route-2-label" in said(found)


@pytest.mark.parametrize("conditions", [{"cookies": (ABSENT,)}, {"client_networks": NEAR}])
def test_one_that_refuses_is_closed_for_everybody(conditions: dict[str, Any]) -> None:
    """Left out, it would let in whom it keeps out."""
    refusing = route(2, path="/admin", fixed_response=FixedResponse(403), **conditions)
    found = exported(route(1), refusing)
    assert rules_of(found)[0] == {"matches": [{"path": {"type": "PathPrefix", "value": "/admin"}}]}
    assert "Closed together" in said(found)


def test_conditions_that_can_be_said_are_said() -> None:
    begins = ValueCondition("X-Canary", ValueMatch.PREFIX, "v1.")
    named = ValueCondition("q", ValueMatch.PRESENT)
    found = exported(route(1, methods=("GET", "POST"), headers=(begins,), query=(named,), path_kind=PathKind.EXACT))
    first, second = (rule["matches"][0] for rule in rules_of(found))
    assert (first["method"], second["method"]) == ("GET", "POST")
    assert first["headers"] == [{"name": "X-Canary", "type": "RegularExpression", "value": "v1\\..*"}]
    assert first["queryParams"] == [{"name": "q", "type": "RegularExpression", "value": ".*"}]
    assert first["path"] == {"type": "Exact", "value": "/"}
    assert "several parameters of one name" in said(found)


def test_a_header_that_would_be_set_by_a_variable_is_at_least_taken_from_clients() -> None:
    found = exported(route(1), rules=Rules(request_headers=HeaderChanges(set=(("X-User", "{client_address}"),))))
    assert rules_of(found)[0]["filters"][0]["requestHeaderModifier"] == {"remove": ["X-User"]}
    assert "with variables" in said(found)


@pytest.mark.parametrize(
    "fields",
    [
        {"protocol": Protocol.HTTPS},
        {"server_tls": ServerTls(verify=Verify.NONE, server_name="app.example")},
        {"server_tls": ServerTls()},
    ],
)
def test_servers_behind_tls_that_cannot_be_said_are_not_spoken_to_in_the_clear(fields: dict[str, Any]) -> None:
    found = exported(route(1), pools=(pool(1, **fields),))
    assert [rule.keys() for rule in rules_of(found)] == [{"matches"}]
    assert of_kind(found, "Service") == []
    assert "pool pool-1-label" in said(found)


def test_servers_behind_tls_that_can_be_said_have_a_policy() -> None:
    found = exported(route(1), pools=(pool(1, server_tls=ServerTls(server_name="app.example")),))
    (policy,) = of_kind(found, "BackendTLSPolicy")
    assert policy["spec"]["validation"] == {"hostname": "app.example", "wellKnownCACertificates": "System"}
    assert rules_of(found)[0]["backendRefs"]


def test_a_listener_that_asks_clients_for_certificates_is_left_out() -> None:
    asking = (ClientCertificates(ClientVerify.REQUIRED, Authority().pem),)
    secure = listener(2, protocol=Protocol.HTTPS, certificate_ids=("crt-1",), client_certificates=asking)
    found = exported(route(1), listeners=(listener(1), secure))
    (gateway,) = of_kind(found, "Gateway")
    assert [each["name"] for each in gateway["spec"]["listeners"]] == ["http-8081"]
    assert "listener listener-2" in said(found)


def test_a_listener_that_only_some_networks_reach_is_left_out() -> None:
    inner = listener(2, access=ConnectionAccess(allow=("net-1",)))
    found = exported(route(1), listeners=(listener(1), inner))
    (gateway,) = of_kind(found, "Gateway")
    assert [each["name"] for each in gateway["spec"]["listeners"]] == ["http-8081"]
    assert "listener listener-2" in said(found)


def test_of_two_wildcards_of_a_domain_the_narrow_one_stands() -> None:
    found = exported(route(1, hostname="*.a.example"), route(2, hostname="**.a.example"))
    assert [each["spec"]["hostnames"] for each in of_kind(found, "HTTPRoute")] == [["*.a.example"]]
    assert "route route-2-label" in said(found)


def test_a_broad_wildcard_that_keeps_out_is_closed_among_the_routes_of_the_narrow_one() -> None:
    """A cluster's `*.` takes names with several labels as well: left out, the refusal would be gone for them."""
    found = exported(
        route(1, hostname="*.a.example"),
        route(2, hostname="*.a.example", path="/admin/x"),
        route(3, hostname="**.a.example", path="/admin", fixed_response=FixedResponse(403)),
        route(4, hostname="**.a.example"),
    )
    assert [each["spec"]["hostnames"] for each in of_kind(found, "HTTPRoute")] == [["*.a.example"]]
    served = {rule["matches"][0]["path"]["value"]: "backendRefs" in rule for rule in rules_of(found)}
    assert served == {"/": True, "/admin": False, "/admin/x": False}
    assert "keeps clients out of this path" in said(found)


def test_a_refusal_that_loses_conditions_is_not_overtaken_by_a_route_with_more_of_them() -> None:
    refusing = route(
        1, path="/admin", fixed_response=FixedResponse(403), headers=(ABSENT, replace(ABSENT, name="user"))
    )
    canary = ValueCondition("X-Canary", ValueMatch.EQUALS, "on")
    found = exported(refusing, route(2, path="/admin", headers=(canary,)), route(3, headers=(canary,)))
    assert ["backendRefs" in rule for rule in rules_of(found)] == [False, False, True]
    assert "a route of the same path keeps clients out" in said(found)


def test_the_share_of_a_pool_that_cannot_be_reached_does_not_go_to_the_others() -> None:
    unverified = pool(2, server_tls=ServerTls(verify=Verify.NONE, server_name="app.example"))
    shares = (WeightedPool("pool-1", 90), WeightedPool("pool-2", 10))
    found = exported(route(1, pools=shares), pools=(pool(1), unverified))
    first, second = rules_of(found)[0]["backendRefs"]
    assert (first["name"], first["weight"], second["weight"]) == ("pool-1-label", 90, 10)
    assert [each["metadata"]["name"] for each in of_kind(found, "Service")] == ["pool-1-label"]
    assert second["name"] not in ("pool-1-label", "")


def test_a_route_with_more_headers_of_requests_than_can_be_set_is_closed() -> None:
    """Of the seventeenth, servers would take a client's word."""
    many = tuple((f"X-{number}", "a") for number in range(17))
    assert [
        rule.keys() for rule in rules_of(exported(route(1), rules=Rules(request_headers=HeaderChanges(set=many))))
    ] == [{"matches"}]


def test_security_headers_beyond_the_sixteenth_are_named() -> None:
    many = tuple((f"X-{number}", "a") for number in range(16))
    rules = Rules(response_headers=ResponseHeaders(set=many), security_headers=SecurityHeaders(no_sniff=True))
    assert "beyond the sixteenth" in said(exported(route(1), rules=rules))


def test_a_route_of_more_listeners_than_one_object_may_name_is_written_for_all_of_them() -> None:
    listeners = tuple(listener(number) for number in range(1, 34))
    found = of_kind(exported(route(1, scheme="http"), listeners=listeners), "HTTPRoute")
    assert [len(each["spec"]["parentRefs"]) for each in found] == [32, 1]
    assert found[0]["spec"]["rules"] == found[1]["spec"]["rules"]


@pytest.mark.parametrize("text", ["y", "N", "1e3", "12e03", "1.5e3", "0o14", "0129", "0X1F", "1_0e3", "1."])
def test_text_that_a_cluster_reads_as_a_number_or_a_boolean_is_quoted(text: str) -> None:
    written = yaml_text([{"value": text, "count": 80}])
    assert written == f"---\nvalue: '{text}'\ncount: 80\n"


def test_routes_of_one_scheme_come_before_those_of_both_and_name_their_listener() -> None:
    found = exported(route(1), route(2, scheme="http"), route(3, path="/x", scheme="https"))
    named = {each["metadata"]["name"]: each["spec"]["parentRefs"] for each in of_kind(found, "HTTPRoute")}
    assert named == {
        "a-example-http-0001": [{"name": "front-1", "sectionName": "http-8081"}],
        "a-example-web-0001": [{"name": "front-1"}],
    }
    assert "no listener of its scheme" in said(found)


def test_more_rules_than_one_object_may_have_go_on_in_the_next_in_order() -> None:
    many = [route(number, path=f"/{number:02}") for number in range(1, 19)]
    found = of_kind(exported(*many), "HTTPRoute")
    assert [(each["metadata"]["name"], len(each["spec"]["rules"])) for each in found] == [
        ("a-example-web-0001", 16), ("a-example-web-0002", 2),
    ]  # fmt: skip


def test_servers_that_take_no_traffic_are_not_ready_and_backups_are_left_out() -> None:
    servers = (server(1), server(2, state=ServerState.DRAIN), server(3, weight=0), server(4, backup=True))
    slices = of_kind(exported(route(1), pools=(pool(1, servers=servers),)), "EndpointSlice")
    ready = [end["conditions"]["ready"] for each in slices for end in each["endpoints"]]
    assert ready == [True, False, False]


def test_what_is_not_said_stands_on_top_of_the_file() -> None:
    found = exported(route(1, hostname="*.a.example"))
    head = found.files[FILE].decode().partition("---")[0]
    assert all(f"# Not said: {each}" in head for each in found.not_said)


@pytest.mark.parametrize(("milliseconds", "text"), [(0, "0ms"), (30_000, "30s"), (1500, "1s500ms"), (20, "20ms")])
def test_times_are_written_as_the_gateway_api_has_them(milliseconds: int, text: str) -> None:
    assert duration(milliseconds) == text

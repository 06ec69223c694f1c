"""Documents for Google: what the provider takes, what stands in them, and what is said of what they cannot."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from apps.compiler.compile import compile_stack
from apps.compiler.model.shared import (
    Balance,
    Certificate,
    FixedResponse,
    HealthCheck,
    Limit,
    LimitKind,
    LimitScope,
    Protocol,
    Redirect,
    Server,
    ServerState,
    ValueCondition,
    ValueMatch,
    WhenFull,
)
from apps.compiler.model.stack import AddressKind, CloudAddress, CloudBackend, CloudPool, Network, StackSnapshot
from apps.compiler.portability.incompatibilities import Incompatibility
from apps.compiler.targets.terraform.google import capabilities
from apps.compiler.targets.terraform.google.render import render
from apps.compiler.targets.terraform.pem import secrets_of
from tests.golden.test_google_documents import CASES
from tests.pure.compiler_fixtures import certificate_pem, front, listener, route, server
from tests.pure.google_fixtures import KEY, cloud_pool, everything, google_stacks, stack
from tests.pure.properties import always, examples
from tests.schema_facts import errors_in, facts_of

SERVICE = "google_compute_backend_service"
RFC1035 = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


def _of(snapshot: StackSnapshot, kind: str, name: str) -> dict[str, Any]:
    return dict(render(snapshot).resources[kind][name])


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_provider_takes_every_golden_document(name: str) -> None:
    assert errors_in(render(CASES[name]), facts_of("google")) == []


@examples(few=12, many=60)
def test_the_provider_takes_whatever_we_write_and_what_the_checks_leave(count: int, *, repeatable: bool) -> None:
    def taken(snapshot: StackSnapshot) -> None:
        compilation = compile_stack(snapshot)
        for document in (render(snapshot), compilation.output):
            assert errors_in(document, facts_of("google")) == []
        assert set(compilation.output.variables) <= set(secrets_of(snapshot.certificates, compilation.output.variables))

    always(taken, google_stacks(), count=count, repeatable=repeatable)


def test_a_document_with_a_word_that_the_provider_does_not_know_is_found_out() -> None:
    document = render(everything())
    body = dict(document.resources[SERVICE]["pool_1"])
    for broken in ({**body, "limit": 5}, {**body, "name": None}, {**body, "backend": [{"balancing_mode": "RATE"}]}):
        changed = replace(document, resources={**document.resources, SERVICE: {"pool_1": broken}})
        assert any(f"{SERVICE}.pool_1" in error for error in errors_in(changed, facts_of("google")))


def test_a_stack_that_uses_all_that_google_can_is_refused_nothing() -> None:
    compilation = compile_stack(everything())
    assert compilation.left_out == ()
    assert compilation.output == render(everything())


def test_three_thousand_routes_are_one_url_map_that_google_takes() -> None:
    routes = (route(number, f"h{number % 500}.example.com", f"/p{number}") for number in range(1, 3001))
    compilation = compile_stack(stack(front(*routes)))
    assert compilation.left_out == ()
    matchers = compilation.output.resources["google_compute_url_map"]["lst_1"]["path_matcher"]
    assert sum(len(each["route_rules"]) for each in matchers) == 3000


def test_every_name_is_one_of_rfc_1035_and_made_of_ids() -> None:
    document = render(replace(everything(), id="stk-123456789012345678"))
    for kind, named in document.resources.items():
        for body in named.values():
            if kind != "google_dns_record_set" and "name" in body:
                assert RFC1035.fullmatch(body["name"]), body["name"]


def test_private_keys_travel_beside_the_document() -> None:
    snapshot = everything()
    document = render(snapshot)
    assert "PRIVATE KEY" not in json.dumps(document.as_json())
    assert document.variables == ("crt_1_key",)
    assert secrets_of(snapshot.certificates, document.variables) == {"crt_1_key": KEY}


def test_a_renewed_certificate_has_another_name_and_comes_before_the_old_one_goes() -> None:
    snapshot = everything()
    renewed = replace(snapshot.certificates[0], pem=snapshot.certificates[0].pem.replace("MIIB", "MIIC"))
    kind = "google_compute_ssl_certificate"
    old, new = _of(snapshot, kind, "crt_1"), _of(replace(snapshot, certificates=(renewed,)), kind, "crt_1")
    assert old["name"] != new["name"]
    assert new["lifecycle"] == {"create_before_destroy": True}


def test_a_protected_address_is_never_released_by_a_plan() -> None:
    addresses = render(everything()).resources["google_compute_global_address"]
    protected = {name for name, body in addresses.items() if body.get("lifecycle") == {"prevent_destroy": True}}
    assert protected == {"ip_4"}


def test_listeners_without_a_static_ip_share_the_load_balancers_address() -> None:
    rules = render(everything()).resources["google_compute_global_forwarding_rule"]
    found = {name: body["ip_address"] for name, body in rules.items()}
    assert found["lst_1"] == found["lst_3"] == "${google_compute_global_address.lb_1.id}"
    assert found["lst_2"] == "${google_compute_global_address.ip_4.id}"


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (Limit(), {"max_rate_per_endpoint": 1_000_000}),
        (Limit(LimitKind.RATE, 200), {"max_rate": 200}),
        (Limit(LimitKind.RATE, 50, LimitScope.SERVER), {"max_rate_per_endpoint": 50}),
    ],
)
def test_a_limit_is_the_target_of_its_region(limit: Limit, words: dict[str, int]) -> None:
    pool = cloud_pool(1, backends=(CloudBackend("bkd-1", "europe", (server(1),), limit, 0.5),))
    backend = _of(stack(pools=(pool,)), SERVICE, "pool_1")["backend"][0]
    assert {key: value for key, value in backend.items() if key.startswith("max")} == words
    assert (backend["balancing_mode"], backend["capacity_scaler"]) == ("RATE", 0.5)


def test_a_limit_of_connections_is_the_target_of_a_tcp_pool() -> None:
    backend = _of(everything(), SERVICE, "pool_3")["backend"][0]
    assert (backend["balancing_mode"], backend["max_connections"]) == ("CONNECTION", 300)


def test_a_drained_region_keeps_its_group_and_takes_nothing() -> None:
    backends = tuple(
        CloudBackend(f"bkd-{number}", region, (server(number),), capacity_scaler=scaler)
        for number, region, scaler in ((1, "europe", 0.0), (2, "america", 1.0))
    )
    found = _of(stack(pools=(cloud_pool(1, backends=backends),)), SERVICE, "pool_1")["backend"]
    assert [each["capacity_scaler"] for each in found] == [0.0, 1.0]
    alone = _of(stack(pools=(cloud_pool(1, backends=backends[:1]),)), SERVICE, "pool_1")
    assert "backend" not in alone


def test_only_servers_that_take_traffic_are_endpoints() -> None:
    servers = tuple(
        server(number, state=state, weight=weight)
        for number, (state, weight) in enumerate(
            ((ServerState.READY, 100), (ServerState.DRAIN, 100), (ServerState.MAINTENANCE, 1), (ServerState.READY, 0)),
            1,
        )
    )
    pool = cloud_pool(1, backends=(CloudBackend("bkd-1", "europe", servers),))
    kind = "google_compute_network_endpoints"
    assert [each["port"] for each in _of(stack(pools=(pool,)), kind, "bkd_1")["network_endpoints"]] == [8001]


def test_a_region_without_ready_servers_has_a_group_and_no_endpoints() -> None:
    pool = cloud_pool(1, backends=(CloudBackend("bkd-1", "europe", ()),))
    document = render(stack(pools=(pool,)))
    assert "google_compute_network_endpoint_group" in document.resources
    assert "google_compute_network_endpoints" not in document.resources


def test_values_of_records_stand_as_in_a_zone_file_and_open_no_template() -> None:
    records = render(everything()).resources["google_dns_record_set"]
    assert records["rec_3"]["rrdatas"] == ["shop.example.com."]
    assert records["rec_4"]["rrdatas"] == [r'"v=spf1 \"${"$"}{quoted}\" -all" "and more"']


def test_another_endpoint_replaces_those_of_the_provider() -> None:
    settings_of_provider = render(CASES["another_endpoint"]).providers[0].settings
    assert settings_of_provider["compute_custom_endpoint"] == "http://127.0.0.1:4443/compute/v1/"


# --- what Google cannot do


def _codes(incompatibilities: object) -> list[tuple[str, str]]:
    assert not isinstance(incompatibilities, str)
    return [(each.code, each.severity.value) for each in incompatibilities if isinstance(each, Incompatibility)]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("fields", "codes"),
    [
        ({}, []),
        ({"hostname": "*.a.example"}, [("wildcard_depth", "lossy")]),
        ({"path": "/" + "a" * 1023}, [("path_length", "refused")]),
        ({"path": "/" + "a" * 1022}, []),
        ({"redirect": Redirect(301, scheme="http", path="/")}, [("redirect_to_http", "refused")]),
        ({"redirect": Redirect(301, scheme="http", path="/"), "scheme": "http"}, []),
        ({"redirect": Redirect(308, scheme="https", host="b.example")}, []),
        ({"fixed_response": FixedResponse(200, body="hello")}, [("fixed_response_body", "refused")]),
        ({"fixed_response": FixedResponse(503)}, [("fixed_response_text", "lossy")]),
        ({"methods": ("GET",), "prefix_rewrite": "/b", "path": "/a"}, []),
    ],
)
def test_what_a_route_loses_is_said(fields: dict[str, Any], codes: list[tuple[str, str]]) -> None:
    found = route(1, **fields)
    secure = front(found, listeners=(listener(1), listener(2, protocol=Protocol.HTTPS)))
    assert _codes(capabilities.unsupported_in_route(found, secure)) == codes


def test_a_redirect_to_http_is_no_loss_where_only_http_is_served() -> None:
    found = route(1, redirect=Redirect(301, scheme="http", host="b.example"))
    assert list(capabilities.unsupported_in_route(found, front(found))) == []


GOOD = HealthCheck(path="/up")
PLAIN = {"health_check": GOOD, "protocol": Protocol.TCP, "balance": Balance.ROUNDROBIN}


def _limited(limit: Limit, scaler: float = 1.0) -> tuple[CloudBackend, ...]:
    return (CloudBackend("bkd-1", "europe", (server(1),), limit, scaler),)


@pytest.mark.parametrize(
    ("fields", "codes"),
    [
        ({}, []),
        ({"health_check": None}, [("health_check_default", "lossy")]),
        ({"health_check": replace(GOOD, expect_status=204)}, [("health_check_status", "refused")]),
        ({"health_check": replace(GOOD, method="HEAD")}, [("health_check_request", "lossy")]),
        ({"health_check": replace(GOOD, interval_ms=1500)}, [("health_check_times", "lossy")]),
        ({"health_check": replace(GOOD, rise=11)}, [("health_check_times", "lossy")]),
        ({"balance": Balance.LEASTCONN}, [("balance", "lossy")]),
        ({"backends": _limited(Limit(LimitKind.RATE, 9))}, [("limit_kind", "lossy")]),
        ({"backends": _limited(Limit(LimitKind.CONNECTIONS, 9))}, [("limit_is_a_target", "lossy")]),
        (
            {"backends": _limited(Limit(LimitKind.CONNECTIONS, 9)), "when_full": WhenFull.QUEUE},
            [("limit_is_a_target", "lossy"), ("when_full", "lossy")],
        ),
        ({"backends": _limited(Limit(), 0.05)}, [("capacity_scaler", "refused")]),
        ({"backends": _limited(Limit(), 0.0)}, []),
        (
            {"backends": (CloudBackend("bkd-1", "europe", (server(1), server(2, weight=50))),)},
            [("server_weights", "lossy")],
        ),
        ({"protocol": Protocol.HTTP}, [("server_timeout", "lossy")]),
        (
            {"protocol": Protocol.HTTP, "server_keepalive_ms": 60_000},
            [("server_timeout", "lossy"), ("keepalive_race", "lossy")],
        ),
    ],
)
def test_what_a_pool_loses_is_said(fields: dict[str, Any], codes: list[tuple[str, str]]) -> None:
    assert _codes(capabilities.unsupported_in_pool(cloud_pool(1, **{**PLAIN, **fields}))) == codes


@pytest.mark.parametrize(("address", "count"), [("192.0.2.1", 0), ("app.internal", 1), ("2001:db8::1", 1)])
def test_endpoints_are_addresses_of_version_4(address: str, count: int) -> None:
    assert len(list(capabilities.unsupported_in_server(Server("srv-1", "one", address, 80)))) == count


def test_a_listener_has_at_most_fifteen_certificates() -> None:
    certificates = tuple(f"crt-{number}" for number in range(16))
    many = listener(1, protocol=Protocol.HTTPS, certificate_ids=certificates, default_certificate_id="crt-3")
    assert _codes(capabilities.unsupported_in_listener(many, front())) == [("too_many_certificates", "refused")]
    fewer = replace(many, certificate_ids=many.certificate_ids[1:])
    assert list(capabilities.unsupported_in_listener(fewer, front())) == []


@pytest.mark.parametrize(
    ("made", "taken"),
    [
        (partial(rsa.generate_private_key, 65537, 2048), True),
        (partial(ec.generate_private_key, ec.SECP256R1()), True),
        (partial(rsa.generate_private_key, 65537, 3072), False),
        (partial(ec.generate_private_key, ec.SECP384R1()), False),
    ],
    ids=["RSA 2048", "P-256", "RSA 3072", "P-384"],
)
def test_a_key_that_google_does_not_take_is_refused_with_its_listeners_certificate(
    made: Callable[[], ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey], taken: bool
) -> None:
    pem = certificate_pem("a.example", key=made())
    shown = Certificate("crt-1", "operator/shop", "operator", pem, ("a.example",))
    secure = listener(1, protocol=Protocol.HTTPS, certificate_ids=("crt-1",))
    compiled = compile_stack(stack(front(route(1), listeners=(secure,)), certificates=(shown,)))
    assert ("key_type" in {each.code for each in compiled.left_out}) != taken
    assert ("google_compute_ssl_certificate" in compiled.output.resources) == taken


def _matchers(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [each for body in document["google_compute_url_map"].values() for each in body.get("path_matcher", [])]


def test_of_more_hosts_than_a_url_map_takes_the_youngest_are_refused() -> None:
    routes = [route(number, f"h{2000 - number}.example") for number in range(1, 1007)]
    made = compile_stack(stack(front(*routes)))
    refused = {each.object_id for each in made.left_out if each.code == "too_many_hosts"}
    assert refused == {f"route-{number}" for number in range(1001, 1007)}
    assert len(_matchers(made.output.resources)) == 1000


@pytest.mark.parametrize("wildcard", [False, True])
def test_of_more_than_google_compares_for_a_host_the_youngest_routes_are_refused(wildcard: bool) -> None:
    """170 routes with three methods and a header are 3 060 predicates; Google takes 1 000."""
    header = ValueCondition("x-a", ValueMatch.EQUALS, "1")
    host = "*.shop.example" if wildcard else "a.shop.example"
    methods = frozenset({"GET", "PUT", "POST"})
    routes = [route(number, host, f"/p{number}", methods=methods, headers=(header,)) for number in range(1, 171)]
    made = compile_stack(stack(front(*routes, route(171, "a.shop.example", "/own"), route(172, "z.other"))))
    refused = {each.object_id for each in made.left_out if each.code == "too_many_predicates"}
    assert {f"route-{number}" for number in range(56, 171)} <= refused
    assert not refused & {f"route-{number}" for number in (*range(1, 56), 172)}
    for matcher in _matchers(made.output.resources):
        compared = [match for rule in matcher["route_rules"] for match in rule["match_rules"]]
        assert sum(1 + len(match.get("header_matches", ())) for match in compared) <= 1000


def test_more_routes_than_a_url_map_holds_are_refused_with_their_size() -> None:
    paths = [f"/{'p' * 900}{number}" for number in range(600)]
    many = front(*(route(number, f"h{number}.example", path) for number, path in enumerate(paths, 1)))
    assert ("url_map_size", "refused") in _codes(capabilities.unsupported_in_load_balancer(many))
    assert ("url_map_size", "refused") not in _codes(capabilities.unsupported_in_load_balancer(front(route(1))))


def test_a_stack_that_lets_only_some_clients_in_serves_nobody_at_google() -> None:
    closed = stack(front(route(1)), network=Network(vpc="v", client_networks=("10.0.0.0/8",), zones=(("europe", "z"),)))
    compilation = compile_stack(closed)
    assert "client_networks" in {finding.code for finding in compilation.left_out}
    assert "google_compute_global_forwarding_rule" not in compilation.output.resources


def test_a_pool_in_a_region_without_a_zone_is_refused_by_the_regions_name() -> None:
    pool = cloud_pool(1, backends=(CloudBackend("bkd-1", "asia", (server(1),)),))
    found = [each for each in capabilities.unsupported_in_stack(stack(pools=(pool,))) if each.code == "no_zone"]
    assert [(each.object_id, each.refused) for each in found] == [("pool-1", True)]
    assert "asia" in found[0].message


def test_no_text_of_a_stack_opens_a_template() -> None:
    evil = "${file(1)}%{if true}"
    network = Network(evil, zones=(("europe", evil),))
    document = render(stack(front(route(1)), network=network, project=evil, endpoint_url=evil))
    assert "${file" not in str(document.as_json())
    assert "%{if" not in str(document.as_json())


def test_a_stack_without_a_network_has_no_place_for_servers() -> None:
    nowhere = stack(network=Network(zones=(("europe", "europe-west3-a"),)))
    assert _codes(capabilities.unsupported_in_stack(nowhere)) == [("no_network", "refused")]


def test_a_listener_on_an_address_that_is_not_the_stacks_is_refused() -> None:
    bound = front(route(1), listeners=(listener(1, address="ip-9"),))
    kept = (CloudAddress("ip-9", "nine", "ops", AddressKind.GOOGLE),)
    assert "address_elsewhere" in {each.code for each in capabilities.unsupported_in_stack(stack(bound))}
    assert list(capabilities.unsupported_in_stack(stack(bound, addresses=kept))) == []


def test_every_loss_says_what_to_do_or_what_differs() -> None:
    pool: CloudPool = cloud_pool(1, health_check=None, when_full=WhenFull.REFUSE)
    for each in capabilities.unsupported_in_pool(pool):
        assert each.message.endswith(".")
        assert each.remedy.endswith(".")

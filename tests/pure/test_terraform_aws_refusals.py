"""What AWS cannot do is said before anything is written: refused and left out, or carried with what differs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apps.compiler.compile import compile_stack
from apps.compiler.model.shared import (
    Balance,
    FixedResponse,
    HealthCheck,
    Limit,
    LimitKind,
    Listener,
    Protocol,
    Redirect,
    Route,
    Server,
    Unreadable,
    ValueCondition,
    ValueMatch,
    WeightedPool,
    WhenFull,
)
from apps.compiler.model.stack import AddressKind, CloudPool, CloudRecord, CloudZone, Network, RecordType, StackSnapshot
from apps.compiler.portability.incompatibilities import Incompatibility, Severity, Target
from apps.compiler.portability.report import portability
from tests.pure.aws_fixtures import (
    AWAY,
    FAR,
    NETWORK,
    address,
    backend,
    certificate,
    front,
    pool,
    server,
    stack,
    stacks,
)
from tests.pure.compiler_fixtures import listener, route
from tests.pure.properties import always, examples

HTTPS = (listener(1, port=443, protocol=Protocol.HTTPS, certificate_ids=("crt-1",)),)


def _said(snapshot: StackSnapshot) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """What was refused and what differs, as (object, code)."""
    compilation = compile_stack(snapshot)
    refused = {(each.object_id, each.code) for each in compilation.left_out}
    return refused, {(each.object_id, each.code) for each in compilation.warnings}


def _equals(name: str, value: str) -> ValueCondition:
    return ValueCondition(name, ValueMatch.EQUALS, value)


REFUSED_ROUTES: dict[str, Route] = {
    "prefix_rewrite": route(1, prefix_rewrite="/v2"),
    "header_absent": route(1, headers=(ValueCondition("X-A", ValueMatch.ABSENT),)),
    "header_name_length": route(1, headers=(ValueCondition("X-" + "a" * 39, ValueMatch.PRESENT),)),
    "header_value_length": route(1, headers=(_equals("X-A", "1" * 129),)),
    "query_encoded": route(1, query=(_equals("a%5B%5D", "1"),)),
    "header_wildcard": route(1, headers=(_equals("X-A", "1?2"),)),
    "too_many_conditions": route(1, path="/a", headers=tuple(_equals(f"X-{each}", "1") for each in "ABCD")),
    "host_length": route(1, "a" * 60 + "." + "b" * 60 + ".example"),
    "host_top_level": route(1, "shop.xn--p1ai"),
    "path_length": route(1, path="/" + "a" * 127),
    "path_signs": route(1, path="/a&b"),
    "redirect_code": route(1, redirect=Redirect(307, "https")),
    "redirect_length": route(1, redirect=Redirect(301, host="b.example", path="/" + "a" * 128)),
    "redirect_path_signs": route(1, redirect=Redirect(301, host="b.example", path="/a=b")),
    "redirect_to_itself": route(1, redirect=Redirect(301, keep_query=False)),
    "content_type": route(1, fixed_response=FixedResponse(200, "text/xml", "<a/>")),
    "body_length": route(1, fixed_response=FixedResponse(200, body="a" * 1025)),
}
TAKEN_ROUTES: dict[str, Route] = {
    "header_name_length": route(1, headers=(ValueCondition("X-" + "a" * 38, ValueMatch.PRESENT),)),
    "header_value_length": route(1, headers=(_equals("X-A", "1" * 128),)),
    "too_many_conditions": route(1, headers=tuple(_equals(f"X-{each}", "1") for each in "ABCD")),
    "host_length": route(1, "a" * 60 + "." + "b" * 59 + ".example"),
    "path_length": route(1, path="/" + "a" * 125),
    "path_signs": route(1, path="/a~b.c_d-e:f@g+h"),
    "redirect_code": route(1, redirect=Redirect(302, "https")),
    "redirect_length": route(1, redirect=Redirect(301, host="b.example", path="/" + "a" * 127)),
    "content_type": route(1, fixed_response=FixedResponse(200, "application/json", "{}")),
    "without_body": route(1, fixed_response=FixedResponse(404, "text/xml")),
    "body_length": route(1, fixed_response=FixedResponse(200, body="a" * 1024)),
}


@pytest.mark.parametrize("code", REFUSED_ROUTES)
def test_a_route_that_alb_cannot_serve_is_refused_alone(code: str) -> None:
    other = route(2, "other.example", "/other")
    snapshot = stack(front(REFUSED_ROUTES[code], other))
    refused, _ = _said(snapshot)
    assert refused == {("route-1", code)}
    assert set(compile_stack(snapshot).output.resources["aws_lb_listener_rule"]) == {"lst_1_route_2"}


@pytest.mark.parametrize("code", TAKEN_ROUTES)
def test_a_route_just_within_what_alb_takes_is_taken(code: str) -> None:
    snapshot = stack(front(TAKEN_ROUTES[code]))
    assert _said(snapshot)[0] == set()
    assert "lst_1_route_1" in compile_stack(snapshot).output.resources["aws_lb_listener_rule"]


def test_https_is_not_redirected_to_http_but_http_is() -> None:
    down = route(1, redirect=Redirect(301, "http", "b.example"))
    assert _said(stack(front(down)))[0] == set()
    assert _said(stack(front(down, listeners=HTTPS), certificates=(certificate(1),)))[0] == {
        ("route-1", "redirect_to_http")
    }


def test_a_condition_on_letters_is_carried_and_said_to_know_no_case() -> None:
    assert ("route-1", "header_case") in _said(stack(front(route(1, headers=(_equals("X-A", "yes"),)))))[1]
    assert ("route-1", "header_case") not in _said(stack(front(route(1, headers=(_equals("X-A", "1.5"),)))))[1]


LIMITED = Limit(LimitKind.RATE, 100)
KEPT = HealthCheck("/up", interval_ms=10_000, timeout_ms=5000)
LOSSY_POOLS: dict[str, CloudPool] = {
    "limit": pool(1, backend(1, limit=LIMITED), health_check=KEPT),
    "when_full": pool(1, backend(1, limit=LIMITED), when_full=WhenFull.QUEUE),
    "balance": pool(1, balance=Balance.SOURCE),
    "server_weights": pool(1, backend(1, servers=(server(1), server(2, weight=50)))),
    "health_check_default": pool(1),
    "health_check_request": pool(1, health_check=replace(KEPT, method="HEAD")),
    "health_check_times": pool(1, health_check=HealthCheck("/up")),
    "keepalive_race": pool(1, server_keepalive_ms=30_000),
    "server_timeout": pool(1, server_timeout_ms=1500),
    "connect_timeout": pool(1, connect_timeout_ms=9_999),
    "fail_open": pool(1, health_check=KEPT),
}


@pytest.mark.parametrize("code", LOSSY_POOLS)
def test_what_a_target_group_does_otherwise_is_said(code: str) -> None:
    refused, warned = _said(stack(front(route(1)), pools=(LOSSY_POOLS[code],)))
    assert refused == set()
    assert ("pool-1", code) in warned
    plain = pool(1, health_check=KEPT, connect_timeout_ms=10_000)
    _, warned = _said(stack(front(route(1)), pools=(plain,)))
    assert {code for object_id, code in warned if object_id == "pool-1"} == {"fail_open"}


def test_a_pool_that_expects_a_status_groups_cannot_expect_leaves_with_its_routes() -> None:
    failing = pool(1, health_check=HealthCheck("/up", expect_status=503))
    refused, _ = _said(stack(front(route(1), route(2, fixed_response=FixedResponse(200))), pools=(failing,)))
    assert refused == {("pool-1", "health_check_status"), ("route-1", "unknown_pool")}


@pytest.mark.parametrize(
    ("one", "code"),
    [
        (server(1, address="192.0.2.1"), "server_public"),
        (server(1, address="fd00::1"), "server_address"),
        (server(1, address="app.internal"), "server_address"),
    ],
)
def test_a_server_that_no_group_takes_leaves_its_pool_without_it(one: Server, code: str) -> None:
    snapshot = stack(front(route(1)), pools=(pool(1, backend(1, servers=(one, server(2)))),))
    assert _said(snapshot)[0] == {("srv-1", code)}
    assert set(compile_stack(snapshot).output.resources["aws_lb_target_group_attachment"]) == {"srv_2_lb_1"}


def test_more_than_five_target_groups_in_an_action_are_refused() -> None:
    def pools(count: int) -> tuple[CloudPool, ...]:
        three = (backend(1, weight=1), backend(2, AWAY, weight=1), backend(3, FAR, weight=1))
        return (pool(1, *three), *(pool(number) for number in range(11, 11 + count)))

    def split(count: int) -> Route:
        return route(1, pools=tuple(WeightedPool(each.id, 1) for each in pools(count)))

    assert _said(stack(front(split(2)), pools=pools(2)))[0] == set()
    assert _said(stack(front(split(3)), pools=pools(3)))[0] == {("route-1", "too_many_groups")}


def test_regions_that_stand_by_are_left_out_where_an_action_has_no_room_for_them() -> None:
    three = (backend(1), backend(2, AWAY), backend(3, FAR))
    pools = (pool(1, *three), *(pool(number) for number in (11, 12, 13)))
    snapshot = stack(front(route(1, pools=tuple(WeightedPool(each.id, 1) for each in pools))), pools=pools)
    refused, warned = _said(snapshot)
    assert refused == set()
    assert ("route-1", "no_standby") in warned
    rule = compile_stack(snapshot).output.resources["aws_lb_listener_rule"]["lst_1_route_1"]
    [forward] = rule["action"][0]["forward"]
    assert [each["weight"] for each in forward["target_group"]] == [1, 1, 1, 1]


def test_quotas_that_aws_raises_are_said_and_not_enforced() -> None:
    def many(count: int) -> StackSnapshot:
        return stack(front(*(route(number, path=f"/{number}") for number in range(1, count + 1))))

    assert ("lb-1", "rules_quota") in _said(many(101))[1]
    assert ("lb-1", "rules_quota") not in _said(many(100))[1]
    assert len(compile_stack(many(101)).output.resources["aws_lb_listener_rule"]) == 101


@pytest.mark.parametrize("network", [Network(), Network("vpc-1", ("subnet-a",)), Network("", ("a", "b"))])
def test_an_alb_needs_a_vpc_and_two_subnets(network: Network) -> None:
    snapshot = stack(front(route(1)), network=network)
    assert _said(snapshot)[0] == {("lb-1", "network")}
    assert compile_stack(snapshot).output.resources == {}


def test_tcp_and_http_meet_at_a_static_ip_alone() -> None:
    def both(static_ip: str | None) -> StackSnapshot:
        tcp = listener(2, port=5432, protocol=Protocol.TCP, default_pool_id="pool-2", address=static_ip)
        pools = (pool(1), pool(2, protocol=Protocol.TCP))
        listeners = (listener(1, port=80, address=static_ip), tcp)
        return stack(front(route(1), listeners=listeners), pools=pools, addresses=(address(1),))

    assert ("lb-1", "two_names") in _said(both(None))[1]
    assert compile_stack(both(None)).output.outputs["lb_1_tcp_dns_name"] == "${aws_lb.lb_1_tcp.dns_name}"
    assert ("lb-1", "two_names") not in _said(both("ip-1"))[1]


def test_an_nlb_does_not_listen_for_a_pool_without_backends() -> None:
    tcp = listener(1, protocol=Protocol.TCP, port=5432, default_pool_id="pool-1")
    empty = replace(pool(1, protocol=Protocol.TCP), backends=())
    assert _said(stack(front(listeners=(tcp,)), pools=(empty,)))[0] == {("lst-1", "no_backends")}
    http = stack(front(route(1)), pools=(replace(pool(1), backends=()),))
    rule = compile_stack(http).output.resources["aws_lb_listener_rule"]["lst_1_route_1"]
    assert rule["action"][0]["fixed_response"][0]["status_code"] == "503"


def test_what_is_named_twice_is_made_once() -> None:
    network = Network("vpc-1", ("a", "b", "a"), ("192.0.2.0/24", "192.0.2.0/24"))
    listeners = (listener(1, port=443, protocol=Protocol.HTTPS, certificate_ids=("crt-1", "crt-2", "crt-2")),)
    certificates = (certificate(1), certificate(2, "b.example"))
    snapshot = stack(
        front(route(1), listeners=listeners), network=network, certificates=certificates, addresses=(address(1),)
    )
    made = compile_stack(snapshot).output.resources
    assert len(made["aws_eip"]) == 2
    assert len(made["aws_lb_listener_certificate"]) == len(made["aws_vpc_security_group_ingress_rule"]) == 1


def test_two_backends_of_one_name_share_no_target_group() -> None:
    pools = (pool(1), pool(2, backend(1)), pool(3))
    refused = {object_id for object_id, code in _said(stack(front(route(1)), pools=pools))[0] if code == "id_twice"}
    assert refused >= {"pool-1", "pool-2"}
    assert "pool-3" not in refused


def test_names_in_the_cloud_open_no_template() -> None:
    network = Network("${vpc}", ("a", "b"), log_bucket="%{if true}")
    text = str(compile_stack(stack(front(route(1)), network=network, endpoint_url="${x}")).output.as_json())
    assert not any(each in text for each in ("${vpc}", "${x}", "%{if"))


def test_an_nlb_stands_in_one_subnet() -> None:
    tcp = front(listeners=(listener(1, protocol=Protocol.TCP, port=5432, default_pool_id="pool-1"),))
    tcp_pool = (pool(1, protocol=Protocol.TCP),)
    assert _said(stack(tcp, pools=tcp_pool, network=Network("vpc-1", ("subnet-a",))))[0] == set()


@pytest.mark.parametrize("block", ["10.0.0.1/8", "all", "10.0.0.0/33", "${file('/x')}"])
def test_a_network_that_cannot_be_read_keeps_load_balancers_out(block: str) -> None:
    snapshot = stack(front(route(1)), network=replace(NETWORK, client_networks=(block,)))
    assert _said(snapshot)[0] == {("lb-1", "network")}


@pytest.mark.parametrize(
    ("listeners", "expected"),
    [
        ((listener(1, port=80, address="ip-9"),), {("lst-1", "unknown_address")}),
        ((listener(1, port=80, address="ip-2"),), {("ip-2", "address_kind"), ("lst-1", "unknown_address")}),
        ((listener(1, port=80), listener(2, port=80)), {("lst-2", "port_twice")}),
        ((listener(1, port=80, address="ip-1"), listener(2, port=80)), {("lst-2", "port_twice")}),
        ((listener(1, port=443, protocol=Protocol.HTTPS),), {("lst-1", "no_certificate")}),
        ((listener(1, port=80, default_pool_id="pool-9"),), {("lst-1", "unknown_pool")}),
    ],
)
def test_a_listener_that_cannot_stand_is_refused(
    listeners: tuple[Listener, ...], expected: set[tuple[str, str]]
) -> None:
    wanted = expected | ({("ip-2", "address_kind")})
    snapshot = stack(front(route(1), listeners=listeners), addresses=(address(1), address(2, AddressKind.VIP)))
    assert _said(snapshot)[0] == wanted


def test_two_load_balancers_may_use_one_port_but_not_one_port_of_one_address() -> None:
    both = front(listeners=(listener(1, port=80),)), front(listeners=(listener(2, port=80),), number=2)
    assert _said(stack(*both))[0] == set()
    shared = tuple(
        replace(each, listeners=tuple(replace(one, address="ip-1") for one in each.listeners)) for each in both
    )
    assert _said(stack(*shared, addresses=(address(1),)))[0] == {("lst-2", "port_twice")}


def test_on_other_ports_clients_send_the_port_and_that_is_said() -> None:
    assert ("lst-1", "port_in_host") in _said(stack(front(route(1), listeners=(listener(1, port=8080),))))[1]
    assert ("lst-1", "port_in_host") not in _said(stack(front(route(1))))[1]


def _zone(*records: CloudRecord, domain: str = "a.example") -> StackSnapshot:
    zones = (CloudZone("zone-1", "zone", "ops", domain, records),)
    return stack(front(route(1)), addresses=(address(1),), zones=zones)


@pytest.mark.parametrize(
    ("record", "code"),
    [
        (CloudRecord("rec-1", "@", RecordType.NS, 60, ("ns.example.net.",)), "own_name_servers"),
        (CloudRecord("rec-1", "a", RecordType.AAAA, 60, address_id="ip-1"), "address_version"),
        (CloudRecord("rec-1", "a", RecordType.A, 60, address_id="ip-9"), "unknown_address"),
        (CloudRecord("rec-1", "a", RecordType.A, 60, load_balancer_id="lb-9"), "unknown_load_balancer"),
        (CloudRecord("rec-1", "a b", RecordType.A, 60, ("192.0.2.1",)), "record_name"),
        (CloudRecord("rec-1", "a", RecordType.TXT, 60, ("a\nb",)), "record_value"),
        (CloudRecord("rec-1", "a", RecordType.TXT, 60), "record_value"),
        (CloudRecord("rec-1", "a", RecordType.TXT, 60, ("bare",)), "record_value"),
        (CloudRecord("rec-1", "a", RecordType.TXT, 60, (f'"{"a" * 256}"',)), "record_value"),
    ],
)
def test_a_record_that_route_53_cannot_serve_is_refused_alone(record: CloudRecord, code: str) -> None:
    good = CloudRecord("rec-2", "www", RecordType.A, 60, ("192.0.2.1",))
    snapshot = _zone(record, good)
    assert _said(snapshot)[0] == {("rec-1", code)}
    assert set(compile_stack(snapshot).output.resources["aws_route53_record"]) == {"rec_2"}


def test_what_is_wrong_on_a_fleet_is_wrong_in_a_cloud() -> None:
    twins = (route(1), route(2), route(3, "${x}"), route(4, account="globex", path="/stolen"))
    unreadable = (Unreadable("route-9", "broken", "headers"),)
    refused, _ = _said(stack(front(*twins), unreadable=unreadable))
    assert refused == {
        ("route-2", "identical_route"), ("route-3", "too_few_labels"), ("route-4", "hostname_owner"),
        ("route-9", "unreadable"),
    }  # fmt: skip


def test_an_id_that_is_none_of_ours_reaches_no_name_of_a_resource() -> None:
    refused, _ = _said(stack(front(route(1)), pools=(pool(1), pool(2, id="pool-${x}"))))
    assert refused == {("pool-${x}", "object_id")}


def _refusals_and_losses_are_said(snapshot: StackSnapshot) -> None:
    compilation = compile_stack(replace(snapshot, network=NETWORK))
    refused = {(each.object_id, each.code) for each in compilation.left_out}
    gone = {object_id for object_id, _ in refused}
    warned = {(each.object_id, each.code) for each in compilation.warnings}
    owners = set(compilation.output.owners.values())
    for front_ in snapshot.load_balancers:
        for each in portability(front_, snapshot.pools, snapshot.certificates, snapshot.addresses):
            if each.target is not Target.AWS or each.code in ("server_timeout", "two_names"):
                continue  # these depend on what else stands in the stack, and on addresses that were refused
            if each.refused:
                assert each.object_id in gone
                assert each.object_id not in owners
            elif each.object_id in owners:
                assert (each.object_id, each.code) in warned


@examples(few=12, many=80)
def test_nothing_that_portability_refuses_reaches_a_document_and_nothing_lossy_goes_unsaid(
    count: int, *, repeatable: bool
) -> None:
    always(_refusals_and_losses_are_said, stacks(), count=count, repeatable=repeatable)


def test_an_incompatibility_says_the_same_as_a_finding() -> None:
    found = Incompatibility(
        Target.AWS, Severity.REFUSED, "code", "route-1", "label", "field", "This is so.", "Do that."
    )
    assert (found.finding.message, found.finding.field) == ("This is so. Do that.", "field")


def test_static_ips_do_not_move_and_the_report_says_so() -> None:
    kinds = (address(1, AddressKind.VIP), address(2), address(3, AddressKind.GOOGLE))
    listed = portability(front(), (), addresses=kinds)
    found: dict[Any, set[str]] = {target: set() for target in Target}
    for each in listed:
        if each.code == "address_kind":
            found[each.target].add(each.object_id)
    assert found == {Target.HAPROXY: {"ip-2", "ip-3"}, Target.AWS: {"ip-1", "ip-3"}, Target.GOOGLE: {"ip-1", "ip-2"}}


@pytest.mark.parametrize("target", [Target.AWS, Target.GOOGLE])
def test_the_report_goes_on_behind_a_pool_that_is_refused(target: Target) -> None:
    """Who mends the pool first would else meet the next refusal only then."""
    long = route(2, "*.b.example", path="/" + "x" * 200)
    fine = pool(1, health_check=KEPT)
    failing = replace(fine, health_check=replace(KEPT, expect_status=503))

    def of_routes(of: CloudPool) -> set[tuple[str, str]]:
        found = portability(front(route(1), long), (of,))
        return {(each.object_id, each.code) for each in found if each.target is target and "route" in each.object_id}

    assert of_routes(failing) == of_routes(fine)
    assert "route-2" in {object_id for object_id, _ in of_routes(failing)}

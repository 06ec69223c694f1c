"""What is written for AWS is what the provider takes: every golden stack, and stacks that hypothesis makes."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from apps.compiler.compile import compile_stack
from apps.compiler.model.shared import Balance, FixedResponse, Protocol, Route, ServerState, WeightedPool
from apps.compiler.model.stack import AddressKind, CloudRecord, CloudZone, Network, RecordType, StackSnapshot
from apps.compiler.targets.terraform.document import StackDocument
from apps.compiler.targets.terraform.expressions import cloud_name, literal
from apps.compiler.targets.terraform.pem import secrets_of
from tests.pure.aws_fixtures import (
    AWAY,
    FAR,
    HOME,
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
from tests.schema_facts import errors_in, facts_of

FACTS = facts_of("aws")
Resources = dict[str, dict[str, dict[str, Any]]]


def _document(snapshot: StackSnapshot) -> StackDocument:
    return compile_stack(snapshot).output


def _resources(snapshot: StackSnapshot) -> Resources:
    resources: Resources = _document(snapshot).as_json()["resources"]
    return resources


def _everything() -> StackSnapshot:
    """A stack in which every type of resource is needed."""
    listeners = (
        listener(1, port=80, address="ip-1"),
        listener(2, port=443, protocol=Protocol.HTTPS, address="ip-2", certificate_ids=("crt-1", "crt-2")),
        listener(3, port=5432, protocol=Protocol.TCP, default_pool_id="pool-2"),
    )
    records = (
        CloudRecord("rec-1", "@", RecordType.A, 300, load_balancer_id="lb-1"),
        CloudRecord("rec-2", "static", RecordType.A, 300, address_id="ip-1"),
    )
    return stack(
        front(route(1), listeners=listeners),
        pools=(pool(1), pool(2, protocol=Protocol.TCP)),
        certificates=(certificate(1), certificate(2, "b.example")),
        addresses=(address(1), address(2, AddressKind.ACCELERATOR)),
        zones=(CloudZone("zone-1", "zone", "ops", "a.example", records),),
    )


def test_every_resource_type_that_we_know_is_written_and_taken() -> None:
    document = _document(_everything())
    assert set(document.resources) == set(FACTS)
    assert errors_in(document, FACTS) == []


def test_whatever_can_carry_tags_says_its_own_address() -> None:
    """By it a resource that no state knows is taken over; what has none is known by what it belongs to."""
    untagged = set()
    for kind, named in _resources(_everything()).items():
        for name, body in named.items():
            if "tags" in FACTS[kind]["attributes"]:
                assert body["tags"]["spillway-resource"] == f"{kind}.{name}"
            else:
                untagged.add(kind)
    assert untagged == {
        "aws_globalaccelerator_endpoint_group",
        "aws_globalaccelerator_listener",
        "aws_lb_listener_certificate",
        "aws_lb_target_group_attachment",
        "aws_route53_record",
    }


@examples(few=12, many=100)
def test_whatever_the_stack_the_provider_takes_its_document(count: int, *, repeatable: bool) -> None:
    def taken(snapshot: StackSnapshot) -> None:
        document = _document(snapshot)
        assert errors_in(document, FACTS) == []
        assert json.loads(json.dumps(document.as_json())) == document.as_json()

    always(taken, stacks(), count=count, repeatable=repeatable)


def _spoil(change: Callable[[Resources], object]) -> list[str]:
    document = _document(_everything())
    resources = copy.deepcopy(document.as_json()["resources"])
    change(resources)
    return errors_in(replace(document, resources=resources), FACTS)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda r: r["aws_lb"]["lb_1"].update(colour="red"), "no such attribute"),
        (lambda r: r["aws_lb"]["lb_1"].update(arn="arn:x"), "the provider alone says it"),
        (lambda r: r["aws_lb_listener"]["lst_1"].pop("load_balancer_arn"), "it is required"),
        (lambda r: r["aws_lb_listener"]["lst_1"].pop("default_action"), "it is required"),
        (lambda r: r["aws_lb_listener"]["lst_1"].update(port="eighty"), "is no number"),
        (lambda r: r["aws_lb"]["lb_1"].update(access_logs={"bucket": "b"}), "it is a list of blocks"),
        (lambda r: r["aws_lb"]["lb_1"].update(access_logs=[{"bucket": "b"}] * 2), "2 blocks are not 0 to 1"),
        (lambda r: r["aws_lb"]["lb_1"]["access_logs"][0].update(colour="red"), "no such attribute"),
        (lambda r: r["aws_lb"].pop("lb_1"), "is referred to and not in the document"),
        (lambda r: r["aws_lb"]["lb_1"].update(name="${aws_eip.ip_1_subnet_a.colour}"), "which aws_eip does not have"),
        (lambda r: r["aws_lb"]["lb_1"].update(name="${var.secret}"), "not declared"),
        (lambda r: r["aws_lb"]["lb_1"].update(depends_on=["aws_lb.lb_9"]), "is not in the document"),
        (lambda r: r["aws_lb"]["lb_1"].update(lifecycle={"forever": True}), "no such setting"),
        (lambda r: r.update(aws_balancer={"a": {}}), "there is no such type"),
        (lambda r: r["aws_lb"].update(other=r["aws_lb"]["lb_1"]), "it has no owner"),
    ],
)
def test_the_check_of_documents_finds_what_is_wrong(change: Callable[[Resources], object], error: str) -> None:
    assert any(error in each for each in _spoil(change))


def test_the_order_in_which_definitions_come_changes_nothing() -> None:
    one = _everything()
    other = replace(
        one,
        pools=one.pools[::-1],
        certificates=one.certificates[::-1],
        addresses=one.addresses[::-1],
        load_balancers=tuple(replace(each, listeners=each.listeners[::-1]) for each in one.load_balancers),
    )
    assert _document(one).digest == _document(other).digest


def test_a_private_key_is_no_part_of_the_document() -> None:
    snapshot = _everything()
    document = _document(snapshot)
    secrets = secrets_of(snapshot.certificates, document.variables)
    assert set(secrets) == set(document.variables) == {"crt_1_key", "crt_2_key"}
    assert all(text.startswith("-----BEGIN PRIVATE KEY-----\n") for text in secrets.values())
    assert "PRIVATE KEY" not in json.dumps(document.as_json())
    assert document.resources["aws_acm_certificate"]["crt_1"]["certificate_body"].count("BEGIN CERTIFICATE") == 1


def test_names_fit_into_the_cloud_and_differ_however_long_ids_are() -> None:
    names = {cloud_name("stk-123456789012345678", f"bkd-{number}", "lb-987654321098765432", longest=32)
             for number in range(10**17, 10**17 + 50)}  # fmt: skip
    assert len(names) == 50
    assert all(len(name) <= 32 and not name.endswith("-") for name in names)
    assert cloud_name("stk-3", "lb-3", longest=32) == "sw-stk3-lb-3"


@pytest.mark.parametrize("text", ['${file("/etc/passwd")}', "a $${b} %{if true}", "${TfToken[TOKEN.0]}", "$${", "%%{"])
def test_what_people_write_opens_no_template(text: str) -> None:
    body = "".join(literal(text).replace('${"$"}', "").replace('${"%"}', ""))
    assert not any(sign in body for sign in "$%")
    snapshot = stack(front(route(1, fixed_response=FixedResponse(200, body=text))))
    rule = _resources(snapshot)["aws_lb_listener_rule"]["lst_1_route_1"]
    assert rule["action"][0]["fixed_response"][0]["message_body"] == literal(text)


def test_texts_without_a_template_stay_as_they_are() -> None:
    assert literal("5 $ are 100 % of {it}") == "5 $ are 100 % of {it}"


def test_only_servers_that_take_traffic_are_registered() -> None:
    servers = (
        server(1),
        server(2, state=ServerState.DRAIN),
        server(3, state=ServerState.MAINTENANCE),
        server(4, weight=0),
    )
    made = _resources(stack(front(route(1)), pools=(pool(1, backend(1, servers=servers)),)))
    assert list(made["aws_lb_target_group_attachment"]) == ["srv_1_lb_1"]


def test_a_drained_region_has_no_targets_and_gets_no_share() -> None:
    drained = pool(1, backend(1, capacity_scaler=0.0, weight=1), backend(2, AWAY, weight=1))
    made = _resources(stack(front(route(1)), pools=(drained,)))
    assert list(made["aws_lb_target_group_attachment"]) == ["srv_2_lb_1"]
    [forward] = made["aws_lb_listener_rule"]["lst_1_route_1"]["action"][0]["forward"]
    assert [each["weight"] for each in forward["target_group"]] == [0, 1]
    alone = pool(1, backend(1, capacity_scaler=0.0))
    made = _resources(stack(front(route(1)), pools=(alone,)))
    assert list(made["aws_lb_target_group"]) == ["bkd_1_lb_1"]
    assert "aws_lb_target_group_attachment" not in made


def test_servers_outside_of_the_vpc_are_registered_for_all_zones() -> None:
    far = pool(1, backend(1, weight=1), backend(2, AWAY, weight=1))
    made = _resources(stack(front(route(1)), pools=(far,)))["aws_lb_target_group_attachment"]
    assert "availability_zone" not in made["srv_1_lb_1"]
    assert made["srv_2_lb_1"]["availability_zone"] == "all"
    known = replace(NETWORK, vpc_networks=("10.0.0.2/32",))
    made = _resources(stack(front(route(1)), pools=(far,), network=known))["aws_lb_target_group_attachment"]
    assert made["srv_1_lb_1"]["availability_zone"] == "all"
    assert "availability_zone" not in made["srv_2_lb_1"]


def test_a_group_belongs_to_one_load_balancer_because_aws_allows_no_more() -> None:
    made = _resources(stack(front(route(1)), front(route(2, "b.example"), number=2)))
    assert set(made["aws_lb_target_group"]) == {"bkd_1_lb_1", "bkd_1_lb_2"}


def test_without_weights_all_goes_to_the_first_region_and_the_others_stand_by() -> None:
    made = _resources(stack(front(route(1)), pools=(pool(1, backend(1), backend(2, AWAY)),)))
    [forward] = made["aws_lb_listener_rule"]["lst_1_route_1"]["action"][0]["forward"]
    assert [each["weight"] for each in forward["target_group"]] == [1, 0]
    alone = _resources(stack(front(route(1))))["aws_lb_listener_rule"]["lst_1_route_1"]["action"][0]
    assert alone == {"type": "forward", "target_group_arn": "${aws_lb_target_group.bkd_1_lb_1.arn}"}


@pytest.mark.parametrize("balance", list(Balance))
def test_a_rule_that_chooses_among_sticky_groups_is_sticky_itself_because_aws_refuses_it_else(balance: Balance) -> None:
    two = replace(pool(1, backend(1), backend(2, AWAY)), balance=balance)
    split = route(1, pools=(WeightedPool("pool-1", 1), WeightedPool("pool-2", 1)))
    by_weight = (replace(pool(1), balance=balance), pool(2, backend(4)))
    for pools, wanted in (((two,), route(1)), (by_weight, split)):
        made = _resources(stack(front(wanted), pools=pools))
        [forward] = made["aws_lb_listener_rule"]["lst_1_route_1"]["action"][0]["forward"]
        sticky = any(group["stickiness"][0]["enabled"] for group in made["aws_lb_target_group"].values())
        assert sticky == (balance is Balance.SOURCE)
        assert ("stickiness" in forward) == sticky
        assert not sticky or forward["stickiness"] == [{"enabled": True, "duration": 86_400}]


def test_a_move_of_traffic_between_regions_changes_weights_alone() -> None:
    def moved(*weights: int) -> Resources:
        regions = [
            backend(number, region, weight=weight)
            for (number, region), weight in zip(((1, HOME), (2, AWAY), (3, FAR)), weights, strict=True)
        ]
        split = route(1, pools=(WeightedPool("pool-1", 3), WeightedPool("pool-2", 1)))
        made = _resources(stack(front(split), pools=(pool(1, *regions), pool(2, backend(4)))))
        for rule in made["aws_lb_listener_rule"].values():
            for group in rule["action"][0]["forward"][0]["target_group"]:
                del group["weight"]
        return made

    assert moved(0, 0, 0) == moved(700, 300, 0) == moved(0, 0, 1000) == moved(1, 333, 999)


def test_weights_of_pools_and_regions_multiply() -> None:
    many = pool(2, backend(2, weight=3), backend(3, AWAY, weight=1), backend(4, FAR, weight=0))
    split = route(1, pools=(WeightedPool("pool-1", 1), WeightedPool("pool-2", 4)))
    made = _resources(stack(front(split), pools=(pool(1), many)))
    [forward] = made["aws_lb_listener_rule"]["lst_1_route_1"]["action"][0]["forward"]
    assert [each["weight"] for each in forward["target_group"]] == [1, 3, 1, 0]


def test_an_elastic_address_has_an_ip_in_each_subnet_and_keeps_it_while_nothing_stands_behind() -> None:
    made = _resources(stack(addresses=(address(4),)))
    assert list(made) == ["aws_eip"]
    assert list(made["aws_eip"]) == ["ip_4_subnet_a", "ip_4_subnet_b"]


@pytest.mark.parametrize("kind", [AddressKind.ELASTIC, AddressKind.ACCELERATOR])
def test_protected_addresses_alone_cannot_be_destroyed(kind: AddressKind) -> None:
    made = _resources(stack(addresses=(address(1, kind), address(2, kind, protected=False))))
    for named in made.values():
        for name, body in named.items():
            assert ("prevent_destroy" in body.get("lifecycle", {})) == name.startswith("ip_1")


def test_an_alb_behind_elastic_addresses_is_reached_through_them_alone() -> None:
    listeners = (listener(1, port=80, address="ip-4"),)
    made = _resources(stack(front(route(1), listeners=listeners), addresses=(address(4),)))
    assert made["aws_lb"]["lb_1"]["internal"]
    assert made["aws_lb"]["ip_4"]["subnet_mapping"] == [
        {"subnet_id": "subnet-a", "allocation_id": "${aws_eip.ip_4_subnet_a.allocation_id}"},
        {"subnet_id": "subnet-b", "allocation_id": "${aws_eip.ip_4_subnet_b.allocation_id}"},
    ]
    assert made["aws_lb_target_group"]["lst_1_passage"]["target_type"] == "alb"
    assert made["aws_lb_target_group_attachment"]["lst_1_passage"]["depends_on"] == ["aws_lb_listener.lst_1"]


def test_clients_come_from_the_networks_of_the_stack_alone() -> None:
    network = Network("vpc-1", ("a", "b"), ("192.0.2.0/24", "2001:db8::/32"))
    made = _resources(stack(front(route(1)), network=network))
    rules = made["aws_vpc_security_group_ingress_rule"].values()
    found = {(rule.get("cidr_ipv4"), rule.get("cidr_ipv6"), rule["from_port"], rule["to_port"]) for rule in rules}
    assert found == {("192.0.2.0/24", None, 80, 80), (None, "2001:db8::/32", 80, 80)}
    assert made["aws_lb"]["lb_1"]["ip_address_type"] == "dualstack"


def test_records_follow_load_balancers_and_addresses() -> None:
    made = _resources(_everything())["aws_route53_record"]
    assert made["rec_1"]["alias"][0]["name"] == "${aws_lb.ip_1.dns_name}"
    assert made["rec_2"]["records"] == ["${aws_eip.ip_1_subnet_a.public_ip}", "${aws_eip.ip_1_subnet_b.public_ip}"]


def test_an_accelerator_is_where_clients_find_its_load_balancer() -> None:
    listeners = (listener(1, port=80, address="ip-2"),)
    record = CloudRecord("rec-1", "@", RecordType.A, 300, load_balancer_id="lb-1")
    snapshot = stack(
        front(route(1), listeners=listeners),
        addresses=(address(2, AddressKind.ACCELERATOR),),
        zones=(CloudZone("zone-1", "zone", "ops", "a.example", (record,)),),
    )
    [alias] = _resources(snapshot)["aws_route53_record"]["rec_1"]["alias"]
    assert alias["name"] == "${aws_globalaccelerator_accelerator.ip_2.dns_name}"
    assert alias["zone_id"] == "${aws_globalaccelerator_accelerator.ip_2.hosted_zone_id}"
    assert not _resources(snapshot)["aws_lb"]["lb_1"]["internal"]


def test_long_texts_of_dns_are_parted_as_the_provider_wants_them() -> None:
    record = CloudRecord("rec-1", "@", RecordType.TXT, 60, (r'"v=1 \"x\"" "a\\b"', '"${file}"'))
    zone = CloudZone("zone-1", "zone", "ops", "a.example", (record,))
    made = _resources(stack(zones=(zone,)))["aws_route53_record"]["rec_1"]
    assert made["records"] == [r'v=1 \"x\"""a\\b', literal("${file}")]


def test_another_endpoint_is_asked_for_everything() -> None:
    [provider] = _document(stack(endpoint_url="http://127.0.0.1:5000")).providers
    assert set(provider.settings["endpoints"][0].values()) == {"http://127.0.0.1:5000"}
    [own] = _document(stack()).providers
    assert own.settings == {
        "region": "eu-central-1",
        "default_tags": [{"tags": {"spillway-stack": "stk-3"}}],
    }


def test_three_thousand_routes_are_compiled_in_well_under_half_a_second_of_processor_time() -> None:
    """Processor time, because the machine has other work; ten times what it takes, so that the test never flickers."""
    routes = tuple(_many(number) for number in range(1, 3001))
    began = time.process_time()
    compilation = compile_stack(stack(front(*routes)))
    assert time.process_time() - began < 5
    assert len(compilation.output.resources["aws_lb_listener_rule"]) == 3000


def _many(number: int) -> Route:
    return route(number, f"h{number % 300}.example", f"/path/{number}")

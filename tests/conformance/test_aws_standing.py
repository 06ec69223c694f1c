"""AWS as moto plays it: what carries a mark is found, and what cannot carry one by what it belongs to."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from apps.compiler.targets.terraform.aws.naming import MARK, RESOURCE
from apps.drivers.clouds.contract import CloudAccess, Standing
from apps.drivers.clouds.registry import open_reader
from tests.conformance.aws_env import KEYS, REGION, AwsEnv, empty_aws, make_balancer, make_group, make_listener
from tests.ports import spare_port
from tests.pure.compiler_fixtures import certificate_pem

KINDS = (
    *("aws_eip", "aws_security_group", "aws_lb", "aws_acm_certificate", "aws_route53_zone"),
    *("aws_globalaccelerator_listener", "aws_lb_listener", "aws_route53_record"),
)
OURS = "0123456789abcdef"


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> AwsEnv:
    """An empty cloud, asked with keys of its own."""
    env = empty_aws()
    for name, value in env.environment().items():
        monkeypatch.setenv(name, value)
    return env


def tags(address: str, mark: str = OURS) -> list[dict[str, str]]:
    return [{"Key": MARK, "Value": mark}, {"Key": RESOURCE, "Value": address}]


def found(aws: AwsEnv, *kinds: str) -> list[Standing]:
    reader = open_reader(CloudAccess("aws", REGION, endpoint_url=aws.endpoint, stack="stk-1"))
    return list(reader.standing(OURS, kinds or KINDS))


def test_an_empty_cloud_has_nothing_of_ours(aws: AwsEnv) -> None:
    assert found(aws) == []


def test_addresses_are_found_by_mark_and_others_are_not(aws: AwsEnv) -> None:
    ec2 = aws.client("ec2")

    def allocate(*specification: dict[str, Any]) -> str:
        return str(ec2.allocate_address(Domain="vpc", TagSpecifications=list(specification))["AllocationId"])

    ours = allocate({"ResourceType": "elastic-ip", "Tags": tags("aws_eip.ip_1_subnet_a")})
    allocate({"ResourceType": "elastic-ip", "Tags": tags("aws_eip.ip_1_subnet_a", mark="of another installation")})
    allocate()
    assert found(aws) == [Standing("aws_eip", ours, "aws_eip.ip_1_subnet_a")]
    assert found(aws, "aws_lb") == []


def test_a_group_is_found_with_its_rules_whether_they_carry_tags_or_not(aws: AwsEnv) -> None:
    ec2 = aws.client("ec2")
    specification = [{"ResourceType": "security-group", "Tags": tags("aws_security_group.lb_1")}]
    group = ec2.create_security_group(
        GroupName="sw-stk1-lb-1", Description="x", VpcId=aws.vpc, TagSpecifications=specification
    )["GroupId"]
    within = {"IpProtocol": "tcp", "FromPort": 80, "ToPort": 80, "IpRanges": [{"CidrIp": "192.0.2.0/24"}]}
    of_rule = [{"ResourceType": "security-group-rule", "Tags": tags("aws_vpc_security_group_ingress_rule.lst_1")}]
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[within], TagSpecifications=of_rule)
    ours, *rules = found(aws)
    assert ours == Standing("aws_security_group", group, "aws_security_group.lb_1")
    said = {(each.kind, each.address, each.parent, tuple(sorted(each.facts.items()))) for each in rules}
    assert said == {
        ("aws_vpc_security_group_ingress_rule", "aws_vpc_security_group_ingress_rule.lst_1", group, ()),
        (
            "aws_vpc_security_group_egress_rule",
            "",
            group,
            (("cidr_ipv4", "0.0.0.0/0"), ("ip_protocol", "-1")),
        ),
    }


def test_a_load_balancer_is_found_with_its_listeners_and_rules_and_its_groups(aws: AwsEnv) -> None:
    def words(address: str) -> dict[str, str]:
        return {"spillway_state": OURS, "spillway_resource": address}

    balancer = make_balancer(aws, "sw-stk1-lb-1", **words("aws_lb.lb_1"))
    group = make_group(aws, "sw-stk1-bkd-1", **words("aws_lb_target_group.bkd_1_lb_1"))
    listener = make_listener(aws, balancer, group)
    asked = aws.client("elbv2")
    asked.add_tags(ResourceArns=[listener], Tags=tags("aws_lb_listener.lst_1"))
    rule = asked.create_rule(
        ListenerArn=listener,
        Priority=5,
        Conditions=[{"Field": "path-pattern", "Values": ["/x"]}],
        Actions=[{"Type": "forward", "TargetGroupArn": group}],
        Tags=tags("aws_lb_listener_rule.lst_1_rte_1"),
    )["Rules"][0]["RuleArn"]
    make_balancer(aws, "old-front")
    assert found(aws) == [
        Standing("aws_lb", balancer, "aws_lb.lb_1"),
        Standing("aws_lb_listener", listener, "aws_lb_listener.lst_1", balancer),
        Standing("aws_lb_listener_rule", rule, "aws_lb_listener_rule.lst_1_rte_1", listener),
        Standing("aws_lb_target_group", group, "aws_lb_target_group.bkd_1_lb_1"),
    ]


def test_a_zone_is_found_by_its_mark_or_before_it_has_one_by_its_comment_and_records_by_their_zone(
    aws: AwsEnv,
) -> None:
    dns = aws.client("route53")

    def zone(name: str, comment: str, mark: str = "") -> str:
        config = {"Comment": comment, "PrivateZone": False}
        made = dns.create_hosted_zone(Name=name, CallerReference=name, HostedZoneConfig=config)["HostedZone"]["Id"]
        found_id = str(made.rpartition("/")[2])
        if mark:
            dns.change_tags_for_resource(
                ResourceType="hostedzone", ResourceId=found_id, AddTags=tags("aws_route53_zone.zone_1", mark)
            )
        return found_id

    marked = zone("a.example", "Kept by Spillway as zone-1 of stk-1", OURS)
    fresh = zone("b.example", "Kept by Spillway as zone-2 of stk-1")
    zone("c.example", "Kept by Spillway as zone-3 of stk-1", "of another installation")
    zone("d.example", "by hand")
    record = {"Name": "*.a.example", "Type": "A", "TTL": 60, "ResourceRecords": [{"Value": "192.0.2.1"}]}
    change = {"Changes": [{"Action": "CREATE", "ResourceRecordSet": record}]}
    dns.change_resource_record_sets(HostedZoneId=marked, ChangeBatch=change)
    standing = [each for each in found(aws) if each.facts.get("type") != "NS"]
    assert standing == [
        Standing("aws_route53_zone", marked, "aws_route53_zone.zone_1"),
        Standing("aws_route53_record", f"{marked}_*.a.example_A", "", marked, {"name": "*.a.example", "type": "A"}),
        Standing(
            "aws_route53_zone",
            fresh,
            "",
            "",
            {"name": "b.example", "comment": "Kept by Spillway as zone-2 of stk-1"},
        ),
    ]


def test_certificates_are_found_by_mark(aws: AwsEnv) -> None:
    acm = aws.client("acm")
    certificate, _, key = certificate_pem("a.example").partition("-----BEGIN PRIVATE KEY-----")
    key = f"-----BEGIN PRIVATE KEY-----{key}"
    ours = acm.import_certificate(Certificate=certificate, PrivateKey=key, Tags=tags("aws_acm_certificate.crt_1"))
    acm.import_certificate(Certificate=certificate, PrivateKey=key)
    assert found(aws) == [Standing("aws_acm_certificate", ours["CertificateArn"], "aws_acm_certificate.crt_1")]


ACCELERATOR = "arn:aws:globalaccelerator::1:accelerator/a"
ACCELERATED: dict[str, Any] = {
    "ListAccelerators": {"Accelerators": [{"AcceleratorArn": ACCELERATOR}, {"AcceleratorArn": "arn:by-hand"}]},
    "ListListeners": {
        "Listeners": [
            {"ListenerArn": f"{ACCELERATOR}/listener/l", "PortRanges": [{"FromPort": 443, "ToPort": 443}]},
        ]
    },
    "ListEndpointGroups": {
        "EndpointGroups": [
            {"EndpointGroupArn": f"{ACCELERATOR}/listener/l/endpoint-group/g", "EndpointGroupRegion": REGION}
        ]
    },
}


class _Accelerators(BaseHTTPRequestHandler):
    """Answers as Global Accelerator's documentation says; moto does not know it."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        call = self.headers["X-Amz-Target"].rpartition(".")[2]
        ours = asked.get("ResourceArn") == ACCELERATOR
        of_tags = {"Tags": tags("aws_globalaccelerator_accelerator.ip_5") if ours else []}
        body = json.dumps(ACCELERATED.get(call, of_tags)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


def test_an_accelerator_is_found_by_mark_and_its_ports_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", spare_port()), _Accelerators)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    for name, value in {**KEYS, "SPILLWAY_CLOUD_ENDPOINT": endpoint}.items():
        monkeypatch.setenv(name, value)
    try:
        reader = open_reader(CloudAccess("aws", REGION, endpoint_url=endpoint, stack="stk-1"))
        accelerator, listener, group = reader.standing(OURS, ["aws_globalaccelerator_accelerator"])
    finally:
        server.shutdown()
        server.server_close()
    address = "aws_globalaccelerator_accelerator.ip_5"
    assert accelerator == Standing("aws_globalaccelerator_accelerator", ACCELERATOR, address)
    assert (listener.parent, listener.facts) == (ACCELERATOR, {"port_range": [{"from_port": 443, "to_port": 443}]})
    assert (group.parent, group.facts) == (listener.id, {"endpoint_group_region": REGION})

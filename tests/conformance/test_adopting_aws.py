"""Load balancers that were made by hand in a real API become definitions, and nothing vanishes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from apps.adoption import alb, elb
from apps.adoption.contract import Adoption, Verdict, Wish
from apps.compiler.grammar import METHODS
from apps.definitions.reading.documents import read_object
from apps.drivers.clouds.contract import CloudAccess, FoundLoadBalancer
from apps.drivers.clouds.registry import open_reader
from tests.conformance.aws_env import REGION, AwsEnv, empty_aws, make_balancer, make_group, make_listener

WISH = Wish(name="front", account="acme", regions={REGION: "frankfurt"}, stack="aws-frankfurt")


@pytest.fixture(scope="module")
def env() -> Iterator[AwsEnv]:
    found = empty_aws()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in found.environment().items():
            patch.setenv(name, value)
        yield found


@pytest.fixture(scope="module")
def front(env: AwsEnv) -> FoundLoadBalancer:
    return a_front_of_twenty_rules(env)


def described(env: AwsEnv, name: str) -> FoundLoadBalancer:
    reader = open_reader(CloudAccess("aws", REGION, endpoint_url=env.endpoint))
    (found,) = [each for each in reader.load_balancers() if each.name == name]
    return reader.describe(found.id)


def host(*values: str) -> dict[str, Any]:
    return {"Field": "host-header", "HostHeaderConfig": {"Values": list(values)}}


def path(*values: str) -> dict[str, Any]:
    return {"Field": "path-pattern", "PathPatternConfig": {"Values": list(values)}}


def forward(*shares: tuple[str, int]) -> dict[str, Any]:
    groups = [{"TargetGroupArn": arn, "Weight": weight} for arn, weight in shares]
    return {"Type": "forward", "ForwardConfig": {"TargetGroups": groups}}


def rule(env: AwsEnv, listener: str, priority: int, action: dict[str, Any], *conditions: dict[str, Any]) -> None:
    env.client("elbv2").create_rule(
        ListenerArn=listener, Priority=priority, Conditions=list(conditions), Actions=[action]
    )


def fixed(status: str, body: str = "") -> dict[str, Any]:
    answer = {"StatusCode": status, "ContentType": "text/plain", **({"MessageBody": body} if body else {})}
    return {"Type": "fixed-response", "FixedResponseConfig": answer}


def redirect(**changes: str) -> dict[str, Any]:
    usual = {"Protocol": "#{protocol}", "Host": "#{host}", "Port": "#{port}", "Path": "/#{path}", "Query": "#{query}"}
    return {"Type": "redirect", "RedirectConfig": {**usual, "StatusCode": "HTTP_301", **changes}}


def by_name(adoption: Adoption, kind: str) -> dict[str, Any]:
    return {each["name"]: each["spec"] for each in adoption.documents if each["kind"] == kind}


def verdicts(adoption: Adoption, word: str) -> dict[Verdict, list[str]]:
    found: dict[Verdict, list[str]] = {}
    for line in adoption.report:
        if word in line.found:
            found.setdefault(line.verdict, []).append(line.reason)
    return found


def a_front_of_twenty_rules(env: AwsEnv) -> FoundLoadBalancer:
    balancer = make_balancer(env, "old-front")
    web = make_group(env, "web", ("10.0.0.10", 8080), ("10.0.0.11", 8080))
    api = make_group(env, "api", ("10.0.1.10", 9000))
    listener = make_listener(env, balancer, web)
    rule(env, listener, 1, forward((web, 90), (api, 10)), host("www.example.com"), path("/shop", "/shop/*"))
    rule(env, listener, 2, forward((api, 1)), host("www.example.com"), path("/api/*"))
    rule(env, listener, 3, forward((api, 1)), host("www.example.com"), path("/exact"))
    rule(env, listener, 4, redirect(Protocol="HTTPS", Port="443"), host("old.example.com"))
    rule(env, listener, 5, redirect(Host="www.example.com", Path="/new"), host("moved.example.com"), path("/a"))
    rule(env, listener, 6, fixed("503", "Back soon."), host("down.example.com"))
    rule(env, listener, 7, forward((web, 1)), host("*.apps.example.com"))
    rule(env, listener, 8, forward((web, 1)), host("www.example.com"), path("*.jpg"))
    method = {"Field": "http-request-method", "HttpRequestMethodConfig": {"Values": ["POST", "PUT"]}}
    rule(env, listener, 9, forward((api, 1)), host("www.example.com"), path("/write"), method)
    header = {"Field": "http-header", "HttpHeaderConfig": {"HttpHeaderName": "X-Beta", "Values": ["yes", "on"]}}
    rule(env, listener, 10, forward((api, 1)), host("www.example.com"), path("/beta", "/beta/*"), header)
    query = {"Field": "query-string", "QueryStringConfig": {"Values": [{"Key": "debug", "Value": "1"}]}}
    rule(env, listener, 11, forward((api, 1)), host("www.example.com"), query)
    source = {"Field": "source-ip", "SourceIpConfig": {"Values": ["198.51.100.0/24"]}}
    rule(env, listener, 12, forward((api, 1)), host("www.example.com"), source)
    rule(env, listener, 13, forward((web, 1)), host("www.example.com"), path("/shop/cart", "/shop/cart/*"))
    rule(env, listener, 14, forward((web, 1)), host("a.example.com", "b.example.com"))
    rule(env, listener, 15, forward((api, 1)), path("/health"))
    rule(env, listener, 16, redirect(Path="/x/#{path}"), host("parts.example.com"))
    rule(env, listener, 17, redirect(Port="8443"), host("port.example.com"))
    rule(env, listener, 18, forward((web, 1)), host("w?w.example.com"))
    present = {"Field": "http-header", "HttpHeaderConfig": {"HttpHeaderName": "X-Trace", "Values": ["*"]}}
    rule(env, listener, 19, forward((api, 1)), host("trace.example.com"), present)
    rule(env, listener, 20, forward((web, 1)), host("www.example.com"))
    return described(env, "old-front")


def test_a_balancer_of_twenty_rules_becomes_definitions_that_can_be_read(front: FoundLoadBalancer) -> None:
    adoption = alb.adopt(front, WISH)
    for document in adoption.documents:
        read_object(document)
    pools, routes = by_name(adoption, "Pool"), by_name(adoption, "Route")
    (backend,) = pools["web"]["backends"]
    assert backend["region"] == "frankfurt"
    assert [(each["address"], each["port"]) for each in backend["servers"]] == [
        ("10.0.0.10", 8080),
        ("10.0.0.11", 8080),
    ]
    assert pools["web"]["health_check"]["path"] == "/health"
    said = {(spec["hostname"], spec["path"], spec["path_kind"]): spec for spec in routes.values()}
    assert said["www.example.com", "/shop", "prefix"]["action"] == {
        "pools": [{"pool": "web", "weight": 90}, {"pool": "api", "weight": 10}]
    }
    assert said["www.example.com", "/exact", "exact"]["action"] == {"pools": [{"pool": "api", "weight": 1}]}
    moved = said["old.example.com", "/", "prefix"]
    assert (moved["action"]["redirect"]["scheme"], moved["scheme"]) == ("https", "http")
    assert said["port.example.com", "/", "prefix"]["action"]["redirect"]["port"] == 8443
    assert said["moved.example.com", "/a", "exact"]["action"]["redirect"] == {
        "code": 301,
        "host": "www.example.com",
        "path": "/new",
        "keep_query": True,
    }
    assert said["down.example.com", "/", "prefix"]["action"]["fixed_response"]["body"] == "Back soon."
    assert set(said["www.example.com", "/write", "exact"]["methods"]) == {"POST", "PUT"} <= METHODS
    assert {("a.example.com", "/", "prefix"), ("b.example.com", "/", "prefix")} <= said.keys()
    (balancer,) = by_name(adoption, "LoadBalancer").values()
    assert balancer["listeners"] == [{"name": "http-80", "protocol": "http", "port": 80, "default_pool": "acme/web"}]


def test_nothing_vanishes_every_rule_stands_in_the_report(front: FoundLoadBalancer) -> None:
    adoption = alb.adopt(front, WISH)
    for number in range(1, 21):
        assert verdicts(adoption, f"rule {number}"), number
    assert all(line.reason for line in adoption.report if line.verdict is not Verdict.MAPPED)
    assert all(line.kind and line.name for line in adoption.report if line.verdict is Verdict.MAPPED)


@pytest.mark.parametrize(
    ("number", "verdict", "word"),
    [
        (2, Verdict.LOSSY, "/api itself"),
        (7, Verdict.LOSSY, "exactly one label"),
        (8, Verdict.LEFT_OUT, "pattern *.jpg"),
        (11, Verdict.LEFT_OUT, "query"),
        (12, Verdict.LEFT_OUT, "address"),
        (13, Verdict.LEFT_OUT, "never matched"),
        (15, Verdict.LOSSY, "every host"),
        (16, Verdict.LEFT_OUT, "parts of the old one"),
        (18, Verdict.LEFT_OUT, "pattern of hosts"),
    ],
)
def test_what_is_lost_is_said_with_its_reason(
    front: FoundLoadBalancer, number: int, verdict: Verdict, word: str
) -> None:
    found = verdicts(alb.adopt(front, WISH), f"rule {number}")
    assert any(word in reason for reason in found.get(verdict, [])), found


def test_without_a_region_of_ours_the_pools_are_left_out_and_say_so(front: FoundLoadBalancer) -> None:
    adoption = alb.adopt(front, Wish(name="front", account="acme"))
    assert by_name(adoption, "Pool") == {}
    assert verdicts(adoption, "target group web")[Verdict.LEFT_OUT] == [
        "Map the region of the cloud to one of your regions."
    ]


def test_a_classic_balancer_becomes_pools_and_listeners(env: AwsEnv) -> None:
    machines = env.client("ec2").run_instances(ImageId="ami-12c6146b", MinCount=2, MaxCount=2, SubnetId=env.subnets[0])[
        "Instances"
    ]
    classic = env.client("elb")
    classic.create_load_balancer(
        LoadBalancerName="older",
        AvailabilityZones=[f"{REGION}a"],
        Listeners=[
            {"Protocol": "HTTP", "LoadBalancerPort": 80, "InstanceProtocol": "HTTP", "InstancePort": 8080},
            {"Protocol": "TCP", "LoadBalancerPort": 5432, "InstanceProtocol": "TCP", "InstancePort": 5432},
            {
                "Protocol": "HTTPS",
                "LoadBalancerPort": 443,
                "InstanceProtocol": "HTTP",
                "InstancePort": 8080,
                "SSLCertificateId": "arn:aws:iam::123456789012:server-certificate/old",
            },
        ],
    )
    check = {"Target": "HTTP:8080/up", "Interval": 10, "Timeout": 3, "HealthyThreshold": 2, "UnhealthyThreshold": 4}
    classic.configure_health_check(LoadBalancerName="older", HealthCheck=check)
    ids = [{"InstanceId": each["InstanceId"]} for each in machines]
    classic.register_instances_with_load_balancer(LoadBalancerName="older", Instances=ids)
    adoption = elb.adopt(described(env, "older"), WISH)
    for document in adoption.documents:
        read_object(document)
    pools, (front,) = by_name(adoption, "Pool"), by_name(adoption, "LoadBalancer").values()
    addresses = sorted(each["PrivateIpAddress"] for each in machines)
    assert sorted(each["address"] for each in pools["older-8080"]["backends"][0]["servers"]) == addresses
    assert pools["older-8080"]["health_check"] == {
        "interval_ms": 10_000,
        "timeout_ms": 3_000,
        "rise": 2,
        "fall": 4,
        "path": "/up",
    }
    assert [(each["name"], each["default_pool"]) for each in front["listeners"]] == [
        ("http-80", "acme/older-8080"),
        ("tcp-5432", "acme/older-5432"),
    ]
    assert "Upload the certificate" in verdicts(adoption, "listener HTTPS 443")[Verdict.LEFT_OUT][0]


def test_a_listener_of_more_rules_than_one_answer_holds_is_described_whole(env: AwsEnv) -> None:
    balancer = make_balancer(env, "many-rules")
    listener = make_listener(env, balancer, make_group(env, "many", ("10.0.0.10", 8080)))
    for number in range(1, 61):
        rule(env, listener, number, fixed("503"), host(f"h{number}.example.com"))
    (found,) = described(env, "many-rules").described["listeners"]
    assert len(found["Rules"]) == 60 + 1

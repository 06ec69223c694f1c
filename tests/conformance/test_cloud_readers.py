"""The AWS reader against moto's server, the fake in memory beside it, and what neither may do."""

from __future__ import annotations

import socket
import time
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from apps.drivers.clouds import aws_session
from apps.drivers.clouds.contract import CloudAccess, CloudError, FoundLoadBalancer, Numbers, TargetHealth
from apps.drivers.clouds.memory import memory_cloud
from apps.drivers.clouds.registry import open_reader
from tests.conformance.aws_env import KEYS, REGION, AwsEnv, empty_aws, make_balancer, make_group, make_listener
from tests.ports import spare_port

OURS = {"spillway_stack": "stk-3", "spillway_object": "bkd-4"}


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch) -> AwsEnv:
    found = empty_aws()
    for name, value in found.environment().items():
        monkeypatch.setenv(name, value)
    return found


def access(env: AwsEnv, **changes: str) -> CloudAccess:
    return CloudAccess("aws", REGION, endpoint_url=env.endpoint, stack=changes.get("stack", "stk-3"))


def test_the_health_of_our_targets_is_read_and_only_of_ours(env: AwsEnv) -> None:
    balancer = make_balancer(env, "front")
    ours = make_group(env, "ours", ("10.0.0.10", 8080), ("10.0.0.11", 8080), **OURS)
    make_group(env, "theirs", ("10.0.0.99", 80))
    make_listener(env, balancer, ours)
    found = open_reader(access(env)).target_health()
    assert {(each.object_id, each.address, each.port) for each in found} == {
        ("bkd-4", "10.0.0.10", 8080),
        ("bkd-4", "10.0.0.11", 8080),
    }
    assert {each.state for each in found} <= {"healthy", "unused", "unknown"}
    assert open_reader(access(env, stack="stk-9")).target_health() == []


def test_a_minute_of_cloudwatch_is_a_minute_here(env: AwsEnv) -> None:
    balancer, ours = make_balancer(env, "front"), make_group(env, "ours", **OURS)
    make_listener(env, balancer, ours)
    minute = (datetime.now(UTC) - timedelta(minutes=5)).replace(second=0, microsecond=0)
    dimensions = [
        {"Name": "TargetGroup", "Value": ours.rpartition(":")[2]},
        {"Name": "LoadBalancer", "Value": balancer.partition(":loadbalancer/")[2]},
    ]
    counts = {"RequestCount": 120, "HTTPCode_Target_2XX_Count": 118, "HTTPCode_Target_5XX_Count": 2}
    data = [
        {"MetricName": name, "Dimensions": dimensions, "Timestamp": minute, "Value": value, "Unit": "Count"}
        for name, value in counts.items()
    ]
    env.client("cloudwatch").put_metric_data(Namespace="AWS/ApplicationELB", MetricData=data)
    (found,) = open_reader(access(env)).numbers(minute - timedelta(minutes=3))
    assert (found.object_id, found.at) == ("bkd-4", minute + timedelta(minutes=1))
    assert (found.requests, found.status_2xx, found.status_5xx, found.status_4xx) == (120, 118, 2, 0)
    assert open_reader(access(env)).numbers(datetime.now(UTC)) == []


def test_load_balancers_that_could_be_adopted_are_listed_and_described(env: AwsEnv) -> None:
    balancer, group = make_balancer(env, "front"), make_group(env, "web", ("10.0.0.10", 8080))
    listener = make_listener(env, balancer, group)
    env.client("elbv2").create_rule(
        ListenerArn=listener,
        Priority=10,
        Conditions=[{"Field": "path-pattern", "Values": ["/api/*"]}],
        Actions=[{"Type": "forward", "TargetGroupArn": group}],
    )
    env.client("elb").create_load_balancer(
        LoadBalancerName="old",
        AvailabilityZones=[f"{REGION}a"],
        Listeners=[{"Protocol": "HTTP", "LoadBalancerPort": 80, "InstanceProtocol": "HTTP", "InstancePort": 8080}],
    )
    reader = open_reader(access(env))
    found = {each.name: each for each in reader.load_balancers()}
    assert {name: each.kind for name, each in found.items()} == {
        "front": "Application Load Balancer",
        "old": "Classic Load Balancer",
    }
    described = reader.describe(found["front"].id).described
    assert [rule["Priority"] for rule in described["listeners"][0]["Rules"]] == ["10", "default"]
    assert described["targetGroups"][group]["Targets"] == [{"Id": "10.0.0.10", "Port": 8080}]
    classic = reader.describe(found["old"].id).described["loadBalancer"]
    assert classic["ListenerDescriptions"][0]["Listener"]["LoadBalancerPort"] == 80
    with pytest.raises(CloudError):
        reader.describe("arn:aws:elasticloadbalancing:eu-central-1:1:loadbalancer/app/gone/1")


@pytest.mark.usefixtures("env")
def test_a_cloud_that_does_not_answer_says_so_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    away = CloudAccess("aws", REGION, endpoint_url=f"http://127.0.0.1:{spare_port()}", stack="stk-3")
    monkeypatch.setenv("SPILLWAY_CLOUD_ENDPOINT", away.endpoint_url)
    with pytest.raises(CloudError) as caught:
        open_reader(away).target_health()
    assert "AWS did not answer" in caught.value.message
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in caught.value.message
    with pytest.raises(CloudError):
        open_reader(CloudAccess("elsewhere", "x"))


def test_the_fake_answers_like_a_cloud() -> None:
    name, moment = uuid.uuid4().hex, datetime(2026, 11, 21, 12, tzinfo=UTC)
    cloud = memory_cloud(name)
    cloud.health = [TargetHealth("g", "bkd-4", "10.0.0.1", 80, "healthy")]
    cloud.counted = [Numbers("g", "bkd-4", moment + timedelta(minutes=number)) for number in (2, 1, 0)]
    cloud.balancers = [FoundLoadBalancer("Application Load Balancer", "front", "front-1", {"listeners": []})]
    reader = open_reader(CloudAccess("aws", REGION, endpoint_url=f"memory://{name}"))
    assert [each.at.minute for each in reader.numbers(moment)] == [1, 2]
    assert reader.load_balancers()[0].described == {}
    assert reader.describe("front-1").described == {"listeners": []}
    cloud.failure = "It is away."
    with pytest.raises(CloudError):
        reader.target_health()


def test_networks_are_listed_with_the_subnets_in_them(env: AwsEnv) -> None:
    machines = env.client("ec2")
    vpc = machines.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
    machines.create_tags(Resources=[vpc], Tags=[{"Key": "Name", "Value": "front"}])
    subnet = machines.create_subnet(VpcId=vpc, CidrBlock="10.7.1.0/24", AvailabilityZone=f"{REGION}a")["Subnet"]
    found = {each.id: each for each in open_reader(access(env)).networks()}
    assert (found[vpc].name, found[vpc].block) == ("front", "10.7.0.0/16")
    assert [(each.id, each.zone, each.block) for each in found[vpc].subnets] == [
        (subnet["SubnetId"], f"{REGION}a", "10.7.1.0/24")
    ]
    assert len(found) > 1  # the VPC that is there by default


def test_regions_and_the_buckets_of_one_are_listed(env: AwsEnv) -> None:
    for region, name in ((REGION, "acme-lb-logs"), ("ap-south-1", "acme-far-away")):
        there = {"LocationConstraint": region}
        env.client("s3", region).create_bucket(Bucket=name, CreateBucketConfiguration=there)
    reader = open_reader(access(env))
    assert REGION in reader.regions()
    assert reader.buckets() == ["acme-lb-logs"]


def test_a_brief_question_is_asked_once_and_given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aws_session, "BRIEF_READ_S", 0.2)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = "http://{}:{}".format(*silent.getsockname())
        monkeypatch.setenv("SPILLWAY_CLOUD_ENDPOINT", endpoint)
        began = time.monotonic()
        with pytest.raises(CloudError, match="did not answer"):
            open_reader(CloudAccess("aws", REGION, endpoint_url=endpoint, brief=True)).networks()
        assert time.monotonic() - began < 3

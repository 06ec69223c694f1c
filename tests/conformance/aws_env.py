"""A cloud for tests: moto's server with a VPC, and load balancers that somebody made by hand."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import boto3
import urllib3
from botocore.loaders import JSONFileLoader
from moto.server import ThreadedMotoServer

from tests.ports import spare_port

REGION = "eu-central-1"
# Forgetting takes no time, but two slow cores may have other things to do.
PATIENCE_S = 60
KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing-secret"}


@dataclass(frozen=True)
class AwsEnv:
    """Where the fake cloud answers, and what stands in it."""

    endpoint: str
    vpc: str
    subnets: tuple[str, ...]

    def environment(self) -> dict[str, str]:
        """What a process needs to come here with an identity of its own."""
        return {**KEYS, "SPILLWAY_CLOUD_ENDPOINT": self.endpoint}

    def client(self, service: str, region: str = REGION) -> Any:
        """A client of boto3 for this cloud."""
        return _client(self.endpoint, service, region)


@functools.cache
def _client(endpoint: str, service: str, region: str = REGION) -> Any:
    session: Any = boto3.Session(KEYS["AWS_ACCESS_KEY_ID"], KEYS["AWS_SECRET_ACCESS_KEY"])
    return session.client(service, region_name=region, endpoint_url=endpoint)


@functools.cache
def _server() -> str:
    """Where moto answers, from the first time that somebody asks until this process ends.

    From then on what boto3 knows of a service is read once, not anew for each session.
    """
    JSONFileLoader.load_file = staticmethod(functools.cache(JSONFileLoader().load_file))  # type: ignore[method-assign]
    port = spare_port()
    ThreadedMotoServer("127.0.0.1", port, verbose=False).start()
    return f"http://127.0.0.1:{port}"


def empty_aws() -> AwsEnv:
    """An account that holds nothing but one VPC of two subnets in different zones; what another test left is gone."""
    endpoint = _server()
    urllib3.request("POST", f"{endpoint}/moto-api/reset", timeout=PATIENCE_S)
    ec2 = _client(endpoint, "ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnets = tuple(
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{number}.0/24", AvailabilityZone=REGION + zone)["Subnet"][
            "SubnetId"
        ]
        for number, zone in enumerate("ab")
    )
    return AwsEnv(endpoint, vpc, subnets)


def make_balancer(env: AwsEnv, name: str, kind: str = "application", **tags: str) -> str:
    """A load balancer in the two subnets; its ARN."""
    said = env.client("elbv2").create_load_balancer(
        Name=name, Type=kind, Subnets=list(env.subnets), Scheme="internet-facing", Tags=_tags(tags)
    )
    return str(said["LoadBalancers"][0]["LoadBalancerArn"])


def make_group(env: AwsEnv, name: str, *targets: tuple[str, int], protocol: str = "HTTP", **tags: str) -> str:
    """A target group by IP with its targets; its ARN."""
    balancing = env.client("elbv2")
    said = balancing.create_target_group(
        Name=name,
        Protocol=protocol,
        Port=80,
        VpcId=env.vpc,
        TargetType="ip",
        HealthCheckPath="/health" if protocol == "HTTP" else "",
        Matcher={"HttpCode": "200"},
        Tags=_tags(tags),
    )
    arn = str(said["TargetGroups"][0]["TargetGroupArn"])
    if targets:
        found = [{"Id": address, "Port": port} for address, port in targets]
        balancing.register_targets(TargetGroupArn=arn, Targets=found)
    return arn


def make_listener(env: AwsEnv, balancer: str, group: str, port: int = 80, protocol: str = "HTTP") -> str:
    """A listener that forwards to the group; its ARN."""
    said = env.client("elbv2").create_listener(
        LoadBalancerArn=balancer,
        Protocol=protocol,
        Port=port,
        DefaultActions=[{"Type": "forward", "TargetGroupArn": group}],
    )
    return str(said["Listeners"][0]["ListenerArn"])


def _tags(tags: dict[str, str]) -> list[dict[str, str]]:
    words = {name.replace("_", "-"): value for name, value in tags.items()} or {"made-by": "hand"}
    return [{"Key": name, "Value": value} for name, value in words.items()]

"""For adoption: one load balancer with everything below it, in the words of AWS's API.

`described` of an ALB or NLB: `loadBalancer`, `attributes`, `listeners` (each with `Rules` and `Certificates`),
`targetGroups` (by ARN, each with `Attributes` and `Targets`); of a Classic Load Balancer: `loadBalancer`, `attributes`.
Both have `instances`: the private address of each machine by its id.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from apps.drivers.clouds.contract import CloudError, FoundLoadBalancer, FoundNetwork, FoundSubnet

KINDS = {"application": "Application Load Balancer", "network": "Network Load Balancer"}
CLASSIC_KIND, CLASSIC = "Classic Load Balancer", "classic/"


def describe(balancing: Any, machines: Any, balancer: dict[str, Any]) -> FoundLoadBalancer:
    """An ALB or NLB; `machines` is a client of EC2."""
    arn = balancer["LoadBalancerArn"]
    below = {"LoadBalancerArn": arn}
    listeners = [_listener(balancing, each) for each in _all(balancing, "describe_listeners", "Listeners", **below)]
    groups = [_group(balancing, each) for each in _all(balancing, "describe_target_groups", "TargetGroups", **below)]
    ids = [target["Id"] for group in groups if group.get("TargetType") == "instance" for target in group["Targets"]]
    said = balancing.describe_load_balancer_attributes(LoadBalancerArn=arn)
    described = {
        "loadBalancer": balancer,
        "attributes": _attributes(said),
        "listeners": listeners,
        "targetGroups": {group["TargetGroupArn"]: group for group in groups},
        "instances": _addresses(machines, ids),
    }
    kind = KINDS[balancer["Type"]]
    return FoundLoadBalancer(kind, balancer["LoadBalancerName"], arn, _plain(described))


def _listener(balancing: Any, listener: dict[str, Any]) -> dict[str, Any]:
    below = {"ListenerArn": listener["ListenerArn"]}
    rules = list(_all(balancing, "describe_rules", "Rules", **below))
    certificates = []
    if listener["Protocol"] in ("HTTPS", "TLS"):
        certificates = list(_all(balancing, "describe_listener_certificates", "Certificates", **below))
    return {**listener, "Rules": rules, "Certificates": certificates or listener.get("Certificates", [])}


def _group(balancing: Any, group: dict[str, Any]) -> dict[str, Any]:
    arn = group["TargetGroupArn"]
    health = balancing.describe_target_health(TargetGroupArn=arn)["TargetHealthDescriptions"]
    said = balancing.describe_target_group_attributes(TargetGroupArn=arn)
    return {**group, "Attributes": _attributes(said), "Targets": [each["Target"] for each in health]}


def _addresses(machines: Any, ids: list[str]) -> dict[str, str]:
    """The private addresses of machines that still exist."""
    if not ids:
        return {}
    pages = machines.get_paginator("describe_instances").paginate(
        Filters=[{"Name": "instance-id", "Values": sorted(set(ids))}]
    )
    found = (each for page in pages for reservation in page["Reservations"] for each in reservation["Instances"])
    return {each["InstanceId"]: each["PrivateIpAddress"] for each in found if each.get("PrivateIpAddress")}


def _attributes(said: dict[str, Any]) -> dict[str, str]:
    return {each["Key"]: each.get("Value", "") for each in said["Attributes"]}


def classic_ones(balancing: Any) -> list[FoundLoadBalancer]:
    """The Classic Load Balancers of the region: names and ids."""
    return [
        FoundLoadBalancer(CLASSIC_KIND, each["LoadBalancerName"], CLASSIC + each["LoadBalancerName"])
        for page in balancing.get_paginator("describe_load_balancers").paginate()
        for each in page["LoadBalancerDescriptions"]
    ]


def describe_classic(balancing: Any, machines: Any, found_id: str) -> FoundLoadBalancer:
    """One Classic Load Balancer; `machines` is a client of EC2."""
    name = found_id.removeprefix(CLASSIC)
    found = balancing.describe_load_balancers(LoadBalancerNames=[name])["LoadBalancerDescriptions"]
    if not found:
        raise CloudError("AWS no longer has this load balancer in the region.")
    attributes = balancing.describe_load_balancer_attributes(LoadBalancerName=name)["LoadBalancerAttributes"]
    ids = [each["InstanceId"] for each in found[0].get("Instances", ())]
    described = {"loadBalancer": found[0], "attributes": attributes, "instances": _addresses(machines, ids)}
    return FoundLoadBalancer(CLASSIC_KIND, name, found_id, _plain(described))


def networks(machines: Any) -> list[FoundNetwork]:
    """The VPCs of the region; `machines` is a client of EC2."""
    subnets: dict[str, list[FoundSubnet]] = {}
    for each in _all(machines, "describe_subnets", "Subnets"):
        found = FoundSubnet(each["SubnetId"], _name(each), each["AvailabilityZone"], each.get("CidrBlock", ""))
        subnets.setdefault(each["VpcId"], []).append(found)
    return [
        FoundNetwork(each["VpcId"], _name(each), each.get("CidrBlock", ""), tuple(subnets.get(each["VpcId"], ())))
        for each in _all(machines, "describe_vpcs", "Vpcs")
    ]


def _all(client: Any, call: str, field: str, **asked: str) -> Iterator[dict[str, Any]]:
    """What a call lists, page by page."""
    for page in client.get_paginator(call).paginate(**asked):
        yield from page[field]


def _name(described: dict[str, Any]) -> str:
    return next((str(tag["Value"]) for tag in described.get("Tags", ()) if tag["Key"] == "Name"), "")


def _plain(value: Any) -> Any:
    """Without moments, which say nothing about what a load balancer does."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if not isinstance(each, datetime)}
    return [_plain(each) for each in value] if isinstance(value, list) else value

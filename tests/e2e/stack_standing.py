"""What stands in a cloud before Terraform is asked, as a machine that died has left it: a load balancer and its group.

To make a load balancer the real provider waits for half a minute before it looks whether it is ready, whatever the
cloud. Taking one over costs nothing, and is what must never make a second one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.compiler.targets.terraform.aws.naming import MARK
from apps.fleet.models import Stack
from apps.stacks.models import StackSync
from apps.stacks.run import compiling
from tests.e2e.stack_env import Cloud

# What AWS says of each new load balancer, and moto does not: the provider would write it.
USUAL = {
    "client_keep_alive.seconds": "3600",
    "connection_logs.s3.bucket": "",
    "connection_logs.s3.enabled": "false",
    "connection_logs.s3.prefix": "",
    "routing.http.desync_mitigation_mode": "defensive",
    "routing.http.drop_invalid_header_fields.enabled": "false",
    "routing.http.x_amzn_tls_version_and_cipher_suite.enabled": "false",
    "routing.http.xff_client_port.enabled": "false",
    "routing.http.xff_header_processing.mode": "append",
    "routing.http2.enabled": "true",
    "waf.fail_open.enabled": "false",
    "zonal_shift.config.enabled": "false",
}


def left_behind(cloud: Cloud, stack: Stack) -> None:
    """Let the load balancer of the stack stand there with its security group; the stack lists it as unknown."""
    sync = StackSync.objects.create(stack=stack)
    wanted = compiling.compiled(stack.pk).compilation.output.resources
    ((name, body),) = wanted["aws_lb"].items()
    group = _make_group(cloud, wanted["aws_security_group"][name], sync)
    arn = _make_balancer(cloud, body, group, sync)
    sync.unknown = [{"kind": "aws_lb", "id": arn, "address": f"aws_lb.{name}", "label": "web"}]
    sync.save()


def _make_group(cloud: Cloud, body: Mapping[str, Any], sync: StackSync) -> str:
    specification = [{"ResourceType": "security-group", "Tags": _tags(body, sync)}]
    made = cloud.client("ec2").create_security_group(
        GroupName=body["name"], Description=body["description"], VpcId=body["vpc_id"], TagSpecifications=specification
    )
    return str(made["GroupId"])


def _make_balancer(cloud: Cloud, body: Mapping[str, Any], group: str, sync: StackSync) -> str:
    balancing = cloud.client("elbv2")
    made = balancing.create_load_balancer(
        Name=body["name"],
        Subnets=body["subnets"],
        SecurityGroups=[group],
        Tags=_tags(body, sync),
    )["LoadBalancers"][0]
    asked_for = {
        "idle_timeout.timeout_seconds": str(body["idle_timeout"]),
        "routing.http.preserve_host_header.enabled": "true",
    }
    attributes = [{"Key": key, "Value": value} for key, value in (USUAL | asked_for).items()]
    balancing.modify_load_balancer_attributes(LoadBalancerArn=made["LoadBalancerArn"], Attributes=attributes)
    return str(made["LoadBalancerArn"])


def _tags(body: Mapping[str, Any], sync: StackSync) -> list[dict[str, str]]:
    found = {**body["tags"], "spillway-stack": f"stk-{sync.stack_id}", MARK: sync.mark}
    return [{"Key": key, "Value": value} for key, value in found.items()]

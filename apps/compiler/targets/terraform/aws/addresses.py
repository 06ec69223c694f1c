"""Static IPs for AWS: an Elastic IP for each subnet, or a Global Accelerator.

Those that are protected no plan destroys while they are defined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apps.compiler.model.shared import Listener
from apps.compiler.model.stack import CloudAddress, StackSnapshot
from apps.compiler.targets.terraform.aws.limits import ACCELERATOR_NAME
from apps.compiler.targets.terraform.aws.naming import tags
from apps.compiler.targets.terraform.draft import Draft, Resource
from apps.compiler.targets.terraform.expressions import cloud_name, list_of, resource_name

_EVEN = 128


def add_elastic_ips(draft: Draft, snapshot: StackSnapshot, address: CloudAddress) -> dict[str, Resource]:
    """An address for each subnet, by its id; they are kept while nothing stands behind them, too."""
    body = {"domain": "vpc", "tags": tags(address.id, address.account), **_lifecycle(address)}
    subnets = sorted(set(snapshot.network.subnets))
    eips = {each: draft.add("aws_eip", resource_name(address.id, each), address.id, dict(body)) for each in subnets}
    draft.outputs[f"{resource_name(address.id)}_addresses"] = list_of(*(eip["public_ip"] for eip in eips.values()))
    return eips


def add_accelerator(draft: Draft, snapshot: StackSnapshot, address: CloudAddress) -> Resource:
    """Two anycast addresses of AWS."""
    accelerator = draft.add("aws_globalaccelerator_accelerator", resource_name(address.id), address.id, {
        "name": cloud_name(snapshot.id, address.id, longest=ACCELERATOR_NAME),
        "enabled": True,
        "ip_address_type": "IPV4",
        "tags": tags(address.id, address.account),
        **_lifecycle(address),
    })  # fmt: skip
    draft.outputs[f"{resource_name(address.id)}_addresses"] = accelerated_ips(accelerator)
    return accelerator


def accelerated_ips(accelerator: Resource) -> str:
    """The list of an accelerator's addresses."""
    return accelerator["ip_sets[0].ip_addresses"]


def add_ports(
    draft: Draft, snapshot: StackSnapshot, accelerator: Resource, ports: Sequence[tuple[Listener, Resource]]
) -> None:
    """A port of the accelerator for each listener, and the ALB or NLB behind it."""
    for listener, endpoint in ports:
        name = resource_name(listener.id)
        port = draft.add("aws_globalaccelerator_listener", name, listener.id, {
            "accelerator_arn": accelerator["id"],
            "protocol": "TCP",
            "port_range": [{"from_port": listener.port, "to_port": listener.port}],
        })  # fmt: skip
        draft.add("aws_globalaccelerator_endpoint_group", name, listener.id, {
            "listener_arn": port["id"],
            "endpoint_group_region": snapshot.cloud_region,
            "endpoint_configuration": [
                {"endpoint_id": endpoint["arn"], "weight": _EVEN, "client_ip_preservation_enabled": True}
            ],
        })  # fmt: skip


def _lifecycle(address: CloudAddress) -> dict[str, Any]:
    return {"lifecycle": {"prevent_destroy": True}} if address.protected else {}

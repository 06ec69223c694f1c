"""An examined snapshot becomes the resources of a stack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from apps.compiler.model.stack import AddressKind, CloudAddress, StackSnapshot
from apps.compiler.routing import number_of
from apps.compiler.targets.terraform.aws.addresses import (
    accelerated_ips,
    add_accelerator,
    add_elastic_ips,
    add_ports,
)
from apps.compiler.targets.terraform.aws.balancers import Balancers, Reach
from apps.compiler.targets.terraform.aws.certificates import Certificates
from apps.compiler.targets.terraform.aws.groups import Groups
from apps.compiler.targets.terraform.aws.naming import name_resources
from apps.compiler.targets.terraform.aws.security import add_security_group
from apps.compiler.targets.terraform.aws.zones import add_zone
from apps.compiler.targets.terraform.document import ProviderNeed, StackDocument
from apps.compiler.targets.terraform.draft import Draft, Resource
from apps.compiler.targets.terraform.expressions import literal, resource_name

VERSION = "5.100.0"
_SERVICES = ("acm", "ec2", "elbv2", "globalaccelerator", "iam", "route53", "s3", "sts")


def render(snapshot: StackSnapshot) -> StackDocument:
    """Write every resource. The snapshot must have passed the checks; order never depends on that of the input.

    1. Static IPs: they stand whether anything uses them or not.
    2. Security groups, then the NLBs that keep Elastic IPs, then each load balancer.
    3. Ports of accelerators, which name what was made before; DNS last, which names all.
    """
    draft = Draft()
    snapshot = _with_literal_network(snapshot)
    fronts = sorted(snapshot.load_balancers, key=lambda each: number_of(each.id))
    eips, accelerators = _addresses(draft, snapshot)
    security = {front.id: add_security_group(draft, snapshot, front) for front in fronts}
    balancers = _balancers(draft, snapshot, accelerators)
    for address_id, mapped in eips.items():
        users = [front.id for front in fronts if any(each.address == address_id for each in front.listeners)]
        if users:
            balancers.add_front(balancers.addresses[address_id], mapped, [security[user] for user in users])
    for front in fronts:
        balancers.add(front, security[front.id])
    for address_id, ports in sorted(balancers.ports_of_accelerators.items()):
        add_ports(draft, snapshot, accelerators[address_id], ports)
    _outputs(draft, balancers.reaches)
    known: dict[str, str | list[str]] = {key: [eip["public_ip"] for eip in each.values()] for key, each in eips.items()}
    known |= {key: accelerated_ips(each) for key, each in accelerators.items()}
    for zone in snapshot.zones:
        add_zone(draft, snapshot.id, zone, balancers.reaches, known)
    name_resources(draft)
    return draft.document(_provider(snapshot))


def _with_literal_network(snapshot: StackSnapshot) -> StackSnapshot:
    """Names in the cloud are written by operators: none of them may open a template."""
    network = snapshot.network
    return replace(
        snapshot,
        cloud_region=literal(snapshot.cloud_region),
        endpoint_url=literal(snapshot.endpoint_url),
        network=replace(network, vpc=literal(network.vpc), log_bucket=literal(network.log_bucket)),
    )


def _addresses(draft: Draft, snapshot: StackSnapshot) -> tuple[dict[str, dict[str, Resource]], dict[str, Resource]]:
    eips, accelerators = {}, {}
    for address in sorted(snapshot.addresses, key=lambda each: number_of(each.id)):
        if address.kind is AddressKind.ELASTIC:
            eips[address.id] = add_elastic_ips(draft, snapshot, address)
        else:
            accelerators[address.id] = add_accelerator(draft, snapshot, address)
    return eips, accelerators


def _balancers(draft: Draft, snapshot: StackSnapshot, accelerators: Mapping[str, Resource]) -> Balancers:
    addresses: Mapping[str, CloudAddress] = {each.id: each for each in snapshot.addresses}
    return Balancers(
        draft,
        snapshot,
        {pool.id: pool for pool in snapshot.pools},
        addresses,
        accelerators,
        Groups(draft, snapshot),
        Certificates(draft, {each.id: each for each in snapshot.certificates}),
    )


def _outputs(draft: Draft, reaches: Mapping[str, Reach]) -> None:
    for load_balancer_id, reach in reaches.items():
        draft.outputs[f"{resource_name(load_balancer_id)}_dns_name"] = reach.dns_name


def _provider(snapshot: StackSnapshot) -> ProviderNeed:
    """One region; where another endpoint stands in for the cloud's, nothing is asked of the cloud itself.

    The account's number is asked of that endpoint: without it, references to security groups differ for ever.
    """
    settings: dict[str, Any] = {
        "region": snapshot.cloud_region,
        "default_tags": [{"tags": {"spillway-stack": snapshot.id}}],
    }
    if snapshot.endpoint_url:
        settings |= {
            "endpoints": [dict.fromkeys(_SERVICES, snapshot.endpoint_url)],
            "skip_credentials_validation": True,
            "skip_metadata_api_check": "true",
            "skip_region_validation": True,
        }
    return ProviderNeed("aws", "hashicorp/aws", VERSION, settings)

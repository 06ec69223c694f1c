"""Security groups for AWS: one for each load balancer, with a rule for each listener and client network."""

from __future__ import annotations

from apps.compiler.model.shared import Listener, LoadBalancer, Protocol
from apps.compiler.model.stack import AddressKind, StackSnapshot
from apps.compiler.routing import number_of
from apps.compiler.targets.terraform.aws.naming import tags
from apps.compiler.targets.terraform.draft import Draft, Resource
from apps.compiler.targets.terraform.expressions import cloud_name, resource_name

_NAME = 255
_ANYWHERE = "0.0.0.0/0"


def add_security_group(draft: Draft, snapshot: StackSnapshot, load_balancer: LoadBalancer) -> Resource:
    """Who may connect to what; everything may go out, since servers stand on any port."""
    name, owner = resource_name(load_balancer.id), load_balancer.id
    own = tags(owner, load_balancer.account)
    group = draft.add("aws_security_group", name, owner, {
        "name": cloud_name(snapshot.id, load_balancer.id, longest=_NAME),
        "description": f"Clients of {load_balancer.id}",
        "vpc_id": snapshot.network.vpc,
        "tags": own,
    })  # fmt: skip
    way_out = {"security_group_id": group["id"], "ip_protocol": "-1", "cidr_ipv4": _ANYWHERE, "tags": own}
    draft.add("aws_vpc_security_group_egress_rule", name, owner, way_out)
    for listener in sorted(load_balancer.listeners, key=lambda each: number_of(each.id)):
        _add_ways_in(draft, snapshot, listener, group, tags(listener.id, load_balancer.account))
    return group


def _add_ways_in(
    draft: Draft, snapshot: StackSnapshot, listener: Listener, group: Resource, own: dict[str, str]
) -> None:
    """Clients by network; an NLB before an ALB stands in the group itself, and its checks come from there."""
    common = {
        "security_group_id": group["id"],
        "ip_protocol": "tcp",
        "from_port": listener.port,
        "to_port": listener.port,
        "tags": own,
    }
    kind = "aws_vpc_security_group_ingress_rule"
    for network in sorted(set(snapshot.network.client_networks)):
        version = "cidr_ipv6" if ":" in network else "cidr_ipv4"
        draft.add(kind, resource_name(listener.id, network), listener.id, {**common, version: network})
    elastic = {each.id for each in snapshot.addresses if each.kind is AddressKind.ELASTIC}
    if listener.protocol is not Protocol.TCP and listener.address in elastic:
        within = {**common, "referenced_security_group_id": group["id"]}
        draft.add(kind, resource_name(listener.id, "within"), listener.id, within)

"""Before a change is made: what Terraform would make anew, since no cloud changes it where it stands; pure.

Terraform's facts (`providers schema`) do not say which attributes force that; the providers' own pages do. A resource
that names one of these in another's attribute goes with it: a listener with its load balancer, rules with the listener.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Body = Mapping[str, Any]
Bodies = Mapping[str, Body]

# Source: "Forces new resource" in the reference of hashicorp/aws 5.100 and hashicorp/google.
FORCING: Mapping[str, frozenset[str]] = {
    kind: frozenset(names.split())
    for kind, names in {
        "aws_eip": "domain",
        "aws_globalaccelerator_endpoint_group": "endpoint_group_region listener_arn",
        "aws_globalaccelerator_listener": "accelerator_arn",
        "aws_lb": "internal load_balancer_type name",
        "aws_lb_listener": "load_balancer_arn",
        "aws_lb_listener_certificate": "certificate_arn listener_arn",
        "aws_lb_listener_rule": "listener_arn",
        "aws_lb_target_group": "name port protocol target_type vpc_id",
        "aws_lb_target_group_attachment": "availability_zone port target_group_arn target_id",
        "aws_route53_record": "name zone_id",
        "aws_route53_zone": "name",
        "aws_security_group": "description name vpc_id",
        "aws_vpc_security_group_egress_rule": "security_group_id",
        "aws_vpc_security_group_ingress_rule": "security_group_id",
        "google_compute_backend_service": "load_balancing_scheme name",
        "google_compute_global_address": "address_type description name",
        "google_compute_global_forwarding_rule": "ip_address ip_protocol load_balancing_scheme name port_range",
        "google_compute_network_endpoint_group": "description name network network_endpoint_type zone",
        "google_compute_network_endpoints": "network_endpoint_group zone",
        "google_compute_ssl_certificate": "certificate name private_key",
        "google_compute_target_http_proxy": "description name",
        "google_compute_target_https_proxy": "description name",
        "google_compute_target_tcp_proxy": "description name",
        "google_compute_url_map": "name",
        "google_dns_managed_zone": "dns_name name",
        "google_dns_record_set": "managed_zone name",
    }.items()
}
# What clients notice of it, where it is deleted before the new one is made.
NOTICED = {
    "aws_lb": "it is deleted and created again: clients cannot reach it for some minutes, and it gets another DNS name",
    "google_compute_global_address": "it is released, and the cloud allocates another address",
    "google_compute_global_forwarding_rule": "it is deleted and created again; its port is unreachable for a minute",
}
_REFERENCE = re.compile(r"(?<!\$)\$\{([a-z0-9_]+\.[A-Za-z0-9_-]+)\.")


def made_anew(before: Bodies, after: Bodies) -> dict[str, str]:
    """Addresses of all that stands and would be made anew, each with the attribute that forces it."""
    both = [address for address in after if address in before]
    found: dict[str, str] = {}
    while True:
        more = {
            address: reason
            for address in both
            if address not in found and (reason := _forced(address, before, after, found)) is not None
        }
        if not more:
            return found
        found |= more


def follows(body: Body, replaced: Iterable[str]) -> bool:
    """Whether an attribute of a resource names one that is made anew, and so becomes another as well."""
    return not set(replaced).isdisjoint(_named(body))


def attributes(body: Body, ruling: Body | None = None) -> Body:
    """What the cloud is given: without the words for Terraform, and what those of `ruling` (itself) tell to ignore."""
    words = (body if ruling is None else ruling).get("lifecycle", {})
    ignored = {"lifecycle", "depends_on", *words.get("ignore_changes", ())}
    return {name: value for name, value in body.items() if name not in ignored}


def _forced(address: str, before: Bodies, after: Bodies, replaced: Mapping[str, str]) -> str | None:
    old, new = attributes(before[address], after[address]), attributes(after[address])
    for name in sorted(FORCING.get(address.partition(".")[0], ())):
        value = new.get(name)
        if old.get(name) != value or follows({name: value}, replaced):
            return name
    for trigger in after[address].get("lifecycle", {}).get("replace_triggered_by", ()):
        other, _, name = trigger.rpartition(".")
        if other in before and other in after and before[other].get(name) != after[other].get(name):
            return str(name)
    return None


def _named(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            if key not in ("lifecycle", "depends_on"):
                yield from _named(each)
    elif isinstance(value, list):
        for each in value:
            yield from _named(each)
    elif isinstance(value, str):
        yield from _REFERENCE.findall(value)

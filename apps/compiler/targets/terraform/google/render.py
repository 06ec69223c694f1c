"""The renderer for Google: what is accepted of a stack as one Terraform document."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from apps.compiler.model.shared import Protocol
from apps.compiler.model.stack import StackSnapshot
from apps.compiler.targets.terraform.document import Attributes, ProviderNeed, StackDocument
from apps.compiler.targets.terraform.expressions import key_variable, literal, reference
from apps.compiler.targets.terraform.google.dns import ZONE, zone_resources
from apps.compiler.targets.terraform.google.frontends import (
    ADDRESS,
    address_resources,
    certificate_resource,
    load_balancer_resources,
    tls13_policy,
    tls_policy,
)
from apps.compiler.targets.terraform.google.resources import Resource
from apps.compiler.targets.terraform.google.services import nobody, pool_resources
from apps.compiler.targets.terraform.listener_options import is_tls13_alone

PROVIDER_VERSION = "~> 7.0"
# Where the provider finds its services below another endpoint.
_ENDPOINTS = {"compute_custom_endpoint": "compute/v1/", "dns_custom_endpoint": "dns/v1/"}


def render(snapshot: StackSnapshot) -> StackDocument:
    """The document of a stack from which everything refused has been taken out; equal input gives an equal document."""
    resources: dict[str, dict[str, Attributes]] = defaultdict(dict)
    owners: dict[str, str] = {}
    for each in sorted(_resources(snapshot), key=lambda found: (found.kind, len(found.name), found.name)):
        resources[each.kind][each.name] = each.body
        owners[f"{each.kind}.{each.name}"] = each.owner
    certificates = resources.get("google_compute_ssl_certificate", {})
    return StackDocument(
        providers=(_provider(snapshot),),
        resources=dict(resources),
        variables=tuple(key_variable(owners[f"google_compute_ssl_certificate.{name}"]) for name in certificates),
        outputs=_outputs(resources),
        owners=owners,
    )


def _resources(snapshot: StackSnapshot) -> Iterator[Resource]:
    yield from address_resources(snapshot)
    for pool in snapshot.pools:
        yield from pool_resources(snapshot, pool)
    for front in snapshot.load_balancers:
        yield from load_balancer_resources(snapshot, front)
    listeners = [listener for front in snapshot.load_balancers for listener in front.listeners]
    if any(listener.protocol is not Protocol.TCP for listener in listeners):
        yield from nobody(snapshot)
    used = {each for listener in listeners for each in listener.certificate_ids}
    yield from (certificate_resource(snapshot, each) for each in snapshot.certificates if each.id in used)
    https = [listener for listener in listeners if listener.protocol is Protocol.HTTPS]
    if not all(map(is_tls13_alone, https)):
        yield tls_policy(snapshot)
    if any(map(is_tls13_alone, https)):
        yield tls13_policy(snapshot)
    for zone in snapshot.zones:
        yield from zone_resources(snapshot, zone)


def _provider(snapshot: StackSnapshot) -> ProviderNeed:
    settings: dict[str, Any] = {"project": literal(snapshot.project)} if snapshot.project else {}
    if snapshot.endpoint_url:
        base = literal(snapshot.endpoint_url.rstrip("/"))
        settings |= {name: f"{base}/{path}" for name, path in _ENDPOINTS.items()}
    return ProviderNeed("google", "hashicorp/google", PROVIDER_VERSION, settings)


def _outputs(resources: dict[str, dict[str, Attributes]]) -> dict[str, str]:
    """The addresses that Google chose, and the name servers of the zones."""
    addresses = {f"{name}_addresses": f"${{[{ADDRESS}.{name}.address]}}" for name in resources.get(ADDRESS, {})}
    zones = {f"{name}_name_servers": reference(ZONE, name, "name_servers") for name in resources.get(ZONE, {})}
    return addresses | zones

"""Zones of the stack as Cloud DNS managed zones, their records as record sets."""

from __future__ import annotations

from collections.abc import Iterator

from apps.compiler.model.shared import LoadBalancer
from apps.compiler.model.stack import CloudRecord, CloudZone, StackSnapshot
from apps.compiler.targets.terraform.document import terraform_name
from apps.compiler.targets.terraform.expressions import literal, reference
from apps.compiler.targets.terraform.google.frontends import ADDRESS, address_of
from apps.compiler.targets.terraform.google.resources import Resource, labels, resource

ZONE = "google_dns_managed_zone"


def zone_resources(snapshot: StackSnapshot, zone: CloudZone) -> Iterator[Resource]:
    """The zone and its records."""
    body = {"dns_name": f"{zone.domain}.", "labels": labels(snapshot.id, zone.id, zone.account)}
    yield resource(ZONE, snapshot.id, zone.id, body)
    fronts = {front.id: front for front in snapshot.load_balancers}
    for record in zone.records:
        values = _values(record, fronts)
        if values:
            yield _record(zone, record, values)


def _record(zone: CloudZone, record: CloudRecord, values: list[str]) -> Resource:
    name = f"{zone.domain}." if record.name == "@" else f"{record.name}.{zone.domain}."
    body = {
        "managed_zone": reference(ZONE, terraform_name(zone.id), "name"),
        "name": name,
        "type": record.type.value,
        "ttl": record.ttl,
        "rrdatas": values,
    }
    return Resource("google_dns_record_set", terraform_name(record.id), record.id, body)


def _values(record: CloudRecord, fronts: dict[str, LoadBalancer]) -> list[str]:
    """The address of a static IP or of a load balancer, else the values as in a zone file."""
    if record.address_id:
        return [_address(record.address_id)]
    if record.load_balancer_id:
        front = fronts.get(record.load_balancer_id)
        return sorted({_address(address_of(front, listener)) for listener in front.listeners}) if front else []
    return [literal(value) for value in record.values]


def _address(object_id: str) -> str:
    return reference(ADDRESS, terraform_name(object_id), "address")

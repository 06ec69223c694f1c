"""DNS zones for AWS: Route 53 zones and records with values, aliases, and those that follow a static IP."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from apps.compiler.model.stack import CloudRecord, CloudZone, RecordType
from apps.compiler.targets.terraform.aws.balancers import Reach
from apps.compiler.targets.terraform.aws.naming import ZONE_COMMENT, tags
from apps.compiler.targets.terraform.draft import Draft
from apps.compiler.targets.terraform.expressions import literal, resource_name

_PIECES = re.compile(r'"((?:[^"\\]|\\.)*)"')


def add_zone(
    draft: Draft,
    stack_id: str,
    zone: CloudZone,
    reaches: Mapping[str, Reach],
    addresses: Mapping[str, str | list[str]],
) -> None:
    """The zone with its records; `reaches` by load balancer, `addresses` (what to write as values) by static IP."""
    name = resource_name(zone.id)
    standing = draft.add("aws_route53_zone", name, zone.id, {
        "name": zone.domain,
        "comment": f"{ZONE_COMMENT}{zone.id} of {stack_id}",
        "tags": tags(zone.id, zone.account),
    })  # fmt: skip
    draft.outputs[f"{name}_name_servers"] = standing["name_servers"]
    for record in zone.records:
        body = {
            "zone_id": standing["zone_id"],
            "name": zone.domain if record.name == "@" else f"{record.name}.{zone.domain}",
            "type": record.type.value,
            **_target(record, reaches, addresses),
        }
        draft.add("aws_route53_record", resource_name(record.id), record.id, body)


def _target(
    record: CloudRecord, reaches: Mapping[str, Reach], addresses: Mapping[str, str | list[str]]
) -> dict[str, Any]:
    if record.address_id:
        return {"ttl": record.ttl, "records": addresses[record.address_id]}
    if record.load_balancer_id:
        return _alias(record, reaches[record.load_balancer_id])
    return {"ttl": record.ttl, "records": [_value(record.type, value) for value in record.values]}


def _alias(record: CloudRecord, reach: Reach) -> dict[str, Any]:
    """An alias costs no lookup and works at the zone's own name; a CNAME stays one."""
    if record.type is RecordType.CNAME:
        return {"ttl": record.ttl, "records": [reach.dns_name]}
    return {"alias": [{"name": reach.dns_name, "zone_id": reach.zone_id, "evaluate_target_health": False}]}


def _value(kind: RecordType, value: str) -> str:
    """As in a zone file, but for texts: the provider puts quotes around them and wants pieces parted by `""`."""
    return literal('""'.join(_PIECES.findall(value)) if kind is RecordType.TXT else value)

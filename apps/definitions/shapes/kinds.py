"""The kinds whose fields are declared as shapes."""

from __future__ import annotations

import re

from apps.definitions.shapes.address_pool import AddressPoolSpec
from apps.definitions.shapes.base.shape import Shape
from apps.definitions.shapes.certificate import CertificateSpec
from apps.definitions.shapes.cloud_account import CloudAccountSpec
from apps.definitions.shapes.pool import PoolSpec
from apps.definitions.shapes.record import RecordSpec
from apps.definitions.shapes.route import RouteSpec
from apps.definitions.shapes.stack import StackSpec
from apps.definitions.shapes.static_ip import StaticIPSpec
from apps.definitions.shapes.zone import ZoneSpec

SHAPES: dict[str, type[Shape]] = {
    "CloudAccount": CloudAccountSpec,
    "Stack": StackSpec,
    "AddressPool": AddressPoolSpec,
    "StaticIP": StaticIPSpec,
    "Certificate": CertificateSpec,
    "Pool": PoolSpec,
    "Route": RouteSpec,
    "Zone": ZoneSpec,
    "Record": RecordSpec,
}


def file_name(kind: str) -> str:
    """`LoadBalancer` → `load-balancer.md`, its page of reference."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind).lower() + ".md"

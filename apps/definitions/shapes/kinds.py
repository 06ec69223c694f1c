"""Every kind with its shape."""

from __future__ import annotations

import re

from apps.definitions.shapes.base.shape import Shape
from apps.definitions.shapes.clouds.address_pool import AddressPoolSpec
from apps.definitions.shapes.clouds.cloud_account import CloudAccountSpec
from apps.definitions.shapes.clouds.stack import StackSpec
from apps.definitions.shapes.clouds.static_ip import StaticIPSpec
from apps.definitions.shapes.operations.alert_channel import AlertChannelSpec
from apps.definitions.shapes.operations.alert_rule import AlertRuleSpec
from apps.definitions.shapes.operations.capacity_test import CapacityTestSpec
from apps.definitions.shapes.operations.schedule import ScheduleSpec
from apps.definitions.shapes.operations.status_page import StatusPageSpec
from apps.definitions.shapes.platform.account import AccountSpec
from apps.definitions.shapes.platform.certificate_authority import CertificateAuthoritySpec
from apps.definitions.shapes.platform.topology import FleetSpec, GrantSpec, NodeSpec, RegionSpec
from apps.definitions.shapes.traffic.access import NetworkListSpec
from apps.definitions.shapes.traffic.certificate import CertificateSpec
from apps.definitions.shapes.traffic.load_balancer import LoadBalancerSpec
from apps.definitions.shapes.traffic.policy import PolicySpec
from apps.definitions.shapes.traffic.pool import PoolSpec
from apps.definitions.shapes.traffic.record import RecordSpec
from apps.definitions.shapes.traffic.route import RouteSpec
from apps.definitions.shapes.traffic.zone import ZoneSpec

SHAPES: dict[str, type[Shape]] = {
    "Account": AccountSpec,
    "Region": RegionSpec,
    "Fleet": FleetSpec,
    "Node": NodeSpec,
    "CloudAccount": CloudAccountSpec,
    "Stack": StackSpec,
    "AddressPool": AddressPoolSpec,
    "StaticIP": StaticIPSpec,
    "Grant": GrantSpec,
    "CertificateAuthority": CertificateAuthoritySpec,
    "Certificate": CertificateSpec,
    "Pool": PoolSpec,
    "NetworkList": NetworkListSpec,
    "LoadBalancer": LoadBalancerSpec,
    "Policy": PolicySpec,
    "Route": RouteSpec,
    "Zone": ZoneSpec,
    "Record": RecordSpec,
    "CapacityTest": CapacityTestSpec,
    "Schedule": ScheduleSpec,
    "AlertRule": AlertRuleSpec,
    "AlertChannel": AlertChannelSpec,
    "StatusPage": StatusPageSpec,
}


def file_name(kind: str) -> str:
    """`LoadBalancer` → `load-balancer.md`, its page of reference."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind).lower() + ".md"

"""Rows: what should be balanced, exactly as people and pipelines said it.

Every row belongs to an account and carries a `version` that rises with each change: the ETag of the API and
the conflict check of the pages. Choices are those of `apps.compiler.model`, so there is one list of each. All rows
are named here, where Django looks for them.
"""

from __future__ import annotations

from apps.definitions.alerting.models import AlertChannel, AlertRule, StatusPage
from apps.definitions.countries.models import Country
from apps.definitions.issuing.models import CertificateAuthority, CertificateOrder
from apps.definitions.key_sets.models import KeySet
from apps.definitions.models.dns import Record, Zone
from apps.definitions.models.operations import CapacityTest, Schedule
from apps.definitions.models.pools import Backend, Certificate, HealthCheck, Pool, Server, scaled_limit
from apps.definitions.models.traffic import (
    Listener,
    LoadBalancer,
    NetworkList,
    Policy,
    ProtocolRoute,
    Route,
    RoutePolicy,
    RoutePool,
    SniRoute,
)
from apps.definitions.server_sources.models import Heartbeat, ServerSource
from apps.definitions.writing.stored_plan import StoredPlan

__all__ = [
    "AlertChannel",
    "AlertRule",
    "Backend",
    "CapacityTest",
    "Certificate",
    "CertificateAuthority",
    "CertificateOrder",
    "Country",
    "HealthCheck",
    "Heartbeat",
    "KeySet",
    "Listener",
    "LoadBalancer",
    "NetworkList",
    "Policy",
    "Pool",
    "ProtocolRoute",
    "Record",
    "Route",
    "RoutePolicy",
    "RoutePool",
    "Schedule",
    "Server",
    "ServerSource",
    "SniRoute",
    "StatusPage",
    "StoredPlan",
    "Zone",
    "scaled_limit",
]

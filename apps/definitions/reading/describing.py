"""Makes plain documents of specifications and of rows, in one shape, so that the two can be compared.

`document(spec)` and `describe(row)` answer equal dicts exactly when saving would change nothing. Every default is
written out; private keys are never part of either.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from apps.accounts.models import Account, Grant
from apps.compiler.model.stack import ON_FLEETS
from apps.definitions.listing import ListedRoute
from apps.definitions.models import (
    AlertChannel,
    AlertRule,
    Backend,
    CapacityTest,
    Certificate,
    CertificateAuthority,
    LoadBalancer,
    NetworkList,
    Policy,
    Pool,
    Record,
    Route,
    Schedule,
    StatusPage,
    Zone,
)
from apps.definitions.shapes.base.shape import Shape
from apps.definitions.shapes.base.writing import settled as settled_by_shape
from apps.definitions.shapes.base.writing import write
from apps.definitions.shapes.clouds.stack import NetworkSpec, StackSpec, network_of
from apps.definitions.shapes.clouds.static_ip import StaticIPSpec
from apps.definitions.shapes.kinds import SHAPES
from apps.definitions.shapes.operations.schedule import RetriesSpec, ScheduleSpec, WhenSpec
from apps.definitions.shapes.platform.topology import RegionSpec
from apps.definitions.shapes.traffic.authentication import without_secrets
from apps.definitions.shapes.traffic.policy import PolicySpec
from apps.definitions.shapes.traffic.pool import LimitSpec, PoolSpec
from apps.definitions.shapes.traffic.route import Action, RouteSpec
from apps.fleet.models import AddressPool, CloudAccount, Fleet, Node, Region, Stack, StaticIP

Document = dict[str, Any]
Owned = (
    Certificate
    | Pool
    | LoadBalancer
    | NetworkList
    | Policy
    | Route
    | ListedRoute
    | Zone
    | Record
    | CapacityTest
    | Schedule
    | AlertRule
    | AlertChannel
    | StatusPage
)
Row = (
    Account
    | Region
    | Fleet
    | Node
    | CloudAccount
    | Stack
    | AddressPool
    | StaticIP
    | Grant
    | CertificateAuthority
    | Owned
)

KIND_OF_MODEL: dict[type[Any], str] = {
    Account: "Account",
    Region: "Region",
    Fleet: "Fleet",
    Node: "Node",
    CloudAccount: "CloudAccount",
    Stack: "Stack",
    AddressPool: "AddressPool",
    StaticIP: "StaticIP",
    Grant: "Grant",
    CertificateAuthority: "CertificateAuthority",
    Certificate: "Certificate",
    Pool: "Pool",
    NetworkList: "NetworkList",
    LoadBalancer: "LoadBalancer",
    Policy: "Policy",
    Route: "Route",
    ListedRoute: "Route",
    Zone: "Zone",
    Record: "Record",
    CapacityTest: "CapacityTest",
    Schedule: "Schedule",
    AlertRule: "AlertRule",
    AlertChannel: "AlertChannel",
    StatusPage: "StatusPage",
}


def settled(before: Document | None, spec: Shape) -> Document:
    """The document of a specification with what it leaves as it is: taken from the document of the stored object."""
    stored = before or {}
    after = settled_by_shape(type(spec), stored, document(spec))
    if isinstance(spec, StaticIPSpec):
        kept = {name: stored.get(name) for name in ("address", "router_id") if after[name] is None}
        after |= kept  # what was allotted
    if isinstance(spec, PoolSpec):
        known = {entry["region"]: entry["limit"] for entry in stored.get("backends", ())}
        for entry in after["backends"]:
            limit = known.get(entry["region"], {})
            entry["limit"] = limit if entry["limit"].items() <= limit.items() else entry["limit"]
    return after


def document(spec: Shape) -> Document:
    """The document of a specification, every default written out, lists in one order, without secrets."""
    return write(type(spec), spec)


def limit_of(backend: Backend) -> Document:
    """The limit of a stored backend."""
    return write(LimitSpec, backend.limit)


def _region_row(row: Region) -> Document:
    known = [{"to": each.to_region.name, "ms": each.set_ms} for each in row.latencies.all() if each.set_ms is not None]
    return write(RegionSpec, row) | {"latency": sorted(known, key=lambda entry: str(entry["to"]))}


def _pool_row(row: Pool) -> Document:
    """What was looked up is no part of the document."""
    found = write(PoolSpec, row, row.account_id)
    for backend in found["backends"]:
        backend["servers"] = [] if backend.get("servers_from") else backend["servers"]
    return found


def _route_row(row: Route | ListedRoute) -> Document:
    action = SimpleNamespace(pools=row.shares, redirect=row.redirect, fixed_response=row.fixed_response)
    rules = {"rules": without_secrets(row.rules)} if row.rules else {}
    return write(RouteSpec, row, row.account_id) | {"action": write(Action, action, row.account_id)} | rules


def _policy_row(row: Policy) -> Document:
    return write(PolicySpec, row) | {"rules": without_secrets(row.rules)}


def _schedule_row(row: Schedule) -> Document:
    return write(ScheduleSpec, row) | {
        "when": write(WhenSpec, row) or {"trigger": True},
        "catch_up": {"policy": row.catch_up, "window_s": row.catch_up_window_s},
        "retries": write(RetriesSpec, row),
        "target": {row.target_kind: row.target},
    }


_OF_ROW: dict[type[Any], Callable[[Any], Document]] = {
    Region: _region_row,
    Stack: lambda row: write(StackSpec, row) | {"network": write(NetworkSpec, network_of(row.network))},
    # What a cloud has chosen is no part of the document: see `addresses` of the row.
    StaticIP: lambda row: write(StaticIPSpec, row) | ({} if row.kind in ON_FLEETS else {"address": None}),
    Policy: _policy_row,
    Pool: _pool_row,
    Route: _route_row,
    ListedRoute: _route_row,
    Schedule: _schedule_row,
}


def describe(row: Row) -> Document:
    """The document (spec) of a row: the inverse of reading. Rows of the selectors need no further query."""
    if by_hand := _OF_ROW.get(type(row)):
        return by_hand(row)
    return write(SHAPES[KIND_OF_MODEL[type(row)]], row, getattr(row, "account_id", None))


def envelope(row: Row) -> Document:
    """The whole object, as `apply` takes it."""
    head: Document = {"kind": KIND_OF_MODEL[type(row)], "name": row.name}
    if isinstance(row, Owned):
        head["account"] = row.account.name
    return head | {"spec": describe(row)}

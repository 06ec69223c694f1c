"""Makes plain documents of specifications and of rows, in one shape, so that the two can be compared.

`document(spec)` and `describe(row)` answer equal dicts exactly when saving would change nothing. Every default is
written out; private keys are never part of either.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeVar

from apps.accounts.models import Account, Grant
from apps.compiler.model.stack import ON_FLEETS
from apps.definitions.listing import ListedRoute, Named
from apps.definitions.models import (
    Backend,
    CapacityTest,
    Certificate,
    Listener,
    LoadBalancer,
    Pool,
    Record,
    Route,
    Schedule,
    Zone,
)
from apps.definitions.reading.capacity_tests import capacity_test_document, capacity_test_row
from apps.definitions.reading.schedules import schedule_document, schedule_row
from apps.definitions.reading.specs import (
    AccountSpec,
    CapacityTestSpec,
    FleetSpec,
    GrantSpec,
    ListenerSpec,
    LoadBalancerSpec,
    NodeSpec,
    RegionSpec,
    ScheduleSpec,
    Spec,
)
from apps.definitions.shapes.base.shape import Shape
from apps.definitions.shapes.base.words import instant_text
from apps.definitions.shapes.base.writing import settled as settled_by_shape
from apps.definitions.shapes.base.writing import write
from apps.definitions.shapes.kinds import SHAPES
from apps.definitions.shapes.pool import LimitSpec, PoolSpec
from apps.definitions.shapes.route import Action, RouteSpec
from apps.definitions.shapes.stack import NetworkSpec, StackSpec, network_of
from apps.definitions.shapes.static_ip import StaticIPSpec
from apps.fleet.models import AddressPool, CloudAccount, Fleet, Node, Region, Stack, StaticIP

Document = dict[str, Any]
Owned = Certificate | Pool | LoadBalancer | Route | ListedRoute | Zone | Record | CapacityTest | Schedule
Row = Account | Region | Fleet | Node | CloudAccount | Stack | AddressPool | StaticIP | Grant | Owned
S = TypeVar("S")

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
    Certificate: "Certificate",
    Pool: "Pool",
    LoadBalancer: "LoadBalancer",
    Route: "Route",
    ListedRoute: "Route",
    Zone: "Zone",
    Record: "Record",
    CapacityTest: "CapacityTest",
    Schedule: "Schedule",
}


def name_from(own_account: int, owner: Account | Named, name: str) -> str:
    """How an object of `owner` is named in a document of the account with this id."""
    return name if owner.pk == own_account else f"{owner.name}/{name}"


def _by(field: str) -> Callable[[Document], str]:
    return lambda entry: str(entry[field])


def _fields(source: object, names: tuple[str, ...]) -> Document:
    return {name: getattr(source, name) for name in names}


_PORTS = ("peer_port", "overflow_port", "overflow_tcp_port")


def _fleet(source: Any) -> Document:
    return {**_fields(source, ("local_development", *_PORTS)), "private_networks": sorted(source.private_networks)}


def _listener(spec: ListenerSpec) -> Document:
    return {
        "name": spec.name,
        "protocol": str(spec.protocol),
        "port": spec.port,
        "static_ip": spec.static_ip,
        "certificates": sorted(spec.certificates),
        "default_pool": spec.default_pool,
    }


def _load_balancer(spec: LoadBalancerSpec) -> Document:
    listeners = sorted((_listener(listener) for listener in spec.listeners), key=_by("name"))
    return {"fleets": sorted(spec.fleets), "stacks": sorted(spec.stacks), "listeners": listeners}


_PLACE = ("title", "latitude", "longitude")


def _account(spec: AccountSpec) -> Document:
    found = _fields(spec, ("title", "kind"))
    if spec.quotas is not None:
        found["quotas"] = dict(sorted(spec.quotas))
    if spec.suspended is not None:
        found["suspended"] = spec.suspended
    return found


def _account_row(row: Account) -> Document:
    found = {"title": row.title, "kind": str(row.kind), "quotas": dict(sorted(row.quotas.items()))}
    return found | {"suspended": row.suspended_at is not None}


def _region(spec: RegionSpec) -> Document:
    found = _fields(spec, _PLACE)
    if spec.drained is not None:
        found["drained"] = spec.drained
    if spec.latency is not None:
        found["latency"] = sorted(({"to": entry.to, "ms": entry.ms} for entry in spec.latency), key=_by("to"))
    return found


def _grant_document(grant: Any, account: str) -> Document:
    return {
        "account": account,
        "hostname": grant.hostname or None,
        "tag": grant.tag or None,
        "may_load_test": grant.may_load_test,
        "expires_at": instant_text(grant.expires_at),
    }


def settled(before: Document | None, spec: Spec) -> Document:
    """The document of a specification with what it leaves as it is: taken from the document of the stored object."""
    after, stored = document(spec), before or {}
    if isinstance(spec, Shape):
        after = settled_by_shape(type(spec), stored, after)
    if isinstance(spec, AccountSpec):
        after = {"quotas": stored.get("quotas", {}), "suspended": stored.get("suspended", False)} | after
    if isinstance(spec, RegionSpec):
        after = {"drained": stored.get("drained", False), "latency": stored.get("latency", [])} | after
    if isinstance(spec, StaticIPSpec):
        kept = {name: stored.get(name) for name in ("address", "router_id") if after[name] is None}
        after |= kept  # what was allotted
    if isinstance(spec, ScheduleSpec):
        after = {"paused": stored.get("paused", False)} | after
    if isinstance(spec, PoolSpec):
        known = {entry["region"]: entry["limit"] for entry in stored.get("backends", ())}
        for entry in after["backends"]:
            limit = known.get(entry["region"], {})
            entry["limit"] = limit if entry["limit"].items() <= limit.items() else entry["limit"]
    return after


_OF_SPEC: dict[type[Any], Callable[[Any], Document]] = {
    AccountSpec: _account,
    RegionSpec: _region,
    FleetSpec: lambda spec: {"region": spec.region} | _fleet(spec),
    NodeSpec: lambda spec: _fields(spec, ("fleet", "url", "address", "port_offset")),
    GrantSpec: lambda spec: _grant_document(spec, spec.account),
    LoadBalancerSpec: _load_balancer,
    CapacityTestSpec: capacity_test_document,
    ScheduleSpec: schedule_document,
}


def document(spec: Spec) -> Document:
    """The document of a specification, every default written out, lists in one order, without secrets."""
    return write(type(spec), spec) if isinstance(spec, Shape) else _OF_SPEC[type(spec)](spec)


def limit_of(backend: Backend) -> Document:
    """The limit of a stored backend."""
    return write(LimitSpec, backend.limit)


def _region_row(row: Region) -> Document:
    known = [{"to": each.to_region.name, "ms": each.set_ms} for each in row.latencies.all() if each.set_ms is not None]
    return _fields(row, (*_PLACE, "drained")) | {"latency": sorted(known, key=_by("to"))}


def _listener_row(row: Listener, owner: int) -> Document:
    certificates = (name_from(owner, entry.account, entry.name) for entry in row.certificates.all())
    return {
        "name": row.name,
        "protocol": row.protocol,
        "port": row.port,
        "static_ip": row.static_ip.name if row.static_ip else None,
        "certificates": sorted(certificates),
        "default_pool": name_from(owner, row.default_pool.account, row.default_pool.name) if row.default_pool else None,
    }


def _load_balancer_row(row: LoadBalancer) -> Document:
    listeners = sorted((_listener_row(entry, row.account_id) for entry in row.listeners.all()), key=_by("name"))
    places = {word: sorted(place.name for place in getattr(row, word).all()) for word in ("fleets", "stacks")}
    return places | {"listeners": listeners}


def _route_row(row: Route | ListedRoute) -> Document:
    action = SimpleNamespace(pools=row.shares, redirect=row.redirect, fixed_response=row.fixed_response)
    return write(RouteSpec, row, row.account_id) | {"action": write(Action, action, row.account_id)}


_OF_ROW: dict[type[Any], Callable[[Any], Document]] = {
    Account: _account_row,
    Region: _region_row,
    Fleet: lambda row: {"region": row.region.name} | _fleet(row),
    Node: lambda row: {"fleet": row.fleet.name} | _fields(row, ("url", "address", "port_offset")),
    Stack: lambda row: write(StackSpec, row) | {"network": write(NetworkSpec, network_of(row.network))},
    # What a cloud has chosen is no part of the document: see `addresses` of the row.
    StaticIP: lambda row: write(StaticIPSpec, row) | ({} if row.kind in ON_FLEETS else {"address": None}),
    Grant: lambda row: _grant_document(row, row.account.name),
    LoadBalancer: _load_balancer_row,
    Route: _route_row,
    ListedRoute: _route_row,
    CapacityTest: capacity_test_row,
    Schedule: schedule_row,
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

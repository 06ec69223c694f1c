"""The table itself, and how checks and forms ask it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from apps.compiler.model.capabilities import Capability
from apps.compiler.model.shared import AnyPool, Listener, Route
from apps.compiler.portability.incompatibilities import Incompatibility, Target, lossy, refused
from apps.compiler.portability.table.cells import Cell, Column, Row, Verdict
from apps.compiler.portability.table.listeners import LISTENERS
from apps.compiler.portability.table.policies import POLICIES
from apps.compiler.portability.table.pools import POOLS
from apps.compiler.portability.table.routes import ROUTES

TABLE: Mapping[str, tuple[Row, ...]] = {
    "Route": (*ROUTES, *POLICIES),
    "Policy": POLICIES,
    "LoadBalancer": LISTENERS,
    "Pool": POOLS,
}
# What Spillway itself makes of these is the same everywhere, so no target reads them.
READ_BY_NO_TARGET: Mapping[str, frozenset[str]] = {
    "Route": frozenset({"load_balancer", "policies", "objective"}),
    "Policy": frozenset({"default_for"}),
    "LoadBalancer": frozenset({"fleets", "stacks", "listeners.name", "listeners.static_ip"}),
    "Pool": frozenset(
        {"tags", "objective", "backends.region", "backends.servers_from", "backends.limit.measured_by"}
        | {"backends.servers.name"}
    ),
}
_ROWS = {kind: {row.name: row for row in rows} for kind, rows in TABLE.items()}
# What checks leave out of a field's name.
_HOLDERS = {"Route": ("", "action."), "LoadBalancer": ("listeners.",), "Pool": ("", "backends.", "overflow.")}
_TARGETS = {Column.ALB: Target.AWS, Column.NLB: Target.AWS, Column.GOOGLE: Target.GOOGLE}


def told(column: Column, thing: Route | Listener | AnyPool, code: str, field: str, value: str = "") -> Incompatibility:
    """What the table says of a field of an object that uses it."""
    kind = "Route" if isinstance(thing, Route) else "LoadBalancer" if isinstance(thing, Listener) else "Pool"
    cell = _cell(kind, f"{field}: {value}" if value else field, column)
    make = refused if cell.verdict in (Verdict.NOT, Verdict.UNUSED) else lossy
    return make(_TARGETS.get(column, Target.HAPROXY), thing, code, field, cell.message, cell.remedy)


def row_of(kind: str, name: str) -> Row:
    """The row of this name. Raises KeyError."""
    return _ROWS[kind][name]


def capability_for(kind: str, name: str) -> Capability:
    """What a HAProxy needs for a field that not every version can. Raises KeyError."""
    since = row_of(kind, name).since
    if since is None:
        raise KeyError(name)
    return since


@cache
def rows_of(kind: str, path: str) -> tuple[Row, ...]:
    """The rows that speak of a field: its own or that of what it is part of, then those of single values of it."""
    holding = sorted((row for row in TABLE[kind] if row.covers(path)), key=lambda row: len(row.field))
    return (*holding[-1:], *(row for row in TABLE[kind] if row.value and row.field == path))


def _cell(kind: str, name: str, column: Column) -> Cell:
    """Of the field's own row, or of the nearest that it is part of."""
    rows = _ROWS[kind]
    found = next((rows[holder + name] for holder in _HOLDERS[kind] if holder + name in rows), None)
    return found.on(column) if found else _cell(kind, name.rpartition(".")[0], column)

"""The documents of every kind of object, the one way in for the API, the pages, apply and seed.

An object is `{kind, name, account?, spec}`. `read_object` turns it into a frozen specification or raises
`Invalid` with every fault.

References are names. `name` is an object of the same account, `account/name` one of another (operators, and what they
share); a load balancer and a place (region, fleet, stack, static IP) belong to the operator and are named by `name`
alone.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from apps.accounts.models import Account
from apps.accounts.quotas import DEFAULTS, bounds
from apps.compiler import grammar
from apps.compiler.model.fleet import (
    LimitKind,
    Protocol,
    WhenFull,
)
from apps.core.errors import FieldError, Invalid
from apps.definitions.reading.capacity_tests import read_capacity_test
from apps.definitions.reading.fields import Reader, agent_url, boolean, choice, integer, number, reference, title
from apps.definitions.reading.fleets import read_fleet
from apps.definitions.reading.schedules import read_schedule
from apps.definitions.reading.specs import (
    AccountSpec,
    LatencySpec,
    ListenerSpec,
    LoadBalancerSpec,
    NodeSpec,
    RegionSpec,
    Spec,
)
from apps.definitions.reading.tags import read_grant
from apps.definitions.shapes.base.reading import read
from apps.definitions.shapes.base.shape import Shape
from apps.definitions.shapes.kinds import SHAPES
from apps.definitions.shapes.pool import QUEUE_NEEDS_CONNECTIONS, LimitChange

latency_ms = number(0, 60_000)


@dataclass(frozen=True, slots=True)
class Object:
    """One object as it was sent; `account` is None where the sender's own is meant, `pointer` where it stood."""

    kind: str
    name: str
    account: str | None
    spec: Spec
    pointer: str = ""


def _account(reader: Reader) -> AccountSpec:
    def kind(value: object) -> str:
        if value not in Account.Kind.values:
            raise grammar.GrammarError("choice", "Use operator or customer.")
        return str(value)

    return AccountSpec(
        reader.required("title", title),
        reader.optional("kind", kind, "customer"),
        _quotas(reader.child("quotas")),
        reader.optional("suspended", boolean, None),
    )


def _quotas(reader: Reader | None) -> tuple[tuple[str, int], ...] | None:
    if reader is None:
        return None
    found = {name: reader.optional(name, integer(*bounds(name)), None) for name in DEFAULTS}
    reader.close()
    return tuple((name, value) for name, value in found.items() if value is not None)


def _region(reader: Reader) -> RegionSpec:
    return RegionSpec(
        reader.required("title", title),
        reader.optional("latitude", number(-90, 90), None),
        reader.optional("longitude", number(-180, 180), None),
        reader.optional("drained", boolean, None),
        _latencies(reader) if reader.has("latency") else None,
    )


def _latencies(reader: Reader) -> tuple[LatencySpec, ...]:
    children, found = reader.children("latency"), []
    for child in children:
        found.append(LatencySpec(child.required("to", grammar.name), child.required("ms", latency_ms)))
        child.close()
    _refuse_twins(children, "to", [entry.to for entry in found])
    return tuple(found)


def _node(reader: Reader) -> NodeSpec:
    return NodeSpec(
        reader.required("fleet", grammar.name),
        reader.required("url", agent_url),
        reader.optional("address", grammar.listen_address, "127.0.0.1"),
        reader.optional("port_offset", integer(0, 60_000), 0),
    )


def read_limit(data: dict[str, Any], when_full: str) -> LimitChange:
    """`{kind, value?, scope?, measured_by?, capacity_scaler?}` of a pool with this policy. Raises Invalid."""
    faults: list[FieldError] = []
    wanted = read(LimitChange, data, "", faults)
    if wanted and when_full == WhenFull.QUEUE and wanted.kind is LimitKind.RATE:
        faults.append(FieldError("/kind", "queue", QUEUE_NEEDS_CONNECTIONS))
    if wanted is None or faults:
        raise Invalid(faults)
    return wanted


def _refuse_twins(readers: list[Reader], field: str, values: list[Any]) -> None:
    """The same value in two entries of a list is a fault of the second."""
    for index, value in enumerate(values):
        if value is not None and value in values[:index]:
            readers[index].fault(field, "twice", f"Another entry of the list has the same {field}.")


def _listener(reader: Reader) -> ListenerSpec:
    spec = ListenerSpec(
        name=reader.required("name", grammar.name),
        protocol=reader.required("protocol", choice(Protocol)),
        port=reader.required("port", grammar.port),
        static_ip=reader.optional("static_ip", grammar.name, None),
        certificates=reader.values("certificates", reference),
        default_pool=reader.optional("default_pool", reference, None),
    )
    if spec.protocol is Protocol.HTTPS and not spec.certificates:
        reader.fault("certificates", "missing", "An https listener needs at least one certificate.")
    if spec.protocol in (Protocol.HTTP, Protocol.TCP) and spec.certificates:
        reader.fault("certificates", "protocol", "Only an https listener has certificates.")
    if spec.protocol is Protocol.TCP and spec.default_pool is None:
        reader.fault("default_pool", "missing", "A tcp listener needs a default_pool; it has no routes.")
    reader.close()
    return spec


def _load_balancer(reader: Reader) -> LoadBalancerSpec:
    fleets, stacks = reader.values("fleets", grammar.name), reader.values("stacks", grammar.name)
    children = reader.children("listeners")
    listeners = tuple(_listener(child) for child in children)
    _refuse_twins(children, "name", [listener.name for listener in listeners])
    places = [(listener.static_ip, listener.port) for listener in listeners if listener.port]
    if len(places) == len(children):
        _refuse_twins(children, "port", places)
    return LoadBalancerSpec(fleets, listeners, stacks)


# A shape, or what reads by hand the fields of a kind that has no shape yet.
READERS: dict[str, type[Shape] | Callable[[Reader], Spec]] = {
    "Account": _account,
    "Region": _region,
    "Fleet": read_fleet,
    "Node": _node,
    "CloudAccount": SHAPES["CloudAccount"],
    "Stack": SHAPES["Stack"],
    "AddressPool": SHAPES["AddressPool"],
    "StaticIP": SHAPES["StaticIP"],
    "Grant": read_grant,
    "Certificate": SHAPES["Certificate"],
    "Pool": SHAPES["Pool"],
    "LoadBalancer": _load_balancer,
    "Route": SHAPES["Route"],
    "Zone": SHAPES["Zone"],
    "Record": SHAPES["Record"],
    "CapacityTest": read_capacity_test,
    "Schedule": lambda reader: read_schedule(reader, read_object),
}


def read_spec(kind: str, spec: object, *, pointer: str = "/spec") -> Spec:
    """The specification of a known kind. Raises Invalid with every fault."""
    faults: list[FieldError] = []
    by, found = READERS[kind], None
    if isinstance(by, type):
        found = cast("Spec | None", read(by, spec, pointer, faults))
    else:
        reader = Reader(spec, pointer, faults)
        found = by(reader)
        reader.close()
    if faults or found is None:
        raise Invalid(faults)
    return found


def _kind(value: object) -> str:
    if isinstance(value, str) and value in READERS:
        return value
    near = difflib.get_close_matches(str(value)[:40], READERS, 1)
    hint = f"did you mean {near[0]}?" if near else f"use one of {', '.join(READERS)}."
    raise grammar.GrammarError("kind", f"There is no such kind; {hint}")


def read_object(data: object, *, pointer: str = "", kind: str | None = None) -> Object:
    """One object with its envelope; `kind` says it where the place (a URL) already does. Raises Invalid."""
    faults: list[FieldError] = []
    reader = Reader(data, pointer, faults)
    found = reader.required("kind", _kind) if kind is None else reader.optional("kind", _kind, kind)
    if kind and found and found != kind:
        reader.fault("kind", "kind", f"Objects here are of kind {kind}.")
    name = reader.required("name", grammar.name)
    account = reader.optional("account", grammar.name, None)
    if not reader.has("spec"):
        reader.fault("spec", "missing", "Fill in spec.")
    reader.close()
    spec: Spec | None = None
    if found and reader.data.get("spec") is not None:
        try:
            spec = read_spec(found, reader.data["spec"], pointer=f"{pointer}/spec")
        except Invalid as invalid:
            faults.extend(invalid.faults)
    if faults or spec is None:
        raise Invalid(faults)
    return Object(found, name, account, spec, pointer)

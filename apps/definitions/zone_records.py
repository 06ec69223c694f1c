"""DEFINE → PUSH of zones, the only bridge: what a zone's server must serve, as the definitions say it now."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.db import transaction

from apps.compiler.stacks import RecordType
from apps.definitions.models import Listener, LoadBalancer, Record, Zone
from apps.fleet.models import Node, StaticIP

ADDRESS_TYPES = {4: RecordType.A, 6: RecordType.AAAA}
NamesOf = Callable[[int], Iterable[str]]
_names_of: list[NamesOf] = []


def add_cloud_names(source: NamesOf) -> None:
    """Let an app above this one say which DNS names clouds gave to a load balancer (primary key), at start."""
    if source not in _names_of:
        _names_of.append(source)


@dataclass(frozen=True, slots=True)
class WantedRecord:
    """One record set: `name` is absolute without the final dot, values as they were written (relative to the zone)."""

    record_id: int
    account_id: int
    name: str
    type: str
    ttl: int
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A zone as it should be, and the desired generation that it answers.

    `unresolved` are records that have nothing to say yet, by their id, with the reason: what is served stays.
    """

    generation: int
    domain: str
    records: tuple[WantedRecord, ...]
    unresolved: tuple[tuple[int, str], ...] = ()


def freeze_zone(zone_id: int) -> Wanted:
    """The zone's records and the generation that they answer, consistent with each other."""
    with transaction.atomic():
        zone = Zone.objects.select_for_update(of=("self",)).get(pk=zone_id)
        return wanted_records(zone)


def wanted_records(zone: Zone) -> Wanted:
    """What should be served; three queries and those of the load balancers that records follow."""
    rows = Record.objects.filter(zone=zone).select_related("static_ip", "load_balancer").order_by("label", "type")
    found, unresolved = [], []
    for row in rows:
        values = values_of(row)
        if values:
            name = zone.domain if row.label == "@" else f"{row.label}.{zone.domain}"
            found.append(WantedRecord(row.pk, row.account_id, name, row.type, row.ttl, tuple(values)))
        else:
            unresolved.append((row.pk, _why_empty(row)))
    return Wanted(zone.desired_generation, zone.domain, tuple(found), tuple(unresolved))


def values_of(record: Record) -> list[str]:
    """Its values, or the addresses of what it follows; empty while these are not known."""
    if record.static_ip is not None:
        return sorted(_of_type(_addresses_of(record.static_ip), record.type))
    if record.load_balancer is not None and record.type == RecordType.CNAME:
        return _cloud_names(record.load_balancer)
    if record.load_balancer is not None:
        return sorted(_of_type(_addresses_in_front(record.load_balancer), record.type))
    return [str(value) for value in record.values]


def _why_empty(record: Record) -> str:
    if record.static_ip is not None:
        return f"The static IP {record.static_ip.name} has no address of type {record.type} yet."
    if record.type == RecordType.CNAME:
        return f"No cloud has given the load balancer {record.load_balancer} a name yet."
    return f"The load balancer {record.load_balancer} has no address of type {record.type} yet."


def _cloud_names(balancer: LoadBalancer) -> list[str]:
    """The one name that a CNAME may have: the first of those that clouds gave, absolute."""
    found = sorted({name for source in _names_of for name in source(balancer.pk)})
    return [f"{found[0].rstrip('.')}."] if found else []


def _of_type(addresses: Iterable[str], rdtype: str) -> set[str]:
    return {address for address in addresses if ADDRESS_TYPES[6 if ":" in address else 4] == rdtype}


def _addresses_of(static_ip: StaticIP) -> list[str]:
    return sorted({*static_ip.addresses, *([static_ip.address] if static_ip.address else [])})


def _addresses_in_front(balancer: LoadBalancer) -> list[str]:
    """The static IPs of its listeners; without any, its nodes' own addresses."""
    listeners = Listener.objects.filter(load_balancer=balancer, static_ip__isnull=False).select_related("static_ip")
    given = [address for each in listeners if each.static_ip for address in _addresses_of(each.static_ip)]
    if given:
        return given
    return list(Node.objects.filter(fleet__load_balancers=balancer).values_list("address", flat=True))

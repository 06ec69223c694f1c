"""The only bridge: what a zone's server must serve, as the definitions say it now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from django.db import transaction

from apps.compiler.model.stack import RecordType
from apps.definitions.issuing.orders import TTL, txt_records
from apps.definitions.models import Listener, Record, Zone
from apps.definitions.ports import PORTS
from apps.fleet.models import Node, StaticIP

ADDRESS_TYPES = {4: RecordType.A, 6: RecordType.AAAA}


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
    """What should be served; four queries at most, however many records follow load balancers."""
    rows = Record.objects.filter(zone=zone).select_related("static_ip", "load_balancer").order_by("label", "type")
    values = values_of_all(rows)
    found, unresolved = [], []
    for row in rows:
        if values[row.pk]:
            name = zone.domain if row.label == "@" else f"{row.label}.{zone.domain}"
            found.append(WantedRecord(row.pk, row.account_id, name, row.type, row.ttl, tuple(values[row.pk])))
        else:
            unresolved.append((row.pk, why_empty(row)))
    found = _with_challenges(zone, found)
    return Wanted(zone.desired_generation, zone.domain, tuple(found), tuple(unresolved))


def _with_challenges(zone: Zone, found: list[WantedRecord]) -> list[WantedRecord]:
    """With what certificate authorities look for now; beside values that somebody keeps under the same name."""
    challenges = txt_records(zone)
    merged = []
    for each in found:
        more = challenges.pop(each.name, []) if each.type == RecordType.TXT else []
        merged.append(replace(each, values=(*each.values, *more)) if more else each)
    ours = (
        WantedRecord(0, zone.account_id, name, RecordType.TXT, TTL, tuple(values))
        for name, values in sorted(challenges.items())
    )
    return [*merged, *ours]


def values_of(record: Record) -> list[str]:
    """Its values, or the addresses of what it follows; empty while these are not known."""
    return values_of_all([record])[record.pk]


def values_of_all(records: Iterable[Record]) -> dict[int, list[str]]:
    """As `values_of`, by primary key; the number of queries does not depend on that of the records."""
    rows = list(records)
    followed = {True: set[int](), False: set[int]()}
    for row in rows:
        if row.static_ip is None and row.load_balancer_id is not None:
            followed[row.type == RecordType.CNAME].add(row.load_balancer_id)
    names, addresses = _cloud_names(followed[True]), _addresses_in_front(followed[False])
    return {row.pk: _values(row, names, addresses) for row in rows}


def _values(record: Record, names: Mapping[int, list[str]], addresses: Mapping[int, list[str]]) -> list[str]:
    if record.static_ip is not None:
        return sorted(_of_type(_addresses_of(record.static_ip), record.type))
    if record.load_balancer_id is None:
        return [str(value) for value in record.values]
    if record.type == RecordType.CNAME:
        return names.get(record.load_balancer_id, [])
    return sorted(_of_type(addresses.get(record.load_balancer_id, []), record.type))


def why_empty(record: Record) -> str:
    """What a record without values waits for, in a sentence."""
    if record.static_ip is not None:
        return f"The static IP {record.static_ip.name} has no address of type {record.type} yet."
    if record.type == RecordType.CNAME:
        return f"The load balancer {record.load_balancer} has no DNS name in a cloud yet."
    return f"The load balancer {record.load_balancer} has no address of type {record.type} yet."


def _cloud_names(balancers: Collection[int]) -> dict[int, list[str]]:
    """The one name that a CNAME may have: the first of those that clouds gave, absolute."""
    found = {balancer: sorted(names) for balancer, names in PORTS.cloud_names(balancers).items()} if balancers else {}
    return {balancer: [f"{names[0].rstrip('.')}."] for balancer, names in found.items() if names}


def _of_type(addresses: Iterable[str], rdtype: str) -> set[str]:
    return {address for address in addresses if ADDRESS_TYPES[6 if ":" in address else 4] == rdtype}


def _addresses_of(static_ip: StaticIP) -> list[str]:
    return sorted({*static_ip.addresses, *([static_ip.address] if static_ip.address else [])})


def _addresses_in_front(balancers: Collection[int]) -> dict[int, list[str]]:
    """Of each load balancer the static IPs of its listeners; without any, its nodes' own addresses."""
    found: dict[int, list[str]] = defaultdict(list)
    if not balancers:
        return found
    listeners = Listener.objects.filter(load_balancer__in=balancers, static_ip__isnull=False)
    for each in listeners.select_related("static_ip"):
        found[each.load_balancer_id] += _addresses_of(each.static_ip) if each.static_ip else []
    bare = [pk for pk in balancers if not found[pk]]
    nodes = Node.objects.filter(fleet__load_balancers__in=bare)
    for balancer, address in nodes.values_list("fleet__load_balancers", "address"):
        found[balancer].append(address)
    return found

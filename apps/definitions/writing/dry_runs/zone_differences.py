"""A dry run of zones: which records would be added, changed and removed; no name server is asked.

Wanted is compared with wanted: what somebody did on the server meanwhile is told by the zone's own differences.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from apps.accounts.actors import Actor
from apps.definitions.freezing.zone_records import values_of_all, why_empty
from apps.definitions.models import Record, Zone
from apps.definitions.values.record_values import full_name
from apps.definitions.writing.dry_runs.watching import Watch

MAX_RECORDS = 500
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class RecordSide:
    """A set of records as it must be served; without values, `waits` says for what."""

    account_id: int
    ttl: int
    values: tuple[str, ...]
    waits: str = ""


@dataclass(frozen=True, slots=True)
class ZoneSide:
    """A zone's records by name (whole, without the final dot) and type; one in a stack is the stack's to write."""

    account: str
    name: str
    in_stack: bool
    records: dict[Key, RecordSide]


@dataclass(frozen=True, slots=True)
class RecordDifference:
    """What becomes of one set of records: create, update or delete; `note` says what one would not expect."""

    action: str
    name: str
    type: str
    before: RecordSide | None
    after: RecordSide | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class ZoneDifference:
    """What the server of a zone would be told; `more` are differences beyond the `changes` that are listed."""

    account: str
    zone: str
    domain: str
    changes: tuple[RecordDifference, ...]
    more: int
    warnings: tuple[str, ...] = ()


def _numbers() -> dict[str, int]:
    return dict(Zone.objects.order_by("domain").values_list("domain", "desired_generation"))


def _frozen(domains: Collection[str]) -> dict[str, ZoneSide]:
    """Six queries, however many zones and records there are."""
    zones = {zone.pk: zone for zone in Zone.objects.select_related("account").filter(domain__in=list(domains))}
    rows = list(Record.objects.filter(zone__in=list(zones)).select_related("static_ip", "load_balancer"))
    values, records = values_of_all(rows), defaultdict[int, dict[Key, RecordSide]](dict)
    for row in rows:
        zone, said = zones[row.zone_id], tuple(values[row.pk])
        waits = "" if said else _waits(zone, row)
        records[zone.pk][full_name(row.label, zone.domain), row.type] = RecordSide(row.account_id, row.ttl, said, waits)
    return {
        zone.domain: ZoneSide(zone.account.name, zone.name, zone.stack_id is not None, records[zone.pk])
        for zone in zones.values()
    }


def _waits(zone: Zone, row: Record) -> str:
    if zone.driver == Zone.Driver.ROUTE53 and row.load_balancer is not None and row.type != "CNAME":
        return f"An alias of the load balancer {row.load_balancer.name}."
    return f"{why_empty(row)} The current records stay until then."


def _difference(actor: Actor, domain: str, before: ZoneSide | None, after: ZoneSide | None) -> ZoneDifference | None:
    zone = after or before
    if zone is None:
        return None
    old, new = _seen(actor, before), _seen(actor, after)
    if after is None and not zone.in_stack:
        return _of_lost_zone(domain, zone, old)
    found = list(_changes(old, new))
    if not found and not actor.is_operator:
        return None
    more = max(len(found) - MAX_RECORDS, 0)
    return ZoneDifference(zone.account, zone.name, domain, tuple(found[:MAX_RECORDS]), more)


def _seen(actor: Actor, side: ZoneSide | None) -> dict[Key, RecordSide]:
    """The records that the actor may see: in a shared zone every account sees its own."""
    found = side.records if side else {}
    return {key: each for key, each in found.items() if actor.owns(each)}


def _changes(old: dict[Key, RecordSide], new: dict[Key, RecordSide]) -> Iterator[RecordDifference]:
    for name, rdtype in sorted(old.keys() | new.keys()):
        before, after = old.get((name, rdtype)), new.get((name, rdtype))
        if before == after:
            continue
        action = "create" if before is None else "delete" if after is None else "update"
        yield RecordDifference(action, name, rdtype, before, after, after.waits if after else "")


def _of_lost_zone(domain: str, zone: ZoneSide, old: dict[Key, RecordSide]) -> ZoneDifference | None:
    """Nobody speaks to the server of a zone that is no more, so nothing is removed there."""
    if not old:
        return None
    said = f"{domain} is deleted in the same change as its records, so its server keeps serving them. "
    said += "Delete the records first, and the zone when they are gone."
    return ZoneDifference(zone.account, zone.name, domain, (), 0, (said,))


ZONES = Watch(_numbers, _frozen, _difference)

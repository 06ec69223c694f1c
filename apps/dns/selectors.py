"""How far they have come and what is served, to operators wholly, to others as far as it is theirs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Prefetch

from apps.accounts.actors import Actor
from apps.core.errors import there
from apps.definitions.freezing.zone_records import values_of
from apps.definitions.models import Record, Zone
from apps.definitions.selectors import records, zones
from apps.dns.models import ServedRecord, ZonePush, ZoneSync
from apps.dns.planning import Key


@dataclass(frozen=True, slots=True)
class RecordState:
    """One record as a page shows it: what is wanted, what each resolver answered, what is wrong with it."""

    record: Record
    name: str
    values: list[str]
    served: list[ServedRecord]
    drift: dict[str, Any] | None = None
    in_the_way: dict[str, Any] | None = None
    refused: str = ""
    pushed: bool = False


@dataclass(frozen=True, slots=True)
class ZoneState:
    """How far a zone has come: in_sync, behind, drifted, blocked, refused, failing, unknown."""

    zone: Zone
    sync: ZoneSync | None
    status: str
    message: str = ""


def zone_for(actor: Actor, zone_id: int) -> Zone:
    """The zone, as far as the actor may know of it. Raises NotFound."""
    return there(zones(actor).filter(pk=zone_id).first(), "There is no such zone, or you may not see it.")


def key_of(zone: Zone, record: Record) -> Key:
    """The absolute name and the type of a record."""
    return (zone.domain if record.label == "@" else f"{record.label}.{zone.domain}"), record.type


def zone_states(actor: Actor) -> list[ZoneState]:
    """Every zone that the actor sees; what concerns only records of others makes it no worse for a customer."""
    rows = list(zones(actor).order_by("domain"))
    syncs = {sync.zone_id: sync for sync in ZoneSync.objects.filter(zone__in=rows)}
    mine = None if actor.is_operator else _own_keys(actor, rows)
    return [_state(zone, syncs.get(zone.pk), mine) for zone in rows]


def state_of_zone(actor: Actor, zone: Zone) -> ZoneState:
    """As `zone_states`, for one."""
    mine = None if actor.is_operator else _own_keys(actor, [zone])
    return _state(zone, ZoneSync.objects.filter(zone=zone).first(), mine)


def _own_keys(actor: Actor, rows: list[Zone]) -> set[Key]:
    own = Record.objects.filter(zone__in=rows, account=actor.account).select_related("zone")
    return {key_of(row.zone, row) for row in own}


def _state(zone: Zone, sync: ZoneSync | None, mine: set[Key] | None) -> ZoneState:
    def concerns(entries: list[dict[str, Any]]) -> int:
        return sum(mine is None or (each["name"], each["type"]) in mine for each in entries)

    if zone.driver == Zone.Driver.ROUTE53:
        return ZoneState(zone, None, "of_stack", "Its stack manages it.")
    if sync is None:
        return ZoneState(zone, sync, "behind", "No records have been written yet.")
    if sync.error:
        return ZoneState(
            zone, sync, "failing", sync.error if mine is None else "The name server does not accept changes now."
        )
    for status, entries in (("refused", sync.refused), ("blocked", sync.in_the_way), ("drifted", sync.drift)):
        if count := concerns(entries):
            return ZoneState(zone, sync, status, f"{count} record{'s' if count > 1 else ''}")
    if zone.desired_generation > sync.pushed_generation:
        return ZoneState(zone, sync, "behind", "A push is in progress.")
    return ZoneState(zone, sync, "in_sync")


def record_states(actor: Actor, zone: Zone) -> list[RecordState]:
    """The zone's records that the actor sees, with what is served; the same number of queries whatever their number."""
    served = Prefetch("served", ServedRecord.objects.order_by("resolver"))
    rows = records(actor).filter(zone=zone).prefetch_related(served).order_by("label", "type")
    sync = ZoneSync.objects.filter(zone=zone).first()
    pushed = set(zone.pushed_records.values_list("name", "type"))
    drift = _by_key(sync.drift if sync else [])
    blocked = _by_key(sync.in_the_way if sync else [])
    refused = _by_key(sync.refused if sync else [])
    found = []
    for row in rows:
        key = key_of(zone, row)
        found.append(
            RecordState(
                record=row,
                name=key[0],
                values=values_of(row),
                served=list(row.served.all()),
                drift=drift.get(key),
                in_the_way=blocked.get(key),
                refused=_told(actor, zone, refused.get(key, {}).get("message", "")),
                pushed=key in pushed,
            )
        )
    return found


def _told(actor: Actor, zone: Zone, message: str) -> str:
    """Why the server refuses a record; who serves the zone, and with which key, is for operators."""
    for hidden in () if actor.is_operator else filter(None, (zone.server, zone.key_name)):
        message = message.replace(f" {hidden}", "")
    return message


def _by_key(entries: list[dict[str, Any]]) -> dict[Key, dict[str, Any]]:
    return {(each["name"], each["type"]): each for each in entries}


def pushes(actor: Actor, zone: Zone) -> list[ZonePush]:
    """The last fifty writes to the zone's server; operators only, they tell of everybody's records."""
    return list(ZonePush.objects.filter(zone=zone)[:50]) if actor.is_operator else []

"""One holder's work: read, plan, write, read again, note what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction

from apps.core.clock import database_now
from apps.core.concurrency.backoff import pause_after
from apps.core.concurrency.leases import Lease, LeaseLost
from apps.core.events import publish_after_commit
from apps.definitions.freezing.zone_records import Wanted, freeze_zone
from apps.definitions.models import Zone
from apps.dns.models import PushedRecord, ServedRecord, ZonePush, ZoneSync
from apps.dns.planning import Difference, Key, ZonePlan, plan
from apps.dns.targets import driver_of
from apps.drivers.dns.contract import Contents, DnsDriver, DnsError, Edit, RecordSet, Refused
from apps.drivers.dns.records import BadValue, record_set

LEASE = timedelta(seconds=90)
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=5), timedelta(minutes=5)
SPILLWAY = "spillway"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The three sides of a zone at one moment, and what follows from them; `unreadable` rows mean nothing, and why."""

    wanted: Wanted
    plan: ZonePlan
    unreadable: dict[Key, str]


def compare(zone: Zone, driver: DnsDriver, repair: dict[str, Any] | None = None) -> Comparison:
    """Read the server and plan; writes nothing. Raises DnsError."""
    wanted = freeze_zone(zone.pk)
    ours, sent = pushed_records(zone), _sent_records(zone)
    sets, unreadable = _readable(wanted, zone.domain)
    known = sorted({(each.name, each.type) for each in (*sets, *ours, *sent)})
    served = driver.read(known)
    ours = _taken(ours, sent, served)
    keep = _unresolved_keys(wanted, ours, zone) | unreadable.keys()
    return Comparison(wanted, _plan(sets, ours, served, keep, repair), unreadable)


def _readable(wanted: Wanted, domain: str) -> tuple[list[RecordSet], dict[Key, str]]:
    """The wanted record sets in the form of the wire; one that means nothing keeps nobody else's back."""
    found, unreadable = [], {}
    for each in wanted.records:
        try:
            found.append(record_set(each.name, each.type, each.ttl, each.values, domain))
        except BadValue as error:
            unreadable[each.name, each.type] = str(error)
    return found, unreadable


def _plan(
    sets: list[RecordSet],
    ours: list[RecordSet],
    served: Contents,
    keep: frozenset[Key],
    repair: dict[str, Any] | None,
) -> ZonePlan:
    if not repair:
        return plan(sets, ours, served.records, keep=keep)
    keys = [(str(name), str(kind)) for name, kind in repair["keys"]] or [(each.name, each.type) for each in sets]
    return plan(
        sets, ours, served.records, keep=keep, repair=frozenset(keys), adopt_existing=bool(repair.get("adopt_existing"))
    )


def _unresolved_keys(wanted: Wanted, ours: list[RecordSet], zone: Zone) -> frozenset[Key]:
    """Names and types of records that have nothing to say yet: what is served there stays."""
    if not wanted.unresolved:
        return frozenset()
    rows = zone.records.filter(pk__in=[pk for pk, _ in wanted.unresolved]).values_list("label", "type")
    names = {(zone.domain if label == "@" else f"{label}.{zone.domain}", kind) for label, kind in rows}
    return frozenset((each.name, each.type) for each in ours if (each.name, each.type) in names)


def pushed_records(zone: Zone) -> list[RecordSet]:
    """What the server last took from us."""
    rows = PushedRecord.objects.filter(zone=zone).values_list("name", "type", "ttl", "values")
    return [RecordSet(name, kind, ttl, tuple(values)) for name, kind, ttl, values in rows]


def _sent_records(zone: Zone) -> list[RecordSet]:
    """What was sent to the server, and nobody knows whether it took that."""
    rows = ZoneSync.objects.filter(zone=zone).values_list("writing", flat=True).first() or []
    return [RecordSet(each["name"], each["type"], each["ttl"], tuple(each["values"])) for each in rows]


def _taken(ours: list[RecordSet], sent: list[RecordSet], served: Contents) -> list[RecordSet]:
    """What the server took from us, also where nobody heard that it did: it serves exactly what was sent."""
    there = set(sent).intersection(served.records)
    return list({(each.name, each.type): each for each in (*ours, *there)}.values())


def work(zone: Zone, lease: Lease[ZoneSync]) -> None:
    """Bring the zone's server to what is wanted, once; every failure is written down with when to try again."""
    repair = ZoneSync.objects.values_list("repair", flat=True).get(pk=lease.pk)
    comparison: Comparison | None = None
    taken: list[Edit] = []
    try:
        driver = driver_of(zone)
        comparison = compare(zone, driver, repair)
        refused = comparison.unreadable | _write(driver, comparison.plan.edits, lease, taken)
    except DnsError as error:
        _note_failure(zone, lease, error, repair, comparison, taken)
    else:
        _note_outcome(zone, lease, comparison, refused, repair)


def _write(driver: DnsDriver, edits: tuple[Edit, ...], lease: Lease[ZoneSync], taken: list[Edit]) -> dict[Key, str]:
    """Write and look again; what was refused, with the reason. Raises DnsError.

    `taken` grows with every yes of the server: it tells what stands there when the next answer never comes.
    """
    refused: dict[Key, str] = {}
    if edits:
        _note_sending(lease, edits)
        refused = _send(driver, edits, lease, taken)
    if not taken:
        return refused
    served = {(each.name, each.type): each for each in driver.read([_key(each) for each in taken]).records}
    # A server may take a change and serve something else: RFC 2136 lets it skip records in silence.
    silent = "The server took the change but serves something else."
    return refused | {_key(edit): silent for edit in taken if served.get(_key(edit)) != edit.after}


def _note_sending(lease: Lease[ZoneSync], edits: tuple[Edit, ...]) -> None:
    """Before anything is sent: what the server takes is ours to remove, also when its yes is never heard."""
    fresh = [_plain(edit.after) for edit in edits if edit.after is not None]
    with transaction.atomic():
        sync = lease.lock()
        sync.writing = [*sync.writing, *(each for each in fresh if each not in sync.writing)]
        sync.save(update_fields=("writing",))


def _plain(each: RecordSet) -> dict[str, Any]:
    return {"name": each.name, "type": each.type, "ttl": each.ttl, "values": list(each.values)}


def _send(driver: DnsDriver, edits: tuple[Edit, ...], lease: Lease[ZoneSync], taken: list[Edit]) -> dict[Key, str]:
    """Write all edits; what was refused, with the reason. One bad record keeps nobody else's back.

    What is too much for one write or refused as a whole goes in halves, down to single names. Raises Unreachable.
    """
    first, second = _halves(edits)
    if not second or len(edits) <= driver.at_once:
        lease.renew()
        try:
            driver.write(edits)
        except Refused as error:
            if not second:
                return {_key(edit): error.message for edit in edits}
        else:
            taken += edits
            return {}
    return _send(driver, first, lease, taken) | _send(driver, second, lease, taken)


def _key(edit: Edit) -> Key:
    return edit.name, edit.type


def _halves(edits: tuple[Edit, ...]) -> tuple[tuple[Edit, ...], tuple[Edit, ...]]:
    """Two parts of about the same size that divide no name; the second is empty when there is only one name."""
    names = sorted({edit.name for edit in edits})
    first = set(names[: (len(names) + 1) // 2])
    return tuple(each for each in edits if each.name in first), tuple(each for each in edits if each.name not in first)


def _lock(zone: Zone, lease: Lease[ZoneSync]) -> ZoneSync:
    """The row, for what came of a push. Raises LeaseLost, also where the zone has another server by now."""
    sync = lease.lock()
    if not Zone.objects.filter(pk=zone.pk, server=zone.server).exists():
        raise LeaseLost(f"zone {zone.name} has another server")
    return sync


def _note_outcome(
    zone: Zone, lease: Lease[ZoneSync], done: Comparison, refused: dict[Key, str], repair: dict[str, Any] | None
) -> None:
    written = [edit for edit in done.plan.edits if _key(edit) not in refused]
    with transaction.atomic():
        sync = _lock(zone, lease)
        moment, before = database_now(), (sync.drift, sync.in_the_way, sync.refused)
        _store_pushed(zone, _pushed(done.plan, refused))
        if written:
            sync.pushed_at = moment
            _note_written(zone, done, written, repair)
        fresh = {key: why for key, why in refused.items() if why not in {each["message"] for each in sync.refused}}
        if fresh:
            edits = [edit for edit in done.plan.edits if _key(edit) in fresh]
            _note_push(zone, done, edits, ZonePush.State.FAILED, next(iter(fresh.values())), repair)
        sync.pushed_generation = max(sync.pushed_generation, done.wanted.generation)
        sync.read_at, sync.error, sync.writing = moment, "", []
        sync.failures = sync.failures + 1 if refused else 0
        sync.next_try_at = moment + _pause(sync.failures) if refused else None
        sync.drift = [described(each) for each in done.plan.drift]
        sync.in_the_way = [described(each) for each in done.plan.in_the_way]
        sync.unmanaged = [{"name": each.name, "type": each.type} for each in done.plan.unmanaged]
        sync.refused = [{"name": name, "type": kind, "message": why} for (name, kind), why in sorted(refused.items())]
        if sync.repair == repair:
            sync.repair = None
        sync.save()
        if written or before != (sync.drift, sync.in_the_way, sync.refused):
            publish_after_commit("zones", zone=zone.pk)


def _note_written(zone: Zone, done: Comparison, written: list[Edit], repair: dict[str, Any] | None) -> None:
    """What resolvers said of these records was about what they were before: they are asked anew."""
    _note_push(zone, done, written, ZonePush.State.DONE, "", repair)
    keys = {_key(edit) for edit in written}
    changed = [each.record_id for each in done.wanted.records if (each.name, each.type) in keys]
    ServedRecord.objects.filter(record__in=changed).delete()


def _pause(failures: int) -> timedelta:
    return pause_after(failures, first=FIRST_PAUSE, longest=LONGEST_PAUSE)


def _pushed(made: ZonePlan, refused: dict[Key, str]) -> dict[Key, RecordSet]:
    """What the server took from us by now: what it refused is there as it was, if it is there at all."""
    after = {key: each for key, each in made.pushed.items() if key not in refused}
    before = {_key(edit): edit.before for edit in made.edits if _key(edit) in refused}
    return after | {key: each for key, each in before.items() if each is not None and key in made.ours}


def _note_failure(
    zone: Zone,
    lease: Lease[ZoneSync],
    error: DnsError,
    repair: dict[str, Any] | None,
    done: Comparison | None,
    taken: list[Edit],
) -> None:
    """What the server took before it failed is there, and is ours: the next push goes on from it."""
    message = error.message
    with transaction.atomic():
        sync = _lock(zone, lease)
        if done is not None and taken:
            message += f" It had taken {len(taken)} of {len(done.plan.edits)} changes by then."
            ours = {(each.name, each.type): each for each in pushed_records(zone)}
            ours_now = ours | {_key(edit): edit.after for edit in taken}
            _store_pushed(zone, {key: each for key, each in ours_now.items() if each is not None})
            _note_written(zone, done, taken, repair)
            sync.pushed_at = database_now()
            heard = {_key(edit) for edit in taken}
            sync.writing = [each for each in sync.writing if (each["name"], each["type"]) not in heard]
        sync.failures += 1
        sync.next_try_at = database_now() + _pause(sync.failures)
        if isinstance(error, Refused) and sync.repair == repair:
            sync.repair = None  # what the server refuses is not asked for again behind the person's back
        sync.error = message[:2000]
        sync.save()
        publish_after_commit("zones", zone=zone.pk)


def _store_pushed(zone: Zone, pushed: dict[Key, RecordSet]) -> None:
    """Bring the table of what is ours on the server to what it took."""
    known = {(row.name, row.type): row for row in PushedRecord.objects.filter(zone=zone)}
    gone = [row.pk for key, row in known.items() if key not in pushed]
    PushedRecord.objects.filter(pk__in=gone).delete()
    fresh = [each for key, each in pushed.items() if key not in known]
    PushedRecord.objects.bulk_create(
        PushedRecord(zone=zone, name=each.name, type=each.type, ttl=each.ttl, values=list(each.values))
        for each in fresh
    )
    for key, row in known.items():
        each = pushed.get(key)
        if each is not None and (row.ttl, tuple(row.values)) != (each.ttl, each.values):
            PushedRecord.objects.filter(pk=row.pk).update(ttl=each.ttl, values=list(each.values))


def _note_push(
    zone: Zone, done: Comparison, edits: list[Edit], state: str, message: str, repair: dict[str, Any] | None
) -> None:
    ZonePush.objects.create(
        zone=zone,
        generation=done.wanted.generation,
        kind="repair" if repair else "change",
        state=state,
        actor=str((repair or {}).get("actor", SPILLWAY))[:150],
        reason=str((repair or {}).get("reason", ""))[:400],
        edits=[edited(edit) for edit in edits],
        message=message[:2000],
    )


def edited(edit: Edit) -> dict[str, Any]:
    """An edit as it is stored and shown."""
    return {"name": edit.name, "type": edit.type, "before": _shown(edit.before), "after": _shown(edit.after)}


def described(each: Difference) -> dict[str, Any]:
    """A difference as it is stored and shown; `served` may be of another type where an alias stands in the way."""
    return {
        "name": each.wanted.name,
        "type": each.wanted.type,
        "wanted": _shown(each.wanted),
        "served": _shown(each.served),
    }


def _shown(each: RecordSet | None) -> dict[str, Any] | None:
    return None if each is None else {"type": each.type, "ttl": each.ttl, "values": list(each.values)}

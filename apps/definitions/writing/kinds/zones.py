"""Writes of DNS zones and records: one writer of a zone at a time, so that every rule sees what is there.

In a zone that an operator shares with it, a customer keeps records of its own: never of the zone's own name, never of a
name (or under a wildcard) of somebody else, never of a hostname that another account has claimed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from django.conf import settings
from django.db.models import Q

from apps.accounts.hostnames.claims import lock_hostnames, overlapping
from apps.accounts.models import Account, Hostname
from apps.compiler.model.stack import AddressKind, Cloud, RecordType
from apps.core.called_urls import read_url
from apps.core.errors import FieldError, InProgress, Invalid
from apps.definitions.freezing.zone_records import wanted_records
from apps.definitions.models import LoadBalancer, Record, Zone
from apps.definitions.shapes.base.writing import copy_plain
from apps.definitions.shapes.traffic.record import RecordSpec
from apps.definitions.shapes.traffic.zone import ZoneDriver, ZoneSpec
from apps.definitions.values.record_values import APEX, MAX_NAME, base_of, full_name, is_delegate
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.kinds.grants import reject_lost_tags
from apps.definitions.writing.rules.emptying import is_confirmed
from apps.fleet.models import Stack, StaticIP


def store_zone(changes: ChangeSet, owner: Account, row: Zone, spec: ZoneSpec) -> None:
    """Who serves the zone; its domain and its driver stay, since what was pushed stays where it is."""
    if not settings.DEVELOPMENT:
        for field_error in only_for_development(spec):
            changes.add_error(field_error.pointer, field_error.code, field_error.detail)
    stack = changes.named(Stack, spec.stack, "/spec/stack")
    if stack and stack.cloud_account.cloud != Cloud.AWS:
        changes.add_error("/spec/stack", "cloud", f"Route 53 belongs to AWS; stack {stack.name} is in another cloud.")
    if Zone.objects.filter(domain=spec.domain).exclude(pk=row.pk).exists():
        changes.add_error("/spec/domain", "taken", f"A zone for {spec.domain} already exists.")
    if row.pk is not None:
        _reject_move(changes, row, stack, spec)
    changes.field_errors.raise_any()
    if row.pk is not None and row.tags != dict(spec.tags):
        changes.deferred.add(partial(reject_lost_tags, changes, row, row.tags, changes.field_errors.pointer))
    moved = row.pk is not None and row.server != spec.server
    row.account, row.stack = owner, stack
    copy_plain(spec, row)
    row.save()
    if moved:
        _forget_pushed(row)
    changes.lookups.remember(row, "Zone", owner.name, row.name)
    changes.mark_affected(row)


def _reject_move(changes: ChangeSet, row: Zone, stack: Stack | None, spec: ZoneSpec) -> None:
    for field in ("domain", "driver"):
        if getattr(row, field) != getattr(spec, field):
            changes.add_error(f"/spec/{field}", "in_use", f"The {field} of a zone cannot change; create another zone.")
    if row.stack_id != (stack.pk if stack else None):
        changes.add_error("/spec/stack", "in_use", "A zone cannot move to another stack; create another zone.")


def _forget_pushed(row: Zone) -> None:
    """Another server took nothing from us: what is wanted is written there as new, and never over what others have.

    What is to be removed stays known: the new name may lead to the same server.
    """
    wanted = {(each.name, each.type) for each in wanted_records(row).records}
    pushed = row.pushed_records.values_list("pk", "name", "type")
    row.pushed_records.filter(pk__in=[pk for pk, *key in pushed if tuple(key) in wanted]).delete()


def reject_forgetting(changes: ChangeSet, row: Zone) -> None:
    """Only the zone's rows know what its server serves of ours, so that is removed before they go.

    Names that are served for nobody are a danger to whoever used them. Raises InProgress until they are removed, unless
    somebody confirmed that they stay; what the same write deletes is a loss like others.
    """
    name = f"{row.account.name}/{row.name}"
    left = len({*row.pushed_records.values_list("name", "type"), *_being_written(row, name)})
    if not left:
        return
    said = f"The server of zone {name} still serves {left} record{'s' if left > 1 else ''} that Spillway wrote."
    if row.pk in changes.affected.zones:
        said += " Delete the records first, and the zone when they are gone."
        changes.deferred.stopped.append((changes.field_errors.pointer, name, said))
    elif not is_confirmed(name):
        soon = "Deleted records are removed within moments: try again."
        raise InProgress(f"{said} {soon} If the server is gone, leave them there: confirm={name}")


def _being_written(row: Zone, name: str) -> set[tuple[str, str]]:
    """What was sent to the server, and nobody knows whether it took that; nothing more is sent from now on."""
    sync = getattr(row, "sync", None)
    if sync is None:
        return set()
    # Whoever holds the row notes what comes of a push: to wait for it here could make both wait for each other.
    held = type(sync)._default_manager.select_for_update(skip_locked=True).filter(pk=sync.pk).first()
    if held is None:
        raise InProgress(f"Records of zone {name} are being written. Try again in a moment.")
    return {(each["name"], each["type"]) for each in held.writing}


def only_for_development(spec: ZoneSpec) -> Iterator[FieldError]:
    """What only a developer's machine takes: zones in memory, and a key that travels in the clear."""
    if spec.driver is ZoneDriver.MEMORY:
        detail = "Use rfc2136, powerdns or route53; memory is for development."
        yield FieldError("/spec/driver", "choice", detail)
    server = read_url(spec.server, schemes=("https", "http")) if spec.driver is ZoneDriver.POWERDNS else None
    if server and server.scheme == "http" and server.host not in ("127.0.0.1", "::1", "localhost"):
        detail = "Start the URL with https://: every request carries the API key."
        yield FieldError("/spec/server", "url", detail)


def store_record(changes: ChangeSet, owner: Account, row: Record, spec: RecordSpec) -> None:
    """One set of records; it stays in its zone under its name and type, or moves there as a whole."""
    zone = _zone(changes, owner, row, spec)
    static_ip = _static_ip(changes, owner, spec)
    balancer = changes.named(LoadBalancer, spec.load_balancer, "/spec/load_balancer")
    if zone:
        lock_zone(changes, zone)
        _reject_unsupported(changes, row, zone, spec)
        if zone.account_id != owner.pk:
            _reject_foreign(changes, owner, row, zone, spec)
    if balancer and zone:
        _expect_followable(changes, balancer, zone, spec)
    if changes.field_errors or zone is None:
        raise Invalid(changes.field_errors.drain())
    if row.pk is not None:
        changes.mark_affected(row)
    row.account, row.zone, row.static_ip, row.load_balancer = owner, zone, static_ip, balancer
    copy_plain(spec, row)
    row.save()
    changes.mark_affected(row)


def lock_zone(changes: ChangeSet, zone: Zone) -> None:
    """Hold the zone until commit: nobody else makes, changes or removes a record of it meanwhile."""
    changes.lookup(("held zone", zone.pk), lambda: list(Zone.objects.select_for_update().filter(pk=zone.pk)))


def lock_zone_of(changes: ChangeSet, row: Record) -> None:
    """As `lock_zone`, for a record that goes."""
    lock_zone(changes, row.zone)


def _zone(changes: ChangeSet, owner: Account, row: Record, spec: RecordSpec) -> Zone | None:
    """The zone by its reference. One of another account that the record is in already stays, also after its grant."""
    if row.pk is not None and row.zone.account_id != owner.pk:
        present = f"{row.zone.account.name}/{row.zone.name}"
        if spec.zone == present:
            return row.zone
    return changes.owned(Zone, owner, spec.zone, "/spec/zone")


def _static_ip(changes: ChangeSet, owner: Account, spec: RecordSpec) -> StaticIP | None:
    """The static IP that is followed; customers follow those that were given to them, others do not exist for them."""
    pointer, name = "/spec/static_ip", spec.static_ip
    found = changes.named(StaticIP, name, pointer)
    if found and not changes.actor.is_operator and found.owner_id != owner.pk:
        changes.add_error(pointer, "unknown", f"There is no static IP {name}.")
        return None
    if found and found.address and (":" in found.address) != (spec.type is RecordType.AAAA):
        kind = "AAAA" if ":" in found.address else "A"
        changes.add_error("/spec/type", "family", f"{found.address} of {found.name} needs a record of type {kind}.")
    elif found and found.kind in (AddressKind.ELASTIC, AddressKind.ACCELERATOR) and spec.type is RecordType.AAAA:
        changes.add_error("/spec/type", "family", f"{found.name} is an IPv4 address; use a record of type A.")
    return found


def _expect_followable(changes: ChangeSet, balancer: LoadBalancer, zone: Zone, spec: RecordSpec) -> None:
    """Errors where a load balancer has nothing that a record of this type could say."""
    on_fleets, in_stacks = changes.lookup(("stands", balancer.pk), lambda: _stands(balancer))
    pointer = "/spec/load_balancer"
    if not on_fleets and not in_stacks:
        changes.add_error(pointer, "nowhere", f"{balancer.name} is not deployed yet; add a fleet or a stack first.")
    elif spec.type is RecordType.CNAME and on_fleets:
        detail = f"{balancer.name} is on fleets, which have addresses: use type A or AAAA."
        changes.add_error("/spec/type", "source", detail)
    elif spec.type is not RecordType.CNAME and zone.stack_id and in_stacks and zone.stack_id not in in_stacks:
        detail = f"{balancer.name} is in another stack than the zone; follow its static IP, or use a CNAME."
        changes.add_error(pointer, "stack", detail)


def _stands(balancer: LoadBalancer) -> tuple[bool, list[int]]:
    """Whether it is on fleets, and the stacks that it is in."""
    return balancer.fleets.exists(), list(balancer.stacks.values_list("pk", flat=True))


def _reject_unsupported(changes: ChangeSet, row: Record, zone: Zone, spec: RecordSpec) -> None:
    """1. The name is not too long. 2. A CNAME stands alone. 3. There is one set of a name and type."""
    name = full_name(spec.label, zone.domain)
    if len(name) > MAX_NAME:
        changes.add_error(
            "/spec/label", "too_long", f"The whole name may have {MAX_NAME} characters; {name[:40]}… has {len(name)}."
        )
    same = Record.objects.filter(zone=zone, label=spec.label).exclude(pk=row.pk).select_related("account")
    for other in same:
        whose = f"Record {other.name}" if changes.actor.owns(other) else "Another record"
        if other.type == spec.type:
            changes.add_error("/spec/label", "taken", f"{whose} is {name} {spec.type} already; add your values to it.")
        elif RecordType.CNAME in (other.type, spec.type):
            changes.add_error(
                "/spec/type",
                "cname",
                f"{whose} of {name} is of type {other.type}; a CNAME must be the only record of its name.",
            )


def _reject_foreign(changes: ChangeSet, owner: Account, row: Record, zone: Zone, spec: RecordSpec) -> None:
    """What a customer may not do in a zone that is only shared with it."""
    base, name = base_of(spec.label), full_name(spec.label, zone.domain)
    if spec.type is RecordType.NS:
        changes.add_error("/spec/type", "delegation", "Only the owner of the zone can delegate names; ask an operator.")
    if is_delegate(spec.label):
        detail = "Other names send their challenges below _acme-challenge; records there are the zone's owner's alone."
        changes.add_error("/spec/label", "delegate", detail)
    if spec.tags:
        changes.add_error("/spec/tags", "operators", "Only operators can tag records in a shared zone; leave tags out.")
    moved = row.pk is None or (row.label, row.zone_id) != (spec.label, zone.pk)
    if base == APEX or spec.label == "*":
        detail = f"Only the owner can change records of {zone.domain} itself; use a name below it."
        changes.add_error("/spec/label", "apex", detail)
    elif moved and (_belongs_to_others(owner, zone, base) or _is_claimed(owner, full_name(base, zone.domain))):
        changes.add_error("/spec/label", "name_taken", f"The name {name} is not available to this account.")


def _belongs_to_others(owner: Account, zone: Zone, base: str) -> bool:
    """Whether somebody else has records of the name; or another customer those of a wildcard that joins the two.

    What the zone's owner says by a wildcard holds for names that nobody else has.
    """
    below = f".{base.removeprefix('*.')}"
    others = Record.objects.filter(zone=zone).exclude(account=owner)
    same = others.filter(Q(label=base) | Q(label__endswith=below)).values_list("label", flat=True)
    if any(base_of(label) == base for label in same):
        return True
    customers = others.exclude(account=zone.account_id)
    parts = base.split(".")
    over = [f"*.{'.'.join(parts[start:])}" for start in range(1, len(parts))]
    joined = Q(label__in=over) | Q(label__endswith=below) if base.startswith("*.") else Q(label__in=over)
    return customers.filter(joined).exists()


def _is_claimed(owner: Account, name: str) -> bool:
    """Whether another account has verified the hostname, or another customer one that a wildcard joins with it."""
    lock_hostnames([name])
    others = Hostname.objects.filter(released_at=None).exclude(account=owner).exclude(verification="")
    joined = overlapping(name).filter(released_at=None).exclude(account=owner).exclude(verification="")
    return others.filter(name=name).exists() or joined.exclude(account__kind=Account.Kind.OPERATOR).exists()

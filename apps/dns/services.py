"""Brings every zone's server to what the definitions say, again and again, until nothing differs.

`reconcile_zone` may be called at any time, by anybody, as often as they like; it is driven by what differs:

1. Claim the zone with a lease. Somebody else has it: leave, they look once more before they go.
2. Read what is wanted and what the server serves, and plan (planning.py). What nobody defined here is never touched.
3. Write all edits, at once where they fit; where the server refuses, in halves, so that one bad record keeps no
   other back. What it took before it fell silent is noted too.
4. Look again, and note what the server took, what drifted, what stands in the way.

A worker that dies anywhere leaves a zone that differs; the next one starts at 1 and finds that out. Zones on Route 53
belong to their stack and are not pushed here.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q

from apps.accounts.actors import Actor
from apps.audit import services as audit
from apps.core.clock import database_now
from apps.core.concurrency.fairness import Owners, Seats, in_turns
from apps.core.concurrency.leases import LeaseLost, take
from apps.core.errors import Conflict, FieldError, Invalid, NotFound
from apps.core.queue import enqueue_on_commit
from apps.definitions.models import Record, Zone
from apps.dns import pushing
from apps.dns.models import ServedRecord, ZonePush, ZoneSync
from apps.dns.planning import Key
from apps.dns.selectors import key_of, zone_for
from apps.dns.targets import driver_of
from apps.drivers.dns.contract import DnsError

RECONCILE_ZONE_TASK = "apps.dns.tasks.reconcile_zone"
ASK_TASK = "apps.dns.tasks.ask_resolvers"
ROUNDS = 20
# A server that does not answer holds up its own zones only.
SEATS: Seats[int] = Seats()
KEPT_FOR = timedelta(days=90)

logger = logging.getLogger(__name__)


def reconcile_zone(*, zone_id: int) -> bool:
    """Work on the zone until nothing differs that can be changed now; False when somebody else works on it."""
    for _ in range(ROUNDS):
        zone = Zone.objects.exclude(driver=Zone.Driver.ROUTE53).filter(pk=zone_id).first()
        if zone is None:
            return True  # deleted since somebody thought of it, or its stack's
        lease = take(ZoneSync, pushing.LEASE, zone=zone)
        if lease is None:
            return False
        try:
            pushing.work(zone, lease)
        except LeaseLost as lost:
            logger.warning("%s; somebody else goes on", lost)
            return False
        finally:
            lease.release()
        if not _wants_more(zone_id):
            return True
    logger.error("zone %s does not come to rest", zone_id)
    return True


def _wants_more(zone_id: int) -> bool:
    """Whether a change or a repair came between the last look and the release, and nothing says to wait."""
    behind = Q(zone__desired_generation__gt=F("pushed_generation")) | Q(repair__isnull=False)
    return ZoneSync.objects.filter(behind, zone=zone_id, next_try_at=None).exists()


def reconcile_in_turns() -> int:
    """Work on what is due, server by server, as long as there are seats; the number of zones that had their turn."""

    def choose(servers: Owners, done: frozenset[int]) -> tuple[Hashable, int] | None:
        due = Zone.objects.filter(pk__in=due_zones(database_now())).exclude(server__in=servers).exclude(pk__in=done)
        return due.order_by("pk").values_list("server", "pk").first()

    return in_turns(SEATS, choose, lambda zone_id: reconcile_zone(zone_id=zone_id))


def due_zones(instant: datetime) -> list[int]:
    """Zones that are behind, asked to be repaired, to be tried again, or not looked at for a while; none claimed."""
    own = Zone.objects.exclude(driver=Zone.Driver.ROUTE53)
    claimed = ZoneSync.objects.filter(claimed_until__gte=instant).values("zone")
    behind = Q(desired_generation__gt=F("sync__pushed_generation")) | Q(sync__repair__isnull=False) | Q(sync=None)
    unseen = Q(sync__read_at=None) | Q(sync__read_at__lt=instant - timedelta(seconds=settings.DNS_LOOK_S))
    rested = Q(sync=None) | Q(sync__next_try_at=None) | Q(sync__next_try_at__lte=instant)
    again = Q(sync__next_try_at__lte=instant)
    due = own.filter(behind | unseen | again).filter(rested).exclude(pk__in=claimed)
    return list(due.order_by("pk").values_list("pk", flat=True))


def zones_to_sweep() -> list[int]:
    """As `due_zones`, now by the database's clock."""
    return due_zones(database_now())


def preview(*, actor: Actor, zone_id: int) -> pushing.Comparison:
    """What a push would write now, asked of the server itself; writes nothing. Raises NotFound, Conflict.

    It tells of everybody's records, so only operators may ask.
    """
    if not actor.is_operator:
        raise NotFound("There is no such zone, or you may not see it.")
    zone = zone_for(actor, zone_id)
    if zone.driver == Zone.Driver.ROUTE53:
        raise Conflict("This zone belongs to a stack. The plan of the stack shows what would change.")
    try:
        return pushing.compare(zone, driver_of(zone))
    except DnsError as error:
        raise Conflict(error.message) from error


def repair(
    *, actor: Actor, zone_id: int, keys: Sequence[Key] = (), adopt_existing: bool = False, reason: str = ""
) -> ZoneSync:
    """Write what is wanted over what somebody changed on the server; `keys` (name, type) empty for everything.

    Customers repair their own records. `adopt_existing` also replaces records that were never ours, by operators only.
    What somebody else asked for and waits is done as well.

    Raises Forbidden, NotFound, Invalid, Conflict for a zone of a stack and while a repair of the other kind waits.
    """
    actor.may_write("zones")
    if adopt_existing:
        actor.must_operate("records of others")
    zone = zone_for(actor, zone_id)
    if zone.driver == Zone.Driver.ROUTE53:
        raise Conflict("This zone belongs to a stack. Plan the stack to repair the records.")
    mine = {key_of(zone, row) for row in Record.objects.filter(zone=zone) if actor.is_operator or _owns(actor, row)}
    foreign = [index for index, key in enumerate(keys) if key not in mine]
    if foreign:
        raise Invalid([FieldError(f"/keys/{index}", "unknown", "There is no such record.") for index in foreign])
    wanted = sorted(keys or mine)
    if not wanted:
        raise Invalid([FieldError("/keys", "empty", "You have no records in this zone.")])
    with transaction.atomic():
        ZoneSync.objects.get_or_create(zone=zone)
        sync = ZoneSync.objects.select_for_update().get(zone=zone)
        asked = {"keys": [list(key) for key in wanted], "adopt_existing": adopt_existing}
        sync.repair = _joined(sync.repair, asked | {"actor": actor.name[:150], "reason": reason[:400]})
        sync.next_try_at = None
        sync.save(update_fields=("repair", "next_try_at"))
        audit.record(
            actor=actor,
            action="repair",
            kind="Zone",
            object_id=zone.pk,
            label=zone.domain,
            before=None,
            after=asked,
            reason=reason,
        )
        enqueue_on_commit(RECONCILE_ZONE_TASK, zone.pk)
    return sync


def _joined(waiting: dict[str, Any] | None, asked: dict[str, Any]) -> dict[str, Any]:
    """What is asked for, and what somebody asked for before and still waits. Raises Conflict where they differ in kind.

    Keys of the one would else be taken over because the other is allowed to.
    """
    if waiting is None:
        return asked
    if bool(waiting.get("adopt_existing")) != asked["adopt_existing"]:
        # Not by whom: the zone may be another account's as well, and its people are no business of this one.
        raise Conflict("A repair of another kind is pending; try again when it is done.")
    keys = sorted({(str(name), str(kind)) for name, kind in [*waiting["keys"], *asked["keys"]]})
    words = {
        word: ", ".join(dict.fromkeys(filter(None, (str(waiting.get(word, "")), asked[word]))))
        for word in ("actor", "reason")
    }
    return asked | {"keys": [list(key) for key in keys], "actor": words["actor"][:150], "reason": words["reason"][:400]}


def _owns(actor: Actor, record: Record) -> bool:
    return record.account_id == actor.account.pk


def prune(moment: datetime) -> None:
    """Forget pushes that are too old to be shown, and answers about records that moved to another resolver."""
    ZonePush.objects.filter(created_at__lt=moment - KEPT_FOR).delete()
    ServedRecord.objects.filter(asked_at__lt=moment - timedelta(days=1)).delete()

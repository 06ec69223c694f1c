"""What operators do to a region in a hurry: take its traffic away, and say how far it is from another."""

from __future__ import annotations

from functools import partial

from apps.accounts.actors import Actor
from apps.compiler.grammar import GrammarError
from apps.core.errors import FieldError, Invalid, there
from apps.definitions.affected_targets import stacks_of
from apps.definitions.reading.describing import Document
from apps.definitions.shapes.platform.topology import LATENCY_MS
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.kinds.topology import set_ms
from apps.definitions.writing.objects import save_partial
from apps.definitions.writing.transactions import change_set
from apps.fleet.models import Region, RegionLatency


def drain_region(*, actor: Actor, region: str, drained: bool, reason: str = "") -> Region:
    """Let a region take no traffic at all, or its own again; every fleet learns of it without a reload.

    Clients keep being answered by the region's own nodes, which send everything to the next region with room. Saying
    what is already so changes nothing. Raises NotFound, Forbidden for everybody but operators.
    """
    actor.must_operate("regions")
    with change_set(actor, reason=reason) as changes:
        row = _named(region)
        save_partial(changes, row, partial(_drain, changes, row, drained), action="drain" if drained else "undrain")
    return row


def _drain(changes: ChangeSet, row: Region, drained: bool) -> tuple[Document, Document]:
    row.refresh_from_db(fields=("drained", "drained_at"))
    before = {"drained": row.drained}
    if row.drained != drained:
        row.set_drained(drained)
        row.save(update_fields=("drained", "drained_at"))
        changes.affected.add_all_fleets()
        changes.affected.add_stacks(stacks_of(row))
    return before, {"drained": drained}


def set_latency(*, actor: Actor, from_region: str, to_region: str, ms: object, reason: str = "") -> Region:
    """Say how long a round trip between two regions takes, in ms (0-60 000); None goes back to what is measured.

    Fleets are pushed to when that changes which region is nearest to another. Raises NotFound, Invalid, Forbidden.
    """
    actor.must_operate("regions")
    wanted = _checked(ms) if ms is not None else None
    if from_region == to_region:
        raise Invalid([FieldError("/to", "self", "A region has no round trip to itself; name another region.")])
    with change_set(actor, reason=reason) as changes:
        row, other = _named(from_region), _named(to_region)
        save_partial(changes, row, partial(_set_latency, changes, row, other, wanted))
    return row


def _set_latency(changes: ChangeSet, row: Region, other: Region, ms: float | None) -> tuple[Document, Document]:
    changes.affected.watch_orders()
    known = RegionLatency.objects.filter(from_region=row, to_region=other).first()
    before = known.set_ms if known else None
    if before != ms:
        set_ms(row, other, ms)
    was, now = ({"latency": {"to": other.name, "ms": each}} for each in (before, ms))
    return was, now


def _checked(ms: object) -> float:
    try:
        found: float = LATENCY_MS.read(ms)
    except GrammarError as error:
        raise Invalid([FieldError("/ms", error.code, error.message)]) from error
    return found


def _named(name: str) -> Region:
    return there(Region.objects.filter(name=name).first())

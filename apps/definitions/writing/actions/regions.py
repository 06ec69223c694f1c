"""DEFINE: what operators do to a region in a hurry: take its traffic away, and say how far it is from another."""

from __future__ import annotations

from typing import Any

from apps.accounts.actors import Actor
from apps.compiler.grammar import GrammarError
from apps.core.errors import Fault, Invalid, NotFound
from apps.definitions.affected_targets import stacks_of
from apps.definitions.reading.documents import latency_ms
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.kinds.topology import set_ms
from apps.definitions.writing.parts import note, take
from apps.definitions.writing.transactions import change_set
from apps.fleet.models import Region, RegionLatency


def drain_region(*, actor: Actor, region: str, drained: bool, reason: str = "") -> Region:
    """Let a region take no traffic at all, or its own again; every fleet learns of it without a reload.

    Clients keep being answered by the region's own nodes, which send everything to the next region with room. Saying
    what is already so changes nothing. Raises NotFound, Forbidden for everybody but operators.
    """
    actor.must_operate("regions")
    with change_set(actor, reason=reason) as changes:
        row = _locked(changes, region)
        if row.drained != drained:
            row.set_drained(drained)
            _store(changes, row, "drain" if drained else "undrain", {"drained": not drained}, {"drained": drained})
            changes.affected.add_all_fleets()
            changes.affected.add_stacks(stacks_of(row))
    return row


def set_latency(*, actor: Actor, from_region: str, to_region: str, ms: object, reason: str = "") -> Region:
    """Say how long a round trip between two regions takes, in ms (0-60 000); None goes back to what is measured.

    Fleets are pushed to when that changes which region is nearest to another. Raises NotFound, Invalid, Forbidden.
    """
    actor.must_operate("regions")
    wanted = _checked(ms) if ms is not None else None
    if from_region == to_region:
        raise Invalid([Fault("/to", "self", "A region has no round trip to itself; name another region.")])
    with change_set(actor, reason=reason) as changes:
        row, other = _locked(changes, from_region), _named(to_region)
        changes.affected.watch_orders()
        known = RegionLatency.objects.filter(from_region=row, to_region=other).first()
        before = known.set_ms if known else None
        if before != wanted:
            set_ms(row, other, wanted)
            change = ({"latency": {"to": other.name, "ms": each}} for each in (before, wanted))
            _store(changes, row, "update", *change)
    return row


def _checked(ms: object) -> float:
    try:
        return latency_ms(ms)
    except GrammarError as error:
        raise Invalid([Fault("/ms", error.code, error.message)]) from error


def _named(name: str) -> Region:
    row = Region.objects.filter(name=name).first()
    if row is None:
        raise NotFound("There is no such object, or you may not see it.")
    return row


def _locked(changes: ChangeSet, name: str) -> Region:
    take(changes, _named(name))
    return _named(name)


def _store(changes: ChangeSet, row: Region, action: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    row.save(update_fields=("drained", "drained_at"))
    note(changes, row, before=before, after=after, action=action)

"""What a change still waits for: which fleet and why, which nodes, which objects were left out."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from apps.accounts.actors import Actor
from apps.compiler.questions.withholding import KINDS, kind_of
from apps.fleet.models import Fleet
from apps.rollouts.models import FleetSync, Quarantine, Rollout
from apps.rollouts.push.states import RolloutState
from apps.rollouts.selectors import NodeSync, is_live, node_sync, sync_statuses
from apps.rollouts.waves.holding import rollouts_in_waves

NODES_NAMED = 5
AT_ONCE = "Servers and network lists do not wait."
Named = tuple[str, str]  # the kind, and `account/name`


@dataclass(frozen=True, slots=True)
class Missing:
    """One thing that is not there yet; `reason` is held, refused, not_compiled, unreachable, pending or quarantined."""

    fleet: str
    reason: str
    message: str
    nodes: tuple[str, ...] = ()


def missing(actor: Actor, fleet_ids: Collection[int], objects: Collection[Named] = ()) -> tuple[Missing, ...]:
    """What keeps the present definitions of these fleets, and these objects, from being live.

    Customers learn of fleets, not of nodes, people or the objects of others.
    """
    fleets = Fleet.objects.filter(pk__in=fleet_ids).order_by("name")
    waiting = [fleet for fleet in fleets if not is_live(fleet.pk, fleet.desired_generation)]
    found = [_of_fleet(actor, fleet) for fleet in waiting]
    return (*found, *_left_out(fleet_ids, set(objects)))


def _of_fleet(actor: Actor, fleet: Fleet) -> Missing:
    sync = FleetSync.objects.select_related("held_at").filter(fleet=fleet).first()
    if sync is not None and sync.held_at is not None:
        at = f" at revision {sync.held_at.number} by {sync.held_by}" if actor.is_operator else " by the operator"
        return Missing(
            fleet.name, "held", f"Fleet {fleet.name} is held{at}; stored changes go live when the fleet is resumed."
        )
    in_waves = rollouts_in_waves().filter(fleet=fleet).first()
    if in_waves is not None and sync is not None:
        follows = sync.compiled_generation < fleet.desired_generation
        return Missing(fleet.name, "pending", _of_waves(fleet, in_waves, follows=follows))
    if sync is None or sync.compiled_generation < fleet.desired_generation:
        return Missing(fleet.name, "not_compiled", f"No worker has compiled the change for fleet {fleet.name} yet.")
    if sync_statuses(actor).get(fleet.pk) == "refused":
        why = f": {sync.compile_error}" if actor.is_operator and sync.compile_error else "."
        return Missing(fleet.name, "refused", f"Fleet {fleet.name} rejected the stored changes{why}")
    return _of_nodes(actor, fleet)


def _of_waves(fleet: Fleet, rollout: Rollout, *, follows: bool) -> str:
    if rollout.state == RolloutState.ROLLING_BACK:
        return f"Fleet {fleet.name} rolls back another change first."
    wave = f"wave {rollout.wave} of {rollout.waves}"
    if rollout.waits_for_stage:
        which = "An earlier change" if follows else "The change"
        at_once = f" {AT_ONCE}" if follows else ""
        return f"{which} reaches fleet {fleet.name} when fleets of earlier stages have proven it.{at_once}"
    if follows:
        return f"The change waits until an earlier one runs on all nodes of fleet {fleet.name} ({wave}). {AT_ONCE}"
    return f"The change reaches the nodes of fleet {fleet.name} in waves ({wave})."


def _of_nodes(actor: Actor, fleet: Fleet) -> Missing:
    behind = [node for node in node_sync(actor) if node.fleet_id == fleet.pk and node.status != "in_sync"]
    if not behind:
        return Missing(fleet.name, "pending", f"A rollout to fleet {fleet.name} is in progress.")
    silent = [node for node in behind if node.status == "unreachable"]
    if silent:
        words = "cannot be reached" if len(silent) == len(behind) else "cannot be reached; others are behind"
        return Missing(fleet.name, "unreachable", f"{_named(silent)} of fleet {fleet.name} {words}.", _names(behind))
    said = f"{_named(behind)} of fleet {fleet.name} {'does' if len(behind) == 1 else 'do'} not run it yet."
    return Missing(fleet.name, "pending", said, _names(behind))


def _names(nodes: Collection[NodeSync]) -> tuple[str, ...]:
    return tuple(node.node for node in nodes)


def _named(nodes: list[NodeSync]) -> str:
    names = ", ".join(node.node for node in nodes[:NODES_NAMED])
    more = f" and {len(nodes) - NODES_NAMED} more" if len(nodes) > NODES_NAMED else ""
    return f"{'Node' if len(nodes) == 1 else 'Nodes'} {names}{more}"


def _left_out(fleet_ids: Collection[int], objects: set[Named]) -> list[Missing]:
    """Objects of the change that were taken out, or kept as they were, so that the rest could go live."""
    if not objects:
        return []
    said = {
        (fleet, *_known_as(object_id, label), message): None
        for fleet, object_id, label, message in _withheld(fleet_ids)
    }
    return [
        Missing(fleet, "quarantined", f"{kind} {label} is left out of what runs: {message}")
        for fleet, kind, label, message in said
        if (kind, label) in objects
    ]


def _known_as(object_id: str, label: str) -> Named:
    """The kind and the name of an object that people know; a server is part of its pool."""
    kind = KINDS.get(kind_of(object_id), "")
    return ("Pool", label.rpartition("/")[0]) if kind == "Server" else (kind, label)


def _withheld(fleet_ids: Collection[int]) -> Iterator[tuple[str, str, str, str]]:
    """What nodes refuse and what could not be compiled: the fleet, whom, what it is called, and why."""
    rows = Quarantine.objects.filter(fleet__in=fleet_ids).order_by("fleet__name", "pk")
    yield from rows.values_list("fleet__name", "object_id", "label", "message")
    syncs = FleetSync.objects.filter(fleet__in=fleet_ids).order_by("fleet__name")
    for fleet, entries in syncs.values_list("fleet__name", "left_out"):
        for entry in entries:
            yield fleet, entry["object_id"], entry["label"], entry["message"]

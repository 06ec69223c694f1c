"""SHOW, what a change still waits for: which fleet and why, which nodes, which objects were left out."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from apps.accounts.actors import Actor
from apps.fleet.models import Fleet
from apps.rollouts.models import FleetSync, Revision
from apps.rollouts.selectors import NodeSync, is_live, node_sync, sync_words

NODES_NAMED = 5


@dataclass(frozen=True, slots=True)
class Missing:
    """One thing that is not there yet; `reason` is held, refused, not_compiled, unreachable, pending or quarantined."""

    fleet: str
    reason: str
    message: str
    nodes: tuple[str, ...] = ()


def missing(actor: Actor, fleet_ids: Collection[int], labels: Collection[str] = ()) -> tuple[Missing, ...]:
    """What keeps the present definitions of these fleets, and the objects with these labels, from being live.

    Customers learn of fleets, not of nodes, people or the objects of others.
    """
    fleets = Fleet.objects.filter(pk__in=fleet_ids).order_by("name")
    waiting = [fleet for fleet in fleets if not is_live(fleet.pk, fleet.desired_generation)]
    found = [_of_fleet(actor, fleet) for fleet in waiting]
    return (*found, *_left_out(fleet_ids, set(labels)))


def _of_fleet(actor: Actor, fleet: Fleet) -> Missing:
    sync = FleetSync.objects.select_related("held_at").filter(fleet=fleet).first()
    if sync is not None and sync.held_at is not None:
        at = f" at revision {sync.held_at.number} by {sync.held_by}" if actor.is_operator else " by the operator"
        return Missing(fleet.name, "held", f"Fleet {fleet.name} is held{at}; what is stored goes live when that ends.")
    if sync is None or sync.compiled_generation < fleet.desired_generation:
        return Missing(fleet.name, "not_compiled", f"No worker has compiled the change for fleet {fleet.name} yet.")
    if sync_words(actor).get(fleet.pk) == "refused":
        why = f": {sync.compile_error}" if actor.is_operator and sync.compile_error else "."
        return Missing(fleet.name, "refused", f"Fleet {fleet.name} did not take what is stored{why}")
    return _of_nodes(actor, fleet)


def _of_nodes(actor: Actor, fleet: Fleet) -> Missing:
    behind = [node for node in node_sync(actor) if node.fleet_id == fleet.pk and node.word != "in_sync"]
    if not behind:
        return Missing(fleet.name, "pending", f"A rollout to fleet {fleet.name} is on its way.")
    silent = [node for node in behind if node.word == "unreachable"]
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


def _left_out(fleet_ids: Collection[int], labels: set[str]) -> list[Missing]:
    """Objects of the change that were taken out so that the rest could go live."""
    wanted = FleetSync.objects.filter(fleet__in=fleet_ids).exclude(wanted=None).values_list("wanted_id", "fleet__name")
    if not labels:
        return []
    names = dict(wanted)
    found = []
    for pk, entries in Revision.objects.filter(pk__in=names).order_by("pk").values_list("pk", "quarantined"):
        for entry in entries:
            if entry["label"] in labels:
                message = f"{entry['label']} is left out of what runs: {entry['message']}"
                found.append(Missing(names[pk], "quarantined", message))
    return found

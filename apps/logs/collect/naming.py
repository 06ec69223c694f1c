"""What the identifiers in a node's lines meant: the definitions of the revisions that its fleet ran lately."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any

from apps.accounts.models import Account
from apps.compiler.model.fleet import Snapshot
from apps.definitions.models import Route
from apps.definitions.previewing.effective_rules import deciders
from apps.fleet.models import Node
from apps.logs.meaning import Names, names_of
from apps.rollouts.models import FleetSync, Revision
from apps.rollouts.push.revision_store import snapshot_of

# Identifiers are never used again, so names of some revisions can stand side by side; the newest name of each wins.
RECENT = 4
# By so much the machine that made an account may be ahead of the one that compiled its first revision.
CLOCKS_DIFFER = timedelta(minutes=5)
Key = tuple[int, ...]


class Naming:
    """Names by fleet, made anew when one of the fleets has a new revision."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Key, Names]] = {}

    def of(self, node: Node) -> Names | None:
        """Names for the lines of a node; None while nothing was ever compiled for it. Raises django.db.Error."""
        lately = Revision.objects.filter(fleet=node.fleet_id).order_by("-number")
        own = list(lately.values_list("pk", "digest", "created_at")[:RECENT])
        if not own:
            return None
        others = list(
            FleetSync.objects.exclude(fleet=node.fleet_id).exclude(wanted=None).values_list("wanted", "wanted__digest")
        )
        key = (*(pk for pk, *_ in own), 0, *sorted(pk for pk, _ in others))
        made = self._made.get(node.fleet_id)
        if made is None or made[0] != key:
            made = key, _names(node, own, others)
            self._made[node.fleet_id] = made
        return replace(made[1], node=node.name)


def _names(node: Node, own: list[tuple[int, str, datetime]], others: list[tuple[int, str]]) -> Names:
    known = list(Account.objects.values_list("name", "pk", "created_at"))
    elsewhere = [found for each in others if (found := _snapshot(*each))]
    merged: Names | None = None
    for pk, digest, made_at in reversed(own):
        snapshot = _snapshot(pk, digest)
        if snapshot is None:
            continue
        # One that is younger than the revision has the name of another, which is gone: those lines are not its own.
        accounts = {name: account for name, account, created_at in known if created_at <= made_at + CLOCKS_DIFFER}
        newer = names_of(snapshot, node=node.name, fleet=node.fleet.name, accounts=accounts, elsewhere=elsewhere)
        merged = newer if merged is None else _over(merged, newer)
    if merged is not None:
        return replace(merged, deciders=_deciders(node))
    return Names(node=node.name, fleet=node.fleet.name, region=node.fleet.region.name)


def _deciders(node: Node) -> dict[tuple[str, str], str]:
    """Whose the rules are, by the definitions of now: a revision has them merged, without names."""
    found = deciders(Route.objects.filter(load_balancer__fleets=node.fleet_id))
    return {(f"route-{pk}", block): source for (pk, block), source in found.items()}


def _over(older: Names, newer: Names) -> Names:
    both: dict[str, Any] = {}
    for each in fields(Names):
        value = getattr(newer, each.name)
        both[each.name] = {**getattr(older, each.name), **value} if isinstance(value, Mapping) else value
    return Names(**both)


def _snapshot(revision_id: int, digest: str) -> Snapshot | None:
    """None for a revision that was pruned meanwhile, or that an older key sealed."""
    try:
        return snapshot_of(revision_id, digest)
    except (Revision.DoesNotExist, ValueError):
        return None

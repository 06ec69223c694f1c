"""What a stack has at its cloud because of one object: its resources in Terraform's words."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

from apps.accounts.actors import Actor
from apps.stacks import selectors
from apps.stacks.models import StackRevision, StackSync
from apps.stacks.state import revision_store

MOST = 40


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource: Terraform's address of it, and what it says as JSON; values of variables stand in no document."""

    address: str
    text: str


def resources_of(actor: Actor, stack_id: int, ids: Collection[str]) -> list[Resource]:
    """The resources of objects (`pool-17`) in the revision that is wanted; customers see none. Raises Unsealable."""
    wanted = StackSync.objects.filter(stack=stack_id).values("wanted")
    row: StackRevision | None = selectors.revisions(actor, stack_id).defer(None).filter(pk__in=wanted).first()
    if row is None:
        return []
    document = revision_store.open_revision(row).document
    owners, found = document["owners"], revision_store.resources_by_address(document)
    own = [address for address in sorted(found) if owners.get(address) in ids]
    return [Resource(each, json.dumps(found[each], indent=2, sort_keys=True)) for each in own[:MOST]]

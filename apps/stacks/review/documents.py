"""What a revision of a stack says, and how it differs from another one, part by part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.accounts.actors import Actor
from apps.core.errors import NotFound
from apps.stacks import selectors
from apps.stacks.models import StackRevision
from apps.stacks.state import revision_store


@dataclass(frozen=True, slots=True)
class Document:
    """A revision and its parts by address: `aws_lb.lb_3`, `provider.aws`, `output.name`, `variable.name`.

    `labels` says how people call the object behind an address. Values of variables are in no document.
    """

    revision: StackRevision
    parts: Mapping[str, Any]
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Change:
    """One part that differs; None stands for a part that one of both documents does not have."""

    address: str
    label: str
    before: Any
    after: Any


def read(actor: Actor, stack_id: int, number: int) -> Document:
    """The document of one revision. Raises NotFound, Unsealable."""
    row = selectors.revisions(actor, stack_id).defer(None).filter(number=number).first()
    if row is None:
        raise NotFound("There is no such revision, or you may not see it.")
    opened = revision_store.open_revision(row)
    owners = opened.document["owners"]
    labels = {address: opened.labels.get(owner, owner) for address, owner in owners.items()}
    return Document(row, _parts(opened.document), labels)


def number_before(actor: Actor, revision: StackRevision) -> int | None:
    """The number of the revision before this one; None for the first that is kept."""
    earlier = selectors.revisions(actor, revision.stack_id).filter(number__lt=revision.number)
    return earlier.values_list("number", flat=True).first()


def compare(before: Document | None, after: Document) -> list[Change]:
    """The parts that differ, in the order of their addresses; without a document before everything is new."""
    old, labels = (before.parts, {**before.labels, **after.labels}) if before else ({}, after.labels)
    return [
        Change(address, labels.get(address, ""), old.get(address), after.parts.get(address))
        for address in sorted({*old, *after.parts})
        if old.get(address) != after.parts.get(address)
    ]


def _parts(document: Mapping[str, Any]) -> dict[str, Any]:
    providers = {f"provider.{each['name']}": each for each in document["providers"]}
    outputs = {f"output.{name}": value for name, value in document["outputs"].items()}
    variables = {f"variable.{name}": {"sensitive": True} for name in document["variables"]}
    return revision_store.resources_by_address(document) | providers | outputs | variables

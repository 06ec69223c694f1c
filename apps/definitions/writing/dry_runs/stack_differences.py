"""A dry run of stacks: both sides are frozen here; what a plan would hold is told by the app that plans.

No Terraform runs and no cloud is asked: documents are compared, as they would be handed to Terraform.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from apps.accounts.actors import Actor
from apps.compiler.model.stack import StackSnapshot
from apps.definitions.freezing.stack_snapshot import snapshot_of_stack
from apps.definitions.ports import PORTS
from apps.definitions.writing.dry_runs.watching import Watch
from apps.fleet.models import Stack


class Decision(StrEnum):
    """Who lets the plan be applied: nobody needs to, since there is nothing to do; the policy; a person; none may."""

    NOTHING = "nothing"
    POLICY = "policy"
    PERSON = "person"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class StackSide:
    """What a stack must be, and which of its plans wait for a person."""

    stack_id: int
    snapshot: StackSnapshot
    approval: str


@dataclass(frozen=True, slots=True)
class StackDifference:
    """What a plan of one stack would hold because of the change.

    `changes` are sentences about our objects, `to_*` count resources; `refused` and `warnings` say what the cloud
    (`target`) cannot do, or does otherwise, that did not stand there before. To customers `stack` is empty and nothing
    is told but what the cloud makes of their own objects; `decision` is then None.
    """

    stack: str
    target: str
    to_add: int = 0
    to_change: int = 0
    to_replace: int = 0
    to_delete: int = 0
    changes: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    decision: Decision | None = None
    reason: str = ""


def _numbers() -> dict[str, int]:
    return dict(Stack.objects.order_by("name").values_list("name", "desired_generation"))


def _frozen(names: Collection[str]) -> dict[str, StackSide]:
    rows = Stack.objects.select_related("cloud_account", "region").filter(name__in=list(names)).order_by("name")
    return {stack.name: StackSide(stack.pk, snapshot_of_stack(stack), stack.approval) for stack in rows}


def _difference(actor: Actor, _name: str, before: StackSide | None, after: StackSide | None) -> StackDifference | None:
    if after is None:
        return None  # a stack goes when nothing of it stands
    return PORTS.stack_preview(actor, before, after)


def as_told(actor: Actor, found: Iterable[StackDifference]) -> tuple[StackDifference, ...]:
    """All to operators; to customers one per cloud, without a name, so that they learn neither which nor how many."""
    if actor.is_operator:
        return tuple(found)
    merged: dict[str, StackDifference] = {}
    for each in found:
        so_far = merged.get(each.target, StackDifference("", each.target))
        merged[each.target] = StackDifference(
            "",
            each.target,
            refused=tuple(dict.fromkeys([*so_far.refused, *each.refused])),
            warnings=tuple(dict.fromkeys([*so_far.warnings, *each.warnings])),
        )
    return tuple(each for _, each in sorted(merged.items()) if each.refused or each.warnings)


STACKS = Watch(_numbers, _frozen, _difference)

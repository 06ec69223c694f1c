"""Who lets a plan be applied: a person, or the stack's policy; pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from apps.fleet.models import Stack
from apps.stacks.review.differences import IMPORT, REPLACE, Difference, moves_weights_only

PLATFORM = "spillway"
LOSING = frozenset({"delete", REPLACE})
# What is the address itself; a listener or balancer that uses one belongs to it as well, and may go.
ADDRESSES = frozenset(
    {
        *("aws_eip", "aws_globalaccelerator_accelerator"),
        *("google_compute_address", "google_compute_global_address"),
    }
)
# From so many resources to none at once is a lost table, not somebody's wish.
NOT_BY_HAND = 10


def approves(approval: str, by: str, changes: Sequence[Difference], remaining: int) -> bool:
    """Whether the policy says yes without asking; `by` wrote the revision, `remaining` resources would be left.

    What only takes over what stands there already (run/orphans.py) changes nothing and needs nobody. Weights that the
    platform itself moved (overflow by weights) go out under every policy: nobody would wait for a person while a region
    is full.
    """
    if changes and all(change.action == IMPORT for change in changes):
        return True
    if by == PLATFORM and moves_weights_only(changes):
        return True
    losing = sum(change.action in LOSING for change in changes)
    if approval == Stack.Approval.AUTOMATIC_SAFE:
        return not losing
    return approval == Stack.Approval.AUTOMATIC and not (losing >= NOT_BY_HAND and not remaining)


def released(changes: Sequence[Difference], protected: Collection[str]) -> list[str]:
    """Labels of protected addresses (ids such as `ip-4`) that the plan would let go."""
    losing = [each for each in changes if each.action in LOSING and each.type in ADDRESSES]
    return list(dict.fromkeys(each.label for each in losing if each.object_id in protected))

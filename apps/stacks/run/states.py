"""The one table of a run's states and of the moves between them."""

from __future__ import annotations

from apps.stacks.models import StackRun

S = StackRun.State
# Back to planning from everywhere: the state may have moved on, or a worker have died. Waiting goes on while somebody
# else has the lock.
MOVES: dict[S, frozenset[S]] = {
    S.WAITING: frozenset({S.WAITING, S.PLANNING, S.FAILED, S.DISCARDED, S.SUPERSEDED}),
    S.PLANNING: frozenset(
        {S.WAITING, S.PLANNING, S.PLANNED, S.APPROVED, S.DONE, S.UNCHANGED, S.FAILED, S.DISCARDED, S.SUPERSEDED}
    ),
    S.PLANNED: frozenset({S.WAITING, S.PLANNING, S.APPROVED, S.DISCARDED, S.SUPERSEDED}),
    S.APPROVED: frozenset({S.APPROVED, S.PLANNING, S.APPLYING, S.FAILED, S.DISCARDED, S.SUPERSEDED}),
    S.APPLYING: frozenset({S.APPROVED, S.PLANNING, S.DONE, S.FAILED, S.DISCARDED, S.SUPERSEDED}),
    S.DONE: frozenset(),
    S.UNCHANGED: frozenset(),
    S.FAILED: frozenset(),
    S.DISCARDED: frozenset(),
    S.SUPERSEDED: frozenset(),
}
TERMINAL = frozenset(state for state, moves in MOVES.items() if not moves)
# Terraform works, or a worker died while it did.
BUSY = frozenset({S.PLANNING, S.APPLYING})


class IllegalMove(Exception):
    """A run was asked to make a move that the table does not know."""


def check_move(before: S, after: S) -> None:
    """Raise IllegalMove unless the table allows the move."""
    if after not in MOVES[before]:
        raise IllegalMove(f"A run that is {before} cannot become {after}.")

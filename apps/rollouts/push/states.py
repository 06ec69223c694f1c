"""The one table of rollout states and of the moves between them."""

from __future__ import annotations

from django.db.models import TextChoices


class RolloutState(TextChoices):
    """Where a rollout stands."""

    DRAFT = "draft"
    COMPILED = "compiled"
    VALIDATED = "validated"
    AWAITING_APPROVAL = "awaiting_approval"
    PUSHING = "pushing"
    SOAKING = "soaking"
    DONE = "done"
    ROLLING_BACK = "rolling_back"
    ROLLED_BACK = "rolled_back"
    FAILED = "failed"
    SUPERSEDED = "superseded"


class StepState(TextChoices):
    """Where one node stands within a rollout."""

    WAITING = "waiting"
    PUSHING = "pushing"
    DONE = "done"
    UNREACHABLE = "unreachable"
    REFUSED = "refused"
    ROLLED_BACK = "rolled_back"


S = RolloutState
MOVES: dict[RolloutState, frozenset[RolloutState]] = {
    S.DRAFT: frozenset({S.COMPILED, S.FAILED}),
    S.COMPILED: frozenset({S.VALIDATED, S.FAILED, S.SUPERSEDED}),
    S.VALIDATED: frozenset({S.AWAITING_APPROVAL, S.PUSHING, S.FAILED, S.SUPERSEDED}),
    S.AWAITING_APPROVAL: frozenset({S.PUSHING, S.FAILED, S.SUPERSEDED}),
    S.PUSHING: frozenset({S.SOAKING, S.DONE, S.ROLLING_BACK, S.FAILED, S.SUPERSEDED}),
    S.SOAKING: frozenset({S.PUSHING, S.DONE, S.ROLLING_BACK, S.FAILED, S.SUPERSEDED}),
    S.ROLLING_BACK: frozenset({S.ROLLED_BACK, S.FAILED}),
    S.DONE: frozenset(),
    S.ROLLED_BACK: frozenset(),
    S.FAILED: frozenset(),
    S.SUPERSEDED: frozenset(),
}
UNDER_WAY = (S.PUSHING, S.SOAKING)
TURNED_BACK = (S.ROLLING_BACK, S.ROLLED_BACK, S.FAILED)
TERMINAL = frozenset(state for state, moves in MOVES.items() if not moves)


class IllegalMove(Exception):
    """A rollout was asked to make a move that the table does not know."""


def check_move(before: RolloutState, after: RolloutState) -> None:
    """Raise IllegalMove unless the table allows the move."""
    if after not in MOVES[before]:
        raise IllegalMove(f"A rollout that is {before} cannot become {after}.")

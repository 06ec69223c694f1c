"""On which fleets later changes wait because a rollout has not come to its last wave."""

from __future__ import annotations

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from apps.rollouts.models import Rollout, Step
from apps.rollouts.push.states import UNDER_WAY, RolloutState, StepState


def rollouts_in_waves() -> QuerySet[Rollout]:
    """Rollouts that a later change does not replace: nobody knows yet how they do, or their nodes go back first.

    In its last wave one is not replaced either before the nodes that answer have it: else those of later waves would
    fall ever further behind.
    """
    reached = Q(node__report=None) | Q(node__report__last_contact_error="")
    steps = Step.objects.filter(reached, rollout=OuterRef("pk"))
    still_to_come = Exists(steps.filter(state__in=(StepState.WAITING, StepState.PUSHING)))
    still_there = Exists(steps.filter(state__in=(StepState.DONE, StepState.PUSHING)))
    several = Q(waves__gt=1)
    on_the_way = Q(state__in=UNDER_WAY) & (Q(wave__lt=F("waves")) | several & Q(still_to_come))
    going_back = several & Q(still_there, state=RolloutState.ROLLING_BACK)
    return Rollout.objects.filter(on_the_way | going_back, finished_at=None)


def is_in_waves(fleet: str) -> Exists:
    """As an annotation of rows whose fleet is `fleet` (the name of the field)."""
    return Exists(rollouts_in_waves().filter(fleet=OuterRef(fleet)))

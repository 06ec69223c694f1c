"""Stacks that somebody has to look after, as the first page and the wall tell of them."""

from __future__ import annotations

from django.urls import reverse

from apps.accounts.actors import Actor
from apps.stacks.selectors import StackState, stack_states
from apps.web.overview.incidents import SICK, Incident

BY_HAND = "by_hand"  # the approval of a stack: somebody lets each plan be applied
SAID = {
    "failed": "could not be changed.",
    "refused": "cannot run what is wanted.",
    "drifted": "differs from what was applied.",
    "plan_waits": "has a plan that needs approval.",
}


def waiting_stacks(actor: Actor) -> list[Incident]:
    """Those that failed, are refused, drifted, or have a plan that waits. Five queries."""
    return [_incident(state) for state in stack_states(actor) if state.status in SAID]


def _incident(state: StackState) -> Incident:
    """A button plans anew where a plan changes nothing by itself; one that waits is looked at before it is approved."""
    title, more = f"Stack {state.stack.name} {SAID[state.status]}", [state.message] if state.message else []
    page = reverse("web:stack", args=[state.stack.pk])
    if state.status == "plan_waits":
        return Incident(SICK, title, page, "Review plan", more=more)
    by_hand = state.stack.approval == BY_HAND
    plan = ("Plan now", reverse("web:stack-plan", args=[state.stack.pk])) if by_hand else None
    return Incident(SICK, title, page, "Open stack", more=more, sends=plan)

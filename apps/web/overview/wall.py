"""The page for a screen on a wall: the state, the numbers, the flow and an hour, large, and nothing else."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from apps.accounts.actors import Actor
from apps.rollouts import selectors as rollouts
from apps.web.changes.rows import latest_changes
from apps.web.kit.pages import PageRequest, page, shared_parts, show
from apps.web.overview.screen import now_of, trend_of
from apps.web.overview.views import standing_of, summary

MARKED = 4


@page
@shared_parts("samples", "definitions", "rollouts")
def wall(request: PageRequest) -> HttpResponse:
    """Its part is asked for with each sample."""
    return show(request, "pages/overview/wall.html", _context_of(request.actor))


def _context_of(actor: Actor) -> dict[str, Any]:
    fleets = rollouts.sync_statuses(actor) if actor.is_operator else {}
    now = now_of(actor, fleets, standing_of(actor, fleets), summary(actor))
    changes, _ = latest_changes(actor, MARKED)
    return {**now.context, "trend": trend_of(actor, now.flow, changes), "last": changes[0] if changes else None}

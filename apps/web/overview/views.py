"""The state in one line, the numbers with their hour, the flow, what needs attention, the last changes, the pools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse

from apps.accounts.actors import Actor
from apps.definitions import selectors as definitions
from apps.overflow.flows import Flow
from apps.rollouts import selectors as rollouts
from apps.web.capacity.upcoming import tests_now
from apps.web.changes.rows import latest_changes
from apps.web.clouds.waiting import waiting_stacks
from apps.web.first_steps import example, operators
from apps.web.kit.pages import PageRequest, page, shared_parts, show
from apps.web.overview import home
from apps.web.overview.incidents import Incident, standing_still
from apps.web.overview.parts import attention, expiring_soon, pools_of_interest, sort_links
from apps.web.overview.screen import now_of, trend_of
from apps.web.schedules.rows import troubled

CHANGES_SHOWN = 5
REGIONS_SHOWN = 6


@page
@shared_parts("samples", "nodes", "rollouts", "definitions")
def overview(request: PageRequest) -> HttpResponse:
    """What an operator looks at first; customers have a first page of their own."""
    template = "pages/overview/overview.html" if request.actor.is_operator else home.TEMPLATE
    return show(request, template, _context_of(request.actor, request.GET.get("sort", "")[:20]))


def _context_of(actor: Actor, sort: str) -> dict[str, Any]:
    fleets = rollouts.sync_statuses(actor) if actor.is_operator else {}
    standing = standing_of(actor, fleets)
    now = now_of(actor, fleets, standing, summary(actor))
    context = {**now.context, **attention(actor, now.incidents), **_below(actor, sort, now.flow)}
    if not actor.is_operator:
        return context | home.context_of(actor, standing)
    steps = operators.first_steps(actor)
    # Until there is a route, or what a cloud does, nothing else on the page could say anything.
    building = bool(steps) and not definitions.routes(actor).exclude(manager=example.MANAGER).exists()
    regions = now.flow.regions if now.flow.at else ()
    context |= {"regions": regions[:REGIONS_SHOWN], "more_regions": len(regions) > REGIONS_SHOWN}
    return context | {"steps": steps, "building": building, "has_example": example.is_loaded(actor)}


def _below(actor: Actor, sort: str, flow: Flow) -> dict[str, Any]:
    """What stands below the numbers: the hour, changes, pools, and what is due."""
    changes, _ = latest_changes(actor, CHANGES_SHOWN)
    return {
        "changes": changes,
        "trend": trend_of(actor, flow, changes),
        **pools_of_interest(actor, flow, sort),
        "sorts": sort_links(sort),
        "expiring": expiring_soon(actor),
        "tests": tests_now(actor),
        "troubled": troubled(actor),
    }


def standing_of(actor: Actor, fleets: Mapping[int, str]) -> list[Incident]:
    """Fleets (id → how it stands) and stacks that wait for somebody; of customers those that hold their changes."""
    return [*standing_still(fleets), *waiting_stacks(actor)] if actor.is_operator else home.waiting_for(actor)


def summary(actor: Actor) -> str:
    """How much there is, for a line that has nothing else to say."""
    routes = definitions.routes(actor).count()
    if not actor.is_operator:
        return f"{routes} route{'' if routes == 1 else 's'}."
    nodes = rollouts.node_sync(actor)
    in_sync = sum(node.status == "in_sync" for node in nodes)
    return f"{routes} route{'' if routes == 1 else 's'}, {in_sync} of {len(nodes)} nodes in sync."

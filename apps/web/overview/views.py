"""The worst problem first, the numbers, traffic by region, what is on its way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse

from apps.accounts.actors import Actor
from apps.core.events import Topic
from apps.definitions import selectors as definitions
from apps.fleet import selectors as topology
from apps.observe import selectors as observe
from apps.overflow import selectors as overflow
from apps.overflow.flows import Flow
from apps.rollouts import selectors as rollouts
from apps.web.capacity.upcoming import tests_now
from apps.web.kit.figures import figures_of
from apps.web.kit.pages import PageRequest, page, show_shared
from apps.web.overflow.parts import shown
from apps.web.overflow.words import rate, use_kind, use_words
from apps.web.overview import home
from apps.web.overview.incidents import incidents, slower, standing_still
from apps.web.overview.parts import attention, expiring_soon, half_hour, lines_of, pools_of_interest
from apps.web.schedules.rows import troubled


@page
def overview(request: PageRequest) -> HttpResponse:
    """What an operator looks at first; customers have a first page of their own."""
    actor = request.actor
    if not actor.is_operator:
        topics: tuple[Topic, ...] = ("samples", "definitions", "rollouts")
        return show_shared(request, home.TEMPLATE, topics, lambda: home.context_of(actor))
    topics = ("samples", "nodes", "rollouts")
    return show_shared(request, "pages/overview/overview.html", topics, lambda: _context_of(actor))


def _context_of(actor: Actor) -> dict[str, Any]:
    nodes = rollouts.node_sync(actor)
    problems = observe.problems(actor)
    words = rollouts.sync_statuses(actor)
    flow = overflow.flow_overall(actor)
    uses = _uses(flow)
    numbers, series = observe.live_numbers(actor), half_hour(actor)
    return {
        **attention(incidents(problems, flow, standing_still(words), slower(numbers, series))),
        "summary": _summary(actor, in_sync=sum(node.status == "in_sync" for node in nodes), nodes=len(nodes)),
        "now": figures_of(numbers),
        "lines": lines_of(series),
        "flow": shown(flow, "traffic"),
        "over": rate(sum(use.overflow_out_rps for use in flow.regions)) if flow.at else "",
        "regions": [(region, uses.get(region.region_id)) for region in observe.traffic_by_region(actor)],
        "syncs": [(sync, words[sync.fleet_id]) for sync in rollouts.fleet_syncs(actor)],
        "nodes": nodes,
        "last_rollouts": rollouts.rollouts(actor)[:6],
        "pools": pools_of_interest(actor),
        "expiring": expiring_soon(actor),
        **tests_now(actor),
        "troubled": troubled(actor),
        "first_run": not topology.fleets(actor).exists(),
    }


def _summary(actor: Actor, *, in_sync: int, nodes: int) -> str:
    routes = definitions.routes(actor).count()
    return f"{routes} routes, {in_sync} of {nodes} nodes in sync."


def _uses(flow: Flow) -> Mapping[int, dict[str, Any]]:
    """By region: how full its fullest pool is, as a bar and in words, from the reading that the drawing shows."""
    if flow.at is None or flow.stale:
        return {}
    found = {}
    for use in flow.regions:
        used = (use.fullest.use if use.fullest else use).used if use.usable else None
        percent = None if used is None else round(100 * used)
        row = {"percent": percent, "kind": use_kind(use) or "good", "words": use_words(use)}
        found[int(use.region_id.removeprefix("rgn-"))] = row
    return found

"""SHOW to people: the worst problem first, the numbers, traffic by region, what is on its way."""

from __future__ import annotations

from django.http import HttpResponse

from apps.accounts.actors import Actor
from apps.definitions import selectors as definitions
from apps.fleet import selectors as places
from apps.observe import selectors as observe
from apps.observe.numbers import RegionTraffic
from apps.overflow import selectors as overflow
from apps.rollouts import selectors as rollouts
from apps.web import home
from apps.web.capacity_now import tests_now
from apps.web.figures import figures_of
from apps.web.flow_parts import shown
from apps.web.flow_words import rate
from apps.web.overview_parts import expiring_soon, lines, pools_of_interest, problems_with_pages
from apps.web.pages import PageRequest, page, show
from apps.web.schedules_rows import troubled


@page
def overview(request: PageRequest) -> HttpResponse:
    """What an operator looks at first; customers have a first page of their own."""
    actor = request.actor
    if not actor.is_operator:
        return show(request, home.TEMPLATE, home.context_of(actor))
    nodes = rollouts.node_sync(actor)
    problems = observe.problems(actor)
    words = rollouts.sync_words(actor)
    flow = overflow.flow_overall(actor)
    context = {
        **problems_with_pages(problems),
        "summary": _summary(actor, in_sync=sum(node.word == "in_sync" for node in nodes), nodes=len(nodes)),
        "now": figures_of(observe.live_numbers(actor)),
        "lines": lines(actor),
        "flow": shown(flow, "traffic"),
        "over": rate(sum(use.out_per_s for use in flow.regions)) if flow.at else "",
        "regions": [(region, _share(region)) for region in observe.traffic_by_region(actor)],
        "syncs": [(sync, words[sync.fleet_id]) for sync in rollouts.fleet_syncs(actor)],
        "nodes": nodes,
        "last_rollouts": rollouts.rollouts(actor)[:6],
        "pools": pools_of_interest(actor, problems),
        "expiring": expiring_soon(actor),
        **tests_now(actor),
        "troubled": troubled(actor),
        "first_run": not places.fleets(actor).exists(),
    }
    return show(request, "pages/overview/overview.html", context)


def _summary(actor: Actor, *, in_sync: int, nodes: int) -> str:
    routes = definitions.routes(actor).count()
    return f"{routes} routes, {in_sync} of {nodes} nodes in sync."


def _share(region: RegionTraffic) -> str:
    """How full the region is, as a kind of bar: good, warn from 80 % on, bad above its limit."""
    percent = region.use_percent
    if percent is None or region.stale:
        return ""
    if percent > 100:
        return "bad"
    return "warn" if percent >= 80 else "good"

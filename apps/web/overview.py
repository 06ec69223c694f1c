"""SHOW to people: the worst problem first, the numbers, traffic by region, what is on its way."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.definitions import selectors as definitions
from apps.fleet import selectors as places
from apps.observe import selectors as observe
from apps.observe.numbers import Problem, RegionTraffic
from apps.overflow import selectors as overflow
from apps.rollouts import selectors as rollouts
from apps.web.figures import figures_of, spark
from apps.web.flow_parts import shown
from apps.web.flow_words import rate
from apps.web.pages import PageRequest, page, show

POOLS_SHOWN = 12
SOON = timedelta(days=21)
PAGES_OF_PROBLEMS = {"node": "web:node", "pool": "web:pool"}


@page
def overview(request: PageRequest) -> HttpResponse:
    """What an operator looks at first; customers begin with their routes."""
    actor = request.actor
    if not actor.is_operator:
        return redirect("web:routes")
    nodes = rollouts.node_sync(actor)
    problems = observe.problems(actor)
    words = rollouts.sync_words(actor)
    flow = overflow.flow_overall(actor)
    context = {
        "problems": [(problem, PAGES_OF_PROBLEMS.get(problem.kind, "")) for problem in problems[:5]],
        "more_problems": max(len(problems) - 5, 0),
        "summary": _summary(actor, in_sync=sum(node.word == "in_sync" for node in nodes), nodes=len(nodes)),
        "now": figures_of(observe.live_numbers(actor)),
        "lines": _lines(actor),
        "flow": shown(flow, "traffic"),
        "over": rate(sum(use.out_per_s for use in flow.regions)) if flow.at else "",
        "regions": [(region, _share(region)) for region in observe.traffic_by_region(actor)],
        "syncs": [(sync, words[sync.fleet_id]) for sync in rollouts.fleet_syncs(actor)],
        "nodes": nodes,
        "last_rollouts": rollouts.rollouts(actor)[:6],
        "pools": _pools(actor, problems),
        "expiring": definitions.certificates(actor).filter(not_after__lt=now() + SOON).order_by("not_after")[:5],
        "first_run": not places.fleets(actor).exists(),
    }
    return show(request, "pages/overview/overview.html", context)


def _summary(actor: Actor, *, in_sync: int, nodes: int) -> str:
    routes = definitions.routes(actor).count()
    return f"{routes} routes, {in_sync} of {nodes} nodes in sync."


def _lines(actor: Actor) -> dict[str, str]:
    """Sparklines of the last half hour."""
    series = observe.overall_series(actor, minutes=30, points=60, latency=True)
    return {
        "requests": spark(series.requests),
        "errors": spark(series.errors),
        "p95": spark(series.p95_ms),
        "connections": spark(series.connections),
    }


def _share(region: RegionTraffic) -> str:
    """How full the region is, as a kind of bar: good, warn from 80 % on, bad above its limit."""
    percent = region.use_percent
    if percent is None or region.stale:
        return ""
    if percent > 100:
        return "bad"
    return "warn" if percent >= 80 else "good"


def _pools(actor: Actor, problems: list[Problem]) -> list[dict[str, Any]]:
    """The busiest pools, sick ones first."""
    every = definitions.pools(actor).prefetch_related(None)
    numbers = observe.pool_numbers(actor, every.values_list("pk", flat=True))
    sick = {problem.object_id for problem in problems if problem.kind == "pool"}

    def order(pk: int) -> tuple[bool, float]:
        return pk not in sick, -(numbers[pk].numbers.requests_per_s or 0.0)

    shown = sorted(numbers, key=order)[:POOLS_SHOWN]
    rows = every.in_bulk(shown)
    return [{"pool": rows[pk], "now": numbers[pk], "figures": figures_of(numbers[pk].numbers)} for pk in shown]

"""Load balancers and their listeners: where clients connect, on which nodes, with how much traffic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Count
from django.http import HttpResponse

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.definitions.models import Listener, LoadBalancer
from apps.definitions.selectors import load_balancers, only, routes
from apps.observe.evaluate.identity import ending_lists
from apps.observe.numbers import Numbers
from apps.observe.selectors import listener_numbers, rejected_connections, series
from apps.rollouts.selectors import sync_statuses
from apps.stacks.selectors import StackState, stack_states
from apps.web.clouds.stacks import STACKS
from apps.web.kit.figures import Figures, figures_of, spark
from apps.web.kit.pages import PageRequest, page, shared_parts, show
from apps.web.kit.worst_first import by_word
from apps.web.load_balancers.curl_examples import Endpoint, endpoints_of
from apps.web.load_balancers.listener_settings import settings_of
from apps.web.routes.rows import SYNC_ORDER, sync_of
from apps.web.timeline.panel import timeline_of

SHOWN = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class ListenerRow:
    """One listener with its numbers and, for operators, every address where clients reach it."""

    listener: Listener
    certificates: tuple[Any, ...]
    default_pool: Any
    endpoints: tuple[Endpoint, ...]
    figures: Figures
    points: str = ""
    rejected: str = ""
    settings: tuple[tuple[str, str], ...] = ()


@page
@shared_parts("samples", "definitions", "rollouts")
def index(request: PageRequest) -> HttpResponse:
    """All of them, worst first: there are few, and every account may name them in a route."""
    actor = request.actor
    found = list(load_balancers(actor))
    counts = _route_counts(actor, found)
    words = sync_of(actor, [balancer.pk for balancer in found])
    numbers = listener_numbers(actor, [each.pk for balancer in found for each in balancer.listeners.all()])
    rows = [
        {
            "balancer": balancer,
            "routes": f"{counts.get(balancer.pk, 0):,}",
            "sync": words.get(balancer.pk, ""),
            "listeners": [(each, _figures(each, numbers)) for each in balancer.listeners.all()],
        }
        for balancer in found
    ]
    rows = by_word([(str(row["sync"]), row) for row in rows], SYNC_ORDER)
    return show(request, "pages/load_balancers/list.html", {"rows": rows})


def _routes(count: int) -> str:
    return f"{count:,} route{'' if count == 1 else 's'}"


def _route_counts(actor: Actor, found: Iterable[LoadBalancer]) -> dict[int, int]:
    rows = routes(actor).prefetch_related(None).order_by().filter(load_balancer__in=[each.pk for each in found])
    return dict(rows.values("load_balancer").annotate(n=Count("pk")).values_list("load_balancer", "n"))


@page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """One load balancer: its listeners, where they are reached, its fleets, and how many routes it serves."""
    actor = request.actor
    balancer = only(load_balancers(actor), pk)
    words = sync_statuses(actor)
    context: dict[str, Any] = {
        "balancer": balancer,
        "listeners": _listeners(actor, balancer),
        "ending_lists": ending_lists(balancer.listeners.all(), now()) if actor.is_operator else [],
        "fleets": [(fleet, words.get(fleet.pk, "behind")) for fleet in balancer.fleets.all()],
        "stacks": _stacks(actor, balancer),
        "routes": _routes(_route_counts(actor, [balancer]).get(pk, 0)),
    }
    if actor.is_operator and request.GET.get("partial", "") in ("", "timeline"):
        ids = [listener.pk for listener in balancer.listeners.all()]
        asked = request.GET.get("range", "")
        context["timeline"] = timeline_of(actor, balancer, asked, kind="frontend", ids=ids)
    return show(request, "pages/load_balancers/detail.html", context)


def _stacks(actor: Actor, balancer: LoadBalancer) -> list[tuple[StackState, tuple[str, str]]]:
    """The stacks that it stands in with how they stand; only operators see them."""
    own = {stack.pk for stack in balancer.stacks.all()}
    states = stack_states(actor, among=own) if own and actor.is_operator else []
    return [(state, STACKS[state.status]) for state in states]


def _listeners(actor: Actor, balancer: LoadBalancer) -> list[ListenerRow]:
    own = list(balancer.listeners.all())
    endpoints = endpoints_of(actor, balancer)
    ids = [listener.pk for listener in own]
    numbers = listener_numbers(actor, ids)
    of_requests = [f"lst-{listener.pk}" for listener in own if listener.protocol != "tcp"]
    lines = series(actor, "frontend", of_requests) if actor.is_operator else {}
    rejected = rejected_connections(actor, ids, SHOWN) if actor.is_operator else {}
    return [
        ListenerRow(
            listener=listener,
            certificates=tuple(each for each in listener.certificates.all() if _may_see(actor, each)),
            default_pool=listener.default_pool if _may_see(actor, listener.default_pool) else None,
            endpoints=tuple(endpoint for endpoint in endpoints if endpoint.listener.pk == listener.pk),
            figures=_figures(listener, numbers),
            points=spark(lines[f"lst-{listener.pk}"].requests) if f"lst-{listener.pk}" in lines else "",
            rejected=_rejected(rejected.get(listener.pk, 0)),
            settings=settings_of(listener) if actor.is_operator else (),
        )
        for listener in own
    ]


def _figures(listener: Listener, numbers: Mapping[int, Numbers]) -> Figures:
    """A listener of tcp has connections, and no requests that could be counted."""
    return figures_of(None if listener.protocol == "tcp" else numbers.get(listener.pk))


def _rejected(count: int) -> str:
    return f"{count:,} connection{'' if count == 1 else 's'} rejected" if count else ""


def _may_see(actor: Actor, row: Any) -> bool:
    """Certificates and pools of other accounts in a listener are nobody else's business."""
    return row is not None and actor.owns(row)

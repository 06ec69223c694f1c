"""What the command palette finds, a few of each noun that the actor may see."""

from __future__ import annotations

from django.db.models import Q
from django.http import HttpResponse
from django.urls import reverse

from apps.definitions import selectors as definitions
from apps.definitions.filters import filter_routes
from apps.fleet import selectors as topology
from apps.web.kit.pages import PageRequest, page, show

OF_EACH = 6
Link = tuple[str, str]


@page
def search(request: PageRequest) -> HttpResponse:
    """Links for `?q=`, grouped by noun; an empty answer for fewer than two characters."""
    text = request.GET.get("q", "").replace("\0", "").strip()[:100]
    groups = _found(request, text) if len(text) > 1 else []
    return show(request, "pages/search/results.html", {"groups": [group for group in groups if group[1]]})


def _found(request: PageRequest, text: str) -> list[tuple[str, list[Link]]]:
    actor = request.actor
    named = Q(name__icontains=text)
    routes = filter_routes(definitions.routes(actor).prefetch_related(None), {"q": text})[:OF_EACH]
    pools = definitions.pools(actor).prefetch_related(None).filter(named)[:OF_EACH]
    balancers = definitions.load_balancers(actor).prefetch_related(None).filter(named)[:OF_EACH]
    schedules = definitions.schedules(actor).filter(named)[:OF_EACH]
    found = [
        ("Routes", [(reverse("web:route", args=[row.pk]), f"{row.hostname.name}{row.path}") for row in routes]),
        ("Pools", [(reverse("web:pool", args=[row.pk]), f"{row.account.name}/{row.name}") for row in pools]),
        ("Schedules", [(reverse("web:schedule", args=[row.pk]), row.name) for row in schedules]),
        ("Load balancers", [(reverse("web:load-balancer", args=[row.pk]), row.name) for row in balancers]),
    ]
    tests = definitions.capacity_tests(actor).filter(named)[:OF_EACH]
    links = [(reverse("web:capacity-test", args=[row.pk]), f"{row.account.name}/{row.name}") for row in tests]
    found.append(("Capacity tests", links))
    if actor.is_operator:
        nodes = topology.nodes(actor).filter(named)[:OF_EACH]
        found.append(("Nodes", [(reverse("web:node", args=[row.pk]), row.name) for row in nodes]))
    return found

"""SHOW to people: addresses that stay, and which listeners bind them."""

from __future__ import annotations

from django.http import HttpResponse

from apps.fleet import selectors as places
from apps.web.pages import PageRequest, operators_only, page, show

SHOWN = 500


@page
def index(request: PageRequest) -> HttpResponse:
    """Every static IP by name; operators have few, so there is one page, which says when there are more."""
    operators_only(request.actor, "static IPs")
    found = list(places.static_ips(request.actor).prefetch_related("listeners__load_balancer")[: SHOWN + 1])
    context = {"rows": found[:SHOWN], "more": len(found) > SHOWN, "shown": SHOWN}
    return show(request, "pages/static_ips/list.html", context)

"""The pools of a route side by side, read from its request lines once the page is there: a store may take its time."""

from __future__ import annotations

from django.http import HttpResponse

from apps.definitions.selectors import only, routes
from apps.logs.searching import NotAnswered
from apps.logs.sides import Side, sides_of, why_unknown
from apps.web.kit.pages import PageRequest, page, show
from apps.web.routes.rows import rows_of


@page
def sides(request: PageRequest, pk: int) -> HttpResponse:
    """The part of the route's page; without numbers it says why."""
    route = only(routes(request.actor), pk)
    found: dict[int, Side] = {}
    unknown = why_unknown(route)
    if not unknown:
        try:
            found = sides_of(route)
        except NotAnswered as error:
            unknown = error.detail
    shares = rows_of(request.actor, [route])[0].shares
    rows = [(share, found.get(share.pool.pk)) for share in shares]
    return show(request, "pages/routes/sides.html", {"route": route, "rows": rows, "unknown": unknown})

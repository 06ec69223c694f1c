"""The pools of a route side by side, read from its request lines once the page is there: a store may take its time."""

from __future__ import annotations

from django.http import HttpResponse

from apps.definitions.selectors import only, routes
from apps.definitions.shapes.base.writing import reference
from apps.logs.searching import NotAnswered
from apps.logs.sides import Side, gap_of, sides_of
from apps.web.kit.pages import PageRequest, page, show


@page
def sides(request: PageRequest, pk: int) -> HttpResponse:
    """The part of the route's page; without numbers it says why."""
    route = only(routes(request.actor), pk)
    found: dict[int, Side] = {}
    gap = gap_of(route)
    unknown = f"{gap.unknown}." if gap.unknown else ""
    if not unknown:
        try:
            found = sides_of(route)
        except NotAnswered as error:
            unknown = error.detail
    rows = [(share, reference(share.pool, route.account_id), found.get(share.pool_id)) for share in route.shares]
    missing = " ".join(filter(None, (gap.late, gap.lost)))
    context = {"route": route, "rows": rows, "unknown": unknown, "missing": missing}
    return show(request, "pages/routes/sides.html", context)

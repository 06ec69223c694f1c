"""How pools and routes stand to their objectives: what is left of the error budget, and how fast it is used up."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.protocol import requests
from apps.api.v1.schemas.nouns import health as shown
from apps.api.v1.views import one
from apps.core.errors import NotFound
from apps.definitions import selectors as definitions
from apps.definitions.models import Pool, Route
from apps.logs.objectives.standing import standing_of
from apps.observe.show.objectives import WHOLE, WINDOWS, Aim, days


def _aim(aim: Aim) -> dict[str, Any]:
    whole = aim.shares[WHOLE]
    return shown.ObjectiveAim.of(
        aim,
        reached=whole.percent,
        requests=whole.total,
        missed=whole.bad,
        budget_remaining=None if whole.left is None else whole.left / 100,
        burn_rates=[{"window": name, "rate": aim.shares[name].burn} for name in WINDOWS],
    )


def answer(row: Pool | Route) -> Response:
    """The standing of one. Raises NotFound without an objective."""
    standing, kind = standing_of(row), "route" if isinstance(row, Route) else "pool"
    if standing is None:
        raise NotFound(f"This {kind} has no objective; set spec.objective.")
    body = shown.ObjectiveStanding.of(
        standing,
        counted_in=shown.COUNTED_IN[kind],
        complete=not (standing.unknown or standing.incomplete),
        message=f"{standing.unknown}." if standing.unknown else standing.incomplete,
        aims=[_aim(each) for each in standing.aims],
        days=[shown.ObjectiveDay.of(each, day=each.at.date()) for each in days(kind, row.pk)],
    )
    return Response(body)


class OfPool(APIView):
    """GET how a pool stands to its objective."""

    def get(self, request: Request, pk: str) -> Response:
        """By its id; who only shares a pool does not see what others ask of it."""
        actor = requests.actor_of(request)
        return answer(one(actor.visible(definitions.pools(actor)).prefetch_related(None), pk))


class OfRoute(APIView):
    """GET how a route stands to its objective."""

    def get(self, request: Request, pk: str) -> Response:
        """By its id."""
        return answer(one(definitions.routes(requests.actor_of(request)).prefetch_related(None), pk))

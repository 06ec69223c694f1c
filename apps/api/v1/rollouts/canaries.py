"""Canaries: begun, watched, held, resumed, promoted, aborted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.protocol import requests
from apps.api.v1.schemas.nouns import progress as shown
from apps.api.v1.views import listed, of_state, one, only, when_it_rests
from apps.api.v1.writes import no_dry_run
from apps.canaries import selectors, services
from apps.canaries.models import Canary
from apps.definitions import selectors as definitions

POLL_S = 0.5
NOUN = "routes"
FILTERS: Mapping[str, str] = {"account": "account__name", "route": "route__name"}


def canary_shape(row: Canary) -> dict[str, Any]:
    """One canary; `terminal` says whether it is over, `next_at` when its step is, as soon as that is live."""
    step = row.plan["steps"][row.step]
    next_at = row.live_at + timedelta(seconds=step["for_s"]) if row.live_at and row.state == row.State.RUNNING else None
    return shown.Canary.of(row, terminal=row.state not in Canary.OPEN, next_at=next_at)


class OfRoute(APIView):
    """POST: begin a canary of a route."""

    def post(self, request: Request, account: str, name: str) -> Response:
        """`{pool, steps: [{percent, for_s}], …}`; 202 with the canary, whose URL is in `Location`."""
        no_dry_run(request)
        actor = requests.actor_of(request)
        route = only(definitions.routes(actor).filter(account__name=account, name=name))
        row = services.request_canary(
            actor=actor, route_id=route.pk, plan=request.data or {}, reason=requests.reason(request)
        )
        return _answer(row)


class Collection(APIView):
    """GET canaries, newest first."""

    scope_noun = NOUN

    def get(self, request: Request) -> Response:
        """`limit`, `cursor`, `account`, `route`, `state`."""
        rows = of_state(request, selectors.canaries(requests.actor_of(request)), Canary.State.values)
        return listed(request, rows, canary_shape, filters=FILTERS, newest_first=True)


class Detail(APIView):
    """GET one canary; `wait=SECONDS` returns once it holds or is over."""

    scope_noun = NOUN

    def get(self, request: Request, pk: str) -> Response:
        """The canary as it is."""
        found = when_it_rests(request, lambda: _row(request, pk), goes_on=_goes_on, poll_s=POLL_S)
        return Response(canary_shape(found))


class Act(APIView):
    """POST: hold, resume, promote or abort a canary."""

    scope_noun = NOUN
    service: Callable[..., Canary] = staticmethod(services.hold_canary)

    def post(self, request: Request, pk: str) -> Response:
        """No body; 202 with the canary as it is now."""
        no_dry_run(request)
        row = _row(request, pk)
        actor = requests.actor_of(request)
        return _answer(self.service(actor=actor, canary_id=row.pk, reason=requests.reason(request)))


def _goes_on(row: Canary) -> bool:
    return row.state == Canary.State.RUNNING


def _row(request: Request, pk: str) -> Canary:
    found: Canary = one(selectors.canaries(requests.actor_of(request)), pk)
    return found


def _answer(row: Canary) -> Response:
    return Response(canary_shape(row), status=202, headers={"Location": f"/api/v1/canaries/{row.pk}"})

"""Saved searches, and the history of what is measured of them."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.accounts.webhooks import number_of
from apps.api.v1.protocol import requests
from apps.api.v1.schemas import request_lines as shown
from apps.api.v1.traffic.request_logs import window
from apps.api.v1.views import ACCOUNT, listed
from apps.api.v1.writes import no_dry_run
from apps.logs import saved
from apps.logs.models import SavedSearch


def shape(row: SavedSearch) -> dict[str, Any]:
    """A saved search."""
    return shown.SavedSearch.of(row, spec=saved.document(row), unit=_unit(row))


def _unit(row: SavedSearch) -> str | None:
    return saved.unit(row) if row.measure else None


class Collection(APIView):
    """GET saved searches, POST a new one."""

    def get(self, request: Request) -> Response:
        """`limit`, `cursor`, `account`."""
        return listed(request, saved.searches(requests.actor_of(request)), shape, filters=ACCOUNT)

    def post(self, request: Request) -> Response:
        """`{name, spec: {filter, metric?}, account?}`."""
        data = requests.only(request, ("name", "spec", "account"))
        no_dry_run(request)
        row = saved.save_search(
            actor=requests.actor_of(request),
            account=data.get("account"),
            name=data.get("name"),
            spec=data.get("spec"),
            reason=requests.reason(request),
        )
        return Response(shape(row), status=201, headers={"Location": f"/api/v1/saved-searches/{row.pk}"})


class Detail(APIView):
    """GET and DELETE one saved search."""

    def get(self, request: Request, pk: str) -> Response:
        """The search."""
        return Response(shape(saved.search(requests.actor_of(request), number_of(pk))))

    def delete(self, request: Request, pk: str) -> Response:
        """Its history goes with it."""
        no_dry_run(request)
        saved.delete_search(actor=requests.actor_of(request), search_id=number_of(pk), reason=requests.reason(request))
        return Response(status=204)


class History(APIView):
    """GET the minutes of a metric, the oldest first."""

    def get(self, request: Request, pk: str) -> Response:
        """`since`, `until`; the last hour unless a time is given."""
        row = saved.search(requests.actor_of(request), number_of(pk))
        points = saved.history(row, *window(request.query_params))
        found = [{"minute": each.minute, "lines": each.lines, "value": each.value} for each in points]
        return Response({"unit": _unit(row), "points": found})

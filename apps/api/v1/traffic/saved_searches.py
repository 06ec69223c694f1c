"""Saved searches, and the history of what is measured of them."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.accounts.alerts import of_account
from apps.api.v1.accounts.webhooks import number_of
from apps.api.v1.protocol import requests
from apps.api.v1.traffic.request_logs import window
from apps.api.v1.views import page_by_id, page_response
from apps.api.v1.writes import no_dry_run
from apps.logs import saved
from apps.logs.models import SavedSearch


def shape(row: SavedSearch) -> dict[str, Any]:
    """A saved search."""
    return {
        "id": row.pk,
        "account": row.account.name,
        "name": row.name,
        "spec": saved.document(row),
        "unit": saved.unit(row) if row.measure else None,
        "measured_until": row.measured_until,
        "created_at": row.created_at,
        "created_by": row.created_by,
    }


class Collection(APIView):
    """GET saved searches, POST a new one."""

    def get(self, request: Request) -> Response:
        """`limit`, `cursor`, `account`."""
        rows = of_account(request, saved.searches(requests.actor_of(request)))
        found, cursor = page_by_id(request, rows)
        return page_response(request, [shape(row) for row in found], cursor)

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
        return Response({"unit": saved.unit(row) if row.measure else None, "points": found})

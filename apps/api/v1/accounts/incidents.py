"""Incidents of status pages, planned maintenance, and what is written about them."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.accounts.webhooks import number_of
from apps.api.v1.protocol import requests
from apps.api.v1.schemas import incidents as shown
from apps.api.v1.views import listed
from apps.api.v1.writes import no_dry_run
from apps.core.clock import now
from apps.core.errors import FieldError, Invalid
from apps.definitions.selectors import status_pages
from apps.status import selectors, services
from apps.status.models import Incident


def shape(row: Incident) -> dict[str, Any]:
    """An incident with everything that was written, the newest first."""
    moment = now()
    word = row.word_at(moment).lower().replace(" ", "_")
    return shown.Incident.of(row, status=word, over_at=row.over_at(moment))


class IncidentCollection(APIView):
    """GET incidents, POST a new one."""

    def get(self, request: Request) -> Response:
        """`limit`, `cursor`, `account`."""
        rows = selectors.incidents(requests.actor_of(request))
        return listed(request, rows, shape, filters={"account": "page__account__name"}, newest_first=True)

    def post(self, request: Request) -> Response:
        """`{page, account?, spec}`; with `ends_at` it is planned maintenance."""
        data = requests.only(request, ("page", "account", "spec"))
        no_dry_run(request)
        actor = requests.actor_of(request)
        name, account = data.get("page"), data.get("account")
        plain = isinstance(name, str) and name.isprintable() and isinstance(account, str | None)
        rows = status_pages(actor).filter(account__name=account or actor.account.name, name=name) if plain else None
        page = rows.first() if rows is not None else None
        if page is None:
            raise Invalid([FieldError("/page", "unknown", "There is no status page with this name.")])
        row = services.open_incident(
            actor=actor, page_id=page.pk, spec=data.get("spec"), reason=requests.reason(request)
        )
        return Response(shape(row), status=201, headers={"Location": f"/api/v1/incidents/{row.pk}"})


class IncidentDetail(APIView):
    """GET and DELETE one incident."""

    def get(self, request: Request, pk: str) -> Response:
        """The incident."""
        return Response(shape(selectors.incident(requests.actor_of(request), number_of(pk))))

    def delete(self, request: Request, pk: str) -> Response:
        """Visitors do not see it any more."""
        no_dry_run(request)
        services.delete_incident(
            actor=requests.actor_of(request), incident_id=number_of(pk), reason=requests.reason(request)
        )
        return Response(status=204)


class IncidentUpdates(APIView):
    """POST what is told next."""

    def post(self, request: Request, pk: str) -> Response:
        """`{spec: {text, status?, impact?}}`."""
        data = requests.only(request, ("spec",))
        no_dry_run(request)
        actor = requests.actor_of(request)
        row = services.write_update(
            actor=actor, incident_id=number_of(pk), spec=data.get("spec"), reason=requests.reason(request)
        )
        return Response(shape(selectors.incident(actor, row.pk)), status=201)

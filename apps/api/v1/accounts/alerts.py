"""Alerts, acknowledging them, silences, and the messages of channels."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.alerts import selectors, services
from apps.alerts.models import Alert, Notification, Silence
from apps.api.v1.accounts.webhooks import number_of
from apps.api.v1.protocol import requests
from apps.api.v1.schemas.nouns import watching as shown
from apps.api.v1.views import ACCOUNT, listed, narrowed, page_by_id, page_response
from apps.api.v1.writes import no_dry_run
from apps.core.errors import FieldError, Invalid

STATES = ("firing", "resolved")


def shape(row: Alert, silenced: bool) -> dict[str, Any]:
    """An alert with its findings."""
    state = "firing" if row.resolved_at is None else "resolved"
    return shown.Alert.of(row, state=state, silenced=silenced)


def silence_shape(row: Silence) -> dict[str, Any]:
    """A silence that has not ended."""
    return shown.Silence.of(row, spec=services.document(row))


def _state(request: Request, known: tuple[str, ...] | list[str]) -> str:
    state = request.query_params.get("state", "")
    if state and state not in known:
        raise Invalid([FieldError("/state", "filter", f"Use one of {', '.join(known)}.")])
    return state


class AlertList(APIView):
    """GET alerts, newest first."""

    def get(self, request: Request) -> Response:
        """`limit`, `cursor`, `account`, `state`."""
        rows = narrowed(request, ACCOUNT, selectors.alerts(requests.actor_of(request)))
        state = _state(request, STATES)
        rows = rows.filter(resolved_at__isnull=state == "firing") if state else rows
        found, cursor = page_by_id(request, rows, newest_first=True)
        silenced = selectors.silenced(found)
        return page_response(request, [shape(row, row.pk in silenced) for row in found], cursor)


class AlertDetail(APIView):
    """GET one alert."""

    def get(self, request: Request, pk: str) -> Response:
        """The alert with its findings."""
        row = selectors.alert(requests.actor_of(request), number_of(pk))
        return Response(shape(row, row.pk in selectors.silenced([row])))


class Acknowledge(APIView):
    """POST: somebody is at it."""

    def post(self, request: Request, pk: str) -> Response:
        """`X-Change-Reason`; twice is as good as once."""
        no_dry_run(request)
        actor = requests.actor_of(request)
        row = services.acknowledge(actor=actor, alert_id=number_of(pk), reason=requests.reason(request))
        fresh = selectors.alert(actor, row.pk)
        return Response(shape(fresh, fresh.pk in selectors.silenced([fresh])))


class SilenceCollection(APIView):
    """GET silences that have not ended, POST a new one."""

    def get(self, request: Request) -> Response:
        """`limit`, `cursor`, `account`."""
        return listed(request, selectors.silences(requests.actor_of(request)), silence_shape, filters=ACCOUNT)

    def post(self, request: Request) -> Response:
        """`{spec: {rule?, objects?, ends_at}, reason}`."""
        data = requests.only(request, ("spec", "reason"))
        no_dry_run(request)
        row = services.make_silence(actor=requests.actor_of(request), spec=data.get("spec"), reason=data.get("reason"))
        return Response(silence_shape(row), status=201, headers={"Location": f"/api/v1/silences/{row.pk}"})


class SilenceDetail(APIView):
    """GET and DELETE one silence."""

    def get(self, request: Request, pk: str) -> Response:
        """The silence, as long as it has not ended."""
        return Response(silence_shape(selectors.silence(requests.actor_of(request), number_of(pk))))

    def delete(self, request: Request, pk: str) -> Response:
        """End it now; what is still firing is told."""
        no_dry_run(request)
        services.end_silence(
            actor=requests.actor_of(request), silence_id=number_of(pk), reason=requests.reason(request)
        )
        return Response(status=204)


class SendTest(APIView):
    """POST: a message that says it is a test."""

    def post(self, request: Request, pk: str) -> Response:
        """The message, which is sent within a second."""
        no_dry_run(request)
        row = services.send_test(actor=requests.actor_of(request), channel_id=number_of(pk))
        return Response(shown.AlertMessage.of(row), status=202)


class Messages(APIView):
    """GET the messages of a channel, newest first."""

    def get(self, request: Request, pk: str) -> Response:
        """`limit`, `cursor`, `state`."""
        rows = selectors.notifications(selectors.channel(requests.actor_of(request), number_of(pk)))
        state = _state(request, Notification.State.values)
        rows = rows.filter(state=state) if state else rows
        return listed(request, rows, shown.AlertMessage.of, newest_first=True)

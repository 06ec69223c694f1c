"""Triggers, the URLs through which the outside runs a schedule."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.protocol import requests
from apps.api.v1.schemas.nouns import schedules as shown
from apps.api.v1.views import detail_response, listed, one
from apps.core.errors import FieldError, Invalid
from apps.schedules import selectors
from apps.schedules.models import Trigger
from apps.schedules.triggers import services

FILTERS = {"name": "name", "account": "account__name", "schedule": "schedule__name"}


def shape(row: Trigger) -> dict[str, Any]:
    """A trigger; its secret is shown when it is made or rotated, and never again."""
    return shown.Trigger.of(row, hook=f"/hooks/{row.key_id}")


def _changed(row: Trigger, status: int = 200, **more: Any) -> Response:
    headers = {"ETag": requests.etag(row.version), "Location": f"/api/v1/triggers/{row.pk}"}
    return Response(shape(row) | more, status=status, headers=headers)


class TriggerCollection(APIView):
    """GET triggers, POST a new one."""

    def get(self, request: Request) -> Response:
        """`limit`, `cursor`, `name`, `account`, `schedule`."""
        return listed(request, selectors.triggers(requests.actor_of(request)), shape, filters=FILTERS)

    def post(self, request: Request) -> Response:
        """`{schedule_id, name, sender?, per_minute?}`; the answer holds `secret`, this once."""
        data = requests.only(request, ("schedule_id", "name", "sender", "per_minute"))
        schedule_id = data.pop("schedule_id", None)
        if type(schedule_id) is not int or schedule_id < 1:
            raise Invalid([FieldError("/schedule_id", "not_integer", "Give the id of the schedule, without quotes.")])
        given = {field: value for field, value in data.items() if value is not None}
        actor = requests.actor_of(request)
        row, secret = services.make_trigger(
            actor=actor, schedule_id=schedule_id, reason=requests.reason(request), **({"name": None} | given)
        )
        return _changed(selectors.trigger(actor, row.pk), 201, secret=secret)


class TriggerDetail(APIView):
    """GET, PATCH and DELETE one trigger; changes need `If-Match`."""

    def get(self, request: Request, pk: str) -> Response:
        """The trigger, or 304."""
        return detail_response(request, shape(one(selectors.triggers(requests.actor_of(request)), pk)))

    def patch(self, request: Request, pk: str) -> Response:
        """`{name?, per_minute?}`: what is left out stays."""
        actor = requests.actor_of(request)
        row = one(selectors.triggers(actor), pk)
        data = requests.only(request, ("name", "per_minute"))
        version = requests.expected_version(request, present=row.version)
        services.change_trigger(
            actor=actor, trigger_id=row.pk, expected_version=version, reason=requests.reason(request), **data
        )
        return _changed(selectors.trigger(actor, row.pk))

    def delete(self, request: Request, pk: str) -> Response:
        """Close it at once; what it ran stays in the history."""
        actor = requests.actor_of(request)
        row = one(selectors.triggers(actor), pk)
        version = requests.expected_version(request, present=row.version)
        services.delete_trigger(
            actor=actor, trigger_id=row.pk, expected_version=version, reason=requests.reason(request)
        )
        return Response(status=204)


class Rotate(APIView):
    """POST: a new secret; the one before works for a while as well."""

    def post(self, request: Request, pk: str) -> Response:
        """`If-Match`, `{grace_s?}`: 0 to seven days, else a day; the answer holds `secret`, this once."""
        actor = requests.actor_of(request)
        row = one(selectors.triggers(actor), pk)
        data = requests.only(request, ("grace_s",)) if request.data else {}
        given = {field: value for field, value in data.items() if value is not None}
        version = requests.expected_version(request, present=row.version)
        secret = services.rotate_trigger(
            actor=actor, trigger_id=row.pk, expected_version=version, reason=requests.reason(request), **given
        )
        return _changed(selectors.trigger(actor, row.pk), secret=secret)

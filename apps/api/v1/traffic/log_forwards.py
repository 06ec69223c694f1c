"""Log systems that an account's request lines go on to: their definitions, how they do, and a test."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.accounts.webhooks import number_of
from apps.api.v1.protocol import requests
from apps.api.v1.schemas import request_lines as shown
from apps.api.v1.views import ACCOUNT, NAME, detail_response, listed
from apps.api.v1.writes import no_dry_run
from apps.core.errors import FieldError, Invalid
from apps.logs.forward import services
from apps.logs.models import LogForward

FIELDS = ("kind", "name", "account", "spec")


def shape(row: LogForward) -> dict[str, Any]:
    """A log forward and how it does; the header's value is never shown."""
    return shown.LogForward.of(row, kind="LogForward", spec=services.document(row))


def _changed(row: LogForward, status: int = 200) -> Response:
    headers = {"ETag": requests.etag(row.version), "Location": f"/api/v1/log-forwards/{row.pk}"}
    return Response(shape(row), status=status, headers=headers)


def _read(request: Request) -> dict[str, Any]:
    data = requests.only(request, FIELDS)
    if data.get("kind", "LogForward") != "LogForward":
        raise Invalid([FieldError("/kind", "read_only", "The kind is LogForward.")])
    return data


class LogForwardCollection(APIView):
    """GET log forwards, POST a new one."""

    def get(self, request: Request) -> Response:
        """`limit`, `cursor`, `name`, `account`."""
        return listed(request, services.forwards(requests.actor_of(request)), shape, filters=NAME | ACCOUNT)

    def post(self, request: Request) -> Response:
        """`{name, account?, spec: {url, filter?, ca?, header_name?, header_value?, enabled?}}`."""
        data = _read(request)
        no_dry_run(request)
        row = services.make_forward(
            actor=requests.actor_of(request),
            name=data.get("name"),
            account=data.get("account"),
            spec=data.get("spec"),
            reason=requests.reason(request),
        )
        return _changed(row, 201)


class LogForwardDetail(APIView):
    """GET, PATCH and DELETE one log forward; changes need `If-Match`."""

    def get(self, request: Request, pk: str) -> Response:
        """The log forward, or 304."""
        return detail_response(request, shape(services.forward(requests.actor_of(request), number_of(pk))))

    def patch(self, request: Request, pk: str) -> Response:
        """`{spec}`: what is left out stays."""
        actor, row = requests.actor_of(request), services.forward(requests.actor_of(request), number_of(pk))
        data = _read(request)
        for field, value in (("name", row.name), ("account", row.account.name)):
            if data.get(field, value) != value:
                raise Invalid([FieldError(f"/{field}", "read_only", f"The {field} of a log forward cannot change.")])
        no_dry_run(request)
        saved = services.change_forward(
            actor=actor,
            pk=row.pk,
            spec=data.get("spec"),
            expected_version=requests.expected_version(request, present=row.version),
            reason=requests.reason(request),
        )
        return _changed(saved)

    def delete(self, request: Request, pk: str) -> Response:
        """Take it away; what waits is not sent any more."""
        actor, row = requests.actor_of(request), services.forward(requests.actor_of(request), number_of(pk))
        no_dry_run(request)
        version = requests.expected_version(request, present=row.version)
        services.delete_forward(actor=actor, pk=row.pk, expected_version=version, reason=requests.reason(request))
        return Response(status=204)


class LogForwardTest(APIView):
    """POST: send one line that says it is a test."""

    def post(self, request: Request, pk: str) -> Response:
        """What came of it, within five seconds."""
        requests.only(request, ())
        no_dry_run(request)
        outcome = services.send_test(actor=requests.actor_of(request), pk=number_of(pk))
        return Response({"delivered": outcome.sent > 0, "error": outcome.error})

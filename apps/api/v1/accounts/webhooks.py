"""Webhooks of an account, their secrets, what was delivered, and sending it again."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.protocol import requests
from apps.api.v1.schemas.nouns import watching as shown
from apps.api.v1.views import ACCOUNT, NAME, detail_response, listed, of_state
from apps.api.v1.writes import no_dry_run
from apps.core.errors import FieldError, Invalid
from apps.webhooks import selectors, services
from apps.webhooks.models import Delivery, Webhook

FIELDS = ("kind", "name", "account", "spec")


def shape(row: Webhook) -> dict[str, Any]:
    """An endpoint; its secret is shown when it is made or rotated, and never again."""
    return shown.Webhook.of(row, kind="Webhook", spec=services.document(row))


def read(request: Request) -> dict[str, Any]:
    """The body. Raises Invalid for a field that is not there and for another kind."""
    data = requests.only(request, FIELDS)
    if data.get("kind", "Webhook") != "Webhook":
        raise Invalid([FieldError("/kind", "read_only", "The kind is Webhook.")])
    return data


def number_of(text: str) -> int:
    """A number of the URL; one that is too long for a row is 0, which no row has."""
    return int(text) if len(text) < 19 else 0


def changed(row: Webhook, status: int = 200, **more: Any) -> Response:
    """The object as a GET shows it."""
    headers = {"ETag": requests.etag(row.version), "Location": f"/api/v1/webhooks/{row.pk}"}
    return Response(shape(row) | more, status=status, headers=headers)


class WebhookCollection(APIView):
    """GET endpoints, POST a new one."""

    def get(self, request: Request) -> Response:
        """`limit`, `cursor`, `name`, `account`."""
        return listed(request, selectors.webhooks(requests.actor_of(request)), shape, filters=NAME | ACCOUNT)

    def post(self, request: Request) -> Response:
        """`{name, account?, spec: {url, event_types?, enabled?}}`; the answer holds `secret`, this once."""
        data = read(request)
        no_dry_run(request)
        row, secret = services.make_webhook(
            actor=requests.actor_of(request),
            name=data.get("name"),
            account=data.get("account"),
            spec=data.get("spec"),
            reason=requests.reason(request),
        )
        return changed(row, 201, secret=secret)


class WebhookDetail(APIView):
    """GET, PUT, PATCH and DELETE one endpoint; changes need `If-Match`."""

    def get(self, request: Request, pk: str) -> Response:
        """The endpoint, or 304."""
        return detail_response(request, shape(selectors.webhook(requests.actor_of(request), number_of(pk))))

    def put(self, request: Request, pk: str) -> Response:
        """`{spec}`: what is left out becomes what a new endpoint has."""
        return self._change(request, pk, {"event_types": ["*"], "enabled": True})

    def patch(self, request: Request, pk: str) -> Response:
        """`{spec}`: what is left out stays."""
        return self._change(request, pk, {})

    def delete(self, request: Request, pk: str) -> Response:
        """Take it away with its log."""
        actor, row = requests.actor_of(request), selectors.webhook(requests.actor_of(request), number_of(pk))
        no_dry_run(request)
        version = requests.expected_version(request, present=row.version)
        services.delete_webhook(
            actor=actor, webhook_id=row.pk, expected_version=version, reason=requests.reason(request)
        )
        return Response(status=204)

    def _change(self, request: Request, pk: str, usual: dict[str, Any]) -> Response:
        actor, row = requests.actor_of(request), selectors.webhook(requests.actor_of(request), number_of(pk))
        data = read(request)
        for field, value in (("name", row.name), ("account", row.account.name)):
            if data.get(field, value) != value:
                raise Invalid([FieldError(f"/{field}", "read_only", f"The {field} of a webhook cannot change.")])
        no_dry_run(request)
        spec = data.get("spec")
        if usual and isinstance(spec, dict):
            spec = usual | {"url": None} | spec
        version = requests.expected_version(request, present=row.version)
        saved = services.change_webhook(
            actor=actor, webhook_id=row.pk, spec=spec, expected_version=version, reason=requests.reason(request)
        )
        return changed(saved)


class Rotate(APIView):
    """POST: a new secret; the one before signs as well for another 24 hours."""

    def post(self, request: Request, pk: str) -> Response:
        """`If-Match`; the answer holds `secret`, this once."""
        actor, row = requests.actor_of(request), selectors.webhook(requests.actor_of(request), number_of(pk))
        no_dry_run(request)
        version = requests.expected_version(request, present=row.version)
        secret = services.rotate_secret(
            actor=actor, webhook_id=row.pk, expected_version=version, reason=requests.reason(request)
        )
        return changed(selectors.webhook(actor, row.pk), secret=secret)


class SendTest(APIView):
    """POST: send an event that says it is a test."""

    def post(self, request: Request, pk: str) -> Response:
        """202 with the delivery; its attempts appear at its URL."""
        made = services.send_test(actor=requests.actor_of(request), webhook_id=number_of(pk))
        return accepted(made)


class DeliveryList(APIView):
    """GET what was sent to an endpoint, newest first."""

    def get(self, request: Request, pk: str) -> Response:
        """`limit`, `cursor`, `state`."""
        rows = selectors.deliveries(selectors.webhook(requests.actor_of(request), number_of(pk)))
        return listed(request, of_state(request, rows, Delivery.State.values), shown.Delivery.of, newest_first=True)


class DeliveryDetail(APIView):
    """GET one delivery with its attempts."""

    def get(self, request: Request, pk: str, delivery: str) -> Response:
        """The delivery."""
        actor = requests.actor_of(request)
        return Response(shown.Delivery.of(selectors.delivery(actor, number_of(pk), number_of(delivery))))


class Redeliver(APIView):
    """POST: send one event again, with the same id."""

    def post(self, request: Request, pk: str, delivery: str) -> Response:
        """202 with the delivery."""
        found = services.redeliver(
            actor=requests.actor_of(request), webhook_id=number_of(pk), delivery_id=number_of(delivery)
        )
        return accepted(found)


def accepted(row: Delivery) -> Response:
    """202 and where to look."""
    url = f"/api/v1/webhooks/{row.webhook_id}/deliveries/{row.pk}"
    return Response(shown.Delivery.of(row), status=202, headers={"Location": url})

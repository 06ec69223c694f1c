"""Hostnames: claimed, looked at, verified by an operator's word, released."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.models import Hostname
from apps.api.v1 import shapes
from apps.api.v1.protocol import requests
from apps.api.v1.views import DetailView, ListView, one
from apps.core.errors import FieldError, Invalid
from apps.definitions import selectors
from apps.definitions.writing.kinds import hostnames


def text(data: dict[str, Any], field: str) -> str:
    """A field of the body as text, empty where it is absent. Raises Invalid."""
    value = data.get(field, "")
    if not isinstance(value, str) or len(value) > 400 or not value.isprintable():
        raise Invalid([FieldError(f"/{field}", "text", f"Write {field} as at most 400 printable characters.")])
    return value


def answer(request: Request, row: Hostname, status: int = 200) -> Response:
    """The hostname as a GET shows it."""
    actor = requests.actor_of(request)
    fresh = one(selectors.hostnames(actor), str(row.pk))
    headers = {"ETag": requests.etag(fresh.version), "Location": f"/api/v1/hostnames/{fresh.pk}"}
    return Response(shapes.hostname(fresh, actor), status=status, headers=headers)


class HostnameList(ListView):
    """GET the claimed names; POST a claim."""

    noun = "hostnames"

    def post(self, request: Request) -> Response:
        """`{name, account?}`; a name that the account has already answers 200."""
        data = requests.only(request, ("name", "account"))
        owner = data.get("account")
        if owner is not None and not isinstance(owner, str):
            raise Invalid([FieldError("/account", "not_text", "Write the name of an account.")])
        actor = requests.actor_of(request)
        known = selectors.hostnames(actor).filter(name=str(data.get("name", ""))[:253], released_at=None).exists()
        if requests.dry_run(request):
            return Response(hostnames.plan_claim(actor=actor, name=data.get("name"), account=owner))
        row = hostnames.claim(actor=actor, name=data.get("name"), account=owner, reason=requests.reason(request))
        return answer(request, row, 200 if known else 201)


class HostnameDetail(DetailView):
    """GET one; DELETE releases it."""

    noun = "hostnames"

    def delete(self, request: Request, pk: str) -> Response:
        """Release the name, with `If-Match`; 409 while routes use it."""
        actor = requests.actor_of(request)
        row = one(selectors.hostnames(actor), pk)
        version = requests.expected_version(request, present=row.version)
        if requests.dry_run(request):
            return Response({"stored": False, "routes": row.routes.count()})
        reason = requests.reason(request)
        hostnames.release(actor=actor, hostname_id=row.pk, expected_version=version, reason=reason)
        return Response(status=204)


class HostnameCheck(APIView):
    """POST: look for the challenge now."""

    def post(self, request: Request, pk: str) -> Response:
        """The hostname with what was found in `last_check_message`; a name is checked every five seconds at most."""
        row = one(selectors.hostnames(requests.actor_of(request)), pk)
        return answer(request, hostnames.check(actor=requests.actor_of(request), hostname_id=row.pk))


class HostnameVerification(APIView):
    """POST: an operator's word that the name is the account's."""

    def post(self, request: Request, pk: str) -> Response:
        """`{reason}`."""
        data = requests.only(request, ("reason",))
        actor = requests.actor_of(request)
        row = one(selectors.hostnames(actor), pk)
        return answer(request, hostnames.verify(actor=actor, hostname_id=row.pk, reason=text(data, "reason")))


class HostnameCooldown(APIView):
    """DELETE: end the cooldown of a released name."""

    def delete(self, request: Request, pk: str) -> Response:
        """204; others may claim the name at once. Operators only; 409 for a name that is not released."""
        actor = requests.actor_of(request)
        row = one(selectors.hostnames(actor), pk)
        hostnames.end_cooldown(actor=actor, hostname_id=row.pk, reason=requests.reason(request))
        return Response(status=204)

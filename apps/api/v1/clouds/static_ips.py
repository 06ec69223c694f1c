"""Static IPs beyond their definition: moved in one change, released; what a target cannot do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.protocol import requests
from apps.api.v1.schemas.nouns import clouds as shown
from apps.api.v1.views import NOUNS, one, only
from apps.api.v1.writes import done_or_dry_run
from apps.core.errors import FieldError, Invalid
from apps.definitions import selectors, services
from apps.definitions.previewing.portability import portability_of
from apps.fleet.models import StaticIP


def _done(request: Request, name: str, change: Callable[[], StaticIP]) -> Response:
    """The address as it is after the change, or what the change would do."""
    rows = NOUNS["static-ips"].rows(requests.actor_of(request))
    return done_or_dry_run(request, change, lambda: only(rows.filter(name=name)))


class Move(APIView):
    """POST: let another load balancer be served by the address, in one change."""

    def post(self, request: Request, name: str) -> Response:
        """`{load_balancer, listeners?}`; `dry_run=true`, `wait=SECONDS`, `break_glass=true`, `manager=NAME`."""
        data = requests.only(request, ("load_balancer", "listeners"))
        if data.get("load_balancer") is None:
            raise Invalid(
                [
                    FieldError(
                        "/load_balancer",
                        "missing",
                        "Fill in load_balancer: the load balancer that the address should serve.",
                    )
                ]
            )
        change = partial(
            services.move_static_ip,
            actor=requests.actor_of(request),
            name=name,
            load_balancer=data["load_balancer"],
            listeners=data.get("listeners"),
            reason=requests.reason(request),
        )
        return _done(request, name, change)


class Release(APIView):
    """POST: let no listener bind the address any more; it stays, with its owner."""

    def post(self, request: Request, name: str) -> Response:
        """No body; `dry_run=true`, `wait=SECONDS`, `break_glass=true`, `manager=NAME`."""
        change = partial(
            services.release_static_ip,
            actor=requests.actor_of(request),
            name=name,
            reason=requests.reason(request),
        )
        return _done(request, name, change)


class Portability(APIView):
    """GET what each target would refuse or lose of a load balancer, before it is moved there."""

    def get(self, request: Request, pk: str) -> Response:
        """`target`: only this one."""
        actor = requests.actor_of(request)
        row = one(selectors.load_balancers(actor), pk)
        found = portability_of(actor, row.pk, request.query_params.get("target", ""))
        incompatibilities = [shown.Incompatibility.of(each) for each in found]
        return Response({"load_balancer": row.name, "incompatibilities": incompatibilities})

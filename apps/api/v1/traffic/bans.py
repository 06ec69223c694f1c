"""A ban by hand, and its end: one network into a list of networks, or out of it."""

from __future__ import annotations

from functools import partial

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.protocol import requests
from apps.api.v1.views import one
from apps.api.v1.writes import done_or_dry_run
from apps.core.errors import FieldError, Invalid
from apps.definitions import selectors, services


class Ban(APIView):
    """POST puts a network into a list, or takes it out; twice is as good as once."""

    lifted = False

    def post(self, request: Request, pk: str) -> Response:
        """`{network, expires_at?, reason?}`, to lift `{network}`; `X-Change-Reason`, `dry_run=true`, `wait=SECONDS`."""
        actor = requests.actor_of(request)
        data = requests.only(request, ("network",) if self.lifted else ("network", "expires_at", "reason"))
        if "network" not in data:
            raise Invalid([FieldError("/network", "missing", "Fill in network: an address or a network in CIDR.")])
        row = one(selectors.network_lists(actor), pk)
        known = {"actor": actor, "list_id": row.pk, "reason": requests.reason(request), "network": data["network"]}
        if self.lifted:
            change = partial(services.lift_ban, **known)
        else:
            change = partial(services.ban_network, **known, expires_at=data.get("expires_at"), why=data.get("reason"))
        return done_or_dry_run(request, change, lambda: one(selectors.network_lists(actor), pk))

"""Clients that limits of policies and routes banned by themselves, and the end of such a ban."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.protocol import requests
from apps.api.v1.schemas import client_bans as shown
from apps.rollouts.bans.lifting import lift_client_ban
from apps.rollouts.bans.showing import bans


class ClientBans(APIView):
    """GET whom limits ban now, as nodes answer; customers read of their own routes."""

    scope_noun = "policies"

    def get(self, request: Request) -> Response:
        """A thousand of each fleet at most; `unknown_nodes` did not answer."""
        return Response(shown.ClientBans.of(bans(requests.actor_of(request))))


class Lift(APIView):
    """POST: let a banned client in again, on every node of its region."""

    scope_noun = "policies"

    def post(self, request: Request) -> Response:
        """`{region, ban}`, as the list says them; 409 where a node did not answer."""
        data = requests.only(request, ("region", "ban"))
        client = lift_client_ban(
            actor=requests.actor_of(request),
            region=data.get("region"),
            ban=data.get("ban"),
            reason=requests.reason(request),
        )
        return Response({"client": client})

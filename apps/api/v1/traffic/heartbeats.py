"""Servers that register themselves: PUT again before the lease ends, DELETE to leave."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.protocol import requests
from apps.api.v1.schemas.nouns.pools import Heartbeat
from apps.api.v1.views import only
from apps.api.v1.writes import no_dry_run
from apps.definitions import selectors
from apps.definitions.server_sources import heartbeats


class OwnServer(APIView):
    """PUT and DELETE by the server itself; a token with the scope `servers:write` is enough."""

    scope_noun = heartbeats.NOUN

    def put(self, request: Request, account: str, name: str, region: str, server: str) -> Response:
        """`{address, port, weight?}`; 200 with the end of the lease. Sent again, it renews the lease."""
        no_dry_run(request)
        pool, actor = self.pool(request, account, name), requests.actor_of(request)
        row = heartbeats.beat(actor=actor, pool_id=pool, region=region, name=server, server=request.data)
        return Response(Heartbeat.of(row))

    def delete(self, request: Request, account: str, name: str, region: str, server: str) -> Response:
        """204; the server leaves with the next look at its source."""
        no_dry_run(request)
        pool, actor = self.pool(request, account, name), requests.actor_of(request)
        heartbeats.leave(actor=actor, pool_id=pool, region=region, name=server)
        return Response(status=204)

    def pool(self, request: Request, account: str, name: str) -> Any:
        """The pool among those that the caller may see. Raises NotFound."""
        rows = selectors.pools(requests.actor_of(request)).filter(account__name=account, name=name)
        return only(rows).pk

"""A key set that is fetched now."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.protocol import requests
from apps.api.v1.views import one
from apps.definitions import selectors, services
from apps.definitions.key_sets.following import key_set_of


class FetchKeySet(APIView):
    """POST: fetch the key set that a policy or a route names itself."""

    of_route = False

    def post(self, request: Request, pk: str) -> Response:
        """What is known of it now; a worker fetches it at once, every five seconds at most."""
        actor = requests.actor_of(request)
        if self.of_route:
            route = one(selectors.routes(actor), pk)
            return Response(key_set_of(services.fetch_key_set_of_route(actor=actor, route_id=route.pk)))
        policy = one(selectors.policies(actor), pk)
        return Response(key_set_of(services.fetch_key_set_of_policy(actor=actor, policy_id=policy.pk)))

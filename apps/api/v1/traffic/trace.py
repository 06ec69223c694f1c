"""What would happen to a request, and why; nothing is sent anywhere."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1 import shapes
from apps.api.v1.protocol import requests
from apps.api.v1.schemas.nouns import tracing as shown
from apps.definitions.previewing.tracing import Traced, read_question, trace_request, waits_for_verification


def _shape(found: Traced) -> dict[str, Any]:
    route = found.route
    return shown.Traced.of(
        found,
        route={"id": route[0], "name": route[1], "url": shapes.url_of("Route", route[0])} if route else None,
        pools=[{"pool": pool, "share": round(part, 4)} for pool, part in found.pools],
        path=found.path or None,
        passed_over=[
            {"route": label, "reason": reason, "message": message} for label, reason, message in found.passed_over
        ],
    )


class Ask(APIView):
    """POST a request; the answer says which route wins, which were passed over and why, and where it would go."""

    scope, scope_noun = "read", "routes"

    def post(self, request: Request) -> Response:
        """`{host, path?, method?, scheme?, headers?: {name: value}, client?, load_balancer?}`; else https, GET, /.

        Customers ask about hosts of their own; `answers` is empty for every other, whether it is there or not.
        """
        actor = requests.actor_of(request)
        question, balancer = read_question(request.data)
        answers = [_shape(found) for found in trace_request(actor, question, balancer)]
        return Response({"answers": answers, "waits_for_verification": waits_for_verification(actor, question)})

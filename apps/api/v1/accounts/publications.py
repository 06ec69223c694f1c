"""Where definitions of accounts are published, and the end of a conflict there."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.protocol import requests
from apps.api.v1.schemas import publications as shown
from apps.core.errors import Conflict, FieldError, Invalid
from apps.definitions.server_sources.registries import Unreadable
from apps.exporting.publishing import services
from apps.exporting.publishing.showing import publications


class Publications(APIView):
    """GET every sink that the operator's file names, with its state; none for customers."""

    scope_noun = "accounts"

    def get(self, request: Request) -> Response:
        """`{publications: [{id, registry, prefix, account, state, message, conflicts, …}]}`."""
        try:
            found = publications(requests.actor_of(request))
        except Unreadable:
            raise Conflict("The file of SPILLWAY_REGISTRIES cannot be read on this console.") from None
        return Response(shown.Publications.of({"found": found}))


class Overwrite(APIView):
    """POST: overwrite the keys of one sink that somebody else changed; operators only."""

    scope_noun = "accounts"

    def post(self, request: Request, pk: str) -> Response:
        """`{conflict}`, as the list says it; 202, a worker writes them at once. 409 where other keys are in the way."""
        said = requests.only(request, ("conflict",)).get("conflict")
        if not isinstance(said, str) or not said:
            raise Invalid([FieldError("/conflict", "missing", "Write the `conflict` that the list shows.")])
        services.overwrite(
            actor=requests.actor_of(request),
            publication_id=int(pk),
            conflict=said,
            reason=requests.reason(request),
        )
        return Response(status=202)

"""The way in for nodes: a token for a machine, the certificates of a node and their end, the authorities."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.protocol import requests
from apps.api.v1.schemas.nouns import platform as shown
from apps.api.v1.views import one
from apps.enrolment import revoking, rotating, selectors, tokens
from apps.enrolment.selectors import Believed
from apps.fleet.models import Authority


def _authority(found: Believed) -> dict[str, Any]:
    return shown.NodeAuthority.of(found.row, signs=found.signs, nodes=found.nodes)


class Token(APIView):
    """POST: let one machine in as the node of this name, which may not be there yet."""

    def post(self, request: Request, name: str) -> Response:
        """`{fleet, tags}`; the answer holds `token`, this once."""
        data = requests.only(request, ("fleet", "tags"))
        row, text = tokens.make_token(
            actor=requests.actor_of(request),
            node=name,
            fleet=data.get("fleet"),
            tags=data.get("tags"),
            reason=requests.reason(request),
        )
        return Response(shown.NodeToken.of(row, token=text, command=tokens.command_with(text)), status=201)


class Certificates(APIView):
    """GET what was signed or revoked for a node, also for one that is deleted."""

    def get(self, request: Request, name: str) -> Response:
        """The newest first; customers find none."""
        found = selectors.certificates(requests.actor_of(request), name)[:100]
        return Response({"node": name, "certificates": [shown.NodeCertificate.of(row) for row in found]})


class Revoke(APIView):
    """POST: no console speaks to the node any more, until it is enrolled again."""

    def post(self, request: Request, name: str) -> Response:
        """No body."""
        count = revoking.revoke_node(actor=requests.actor_of(request), name=name, reason=requests.reason(request))
        return Response({"node": name, "revoked": count})


class Authorities(APIView):
    """GET the authorities that consoles and nodes believe."""

    scope_noun = "nodes"

    def get(self, request: Request) -> Response:
        """The oldest first; the last one signs."""
        found = selectors.believed(requests.actor_of(request))
        return Response({"authorities": [_authority(each) for each in found]})


class Rotate(APIView):
    """POST: a new authority signs; the one before is retired once every node has gone over."""

    scope_noun = "nodes"

    def post(self, request: Request) -> Response:
        """No body."""
        row = rotating.rotate(actor=requests.actor_of(request), reason=requests.reason(request))
        return Response(_authority(Believed(row, True, 0)), status=201)


class Retire(APIView):
    """POST: believe an authority no more, whoever still has its certificates."""

    scope_noun = "nodes"

    def post(self, request: Request, pk: str) -> Response:
        """No body."""
        actor = requests.actor_of(request)
        row = one(Authority.objects.all() if actor.is_operator else Authority.objects.none(), pk)
        found = rotating.retire(actor=actor, authority_id=row.pk, reason=requests.reason(request))
        return Response(_authority(Believed(found, False, rotating.still_on(found))))

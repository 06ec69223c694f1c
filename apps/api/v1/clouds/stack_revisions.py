"""What a stack was told and what its states hold: documents of revisions, contents of states."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.clouds.stacks import stack_of
from apps.api.v1.protocol import requests
from apps.api.v1.schemas.nouns import clouds as shown
from apps.api.v1.views import listed
from apps.stacks import selectors, services
from apps.stacks.review import documents


class Revisions(APIView):
    """GET the revisions of a stack, newest first."""

    def get(self, request: Request, name: str) -> Response:
        """`limit`, `cursor`."""
        actor, stack = stack_of(request, name)
        return listed(request, selectors.revisions(actor, stack.pk), shown.StackRevision.of, newest_first=True)


class RevisionDocument(APIView):
    """GET one revision with its document, part by part: what Terraform is told, without values of variables."""

    def get(self, request: Request, name: str, number: str) -> Response:
        """`document` maps addresses to what they must be."""
        actor, stack = stack_of(request, name)
        found = documents.read(actor, stack.pk, int(number))
        return Response(shown.StackRevisionDetail.of(found.revision, document=found.parts))


class Differences(APIView):
    """GET how a revision differs from another one, part by part."""

    def get(self, request: Request, name: str, number: str) -> Response:
        """`against`: the other revision, by default the one before."""
        actor, stack = stack_of(request, name)
        found = documents.read(actor, stack.pk, int(number))
        asked = requests.number(request, "against", 0, 0, requests.HIGHEST)
        against = asked or documents.number_before(actor, found.revision)
        before = documents.read(actor, stack.pk, against) if against else None
        changes = [shown.RevisionChange.of(each) for each in documents.compare(before, found)]
        return Response({"number": found.revision.number, "against": against, "changes": changes})


class StateContent(APIView):
    """GET what one version of a stack's state holds, without secrets; that it was read is in the audit log."""

    def get(self, request: Request, name: str, number: str) -> Response:
        """`state` is Terraform's."""
        actor, stack = stack_of(request, name)
        content = services.read_state(actor=actor, stack_id=stack.pk, number=int(number))
        return Response({"number": int(number), "state": content})

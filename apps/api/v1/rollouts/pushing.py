"""What operators do with what fleets run: back to a revision, on to all nodes, on again, push again."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.protocol import requests
from apps.api.v1.rollouts import progress
from apps.api.v1.schemas.nouns import progress as shown
from apps.api.v1.views import listed, one, only
from apps.api.v1.writes import no_dry_run
from apps.fleet.models import Fleet
from apps.fleet.selectors import fleets
from apps.rollouts import selectors, services
from apps.rollouts.models import Quarantine


class RollBack(APIView):
    """POST: push an earlier revision again, and hold the fleet there until somebody resumes."""

    def post(self, request: Request, pk: str) -> Response:
        """No body; say why in `X-Change-Reason`. 202 with the rollout, whose URL is in `Location`."""
        no_dry_run(request)
        actor = requests.actor_of(request)
        row = one(selectors.revisions(actor), pk)
        with requests.required_reason(request) as reason:
            begun = services.roll_back(actor=actor, revision_id=row.pk, reason=reason)
        headers = {"Location": f"/api/v1/rollouts/{begun.pk}"}
        return Response(progress.rollout(selectors.rollout(actor, begun.pk)), status=202, headers=headers)


class PushToAll(APIView):
    """POST: give the rest of the nodes what those of the first waves have."""

    def post(self, request: Request, pk: str) -> Response:
        """No body; say why in `X-Change-Reason`. 202 with the rollout; 409 where no node waits for a later wave."""
        no_dry_run(request)
        actor = requests.actor_of(request)
        row = one(selectors.rollouts(actor), pk)
        with requests.required_reason(request) as reason:
            services.push_to_all(actor=actor, rollout_id=row.pk, reason=reason)
        return Response(progress.rollout(selectors.rollout(actor, row.pk)), status=202)


def _fleet(request: Request, name: str) -> Fleet:
    row: Fleet = only(fleets(requests.actor_of(request)).filter(name=name))
    return row


def _quarantined(row: Quarantine) -> dict[str, Any]:
    return shown.Quarantined.of(row, kind=selectors.kind_in_quarantine(row))


class QuarantineList(APIView):
    """GET what nodes refuse; customers read of their own objects."""

    scope_noun = "fleets"

    def get(self, request: Request) -> Response:
        """`limit`, `cursor`; the newest first."""
        return listed(request, selectors.quarantined(requests.actor_of(request)), _quarantined, newest_first=True)


class TryAgain(APIView):
    """POST: give one object in quarantine to the next push."""

    scope_noun = "fleets"

    def post(self, request: Request, pk: str) -> Response:
        """No body; 202, the work goes on by itself."""
        no_dry_run(request)
        actor = requests.actor_of(request)
        row = one(selectors.quarantined(actor), pk)
        services.try_again(actor=actor, quarantine_id=row.pk, reason=requests.reason(request))
        return Response(status=202)


class PushAgain(APIView):
    """POST: try again what a node refused, and look at every node for what differs."""

    def post(self, request: Request, name: str) -> Response:
        """No body; 202, the work goes on by itself."""
        no_dry_run(request)
        row = _fleet(request, name)
        services.push_again(actor=requests.actor_of(request), fleet_id=row.pk, reason=requests.reason(request))
        return Response(status=202)


class Resume(APIView):
    """POST: let changes go out again to a fleet that is held."""

    def post(self, request: Request, name: str) -> Response:
        """No body; 202, 409 for a fleet that is not held."""
        no_dry_run(request)
        row = _fleet(request, name)
        services.resume(actor=requests.actor_of(request), fleet_id=row.pk, reason=requests.reason(request))
        return Response(status=202)

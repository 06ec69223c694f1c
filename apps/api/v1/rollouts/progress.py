"""Revisions and rollouts, with a long poll that returns when a rollout has come to its end."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.protocol import requests
from apps.api.v1.schemas.nouns import progress as shown
from apps.api.v1.views import listed, one, when_it_rests
from apps.rollouts import selectors
from apps.rollouts.models import Rollout
from apps.rollouts.push.states import TERMINAL
from apps.rollouts.waves.planning import soaks_until

POLL_S = 0.2


def rollout(row: Rollout) -> dict[str, Any]:
    """One rollout of a revision to the nodes of its fleet; `terminal` says whether it is over."""
    return shown.Rollout.of(row, terminal=row.state in TERMINAL, soaks_until=soaks_until(row))


class RevisionList(APIView):
    """GET revisions."""

    def get(self, request: Request) -> Response:
        """`limit`, `cursor`."""
        return listed(request, selectors.revisions(requests.actor_of(request)), shown.Revision.of, newest_first=True)


class RevisionDetail(APIView):
    """GET one revision."""

    def get(self, request: Request, pk: str) -> Response:
        """The revision, without its bundle."""
        return Response(shown.Revision.of(one(selectors.revisions(requests.actor_of(request)), pk)))


class RolloutList(APIView):
    """GET rollouts."""

    def get(self, request: Request) -> Response:
        """`limit`, `cursor`."""
        found = selectors.rollouts(requests.actor_of(request)).prefetch_related("steps__node")
        return listed(request, found, rollout, newest_first=True)


class RolloutDetail(APIView):
    """GET one rollout; `wait=SECONDS` returns at its end, or as it stands when the time is over."""

    def get(self, request: Request, pk: str) -> Response:
        """The rollout with its steps."""
        actor, number = requests.actor_of(request), int(pk)
        found = when_it_rests(request, lambda: selectors.rollout(actor, number), goes_on=_goes_on, poll_s=POLL_S)
        return Response(rollout(found))


def _goes_on(row: Rollout) -> bool:
    return row.state not in TERMINAL

"""What the caller's own request changed, how far that has come, and taking it back."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.protocol import requests
from apps.api.v1.protocol.waiting import carrying
from apps.api.v1.rollouts.plans import done
from apps.api.v1.writes import dry_run_answer
from apps.audit.models import Entry
from apps.audit.selectors import entries_of_change
from apps.definitions import services
from apps.rollouts.selectors import progress_since, wait_until_live
from apps.rollouts.waiting_for import missing

ACTIONS = ("create", "update", "delete")
WHOLE = frozenset({*services.KINDS, "Server", "Backend"})


class ChangeDetail(APIView):
    """GET what one request did, by its `X-Request-ID`."""

    def get(self, request: Request, change: str) -> Response:
        """`wait=SECONDS` returns when it is live, or as it stands when the time is over."""
        actor = requests.actor_of(request)
        entries = [each for each in entries_of_change(actor, change) if each.object_kind in WHOLE]
        fleets = carrying(actor)
        live = wait_until_live(fleets, None, requests.wait(request))
        waits_for = missing(actor, fleets, {_known_as(each) for each in entries})
        return Response(
            {
                "change": change,
                "at": entries[0].at if entries else None,
                "objects": [_object(each) for each in entries],
                "live": live and not waits_for,
                "waits_for": [asdict(each) for each in waits_for],
                "rollouts": [asdict(each) for each in progress_since(fleets, entries[0].at)] if entries else [],
            }
        )


def _known_as(entry: Entry) -> tuple[str, str]:
    """The kind and the label of an object; a server or a limit is part of its pool."""
    cut = {"Server": lambda label: label.rpartition("/")[0], "Backend": lambda label: label.partition(" in ")[0]}
    part = cut.get(entry.object_kind)
    return ("Pool", part(entry.object_label)) if part else (entry.object_kind, entry.object_label)


def _object(entry: Entry) -> dict[str, Any]:
    kind, label = _known_as(entry)
    owner, _, name = label.rpartition("/")
    action = entry.action if entry.action in ACTIONS else "update"
    return {"action": action, "kind": kind, "account": owner or None, "name": name}


class ChangeRevert(APIView):
    """POST: take back what one request did."""

    def post(self, request: Request, change: str) -> Response:
        """No body; `manager=NAME` as the change had it, `confirm`, `dry_run=true`, `wait=SECONDS`.

        409 where an object has moved since, and for what was changed in part.
        """
        actor = requests.actor_of(request)
        revert = partial(services.revert_change, actor=actor, change=change, reason=requests.reason(request))
        return dry_run_answer(request, revert) if requests.dry_run(request) else done(revert())

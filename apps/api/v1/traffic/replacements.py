"""Replacements of servers: asked for, watched, carried on by their owner, stopped, resumed, reversed, ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.protocol import requests
from apps.api.v1.schemas.nouns import progress as shown
from apps.api.v1.views import listed, of_state, one, only, when_it_rests
from apps.api.v1.writes import no_dry_run
from apps.definitions import selectors as definitions
from apps.replacements import selectors, services
from apps.replacements.models import Replacement

POLL_S = 0.2
NOUN = "pools"
FILTERS: Mapping[str, str] = {"account": "account__name", "pool": "pool__name"}


def replacement_shape(row: Replacement) -> dict[str, Any]:
    """One replacement; `terminal` says whether it is over, `waits_for_owner` whether a batch is to be replaced now."""
    running = row.state == Replacement.State.RUNNING
    waits = running and row.step == Replacement.Step.REPLACE
    return shown.Replacement.of(row, terminal=row.state not in Replacement.OPEN, waits_for_owner=waits)


class OfPool(APIView):
    """POST: replace servers of a pool."""

    def post(self, request: Request, account: str, name: str) -> Response:
        """`{region?, servers?, batch_size?, …}`; 202 with the replacement, whose URL is in `Location`."""
        no_dry_run(request)
        actor = requests.actor_of(request)
        pool = only(definitions.pools(actor).filter(account__name=account, name=name))
        row = services.request_replacement(
            actor=actor, pool_id=pool.pk, plan=request.data or {}, reason=requests.reason(request)
        )
        return _answer(row)


class Collection(APIView):
    """GET replacements, newest first."""

    scope_noun = NOUN

    def get(self, request: Request) -> Response:
        """`limit`, `cursor`, `account`, `pool`, `state`."""
        rows = of_state(request, selectors.replacements(requests.actor_of(request)), Replacement.State.values)
        return listed(request, rows, replacement_shape, filters=FILTERS, newest_first=True)


class Detail(APIView):
    """GET one replacement; `wait=SECONDS` returns once a batch is handed over, it stops, or it is over."""

    scope_noun = NOUN

    def get(self, request: Request, pk: str) -> Response:
        """The replacement with its servers."""
        found = when_it_rests(request, lambda: _row(request, pk), goes_on=_goes_on, poll_s=POLL_S)
        return Response(replacement_shape(found))


class Continue(APIView):
    """POST: the owner has replaced the servers of a batch."""

    scope_noun = NOUN

    def post(self, request: Request, pk: str) -> Response:
        """`{batch, failed?: [names]}`; 202. Twice is as good as once; 409 for a batch that is not handed over."""
        data = requests.only(request, ("batch", "failed"))
        known = {"batch": data.get("batch"), "failed": data.get("failed") or ()}
        return _act(request, pk, services.continue_replacement, **known)


class Act(APIView):
    """POST: stop, resume, turn back or end a replacement."""

    scope_noun = NOUN
    service: Callable[..., Replacement] = staticmethod(services.stop_replacement)

    def post(self, request: Request, pk: str) -> Response:
        """No body; 202 with the replacement as it is now."""
        return _act(request, pk, self.service)


def _goes_on(row: Replacement) -> bool:
    return row.state == Replacement.State.RUNNING and row.step != Replacement.Step.REPLACE


def _row(request: Request, pk: str) -> Replacement:
    found: Replacement = one(selectors.replacements(requests.actor_of(request)), pk)
    return found


def _act(request: Request, pk: str, service: Callable[..., Replacement], **known: object) -> Response:
    no_dry_run(request)
    row = _row(request, pk)
    reason = requests.reason(request)
    return _answer(service(actor=requests.actor_of(request), replacement_id=row.pk, reason=reason, **known))


def _answer(row: Replacement) -> Response:
    headers = {"Location": f"/api/v1/replacements/{row.pk}"}
    return Response(replacement_shape(row), status=202, headers=headers)

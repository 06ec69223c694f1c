"""SHOW to machines: what every request below /api/v1/ passes: who calls, how often, how long it may wait, once only."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from rest_framework.exceptions import APIException, AuthenticationFailed

from apps.accounts.actors import Actor
from apps.api.v1 import idempotency, rate_limits, waiting
from apps.api.v1.authentication import recognised
from apps.api.v1.permissions import ROOT
from apps.api.v1.problems import problem_answer
from apps.core.errors import SpillwayError

Respond = Callable[[HttpRequest], HttpResponse]


class ApiDoor:
    """Middleware, the innermost: it sees a view's answer before anything is packed or added."""

    def __init__(self, get_response: Respond) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path.startswith(ROOT):
            return self.get_response(request)
        try:
            actor = _caller(request)
        except APIException as error:
            return problem_answer(error, request)
        if actor is None:
            return self.get_response(request)  # which says 401
        budgets = rate_limits.spend(actor)
        try:
            rate_limits.refuse_spent(budgets)
            response = self._answered(request, actor)
        except (APIException, SpillwayError) as error:
            response = problem_answer(error, request)
        rate_limits.say(response, budgets)
        return response

    def _answered(self, request: HttpRequest, actor: Actor) -> HttpResponse:
        with waiting.turn(request, actor.account.pk) as may_wait:
            key = idempotency.key_of(request)
            # Work that is committed together with its answer becomes live only afterwards.
            seconds = waiting.taken_out(request) if key or not may_wait else 0
            if not key:
                response = self.get_response(request)
                if not may_wait:
                    response["Retry-After"] = "2"
                return response
            response = idempotency.once(request, actor, key, self.get_response)
            if may_wait:
                waiting.until_live(response, seconds)
            return response


def _caller(request: HttpRequest) -> Actor | None:
    """Who calls, None for nobody that we know. Raises Throttled for an address that guesses."""
    if request.headers.get("Authorization") is None:
        return None
    rate_limits.refuse_guessing(request)
    try:
        found = recognised(request)
    except AuthenticationFailed:
        found = None
    if found is None:
        rate_limits.note_failure(request)
    return found[0].actor if found else None

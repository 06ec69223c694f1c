"""What every request below /api/v1/ passes: who calls, how often, how long it may wait, once only."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, resolve
from rest_framework.exceptions import APIException, AuthenticationFailed
from rest_framework.request import Request

from apps.accounts.actors import Actor
from apps.api.v1.protocol import bodies, idempotency, rate_limits, requests, waiting
from apps.api.v1.protocol.authentication import recognised
from apps.api.v1.protocol.permissions import ROOT, refuse_caller
from apps.api.v1.protocol.problems import problem_answer
from apps.api.v1.schemas.operations.building import Operation
from apps.api.v1.schemas.operations.core import operation_of, query_names
from apps.api.v1.schemas.parameters import QUERY
from apps.core.errors import FieldError, Invalid, SpillwayError
from apps.core.requests import set_change_origin
from apps.definitions.services import confirming, managing
from apps.definitions.writing.rules.managed import Said

Respond = Callable[[HttpRequest], HttpResponse]


class ApiMiddleware:
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
        operation, view = _operation(request)
        if operation is None:  # answered with 404 or 405
            return self.get_response(request)
        if not operation.public:
            refuse_caller(actor, request, view)
        if field_errors := [*unknown_words(operation, request.GET), *misshapen(operation, request.GET)]:
            raise Invalid(field_errors)
        if operation.asks_why:  # a wrong reason is refused in a dry run too
            requests.reason(Request(request))
            set_change_origin(requests.origin(Request(request)))
        account = actor.account.pk
        with bodies.turn(request, account), waiting.turn(request, account) as may_wait, said(request) as told:
            key = idempotency.key_of(request)
            # Work that is committed together with its answer becomes live only afterwards; a GET waits by itself.
            writes = request.method in idempotency.METHODS
            seconds = waiting.taken_out(request) if writes or not may_wait else 0
            response = idempotency.once(request, actor, key, self.get_response) if key else self.get_response(request)
            if told.kept and "X-Spillway-Kept" in operation.tells:
                response["X-Spillway-Kept"] = ", ".join(told.kept)
            if writes and may_wait:
                waiting.until_live(request, response, actor, seconds)
            elif not may_wait and not key:
                response["Retry-After"] = "2"
            return response


@contextmanager
def said(request: HttpRequest) -> Iterator[Said]:
    """What the query says about every write below: losses that are confirmed, managers, fields that are taken over."""
    confirmed, taken = (filter(None, request.GET.get(word, "").split(",")) for word in ("confirm", "take_over"))
    glass, manager = requests.flag(Request(request), "break_glass"), request.GET.get("manager", "")
    with confirming(confirmed), managing(manager=manager, break_glass=glass, take_over=taken) as told:
        yield told


def _operation(request: HttpRequest) -> tuple[Operation | None, object]:
    """What is asked for, and the class of the view that answers."""
    try:
        match = resolve(request.path_info)
    except Resolver404:
        return None, None
    return operation_of(match.url_name or "", request.method or ""), getattr(match.func, "cls", None)


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


def unknown_words(operation: Operation, query: Iterable[str]) -> list[FieldError]:
    """An error for each word that the operation does not know, with the nearest that it knows."""
    known = query_names(operation)
    return [
        FieldError(
            f"/{printable(word)}", "unknown_parameter", f"There is no parameter {printable(word)!r} here; {hint}"
        )
        for word in query
        if word not in known
        for hint in [_hint(word, known)]
    ]


def misshapen(operation: Operation, query: Mapping[str, str]) -> list[FieldError]:
    """An error for each value that is longer than its parameter may be, and for a moment that is left empty."""
    found = []
    for name in operation.query:
        word, (schema, _) = name.partition("-word")[0], QUERY[name]
        value = query.get(word)
        if value is not None and len(value) > schema.get("maxLength", len(value)):
            found.append(FieldError(f"/{word}", "too_long", f"Use at most {schema['maxLength']} characters."))
        if value == "" and schema.get("format") == "date-time":
            found.append(FieldError(f"/{word}", "empty", "Use a time such as 2026-01-31T12:00:00Z, or leave this out."))
    return found


def printable(word: str) -> str:
    """A word of a query, short and without what steers terminals."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in word[:63])


def _hint(word: str, known: list[str]) -> str:
    if near := difflib.get_close_matches(word, known, 1):
        return f"did you mean {near[0]}?"
    return f"known are {', '.join(known)}." if known else "this takes none."

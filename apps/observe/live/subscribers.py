"""Who listens to the event stream: people by their session, programs by their token; asked again and again."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth import get_user
from django.db import close_old_connections
from django.http import HttpRequest
from django.http.cookie import parse_cookie

from apps.accounts.actors import actor_of_token
from apps.accounts.choosing import actor_of_session
from apps.accounts.models import User
from apps.accounts.tokens import find_token
from apps.core.addresses import client_address
from apps.core.errors import Forbidden

Headers = list[tuple[bytes, bytes]]
SCOPE_NOUN = "events"


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who listens; streams are counted by `who`: a person, or the account of a program."""

    who: str
    operator: bool


# Asks who the caller is now: None for nobody; raises Forbidden, django.db.Error.
Lookup = Callable[[], Visitor | None]


def visitor_of(session_key: str) -> Visitor | None:
    """The person behind a session cookie now, None when the session ended. Raises Forbidden in a suspended account."""
    close_old_connections()
    try:
        request = HttpRequest()
        request.session = importlib.import_module(settings.SESSION_ENGINE).SessionStore(session_key)
        user = get_user(request)
        if not isinstance(user, User) or user.pk is None or (actor := actor_of_session(user, request.session)) is None:
            return None
        actor.must_be_active()
        return Visitor(f"user {user.pk}", actor.is_operator)
    finally:
        close_old_connections()


def program_of(headers: Headers, peer: str) -> Visitor | None:
    """The program behind `Authorization: Bearer …` now, None when the token is none (any more). Raises Forbidden."""
    scheme, _, text = value_of(headers, b"authorization").partition(" ")
    if scheme.lower() != "bearer":
        return None
    request = HttpRequest()
    request.META = {"REMOTE_ADDR": peer, "HTTP_X_FORWARDED_FOR": value_of(headers, b"x-forwarded-for")}
    close_old_connections()
    try:
        token = find_token(text, client_address(request))
    finally:
        close_old_connections()
    if token is None:
        return None
    actor = actor_of_token(token)
    actor.must_be_active()
    if not actor.has_scope(SCOPE_NOUN, "read"):
        raise Forbidden(f"This token does not have the scope {SCOPE_NOUN}:read; create a token with this scope.")
    return Visitor(f"account {actor.account.pk}", actor.is_operator)


def session_key_of(headers: Headers) -> str:
    """The session cookie's value, empty without one."""
    text = "; ".join(value.decode("latin-1") for name, value in headers if name == b"cookie")
    return parse_cookie(text).get(settings.SESSION_COOKIE_NAME, "")


def value_of(headers: Headers, wanted: bytes) -> str:
    """The last value of a header, empty without it."""
    return next((value.decode("latin-1") for name, value in reversed(headers) if name == wanted), "")

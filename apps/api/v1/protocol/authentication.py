"""Who calls, by bearer token; a wrong, old, revoked or malformed one all look the same."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from apps.accounts.actors import Actor, actor_of_token
from apps.accounts.models import ApiToken
from apps.accounts.tokens import find_token
from apps.core import log_context
from apps.core.addresses import client_address


@dataclass(frozen=True, slots=True)
class Caller:
    """What `request.user` is below /api/: nothing but the actor behind the token."""

    actor: Actor

    @property
    def is_authenticated(self) -> bool:
        """A caller exists only with a live token."""
        return True

    @property
    def pk(self) -> int:
        """What rate limits count by."""
        return self.actor.account.pk


Found = tuple[Caller, ApiToken]
KNOWN = "api_caller"


class BearerToken(BaseAuthentication):
    """`Authorization: Bearer sw_<key id>_<secret>`."""

    def authenticate(self, request: Request) -> Found | None:
        """The caller, None without a header. Raises AuthenticationFailed."""
        return recognised(request._request)

    def authenticate_header(self, _request: Request) -> str:
        """What a 401 asks for."""
        return 'Bearer realm="spillway"'


def recognised(request: HttpRequest) -> Found | None:
    """The caller of a request, looked up once for the middleware and the view. Raises AuthenticationFailed."""
    known = vars(request)
    if KNOWN not in known:
        known[KNOWN] = _looked_up(request)
    found: Found | AuthenticationFailed | None = known[KNOWN]
    if isinstance(found, AuthenticationFailed):
        raise found
    return found


def _looked_up(request: HttpRequest) -> Found | AuthenticationFailed | None:
    header = request.META.get("HTTP_AUTHORIZATION", "")
    if not header:
        return None
    scheme, _, text = header.partition(" ")
    token = find_token(text, client_address(request)) if scheme.lower() == "bearer" else None
    if token is None:
        return AuthenticationFailed("The token is unknown or no longer valid.")
    log_context.note(account=token.account.name)
    return Caller(actor_of_token(token)), token

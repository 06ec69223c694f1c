"""SHOW to machines: who calls, by bearer token; a wrong, old, revoked or malformed one all look the same."""

from __future__ import annotations

from dataclasses import dataclass

from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from apps.accounts.actors import Actor, actor_of_token
from apps.accounts.models import ApiToken
from apps.accounts.tokens import find_token


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


class BearerToken(BaseAuthentication):
    """`Authorization: Bearer sw_<key id>_<secret>`."""

    def authenticate(self, request: Request) -> tuple[Caller, ApiToken] | None:
        """The caller, None without a header. Raises AuthenticationFailed."""
        header = get_authorization_header(request)
        if not header:
            return None
        scheme, _, text = header.partition(b" ")
        token = find_token(text.decode("ascii", "replace")) if scheme.lower() == b"bearer" else None
        if token is None:
            raise AuthenticationFailed("The token is not known, or not valid any more.")
        return Caller(actor_of_token(token)), token

    def authenticate_header(self, request: Request) -> str:
        """What a 401 asks for."""
        del request
        return 'Bearer realm="spillway"'

"""May this caller do this at all: a live account, and a token whose scopes name the noun."""

from __future__ import annotations

from django.http import HttpRequest
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from apps.accounts.actors import Actor
from apps.api.v1.protocol import requests
from apps.core.errors import Forbidden

SAFE = ("GET", "HEAD", "OPTIONS")
ROOT = "/api/v1/"


def refuse_caller(actor: Actor, request: HttpRequest | Request, view: object) -> None:
    """Raise Forbidden for a suspended account, a token without the scope, and a viewer who would write.

    It is asked before a byte of the body is read. A scope is `<noun>:read` or `<noun>:write`; the noun is the first
    word of the path below /api/v1/. A view says `scope = "read"` where a POST only asks, and `scope_noun` where the
    path has another word.
    """
    actor.must_be_active()
    noun = getattr(view, "scope_noun", "") or request.path.removeprefix(ROOT).split("/")[0].split(":")[0]
    verb = getattr(view, "scope", "") or ("read" if request.method in SAFE else "write")
    if verb == "write":
        actor.may_write()
    # What an apply, an import or a plan changes is asked object by object; any writing scope may come so far. A change
    # is shown to the token that made it, whatever else that may read.
    if verb == "write" and noun in ("apply", "import", "plans", "changes"):
        if not actor.may_write_anything:
            raise Forbidden(f"This token has no write scope; create a token with {noun}:write or another write scope.")
    elif noun not in ("apply", "changes") and not actor.has_scope(noun, verb):
        raise Forbidden(f"This token does not have the scope {noun}:{verb}; create a token with this scope.")


class MayCall(BasePermission):
    """The same for every view, whichever way it was reached."""

    def has_permission(self, request: Request, view: object) -> bool:
        """True for a caller who may. Raises Forbidden for one who may not."""
        if not getattr(request.user, "is_authenticated", False):
            return False  # answered with 401
        refuse_caller(requests.actor_of(request), request, view)
        return True

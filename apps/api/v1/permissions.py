"""SHOW to machines: may this caller do this at all: a live account, and a token whose scopes name the noun."""

from __future__ import annotations

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from apps.api.v1 import requests
from apps.core.errors import Forbidden

SAFE = ("GET", "HEAD", "OPTIONS")
ROOT = "/api/v1/"


class MayCall(BasePermission):
    """A scope is `<noun>:read` or `<noun>:write`; the noun is the first word of the path below /api/v1/.

    A view says `scope = "read"` where a POST only asks, and `scope_noun` where the path has another word.
    """

    def has_permission(self, request: Request, view: object) -> bool:
        """True for a caller with the scope. Raises Forbidden for one without, or with a suspended account."""
        if not getattr(request.user, "is_authenticated", False):
            return False  # answered with 401
        actor = requests.actor_of(request)
        actor.must_be_active()
        noun = getattr(view, "scope_noun", "") or request.path.removeprefix(ROOT).split("/")[0].split(":")[0]
        verb = getattr(view, "scope", "") or ("read" if request.method in SAFE else "write")
        # What an apply or a plan changes is asked object by object; any writing scope may come so far.
        by_object = noun == "apply" or (noun == "plans" and verb == "write")
        if not by_object and not actor.has_scope(noun, verb):
            raise Forbidden(f"This token has not the scope {noun}:{verb}; make one that has it.")
        return True

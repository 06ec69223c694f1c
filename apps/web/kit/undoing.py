"""Undo: the button beside the sentence that something is done, for as long as the sentence stands there.

What one request wrote is reverted as a whole, as on the page of the change; what is no such change says by which form
it is taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from django.contrib import messages
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.audit.models import Entry
from apps.audit.selectors import entries_of_change
from apps.core.errors import NotFound
from apps.core.requests import request_id
from apps.definitions.services import KINDS
from apps.web.kit.pages import PageRequest

WHOLE = frozenset({*KINDS, "Server", "Backend"})
SAVED = ("create", "update", "delete")
# A change of more objects is looked at on its page before it is reverted.
MOST = 100


def reverts(actor: Actor, entries: Sequence[Entry]) -> bool:
    """Whether the change of which these are entries can be reverted by itself."""
    plain = all(each.action in SAVED and each.object_kind in WHOLE for each in entries)
    return plain and actor.role != "viewer" and bool(entries[0].request_id)


def say_done(request: PageRequest, text: str, undo: str = "") -> None:
    """Say on the next page that it is done, and offer to undo it.

    `undo` is where the button posts, the query as fields; without it, the change that this request made is reverted.
    """
    url = undo or _reverting(request.actor)
    messages.success(request, text, extra_tags=f"undo:{url}" if url else "")


def url_with(name: str, *args: object, **fields: object) -> str:
    """What `undo` wants: the page of this name, and what to send there."""
    return f"{reverse(name, args=args)}?{urlencode(fields, doseq=True)}"


def _reverting(actor: Actor) -> str:
    try:
        made = entries_of_change(actor, request_id())[:MOST]
    except NotFound:
        return ""
    own = [each for each in made if each.object_kind in WHOLE]
    return reverse("web:change-revert", args=[own[-1].pk]) if own and reverts(actor, own) else ""

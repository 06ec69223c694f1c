"""Where people are signed in, as rows: which sessions of a person live, and the end of them."""

from __future__ import annotations

from collections.abc import Collection

from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.db import transaction

from apps.accounts.models import User
from apps.core.clock import now


def living_sessions(user: User) -> list[UserSession]:
    """The sessions of a person that still live, last seen first; two queries however many there are."""
    rows = list(UserSession.objects.filter(user_id=user.pk).order_by("-last_seen_at"))
    known = Session.objects.filter(session_key__in=[row.session_key for row in rows], expire_date__gt=now())
    alive = set(known.values_list("session_key", flat=True))
    return [row for row in rows if row.session_key in alive]


@transaction.atomic
def end_sessions(*, user: User, keep: str, only: Collection[int] | None = None) -> list[UserSession]:
    """End the sessions of a person except the one with the key `keep`; `only` narrows them to some rows.

    Returns those that lived. The browsers have to sign in again with their next request.
    """
    rows = UserSession.objects.filter(user_id=user.pk).exclude(session_key=keep)
    if only is not None:
        rows = rows.filter(pk__in=only)
    ended = [row for row in living_sessions(user) if row in set(rows)]
    for row in rows:
        row.end()
    return ended

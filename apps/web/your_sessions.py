"""SHOW to people: where they are signed in, and an end to any of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from allauth.usersessions.models import UserSession
from django.contrib import messages
from django.contrib.sessions.models import Session
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from apps.accounts.models import User
from apps.core.clock import now
from apps.core.errors import NotFound
from apps.web.pages import PageRequest, page, show
from apps.web.sign_in_audit import record_for

BROWSERS = (
    ("Edge", re.compile(r"Edg/(\d+)")),
    ("Opera", re.compile(r"OPR/(\d+)")),
    ("Firefox", re.compile(r"Firefox/(\d+)")),
    ("Chrome", re.compile(r"Chrom(?:e|ium)/(\d+)")),
    ("Safari", re.compile(r"Version/(\d+).*Safari/")),
)
SYSTEMS = ("Windows", "Android", "iPhone", "iPad", "Macintosh", "CrOS", "Linux")


@dataclass(frozen=True, slots=True)
class Place:
    """One browser in which somebody is signed in."""

    pk: int
    device: str
    agent: str
    address: str
    since: datetime
    seen: datetime
    is_this: bool


def device_of(agent: str) -> str:
    """What a User-Agent header says in words: `Firefox 140 on Linux`; its beginning when it is no browser we know."""
    browser = next((f"{name} {found[1]}" for name, pattern in BROWSERS if (found := pattern.search(agent))), "")
    system = next((name for name in SYSTEMS if name in agent), "")
    words = {"Macintosh": "macOS", "CrOS": "ChromeOS"}.get(system, system)
    if not browser:
        return agent[:40] or "A program that gives no name"
    return f"{browser} on {words}" if words else browser


def sessions_of(user: User, *, current: str) -> list[Place]:
    """Where the person is signed in now, this browser first, then the last seen first; two queries."""
    rows = list(UserSession.objects.filter(user_id=user.pk).order_by("-last_seen_at"))
    alive = set(
        Session.objects.filter(session_key__in=[row.session_key for row in rows], expire_date__gt=now()).values_list(
            "session_key", flat=True
        )
    )
    places = [_place(row, current) for row in rows if row.session_key in alive]
    return sorted(places, key=lambda place: not place.is_this)


def _place(row: Any, current: str) -> Place:
    return Place(
        pk=row.pk,
        device=device_of(row.user_agent),
        agent=row.user_agent,
        address=row.ip,
        since=row.created_at,
        seen=row.last_seen_at,
        is_this=row.session_key == current,
    )


@page
def index(request: PageRequest) -> HttpResponse:
    """The list, and an end for each that is not this one."""
    person: Any = request.user
    places = sessions_of(person, current=request.session.session_key or "")
    return show(request, "pages/account/sessions.html", {"places": places})


@page
@require_POST
def end(request: PageRequest) -> HttpResponse:
    """End one session of one's own (`session`), or all but this one."""
    rows = UserSession.objects.filter(user_id=request.user.pk).exclude(session_key=request.session.session_key)
    if "session" in request.POST:
        rows = rows.filter(pk=_number(request.POST["session"]))
        if not rows:
            raise NotFound("There is no such session of yours.")
    ended = list(rows)
    for row in ended:
        row.end()
    record_for(request.user, "end_sessions", after={"sessions": [device_of(row.user_agent) for row in ended]})
    one = "session" in request.POST
    messages.success(request, "That browser is signed out." if one else "All other browsers are signed out.")
    return redirect("usersessions_list")


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0

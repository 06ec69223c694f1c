"""Where they are signed in, and an end to any of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.accounts.models import User
from apps.accounts.sign_in.sessions import end_sessions, living_sessions
from apps.core.errors import NotFound
from apps.web.kit.pages import PageRequest, page, post_page, show
from apps.web.sign_in.audit import record_for

BROWSERS = (
    ("Edge", re.compile(r"Edg/(\d+)")),
    ("Opera", re.compile(r"OPR/(\d+)")),
    ("Firefox", re.compile(r"Firefox/(\d+)")),
    ("Chrome", re.compile(r"Chrom(?:e|ium)/(\d+)")),
    ("Safari", re.compile(r"Version/(\d+).*Safari/")),
)
SYSTEMS = ("Windows", "Android", "iPhone", "iPad", "Macintosh", "CrOS", "Linux")


@dataclass(frozen=True, slots=True)
class SignedInBrowser:
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
        return agent[:40] or "Unknown application"
    return f"{browser} on {words}" if words else browser


def sessions_of(user: User, *, current: str) -> list[SignedInBrowser]:
    """Where the person is signed in now, this browser first, then the last seen first."""
    return sorted((_browser(row, current) for row in living_sessions(user)), key=lambda browser: not browser.is_this)


def _browser(row: Any, current: str) -> SignedInBrowser:
    return SignedInBrowser(
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
    browsers = sessions_of(person, current=request.session.session_key or "")
    return show(request, "pages/account/sessions.html", {"browsers": browsers})


@post_page
def end(request: PageRequest) -> HttpResponse:
    """End one session of one's own (`session`), or all but this one."""
    one = request.POST.get("session")
    only = None if one is None else [_number(one)]
    person: Any = request.user
    ended = end_sessions(user=person, keep=request.session.session_key or "", only=only)
    if one is not None and not ended:
        raise NotFound("You have no such session.")
    record_for(person, "end_sessions", after={"sessions": [device_of(row.user_agent) for row in ended]})
    messages.success(request, "That browser is signed out." if one else "All other browsers are signed out.")
    return redirect("usersessions_list")


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0

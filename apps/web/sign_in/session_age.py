"""A session ends when nothing was asked for a while, and at the latest some hours after signing in."""

from __future__ import annotations

from collections.abc import Callable

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth import SESSION_KEY, logout
from django.http import HttpRequest, HttpResponse

from apps.core.clock import now

SIGNED_IN_AT = "signed_in_at"
SEEN_AT = "seen_at"
# Written at most this often, so that a page which refreshes itself does not write with every request.
SEEN_EVERY = 300


class SessionAge:
    """Keeps a session that is used, and ends one that is too old.

    1. The moment of signing in stays in the session; what is older than SESSION_GREATEST_AGE is signed out.
    2. Each five minutes of use the session gets another SESSION_COOKIE_AGE to live, but not beyond that moment.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if settings.SESSION_COOKIE_NAME in request.COOKIES and SESSION_KEY in request.session:
            self._renew(request)
        return self.get_response(request)

    def _renew(self, request: HttpRequest) -> None:
        session, moment = request.session, int(now().timestamp())
        left = session.setdefault(SIGNED_IN_AT, moment) + settings.SESSION_GREATEST_AGE - moment
        if left <= 0:
            logout(request)
        elif moment - session.get(SEEN_AT, 0) >= SEEN_EVERY:
            session[SEEN_AT] = moment
            session.set_expiry(min(settings.SESSION_COOKIE_AGE, left))
            if request.user.is_authenticated:
                UserSession.objects.create_from_request(request)

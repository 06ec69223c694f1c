"""Kernel: gives every request an id that stands in the answer, the log, the audit and the error page."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from contextvars import ContextVar

from django.http import HttpRequest, HttpResponse

_GIVEN = re.compile(r"[A-Za-z0-9-]{8,64}")
_current: ContextVar[str] = ContextVar("request_id", default="")


def request_id() -> str:
    """Id of the request being served, empty outside of one."""
    return _current.get()


class RequestIdMiddleware:
    """Takes `X-Request-ID` from the front when it is well-formed, else makes one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-ID", "")
        token = _current.set(given if _GIVEN.fullmatch(given) else secrets.token_hex(8))
        try:
            response = self.get_response(request)
            response["X-Request-ID"] = request_id()
        finally:
            _current.reset(token)
        return response

"""Plain sentences with the request id, also when nobody is signed in."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseServerError
from django.shortcuts import render
from django.template.loader import render_to_string

from apps.core.errors import Unavailable
from apps.core.requests import request_id
from apps.web.kit.pages import page_of


def _page(request: HttpRequest, status: int, exception: Exception | None = None) -> HttpResponse:
    reason = str(exception) if exception is not None and exception.args and isinstance(exception.args[0], str) else ""
    return render(request, f"{status}.html", {"request_id": request_id(), "reason": reason}, status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400."""
    return _page(request, 400, exception)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403."""
    return _page(request, 403, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404; Django's own texts name patterns and tables, so only sentences of ours are shown."""
    return _page(request, 404, exception if exception.__cause__ is not None else None)


def server_error(request: HttpRequest) -> HttpResponse:  # noqa: ARG001 - Django's signature
    """500: rendered without a request, because whatever broke may break the context too."""
    return HttpResponseServerError(render_to_string("500.html", {"request_id": request_id()}))


def not_available(refusal: Unavailable) -> HttpResponse:
    """503: rendered without a request too."""
    text = render_to_string("503.html", {"request_id": request_id(), "reason": refusal.detail})
    return HttpResponse(text, status=refusal.status, headers={"Retry-After": str(refusal.wait_s)})


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001 - Django's signature
    """403 for a form that came without its token; the address that it was sent to is often no page."""
    return render(request, "csrf_failure.html", {"request_id": request_id(), "back": page_of(request)}, status=403)

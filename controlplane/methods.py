"""Browsers ask with GET and send with POST; a page knows no other way to be asked."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed

ALLOWED = ("GET", "HEAD", "POST")
# The API and the state of stacks, which Terraform locks with a method of its own, look at methods themselves.
OTHERS = ("/api/", "/state/")


class GetAndPostOnly:
    """Middleware: 405 for every other method outside of the API, so that none reaches a view that forgot to ask."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method in ALLOWED or request.path.startswith(OTHERS):
            return self.get_response(request)
        return HttpResponseNotAllowed(ALLOWED)

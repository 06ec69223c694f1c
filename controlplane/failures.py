"""What nobody caught: each interface says it in its own way, as 503 where only the moment is to blame."""

from __future__ import annotations

import sys

from django.http import HttpRequest, HttpResponse

from apps.api.v1.protocol.problems import problem_answer
from apps.core.unavailable import unavailable
from apps.web.kit import errors

MACHINES = ("/api/", "/hooks/")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's `handler400`: it tells a session that the database did not take from one that somebody deleted."""
    cause: BaseException | None = exception
    while cause is not None:
        if refusal := unavailable(cause):
            return errors.not_available(refusal)
        cause = cause.__context__
    if request.path.startswith(MACHINES):
        return problem_answer(exception, request)
    return errors.bad_request(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's `handler500`, called while the error is being handled."""
    error = sys.exc_info()[1]
    if isinstance(error, Exception) and request.path.startswith(MACHINES):
        return problem_answer(error, request)
    refusal = unavailable(error)
    return errors.not_available(refusal) if refusal else errors.server_error(request)

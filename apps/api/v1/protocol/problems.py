"""Every refusal is one `application/problem+json` (RFC 9457) that names each error."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, TooManyFieldsSent
from django.http import Http404, HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from apps.core.errors import MISSING, FieldError, Invalid, Managed, SpillwayError, Stale
from apps.core.requests import request_id
from apps.core.unavailable import unavailable

PROBLEM = "application/problem+json"

# Refusals of Django itself.
FOREIGN: dict[type[Exception], tuple[int, str]] = {
    Http404: (404, MISSING),
    PermissionDenied: (403, "You may not do this."),
    RequestDataTooBig: (413, "The body is too large."),
    TooManyFieldsSent: (400, "The query has more than 1,000 words; say less in one request."),
}

logger = logging.getLogger(__name__)


def problem(
    status: int, detail: str, instance: str, *, title: str = "", field_errors: tuple[FieldError, ...] = ()
) -> dict[str, Any]:
    """The body: `type` is about:blank plus our title, `errors` one entry per error."""
    return {
        "type": "about:blank",
        "title": title or HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "instance": instance,
        "request_id": request_id(),
        "errors": [
            {"pointer": field_error.pointer, "code": field_error.code, "detail": field_error.detail}
            for field_error in field_errors
        ],
    }


def problem_response(error: Exception, context: dict[str, Any]) -> Response:
    """Django REST framework's exception handler."""
    set_rollback()
    request = context["request"]
    body, headers = told(error, request.path)
    if isinstance(error, exceptions.MethodNotAllowed):
        there = [each for each in context["view"].allowed_methods if each not in {"HEAD", "OPTIONS"}]
        body["detail"] = f"This URL does not take {request.method}; use {' or '.join(there)}."
    return Response(body, status=body["status"], headers=headers, content_type=PROBLEM)


def problem_answer(error: Exception, request: HttpRequest) -> JsonResponse:
    """The same outside of a view."""
    body, headers = told(error, request.path)
    return JsonResponse(body, status=body["status"], headers=headers, content_type=PROBLEM)


def told(error: Exception, instance: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Body and headers of a refusal; what nobody foresaw is a 500 without a word about the inside."""
    if passing := unavailable(error):
        logger.warning("request %s: %s", request_id(), error)
        error = passing
    if isinstance(error, SpillwayError):
        field_errors = error.field_errors if isinstance(error, Invalid | Managed) else ()
        return problem(
            error.status, error.detail, instance, title=error.title, field_errors=field_errors
        ), _said_beside(error)
    if isinstance(error, exceptions.APIException):
        return problem(error.status_code, _sentence(error), instance), _headers(error)
    for kind, (status, detail) in FOREIGN.items():
        if isinstance(error, kind):
            return problem(status, detail, instance), {}
    logger.error("request %s failed", request_id(), exc_info=error)
    return problem(500, "Something went wrong in Spillway. Send the request ID to an operator.", instance), {}


def _said_beside(error: SpillwayError) -> dict[str, str]:
    if error.wait_s is not None:
        return {"Retry-After": str(error.wait_s)}
    return {"ETag": f'"rev-{error.version}"'} if isinstance(error, Stale) and error.version else {}


def _headers(error: exceptions.APIException) -> dict[str, str]:
    found = {}
    if challenge := getattr(error, "auth_header", None):
        found["WWW-Authenticate"] = challenge
    if wait := getattr(error, "wait", None):
        found["Retry-After"] = str(int(wait))
    return found


def _sentence(error: exceptions.APIException) -> str:
    return error.detail if isinstance(error.detail, str) else str(error.default_detail)


@csrf_exempt
def no_such_url(request: HttpRequest, **_: str) -> JsonResponse:
    """Whatever else is asked for below /api/."""
    return JsonResponse(problem(404, MISSING, request.path), status=404, content_type=PROBLEM)

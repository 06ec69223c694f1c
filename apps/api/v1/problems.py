"""SHOW to machines: every refusal is one `application/problem+json` (RFC 9457) that names each fault."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404, HttpRequest, JsonResponse
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from apps.core.errors import Fault, Invalid, SpillwayError
from apps.core.requests import request_id

PROBLEM = "application/problem+json"
NOT_FOUND = "There is no such object, or you may not see it."

logger = logging.getLogger(__name__)


def problem(
    status: int, detail: str, instance: str, *, title: str = "", faults: tuple[Fault, ...] = ()
) -> dict[str, Any]:
    """The body: `type` is about:blank plus our title, `errors` one entry per fault."""
    return {
        "type": "about:blank",
        "title": title or HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "instance": instance,
        "request_id": request_id(),
        "errors": [{"pointer": fault.pointer, "code": fault.code, "detail": fault.detail} for fault in faults],
    }


def problem_response(error: Exception, context: dict[str, Any]) -> Response:
    """Django REST framework's exception handler; what nobody foresaw is a 500 without a word about the inside."""
    instance = context["request"].path
    headers: dict[str, str] = {}
    set_rollback()
    if isinstance(error, SpillwayError):
        faults = error.faults if isinstance(error, Invalid) else ()
        body = problem(error.status, error.detail, instance, title=error.title, faults=faults)
    elif isinstance(error, Http404):
        body = problem(404, NOT_FOUND, instance)
    elif isinstance(error, PermissionDenied):
        body = problem(403, "You may not do this.", instance)
    elif isinstance(error, RequestDataTooBig):
        body = problem(413, "The body is too large.", instance)
    elif isinstance(error, exceptions.APIException):
        headers = _headers(error)
        body = problem(error.status_code, _sentence(error), instance)
    else:
        logger.error("request %s failed", request_id(), exc_info=error)
        body = problem(500, "Something went wrong here; the request id leads us to it.", instance)
    return Response(body, status=body["status"], headers=headers, content_type=PROBLEM)


def _headers(error: exceptions.APIException) -> dict[str, str]:
    found = {}
    if challenge := getattr(error, "auth_header", None):
        found["WWW-Authenticate"] = challenge
    if wait := getattr(error, "wait", None):
        found["Retry-After"] = str(int(wait))
    return found


def _sentence(error: exceptions.APIException) -> str:
    return error.detail if isinstance(error.detail, str) else str(error.default_detail)


def no_such_url(request: HttpRequest, **_: str) -> JsonResponse:
    """Whatever else is asked for below /api/."""
    return JsonResponse(problem(404, NOT_FOUND, request.path), status=404, content_type=PROBLEM)

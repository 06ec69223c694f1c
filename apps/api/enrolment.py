"""`POST /enrol`: a machine with a token becomes a node. `GET /enrol/ca`: by which certificate it knows this console.

No session and no API token stand behind them: the machine has its enrolment token alone, which the service judges.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from apps.api.v1.protocol.problems import problem_answer
from apps.core.addresses import client_address
from apps.core.errors import FieldError, Invalid, Malformed, SpillwayError
from apps.core.secrets.keys import must_fit
from apps.enrolment import pinned
from apps.enrolment.enrolling import Asked, enrol

LARGEST = 16 * 1024
FIELDS = {"token": 200, "request": 8192, "address": 45}


@require_GET
def authority(request: HttpRequest) -> HttpResponse:
    """The pinned certificate as PEM. It is public: who asks compares its digest with that in the token."""
    try:
        return HttpResponse(pinned.text(), content_type="application/x-pem-file")
    except SpillwayError as error:
        return problem_answer(error, request)


@csrf_exempt
@require_POST
def call(request: HttpRequest) -> HttpResponse:
    """`{token, request, address?, port}` → `{node, fleet, url, address, certificate, authorities}`."""
    try:
        must_fit()
        found = enrol(_read(request.read(LARGEST + 1)), client_address(request))
    except Exception as error:  # noqa: BLE001 - told as every refusal, and logged there
        return problem_answer(error, request)
    return JsonResponse(asdict(found))


def _read(body: bytes) -> Asked:
    if len(body) > LARGEST:
        raise Malformed(f"Send at most {LARGEST} bytes.")
    try:
        data: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise Malformed("Send JSON.") from None
    if not isinstance(data, dict):
        raise Malformed("Send a JSON object.")
    errors, found = [], {}
    for name, longest in FIELDS.items():
        value = data.get(name, "")
        if not isinstance(value, str) or not value.isascii() or len(value) > longest or "\0" in value:
            errors.append(FieldError(f"/{name}", "text", f"{name} is a text of at most {longest} characters."))
        found[name] = value
    port: Any = data.get("port")
    if type(port) is not int or not 0 < port < 65536:
        errors.append(FieldError("/port", "port", "port is a number from 1 to 65535."))
    if errors:
        raise Invalid(errors)
    return Asked(port=port, **found)

"""`POST /hooks/<key id>`: somebody outside runs a schedule, with a secret or a signature.

No token and no session stand behind it, so it tells outsiders nothing: 404 for whatever they do not know, 429 for who
guesses on.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from rest_framework.exceptions import APIException

from apps.api.v1.protocol import rate_limits
from apps.api.v1.protocol.problems import problem_answer
from apps.core.addresses import client_address
from apps.core.errors import FieldError, Invalid, NotFound, SpillwayError
from apps.schedules.triggers import services as triggers

WAIT_S = 60


@csrf_exempt
@require_POST
def call(request: HttpRequest, key_id: str) -> HttpResponse:
    """202 with the schedule run's id; the same delivery again answers with the same run."""
    try:
        rate_limits.refuse_guessing(request)
        return _called(request, key_id)
    except NotFound as error:
        rate_limits.note_failure(request)
        return problem_answer(error, request)
    except triggers.TooMany as error:
        response = problem_answer(error, request)
        response["Retry-After"] = str(WAIT_S)
        return response
    except (APIException, SpillwayError) as error:
        return problem_answer(error, request)


def _called(request: HttpRequest, key_id: str) -> HttpResponse:
    if request.META.get("QUERY_STRING"):
        detail = "Send the secret in a header: URLs end up in the logs of every proxy on the way."
        raise Invalid([FieldError("", "query", detail)])
    body = request.read(triggers.MOST_BYTES + 1)
    if len(body) > triggers.MOST_BYTES:
        raise TooLarge(f"Send at most {triggers.MOST_BYTES} bytes.")
    found, before = triggers.call(key_id=key_id, call=triggers.Call(client_address(request), request.headers, body))
    return JsonResponse(
        {"schedule_run": found.pk, "state": found.state, "message": found.message, "repeated": before}, status=202
    )


class TooLarge(SpillwayError):
    """The body is larger than what is passed on."""

    status = 413
    title = "Body too large"

"""Its `http` backend at /state/<stack>, as it speaks it.

GET, POST (?ID= the lock's), DELETE, LOCK, UNLOCK; 423 with the holder's words where somebody else has the lock. Who
asks is a run (Basic: `run-<number>` and the password of its present attempt); everybody else learns nothing, not even
which stacks there are.
"""

from __future__ import annotations

import base64
import hashlib
from typing import NoReturn

from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from apps.core.secrets.sealing import Unsealable
from apps.stacks.models import StackRun
from apps.stacks.state import passwords
from apps.stacks.state import storage as state

METHODS = ("GET", "POST", "DELETE", "LOCK", "UNLOCK")
MOST_LOCK_BYTES = 16 * 1024


@csrf_exempt
def state_of_stack(request: HttpRequest, stack_id: int) -> HttpResponse:
    """One request of Terraform."""
    if request.method not in METHODS:
        return HttpResponseNotAllowed(METHODS)
    run = _caller(request, stack_id)
    if run is None:
        return _unknown()
    try:
        return _answer(request, run)
    except state.Unreadable as error:
        return _said(str(error), 400)
    except state.Held as held:
        return JsonResponse(held.info, status=423)
    except state.Refused as error:
        return _said(str(error), 409)
    except Unsealable:
        return _said("The stored state cannot be opened with this SECRET_KEY.", 409)


@csrf_exempt
@require_POST
def alive(request: HttpRequest, stack_id: int) -> HttpResponse:
    """An apply says that it lives, whatever happened to its worker (drivers/infra/process_guard.py)."""
    run = _caller(request, stack_id)
    if run is None:
        return _unknown()
    state.note_life(run)
    return HttpResponse(status=204)


def _unknown() -> HttpResponse:
    response = _said("Only a current run of this stack has access.", 401)
    response["WWW-Authenticate"] = 'Basic realm="state"'
    return response


def _answer(request: HttpRequest, run: StackRun) -> HttpResponse:
    lock_id = request.GET.get("ID", "")
    match request.method:
        case "GET":
            return _state(run)
        case "POST":
            state.write(run, _body(request, state.MOST_BYTES), lock_id=lock_id, md5=_md5(request))
        case "DELETE":
            state.delete(run, lock_id=lock_id)
        case "LOCK":
            state.lock(run, _body(request, MOST_LOCK_BYTES))
        case "UNLOCK":
            state.unlock(run, _body(request, MOST_LOCK_BYTES) or _without_lock())
    return HttpResponse(status=200)


def _without_lock() -> NoReturn:
    """`terraform force-unlock` sends neither the lock nor its id."""
    raise state.Unreadable(
        "terraform force-unlock does not say which lock. Remove it on the page of the stack, or with "
        "POST /api/v1/stacks/{name}/force-unlock with its id and a reason."
    )


def _state(run: StackRun) -> HttpResponse:
    found = state.read(run.stack_id)
    if found is None:
        return HttpResponse(status=204)
    response = HttpResponse(found.content, content_type="application/json")
    digest = hashlib.md5(found.content, usedforsecurity=False).digest()
    response["Content-MD5"] = base64.b64encode(digest).decode()
    response["Cache-Control"] = "no-store"
    return response


def _caller(request: HttpRequest, stack_id: int) -> StackRun | None:
    kind, _, given = request.headers.get("Authorization", "").partition(" ")
    try:
        name, colon, password = base64.b64decode(given, validate=True).decode().partition(":")
    except ValueError:
        return None
    if kind.lower() != "basic" or not colon:
        return None
    return passwords.holder_of(stack_id, name, password)


def _md5(request: HttpRequest) -> str:
    """The digest that came with the body in hexadecimal, empty where none came."""
    given = request.headers.get("Content-MD5", "")
    try:
        return base64.b64decode(given, validate=True).hex()
    except ValueError:
        raise state.Unreadable("Content-MD5 is not Base64.") from None


def _body(request: HttpRequest, most: int) -> bytes:
    body = request.read(most + 1)
    if len(body) > most:
        raise state.Unreadable(f"Send at most {most} bytes.")
    return body


def _said(text: str, status: int) -> HttpResponse:
    return HttpResponse(f"{text}\n", status=status, content_type="text/plain; charset=utf-8")

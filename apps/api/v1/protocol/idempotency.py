"""`Idempotency-Key`: the same request sent again gets the same answer, and its work is done once.

Draft-ietf-httpapi-idempotency-key-header; apps/retries says what holds when processes die.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

from django.db import transaction
from django.http import HttpRequest, HttpResponse

from apps.accounts.actors import Actor
from apps.core.errors import FieldError, Invalid, SpillwayError
from apps.retries import services
from apps.retries.services import Answer, Claim

METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
# What these say is about the caller or the moment, not about the work.
NOT_KEPT = frozenset({401, 403, 408, 429})
# The same body with another of these is another request.
PART_OF_THE_REQUEST = ("Content-Type", "If-Match", "If-None-Match")
_KEY = re.compile(r"[\x21-\x7e]{1,255}")

Respond = Callable[[HttpRequest], HttpResponse]


def key_of(request: HttpRequest) -> str:
    """The key of a request that changes something, empty without one. Raises Invalid."""
    key = request.headers.get("Idempotency-Key")
    if key is None or request.method not in METHODS:
        return ""
    if not _KEY.fullmatch(key):
        detail = "Use 1 to 255 visible ASCII characters as a key, a random UUID for example."
        raise Invalid([FieldError("/Idempotency-Key", "key", detail)])
    return key


def once(request: HttpRequest, actor: Actor, key: str, respond: Respond) -> HttpResponse:
    """The answer to this request: a new one, or the one that it had before. Raises Invalid, Conflict."""
    actor.must_be_active()
    found = services.claim(actor=actor, key=key, fingerprint=fingerprint(request))
    if isinstance(found, Answer):
        return _again(found)
    response = _worked(request, found, respond)
    response["Idempotency-Replayed"] = "false"
    return response


def fingerprint(request: HttpRequest) -> str:
    """A digest of all that makes a request this request: method, path, query, body and its conditions."""
    parts = [request.method or "", request.path, request.GET.urlencode()]
    parts += [request.headers.get(name, "") for name in PART_OF_THE_REQUEST]
    head = "\0".join(parts).encode()
    return hashlib.sha256(len(head).to_bytes(8, "big") + head + request.body).hexdigest()


def _worked(request: HttpRequest, mine: Claim, respond: Respond) -> HttpResponse:
    """Do the work and keep its answer in one transaction; what was refused is undone, and kept when it is final."""
    try:
        with transaction.atomic():
            response = respond(request)
            if response.status_code < 400:
                services.keep(mine, _kept(response))
            else:
                transaction.set_rollback(True)
        if _is_passing(response):
            services.let_go(mine)
        elif response.status_code >= 400:
            services.keep(mine, _kept(response))
    except SpillwayError:
        raise  # the turn is another's
    except Exception:
        services.let_go(mine)
        raise
    return response


def _is_passing(response: HttpResponse) -> bool:
    """Whether a refusal is none of the work: whoever comes again as it asks has another answer."""
    return response.status_code >= 500 or response.status_code in NOT_KEPT or "Retry-After" in response


def _kept(response: HttpResponse) -> Answer:
    return Answer(response.status_code, dict(response.headers.items()), response.content)


def _again(answer: Answer) -> HttpResponse:
    response = HttpResponse(answer.body, status=answer.status, headers=dict(answer.headers))
    response["Idempotency-Replayed"] = "true"
    return response

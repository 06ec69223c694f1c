"""Is the process alive, can it work, what does it count."""

from __future__ import annotations

import redis
from django import db
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from apps.accounts.actors import actor_of_token
from apps.accounts.tokens import find_token
from apps.core.addresses import client_address, is_local
from apps.core.clock import ahead_of_database_s
from apps.core.secrets import keys
from apps.observe import metrics as exposition
from apps.observe import schema
from apps.observe.collect import lease
from apps.observe.collect.fitness import evaluate_clock
from apps.observe.live import store as live


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:  # noqa: ARG001 - Django's signature
    """200 as long as the process answers; asks nothing and nobody."""
    return _uncached(HttpResponse("ok\n", content_type="text/plain"))


@require_safe
def readyz(request: HttpRequest) -> HttpResponse:  # noqa: ARG001 - Django's signature
    """200 when the database answers, has today's tables, and opens with the key of this process; 503 otherwise.

    Redis, the collector and this machine's clock are reported, not required: without them work is delayed and numbers
    are old, and taking this process out of service would not help.
    """
    database, key, collector = _database()
    parts = {"database": database, "key": key, "redis": _redis(), "collector": collector, "clock": _clock()}
    degraded = [name for name, said in parts.items() if said != "ok"]
    ready = database == "ok" and key != keys.OPENS_NOTHING
    answer = {"ready": ready, "degraded": degraded, "parts": parts}
    return _uncached(JsonResponse(answer, status=200 if ready else 503))


def _database() -> tuple[str, str, str]:
    try:
        if (tables := schema.is_current()) != "ok":
            return tables, "unknown", "unknown"
        return "ok", keys.said(), "ok" if lease.watched() else "no collector reads the nodes"
    except db.Error:
        # The error's text may hold addresses; whoever operates this finds it in the log of the database client.
        return "does not answer", "unknown", "unknown"


def _clock() -> str:
    """Of this machine; what it decides goes by the database's all the same."""
    verdict = evaluate_clock("console", 0, ahead_of_database_s() or 0.0)
    return "ok" if verdict.status else verdict.message


def _redis() -> str:
    try:
        live.client().ping()
    except redis.RedisError:
        return "does not answer"
    return "ok"


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus text, for operators' tokens and for this machine itself; everybody else gets 401 or 403."""
    if not is_loopback(request):
        scheme, _, text = request.headers.get("Authorization", "").partition(" ")
        token = find_token(text, client_address(request)) if scheme.lower() == "bearer" else None
        if token is None:
            refused = HttpResponse("Send an operator's token: Authorization: Bearer sw_…\n", status=401)
            refused["WWW-Authenticate"] = 'Bearer realm="spillway"'
            return _uncached(refused)
        if not actor_of_token(token).is_operator:
            return _uncached(HttpResponse("Metrics are for operators.\n", status=403, content_type="text/plain"))
    return _uncached(HttpResponse(exposition.text(), content_type=exposition.CONTENT_TYPE))


def is_loopback(request: HttpRequest) -> bool:
    """Whether the request began on this machine."""
    return is_local(client_address(request))


def _uncached(response: HttpResponse) -> HttpResponse:
    response["Cache-Control"] = "no-store"
    return response

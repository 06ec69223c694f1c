"""How many requests a minute an account, a token and a stranger's address may make.

The headers are those of draft-ietf-httpapi-ratelimit-headers. Counting is atomic in the cache and per minute of the
clock; while the cache is away nobody is counted, because a control plane that refuses its operators is worse.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from rest_framework.exceptions import Throttled

from apps.accounts.actors import Actor
from apps.accounts.quotas import quota
from apps.core.addresses import client_address
from apps.core.clock import now

WINDOW_S = 60
# One program that runs wild leaves a quarter of the account's requests to the others.
SHARE_OF_A_TOKEN = 0.75
FAILED_TRIES = 300

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Budget:
    """What somebody may still do in this minute; `used` includes the request being served."""

    name: str
    most: int
    used: int
    reset_s: int

    @property
    def left(self) -> int:
        """Requests that will still be served."""
        return max(0, self.most - self.used)

    @property
    def spent(self) -> bool:
        """Whether this request is one too many."""
        return self.used > self.most


def spend(actor: Actor) -> list[Budget]:
    """Count a request of a known caller; empty where nothing is counted."""
    if not settings.API_RATE_LIMITS:
        return []
    most = quota(actor.account, "requests_per_minute") or 0
    of_token = max(1, int(most * SHARE_OF_A_TOKEN))
    found = [_counted("account", str(actor.account.pk), most), _counted("token", actor.token, of_token)]
    return [budget for budget in found if budget is not None]


def refuse_guessing(request: HttpRequest) -> None:
    """Raise Throttled for an address that came with too many wrong tokens, before the next one is looked up."""
    if settings.API_RATE_LIMITS and int(cache.get(_key("stranger", client_address(request)), 0) or 0) >= FAILED_TRIES:
        logger.warning("too many wrong tokens from %s", client_address(request))
        raise Throttled(wait=_reset_s(), detail="Too many requests without a valid token; wait a minute.")


def note_failure(request: HttpRequest) -> None:
    """Count a request without a token, or with a wrong one."""
    if settings.API_RATE_LIMITS:
        _counted("stranger", client_address(request), FAILED_TRIES)


def refuse_spent(budgets: Iterable[Budget]) -> None:
    """Raise Throttled when a budget is spent."""
    for budget in budgets:
        if budget.spent:
            detail = f"This {budget.name} may make {budget.most} requests per minute; wait {budget.reset_s} s."
            raise Throttled(wait=budget.reset_s, detail=detail)


def say(response: HttpResponse, budgets: list[Budget]) -> None:
    """Put the budgets into the headers."""
    if budgets:
        response["RateLimit-Policy"] = ", ".join(f'"{each.name}";q={each.most};w={WINDOW_S}' for each in budgets)
        response["RateLimit"] = ", ".join(f'"{each.name}";r={each.left};t={each.reset_s}' for each in budgets)


def _counted(name: str, whose: str, most: int) -> Budget | None:
    key = _key(name, whose)
    try:
        used: int | None = cache.incr(key)
    except ValueError:  # the first of this minute
        cache.add(key, 0, 2 * WINDOW_S)
        used = _incremented(key)
    return None if used is None else Budget(name, most, used, _reset_s())


def _incremented(key: str) -> int | None:
    try:
        return cache.incr(key)
    except ValueError:  # the cache is full or was emptied in between
        return None


def _key(name: str, whose: str) -> str:
    return f"rate:{name}:{whose}:{int(now().timestamp()) // WINDOW_S}"


def _reset_s() -> int:
    return WINDOW_S - int(now().timestamp()) % WINDOW_S

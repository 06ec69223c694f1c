"""The way past a limit: a token by which the nodes of a region know a run's requests while it is active.

Only the generator ever has the token; the row and the nodes have its SHA-256. It begins and ends as every change does:
the row is the intent, the region's fleets are pushed to, and it is no reload.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from hashlib import sha256

from django.db import transaction

from apps.capacity.models import Run
from apps.compiler.model.fleet import BypassToken
from apps.compiler.model.shared import Protocol
from apps.core.errors import Conflict
from apps.definitions.selectors import fleets_of_pools
from apps.fleet.models import Fleet
from apps.fleet.services import request_push
from apps.rollouts import selectors as rollouts

HEADER = "X-Spillway-Test"
RUN_HEADER = "X-Load-Test"
USER_AGENT = "Spillway-CapacityTest/1"
LIVE_WITHIN_S = 20.0


def bypass_tokens_of(region_id: int) -> Iterable[BypassToken]:
    """Of the runs that are active in the region now; for the snapshot of its fleets."""
    active = Run.objects.filter(region=region_id, state__in=Run.ACTIVE, pool__isnull=False).exclude(bypass_digest="")
    return [BypassToken(run.bypass_digest, f"pool-{run.pool_id}", run.name) for run in active.order_by("pk")]


def needs_bypass_token(run: Run) -> bool:
    """Whether limits of nodes stand between the run and its servers: not for one server directly, not for tcp."""
    direct = bool(run.plan.get("target", {}).get("server"))
    return not direct and run.pool is not None and run.pool.protocol != Protocol.TCP


def activate(run: Run) -> str:
    """Let the run's requests pass its pool's limit in its region; returns the token, empty where none is needed.

    The caller holds the run: raises Conflict when its attempt is not the present one, or the run is not active.
    """
    if not needs_bypass_token(run):
        return ""
    token = secrets.token_urlsafe(24)
    digest = sha256(token.encode()).hexdigest()
    with transaction.atomic():
        held = Run.objects.filter(pk=run.pk, attempt=run.attempt, state__in=Run.ACTIVE)
        if not held.update(bypass_digest=digest):
            raise Conflict("Another worker has the run, or it is over: it gets no bypass token.")
        request_push(_fleets(run))
    run.bypass_digest = digest
    return token


def wait_until_live(run: Run, seconds: float = LIVE_WITHIN_S) -> bool:
    """Wait until every node of the region that serves the pool knows the bypass token (or no longer knows it)."""
    return rollouts.wait_until_live([fleet.pk for fleet in _fleets(run)], None, seconds)


def deactivate(run: Run) -> None:
    """Take the bypass token back; whoever calls it again changes nothing."""
    with transaction.atomic():
        if Run.objects.filter(pk=run.pk).exclude(bypass_digest="").update(bypass_digest=""):
            request_push(_fleets(run))
    run.bypass_digest = ""


def headers_of(run: Run, token: str) -> dict[str, str]:
    """What each request of the run carries: servers see the run's name, never the token."""
    marks = {RUN_HEADER: run.name, "User-Agent": USER_AGENT}
    return {HEADER: token, **marks} if token else marks


def _fleets(run: Run) -> list[Fleet]:
    if run.pool_id is None:
        return []
    return list(fleets_of_pools([run.pool_id]).filter(region=run.region_id))

"""The way past a limit: a word by which the nodes of a region know a run's requests while it is active.

Only the generator ever has the word; the row and the nodes have its SHA-256. A pass begins and ends as every change
does: the row is the intent, the region's fleets are pushed to, and it is no reload.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from hashlib import sha256

from django.db import transaction

from apps.capacity.models import Run
from apps.compiler.model.fleet import Protocol, RunPass
from apps.core.errors import Conflict
from apps.definitions.selectors import fleets_of_pools
from apps.fleet.models import Fleet
from apps.fleet.services import request_push
from apps.rollouts import selectors as rollouts

HEADER = "X-Spillway-Test"
RUN_HEADER = "X-Load-Test"
USER_AGENT = "Spillway-CapacityTest/1"
LIVE_WITHIN_S = 20.0


def passes_of(region_id: int) -> Iterable[RunPass]:
    """Of the runs that are active in the region now; for the snapshot of its fleets."""
    active = Run.objects.filter(region=region_id, state__in=Run.ACTIVE, pool__isnull=False).exclude(pass_digest="")
    rows = active.order_by("pk").values_list("pass_digest", "pool_id")
    return [RunPass(digest, f"pool-{pool_id}") for digest, pool_id in rows]


def needs_pass(run: Run) -> bool:
    """Whether limits of nodes stand between the run and its servers: not for one server directly, not for tcp."""
    direct = bool(run.plan.get("target", {}).get("server"))
    return not direct and run.pool is not None and run.pool.protocol != Protocol.TCP


def activate(run: Run) -> str:
    """Let the run's requests pass its pool's limit in its region; returns the word, empty where none is needed.

    The caller holds the run: raises Conflict when its attempt is not the present one, or the run is not active.
    """
    if not needs_pass(run):
        return ""
    word = secrets.token_urlsafe(24)
    digest = sha256(word.encode()).hexdigest()
    with transaction.atomic():
        held = Run.objects.filter(pk=run.pk, attempt=run.attempt, state__in=Run.ACTIVE)
        if not held.update(pass_digest=digest):
            raise Conflict("Another worker has the run, or it is over: it gets no pass.")
        request_push(_fleets(run))
    run.pass_digest = digest
    return word


def wait_until_live(run: Run, seconds: float = LIVE_WITHIN_S) -> bool:
    """Wait until every node of the region that serves the pool knows the pass (or no longer knows it)."""
    return rollouts.wait_until_live([fleet.pk for fleet in _fleets(run)], None, seconds)


def deactivate(run: Run) -> None:
    """Take the pass back; whoever calls it again changes nothing."""
    with transaction.atomic():
        if Run.objects.filter(pk=run.pk).exclude(pass_digest="").update(pass_digest=""):
            request_push(_fleets(run))
    run.pass_digest = ""


def headers_of(run: Run, word: str) -> dict[str, str]:
    """What each request of the run carries: servers see the run's name, never the word."""
    marks = {RUN_HEADER: run.name, "User-Agent": USER_AGENT}
    return {HEADER: word, **marks} if word else marks


def _fleets(run: Run) -> list[Fleet]:
    if run.pool_id is None:
        return []
    return list(fleets_of_pools([run.pool_id]).filter(region=run.region_id))

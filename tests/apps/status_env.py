"""A status page of an account, what its pools are like, and what was measured of them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.definitions.models import Pool, RoutePool, StatusPage
from apps.definitions.services import save_object
from apps.definitions.shapes.base.words import instant_text
from apps.fleet.models import Node
from apps.observe import services
from apps.observe.collect.deltas import Counts
from apps.status.models import PoolDay
from apps.status.showing import Shown, ShownComponent, show_page
from apps.status.states import State
from tests.apps.alerts_env import Installation

DEGRADED, UNKNOWN, FINE = State.DEGRADED, State.UNKNOWN, State.OPERATIONAL
PARTIAL, MAJOR, WORK = State.PARTIAL_OUTAGE, State.MAJOR_OUTAGE, State.MAINTENANCE
FIRST: dict[str, Any] = {"title": "Payments fail", "text": "We look into it.", "components": ["Checkout"]}


@pytest.fixture
def installation(tutorial_env: Actor) -> Installation:
    """The tutorial's installation, as a collector sees it now."""
    made = Installation(at=now())
    made.tick(0)
    return made


def shown(page: StatusPage, at: datetime | None = None) -> Shown:
    """The page as visitors see it."""
    return show_page(page, at or now())


def checkout(page: StatusPage, at: datetime | None = None) -> ShownComponent:
    """Its first component."""
    return shown(page, at).components[0]


def at(**back: float) -> str:
    """A moment that many hours or days from now."""
    return instant_text(now() + timedelta(**back)) or ""


def make_page(actor: Actor, name: str = "acme", **spec: Any) -> StatusPage:
    """A page with one component, the route of the tutorial."""
    usual = {"title": "Acme shop", "components": [{"name": "Checkout", "routes": ["shop"]}]}
    row: StatusPage = save_object(actor=actor, kind="StatusPage", name=name, spec=usual | spec)
    return row


def pools_behind(actor: Actor, route: str = "shop") -> list[Pool]:
    """The pools that a route leads to."""
    shares = RoutePool.objects.filter(route__account=actor.account, route__name=route, mirror=False, weight__gt=0)
    return [each.pool for each in shares.select_related("pool").order_by("pool")]


def minute(pool: Pool, at: datetime, good: int = 10, bad: int = 0, *, status: str = "UP", node: int = 0) -> None:
    """What a node counted of a pool in the minute of `at`."""
    second = int(at.timestamp()) // 60 * 60
    counts = Counts(seconds=60, requests=good + bad, status_2xx=good, status_5xx=bad, status=status)
    services.store_buckets(60, [(second, Node.objects.order_by("pk")[node].pk, ("backend", f"pool-{pool.pk}"), counts)])


def day(pool: Pool, back: int, minutes: int = 1440, *, down: int = 0, failing: int = 0) -> None:
    """What was counted of a pool so many days ago."""
    moment = now() - timedelta(days=back)
    PoolDay.objects.create(
        pool=pool, day=moment.date(), minutes=minutes, down=down, failing=failing, counted_until=moment
    )

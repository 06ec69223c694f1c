"""A status page of an account, what its pools are like, and what was measured of them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.definitions.models import Pool, RoutePool, StatusPage
from apps.definitions.services import save_object
from apps.fleet.models import Node
from apps.observe import services
from apps.observe.collect.deltas import Counts
from apps.status.models import PoolDay


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

"""What a new account does first; each step turns green by itself, from what is really there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from apps.accounts.actors import Actor
from apps.accounts.models import Hostname
from apps.definitions.models import Pool, Route
from apps.definitions.selectors import hostnames, pools, routes
from apps.observe.selectors import has_served, pool_numbers
from apps.web.first_steps.steps import Step, in_order
from apps.web.routes.rows import sync_of

LOOKED_AT = 50


@dataclass(frozen=True, slots=True)
class _Found:
    """What the account has so far; at most the first LOOKED_AT of each."""

    hostnames: list[Hostname]
    pools: list[Pool]
    routes: list[Route]

    @property
    def waiting(self) -> Hostname | None:
        return next((name for name in self.hostnames if not name.verification), None)

    @property
    def verified(self) -> Hostname | None:
        return next((name for name in self.hostnames if name.verification), None)


def first_steps(actor: Actor) -> list[Step]:
    """The steps of an account that has not served a request yet, empty once all are done.

    One that has served is never sent back to its first steps by a failure or a fleet that is held.
    """
    if has_served(actor):
        return []
    found = _Found(
        list(hostnames(actor).filter(released_at=None)[:LOOKED_AT]),
        list(pools(actor)[:LOOKED_AT]),
        list(routes(actor).filter(account=actor.account).prefetch_related(None)[:LOOKED_AT]),
    )
    done = list(_done(actor, found))
    return [] if all(done) else in_order(_words(found), done)


def _done(actor: Actor, found: _Found) -> Iterator[bool]:
    yield bool(found.hostnames)
    yield found.verified is not None
    yield any(backend.servers.all() for pool in found.pools for backend in pool.backends.all())
    yield any(seen.servers_up for seen in pool_numbers(actor, [pool.pk for pool in found.pools]).values())
    yield bool(found.routes)
    served = [route for route in found.routes if route.hostname.verification]
    words = sync_of(actor, {route.load_balancer_id for route in served})
    yield any(words.get(route.load_balancer_id) == "in_sync" for route in served)


def _words(found: _Found) -> Iterator[tuple[str, str, str, str]]:
    yield (
        "Add a hostname",
        "The hostname that your clients use, such as shop.example.com. No other account can use it then.",
        reverse("web:hostname-new"),
        "Add hostname",
    )
    waiting = found.waiting or found.verified
    yield (
        "Verify that it is yours",
        "Add a TXT record to its DNS zone. The page of the hostname shows the record and its status.",
        reverse("web:hostname", args=[waiting.pk]) if waiting else reverse("web:hostnames"),
        "Show record",
    )
    pool = found.pools[0] if found.pools else None
    yield (
        "Add your servers",
        "A pool is one service: the addresses and ports of its servers in each region, and a health check.",
        reverse("web:pool-edit", args=[pool.pk]) if pool else reverse("web:pool-new"),
        "Add servers",
    )
    yield (
        "Check that they respond",
        "Each node checks each server every two seconds. This step turns green after the first successful check.",
        reverse("web:pool", args=[pool.pk]) if pool else reverse("web:pools"),
        "View pool",
    )
    start = {"hostname": (found.verified or waiting).name} if waiting else {}
    start |= {"pool": pool.name} if pool else {}
    yield (
        "Route requests to them",
        "A route sends requests for a hostname and path to a pool.",
        f"{reverse('web:route-new')}?{urlencode(start)}",
        "Create route",
    )
    route = found.routes[0] if found.routes else None
    yield (
        "Watch it go live",
        (
            "The page of the route shows the fleets that run it. Then point the "
            "hostname at the addresses of the load balancer."
        ),
        reverse("web:route", args=[route.pk]) if route else reverse("web:routes"),
        "View route",
    )

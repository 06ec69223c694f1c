"""Routes as rows of a list: what they match, what happens, how it goes, whether it is live."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from apps.accounts.actors import Actor
from apps.definitions.freezing.frozen_policies import OWN
from apps.definitions.models import Route
from apps.definitions.previewing.effective_rules import maintained
from apps.definitions.selectors import fleets_of_each
from apps.definitions.shapes.base.writing import reference
from apps.observe.selectors import pool_numbers, route_numbers
from apps.rollouts.selectors import sync_statuses
from apps.web.kit.figures import Figures, figures_of

# Worst first: a route is as live as the worst of its fleets.
SYNC_ORDER = ("refused", "held", "behind", "in_sync", "no_nodes", "empty")
HEALTH_ORDER = ("down", "degraded", "unknown", "healthy")
# What a canary usually gets, in percent.
CANARY_SHARES = (5, 10, 25, 50)
SIGNS = {
    "equals": "{name}: {value}",
    "prefix": "{name}: {value}…",
    "regex": "{name} ~ {value}",
    "present": "has {name}",
    "absent": "without {name}",
}


@dataclass(frozen=True, slots=True)
class Share:
    """One pool of a route; `percent` is its part of the traffic, `health` its verdict.

    `reference` is how the route names it, `figures` are those of the whole pool. `button` says what it means to send
    everything there: to promote a canary or to abort it, of two pools; empty where it gets everything already.
    """

    pool: Any
    weight: int
    percent: str
    health: str
    message: str
    reference: str
    figures: Figures
    button: str


@dataclass(frozen=True, slots=True)
class RouteRow:
    """One route as pages show it; `health` is empty for routes without pools, `sync` where no fleet runs it.

    `waiting` says that the account has not verified the hostname yet: the route is kept and not served.
    `maintenance` is who shows a page instead of the route (a policy, or the route), empty where nobody does.
    """

    route: Route
    where: str
    conditions: tuple[str, ...]
    shares: tuple[Share, ...]
    action: str
    health: str
    sync: str
    figures: Figures
    waiting: bool
    maintenance: str

    @property
    def maintained_by_itself(self) -> bool:
        """Whether the maintenance page is the route's own, and no policy's."""
        return self.maintenance == OWN

    @property
    def canary(self) -> Share | None:
        """The pool that may be given a part of what the others get."""
        at = canary_at([share.weight for share in self.shares])
        return None if at is None else self.shares[at]

    @property
    def said(self) -> tuple[tuple[str, str], ...]:
        """Its conditions, for the page of the route."""
        return said_of(self.route)


def rows_of(actor: Actor, routes: Sequence[Route]) -> list[RouteRow]:
    """Rows with numbers, health and sync; the number of queries does not depend on how many there are."""
    numbers = route_numbers(actor, [route.pk for route in routes])
    pool_ids = {share.pool_id for route in routes for share in route.shares}
    pools = pool_numbers(actor, sorted(pool_ids))
    pages = maintained(Route.objects.filter(pk__in=[route.pk for route in routes]))
    words = sync_of(actor, {route.load_balancer_id for route in routes})
    found = []
    for route in routes:
        shares = _shares(route, pools)
        found.append(
            RouteRow(
                route=route,
                where=where_of(route),
                conditions=conditions_of(route),
                shares=shares,
                action=action_of(route),
                health=_worst((share.health for share in shares if share.weight), HEALTH_ORDER),
                sync=words.get(route.load_balancer_id, ""),
                figures=figures_of(numbers.get(route.pk)),
                waiting=not route.hostname.verification,
                maintenance=pages.get(route.pk, ""),
            )
        )
    return found


def sync_of(actor: Actor, balancer_ids: Iterable[int]) -> dict[int, str]:
    """The worst sync word among the fleets of each load balancer; those without fleets are left out."""
    words, found = sync_statuses(actor), defaultdict[int, set[str]](set)
    for front, fleet in fleets_of_each(balancer_ids):
        found[front].add(words.get(fleet, ""))
    return {pk: word for pk, each in found.items() if (word := _worst(each, SYNC_ORDER))}


def _worst(words: Iterable[str], order: Sequence[str]) -> str:
    found = set(words)
    return next((word for word in order if word in found), "")


def _shares(route: Route, pools: dict[int, Any]) -> tuple[Share, ...]:
    rows = route.shares
    total = sum(share.weight for share in rows) or 1
    found = []
    for share in rows:
        seen = pools.get(share.pool_id)
        percent = f"{100 * share.weight / total:.3g} %"
        health, message = (seen.health, seen.message) if seen else ("unknown", "")
        pool = share.pool
        figures = figures_of(seen.numbers if seen else None)
        button = _button(share.weight, [each.weight for each in rows if each is not share])
        named = reference(pool, route.account_id)
        found.append(Share(pool, share.weight, percent, health, message, named, figures, button))
    return tuple(found)


def _button(weight: int, others: list[int]) -> str:
    """Of two pools that both get requests, the one with the smaller share is the canary."""
    if not any(others):
        return ""
    if len(others) == 1 and weight and weight != others[0]:
        return "Promote" if weight < others[0] else "Abort"
    return "Send everything here"


def canary_at(weights: Sequence[int]) -> int | None:
    """Where the pool with the least stands, of equals the last; None where no other one gets requests."""
    if len(weights) < 2:
        return None
    at = min(reversed(range(len(weights))), key=weights.__getitem__)
    return at if sum(weights) > weights[at] else None


def where_of(route: Route) -> str:
    """What is matched in one line: an exact path as it is, a prefix with a star for what may follow, `~` a pattern."""
    signs = {"exact": route.path, "regex": f" ~ {route.path}"}
    return route.hostname.name + signs.get(route.path_kind, f"{route.path.rstrip('/')}/*")


def conditions_of(route: Route) -> tuple[str, ...]:
    """Scheme, methods and conditions as short words."""
    scheme = [f"{route.scheme} only"] if route.scheme else []
    said = [f"{what} {condition}" if what != "Header" else condition for what, condition in said_of(route)]
    networks = [f"from {network}" for network in route.client_networks]
    return (*scheme, *([", ".join(route.methods)] if route.methods else []), *said, *networks)


def said_of(route: Route) -> tuple[tuple[str, str], ...]:
    """What each condition looks at, and what it asks, in short."""
    kinds = (("Header", route.headers), ("Query", route.query), ("Cookie", route.cookies))
    return tuple((what, SIGNS[entry["match"]].format(**entry)) for what, entries in kinds for entry in entries)


def action_of(route: Route) -> str:
    """What happens where no pool is asked, in one line; empty for pools."""
    if route.redirect:
        part = route.redirect
        port = f":{part['port']}" if part.get("port") else ""
        host = (part["host"] or "the same host" * bool(port)) + port
        path = part["path"] or (f"{part['prefix'].rstrip('/')}/…" if part.get("prefix") else "")
        return f"{part['code']} to {part['scheme'] + '://' if part['scheme'] else ''}{host}{path}"
    if route.fixed_response:
        return f"{route.fixed_response['status']} fixed response"
    return ""

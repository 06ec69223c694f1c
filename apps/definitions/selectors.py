"""The actor comes first, and rows that the actor may not see do not exist.

Every queryset brings along what `describe` needs, so the number of queries does not grow with the rows.
Load balancers and regions belong to the operator and may be seen by everybody, because routes and pools name them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from django.db.models import Prefetch, Q, QuerySet

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Grant, Hostname
from apps.accounts.selectors import only
from apps.compiler.matching.hosts import ANY, ending_of, is_wildcard
from apps.compiler.model.shared import Protocol
from apps.core.errors import FieldError, Invalid
from apps.definitions.affected_targets import load_balancers_following
from apps.definitions.filters import filter_routes
from apps.definitions.listing import ListedRoute, listed
from apps.definitions.models import (
    AlertChannel,
    AlertRule,
    Backend,
    CapacityTest,
    Certificate,
    CertificateAuthority,
    Listener,
    LoadBalancer,
    NetworkList,
    Policy,
    Pool,
    ProtocolRoute,
    Record,
    Route,
    RoutePolicy,
    RoutePool,
    Schedule,
    Server,
    SniRoute,
    StatusPage,
    StoredPlan,
    Zone,
)
from apps.definitions.previewing.conflicts import RouteConflict, route_conflicts
from apps.definitions.reading.describing import describe, envelope
from apps.definitions.serving import leading_to
from apps.definitions.sharing import seen_pools, seen_zones
from apps.fleet.models import Fleet, Node, StaticIP

__all__ = [
    "Page",
    "RouteConflict",
    "alert_channels",
    "alert_rules",
    "backends",
    "capacity_tests",
    "certificates",
    "describe",
    "envelope",
    "filter_routes",
    "fleets_of",
    "fleets_of_hostname",
    "grants",
    "hostnames",
    "list_of_routes",
    "listeners",
    "load_balancers",
    "make_cursor",
    "network_lists",
    "only",
    "page_of_plans",
    "page_of_routes",
    "plans",
    "policies",
    "pool_named",
    "pools",
    "read_cursor",
    "records",
    "route_conflicts",
    "routes",
    "schedules",
    "servers",
    "status_pages",
    "zones",
]
RouteKey = tuple[str, str, int]
MAX_CURSOR = 2500
R = TypeVar("R", Route, ListedRoute)


# What lists show of the objects that a route names: whole rows of them would cost more than the routes themselves.
_NAMED_BY_ROUTES = (
    *("account__name", "account__title", "account__kind", "hostname__name", "hostname__verification"),
    *("hostname__account", "hostname__released_at", "load_balancer__name", "load_balancer__account"),
)
_OF_POOLS = ("route", "weight", "mirror", "pool__name", "pool__account__name", "pool__account__title", "pool__protocol")
_OF_LINKS = ("route", "policy__name", "policy__account__name")


def routes(actor: Actor) -> QuerySet[Route]:
    """Routes in the order of lists: hostname, path, id."""
    led = RoutePool.objects.select_related("pool__account").only(*_OF_POOLS).order_by("id")
    rows = Route.objects.select_related("account", "hostname", "load_balancer")
    rows = rows.only(*(field.name for field in Route._meta.concrete_fields), *_NAMED_BY_ROUTES)
    links = RoutePolicy.objects.select_related("policy__account").only(*_OF_LINKS).order_by("id")
    rows = rows.prefetch_related(
        Prefetch("pools", led, to_attr="fetched_pools"), Prefetch("policy_links", links, to_attr="fetched_policies")
    )
    return actor.visible(rows).order_by("hostname__name", "path", "id")


def pools(actor: Actor) -> QuerySet[Pool]:
    """Pools with their checks, backends and servers: the account's own, and those that are shared with it."""
    backends = Backend.objects.select_related("region", "source").prefetch_related("servers")
    rows = Pool.objects.select_related("account", "health_check").prefetch_related(Prefetch("backends", backends))
    return seen_pools(actor, rows).order_by("account__name", "name")


def pool_named(actor: Actor, text: str, owner: Account) -> Pool | None:
    """The pool that the text names as documents of `owner` do (`shop`, `acme/shop`); None where the actor sees none."""
    if not text.isprintable():
        return None
    account, _, name = text.rpartition("/")
    rows = seen_pools(actor, Pool.objects.select_related("account"))
    return rows.filter(account__name=account or owner.name, name=name).first()


def network_lists(actor: Actor) -> QuerySet[NetworkList]:
    """Networks that policies let in or keep out."""
    return actor.visible(NetworkList.objects.select_related("account")).order_by("account__name", "name")


def policies(actor: Actor) -> QuerySet[Policy]:
    """Settings that routes share, with the load balancers that they are defaults of."""
    rows = Policy.objects.select_related("account").prefetch_related("load_balancers")
    return actor.visible(rows).order_by("account__name", "name")


def grants(actor: Actor) -> QuerySet[Grant]:
    """What operators let accounts use; customers see what is granted to them."""
    return actor.visible(Grant.objects.select_related("account")).order_by("name")


def backends(actor: Actor) -> QuerySet[Backend]:
    """Shares of pools in regions, with their servers."""
    rows = Backend.objects.select_related("account", "pool__account", "region").prefetch_related("servers")
    return actor.visible(rows).order_by("id")


def servers(actor: Actor) -> QuerySet[Server]:
    """Servers with the backend, pool and region that they belong to."""
    rows = Server.objects.select_related("account", "backend__pool__account", "backend__region")
    return actor.visible(rows).order_by("id")


def alert_rules(actor: Actor) -> QuerySet[AlertRule]:
    """Rules that accounts have of their own; those that are built in have no row."""
    return actor.visible(AlertRule.objects.select_related("account")).order_by("account__name", "name")


def alert_channels(actor: Actor) -> QuerySet[AlertChannel]:
    """Whom alerts are told, without what lets us in there."""
    rows = AlertChannel.objects.select_related("account").defer("sealed_secret")
    return actor.visible(rows).order_by("account__name", "name")


def status_pages(actor: Actor) -> QuerySet[StatusPage]:
    """What visitors read of accounts."""
    return actor.visible(StatusPage.objects.select_related("account")).order_by("account__name", "name")


def capacity_tests(actor: Actor) -> QuerySet[CapacityTest]:
    """What may be loaded and how, with the pool and the region of each."""
    rows = CapacityTest.objects.select_related("account", "pool__account", "region")
    return actor.visible(rows).order_by("account__name", "name")


def schedules(actor: Actor) -> QuerySet[Schedule]:
    """What should happen when."""
    return actor.visible(Schedule.objects.select_related("account")).order_by("account__name", "name")


def zones(actor: Actor) -> QuerySet[Zone]:
    """DNS zones: the account's own, and those in which it may keep records because they are shared with it."""
    rows = Zone.objects.select_related("account", "stack__cloud_account")
    return seen_zones(actor, rows).order_by("domain")


def records(actor: Actor) -> QuerySet[Record]:
    """Sets of DNS records with their zone; in a shared zone every account sees its own."""
    rows = Record.objects.select_related("account", "zone__account", "static_ip", "load_balancer")
    return actor.visible(rows).order_by("zone__domain", "label", "type")


def load_balancers(_actor: Actor) -> QuerySet[LoadBalancer]:
    """The fronts: the operator's own, which every account may name in a route."""
    # Nothing to hide: what belongs to others in a listener is left out when it is shown to customers.
    listeners = Listener.objects.select_related("static_ip", "default_pool__account", "default_certificate__account")
    listeners = listeners.prefetch_related(
        Prefetch("sni_routes", SniRoute.objects.select_related("pool__account")),
        Prefetch("protocol_routes", ProtocolRoute.objects.select_related("pool__account")),
    )
    listeners = listeners.prefetch_related(Prefetch("certificates", Certificate.objects.select_related("account")))
    rows = LoadBalancer.objects.select_related("account")
    return rows.prefetch_related("fleets", "stacks", Prefetch("listeners", listeners)).order_by("name")


def listeners(_actor: Actor) -> QuerySet[Listener]:
    """Ports of all load balancers."""
    rows = Listener.objects.select_related("load_balancer__account", "static_ip", "default_pool__account")
    rows = rows.prefetch_related(Prefetch("certificates", Certificate.objects.select_related("account")))
    return rows.order_by("load_balancer__name", "name")


def certificate_authorities(actor: Actor) -> QuerySet[CertificateAuthority]:
    """Who issues automatic certificates, as they are asked."""
    rows = CertificateAuthority.objects.select_related("account").defer("sealed_hmac_key", "sealed_account_key")
    return actor.visible(rows).order_by("position", "name")


def certificates(actor: Actor) -> QuerySet[Certificate]:
    """Certificates without their keys."""
    return actor.visible(Certificate.objects.select_related("account", "order").defer("encrypted_key")).order_by("id")


def hostnames(actor: Actor) -> QuerySet[Hostname]:
    """Claimed names."""
    return actor.visible(Hostname.objects.select_related("account")).order_by("name", "pk")


def plans(actor: Actor) -> QuerySet[StoredPlan]:
    """Plans of the actor's own account, newest first: nobody else applies them, so nobody else reads them."""
    return StoredPlan.objects.filter(account=actor.account).select_related("account").order_by("-created_at", "pk")


def fleets_of_load_balancers(ids: QuerySet[LoadBalancer] | list[int]) -> QuerySet[Fleet]:
    """Fleets whose nodes run any of the load balancers."""
    return Fleet.objects.filter(load_balancers__in=ids).distinct()


def fleets_of_each(load_balancers: Iterable[int]) -> list[tuple[int, int]]:
    """Load balancer and a fleet whose nodes run it, by primary keys, for each that does."""
    rows = LoadBalancer.fleets.through._default_manager.filter(loadbalancer__in=list(load_balancers))
    return list(rows.values_list("loadbalancer_id", "fleet_id"))


def fleets_of_pools(pool_ids: list[int]) -> QuerySet[Fleet]:
    """Fleets that run any of the pools: those of its regions, and those that a route or a listener leads to it."""
    led = Q(routes__pools__pool__in=pool_ids) | Q(listeners__in=leading_to(pool_ids))
    fronts = LoadBalancer.objects.filter(led)
    return Fleet.objects.filter(Q(load_balancers__in=fronts) | Q(region__backends__pool__in=pool_ids)).distinct()


def fleets_of_hostname(claim: Hostname) -> QuerySet[Fleet]:
    """Fleets whose load balancers have routes of the name, or of names under it when it is a wildcard."""
    names = Q(hostname=claim.pk)
    if is_wildcard(claim.name) and claim.name != ANY:
        names |= Q(hostname__name__endswith=ending_of(claim.name), hostname__account=claim.account_id)
    return fleets_of_load_balancers(
        list(Route.objects.filter(names).values_list("load_balancer_id", flat=True).distinct())
    )


def fleets_of(row: object) -> list[Fleet]:
    """Fleets that a change of this row concerns, for waiting until it is live."""
    match row:
        case Route():
            found = fleets_of_load_balancers([row.load_balancer_id])
        case LoadBalancer():
            found = fleets_of_load_balancers([row.pk])
        case Policy() | NetworkList():
            found = fleets_of_load_balancers(load_balancers_following(row))
        case Pool():
            found = fleets_of_pools([row.pk])
        case Server():
            found = fleets_of_pools([row.backend.pool_id]).filter(region=row.backend.region_id)
        case Account():
            found = fleets_of_pools(list(Pool.objects.filter(account=row).values_list("pk", flat=True)))
        case Node():
            found = Fleet.objects.all()  # every node counts together with every other
        case StaticIP():
            found = Fleet.objects.filter(load_balancers__listeners__static_ip=row.pk).distinct()
        case Certificate():
            served = Q(listeners__protocol=Protocol.HTTPS.value, routes__account=row.account_id)
            fronts = LoadBalancer.objects.filter(served | Q(listeners__certificates=row.pk))
            showing = fleets_of_pools(list(Pool.objects.filter(client_certificate=row.pk).values_list("pk", flat=True)))
            found = Fleet.objects.filter(Q(load_balancers__in=fronts) | Q(pk__in=showing)).distinct()
        case _:
            found = Fleet.objects.none()
    return list(found.order_by("name"))


@dataclass(frozen=True, slots=True)
class Page(Generic[R]):
    """A page of routes and the cursor of the next one, None on the last."""

    rows: list[R]
    next_cursor: str | None


def page_of_routes(rows: QuerySet[Route], *, limit: int, cursor: str = "") -> Page[Route]:
    """Rows of `list_of_routes`, whole."""
    return _page(rows, list, limit, cursor)


def list_of_routes(rows: QuerySet[Route], *, limit: int, cursor: str = "") -> Page[ListedRoute]:
    """The next `limit` routes after the cursor, in the order hostname, path, id. Raises Invalid for a false cursor.

    A keyset instead of an offset: the last page costs what the first costs, and rows that come or go move nothing.
    """
    return _page(rows, listed, limit, cursor)


def _page(rows: QuerySet[Route], read: Callable[[QuerySet[Route]], list[R]], limit: int, cursor: str) -> Page[R]:
    if cursor:
        host, path, pk = read_cursor(cursor)
        same_path = Q(hostname__name=host, path=path, pk__gt=pk)
        rows = rows.filter(
            Q(hostname__name__gte=host), Q(hostname__name__gt=host) | Q(hostname__name=host, path__gt=path) | same_path
        )
    found = read(rows[: limit + 1])
    more = len(found) > limit
    del found[limit:]
    last = found[-1] if more else None
    return Page(found, make_cursor((last.hostname.name, last.path, last.pk)) if last else None)


@dataclass(frozen=True, slots=True)
class PageOfPlans:
    """A page of plans, without their documents, and the cursor of the next one, None on the last."""

    rows: list[StoredPlan]
    next_cursor: str | None


def page_of_plans(actor: Actor, *, limit: int, cursor: str = "") -> PageOfPlans:
    """The next `limit` plans after the cursor, newest first. Raises Invalid for a false cursor."""
    rows = plans(actor).defer("sealed_objects")
    if cursor:
        at, pk, _ = read_cursor(cursor)
        try:
            made = datetime.fromisoformat(at)
        except ValueError:
            made = None
        if made is None or made.tzinfo is None:
            raise Invalid([FieldError("/cursor", "cursor", "Take the cursor from next_cursor of the page before.")])
        rows = rows.filter(Q(created_at__lt=made) | Q(created_at=made, pk__gt=pk))
    found = list(rows[: limit + 1])
    last = found[limit - 1] if len(found) > limit else None
    return PageOfPlans(found[:limit], make_cursor((last.created_at.isoformat(), last.pk, 1)) if last else None)


def make_cursor(key: RouteKey) -> str:
    """An opaque text that names a position in the list."""
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode().rstrip("=")


def read_cursor(text: str) -> RouteKey:
    """The position that a cursor names. Raises Invalid."""
    try:
        if len(text) > MAX_CURSOR:
            raise ValueError("too long")
        host, path, pk = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, TypeError, RecursionError):
        host = path = pk = None
    if not (isinstance(host, str) and isinstance(path, str) and type(pk) is int and 0 < pk < 2**63):
        raise Invalid([FieldError("/cursor", "cursor", "Take the cursor from next_cursor of the page before.")])
    if not (host + path).isprintable():
        raise Invalid([FieldError("/cursor", "cursor", "Take the cursor from next_cursor of the page before.")])
    return host, path, pk

"""Lists and details of every noun; each reads through the selectors with the caller as actor."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.actors import Actor
from apps.accounts.selectors import accounts
from apps.api.v1 import shapes
from apps.api.v1.accounts import member_shapes
from apps.api.v1.protocol import requests
from apps.core.errors import FieldError, Invalid, there
from apps.definitions import selectors
from apps.definitions.filters import filter_routes, tagged
from apps.definitions.key_sets.following import facts_of, url_of
from apps.fleet import selectors as topology
from apps.members import selectors as members
from apps.rollouts.selectors import conditions_of

Rows = Callable[[Actor], QuerySet[Any]]
Show = Callable[[Any, Actor], dict[str, Any]]
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Noun:
    """How one noun is read: its rows, its shape, and its plain filters (query parameter → field)."""

    rows: Rows
    show: Show
    filters: Mapping[str, str]


CONDITIONED = ("Certificate", "Pool", "Route")
NAME, ACCOUNT = {"name": "name"}, {"account": "account__name"}
TAGS = "tags"  # the filter is one of them: `key=value`
NOUNS: dict[str, Noun] = {
    "accounts": Noun(accounts, shapes.definition, NAME),
    "regions": Noun(topology.regions, shapes.definition, NAME),
    "fleets": Noun(topology.fleets, shapes.definition, NAME | {"region": "region__name"}),
    "nodes": Noun(topology.nodes, shapes.definition, NAME | {"fleet": "fleet__name", "tag": TAGS}),
    "cloud-accounts": Noun(topology.cloud_accounts, shapes.definition, NAME),
    "stacks": Noun(topology.stacks, shapes.definition, NAME | {"region": "region__name"}),
    "address-pools": Noun(topology.address_pools, shapes.definition, NAME | {"region": "region__name"}),
    "static-ips": Noun(topology.static_ips_in_use, shapes.definition, NAME | {"region": "region__name"}),
    "zones": Noun(selectors.zones, shapes.definition, NAME | ACCOUNT),
    "records": Noun(selectors.records, shapes.definition, NAME | ACCOUNT | {"zone": "zone__name"}),
    "network-lists": Noun(selectors.network_lists, shapes.definition, NAME | ACCOUNT),
    "policies": Noun(selectors.policies, shapes.definition, NAME | ACCOUNT),
    "certificate-authorities": Noun(selectors.certificate_authorities, shapes.definition, NAME),
    "certificates": Noun(selectors.certificates, shapes.definition, NAME | ACCOUNT),
    "grants": Noun(selectors.grants, shapes.definition, NAME),
    "routes": Noun(selectors.routes, shapes.definition, {}),
    "alert-rules": Noun(selectors.alert_rules, shapes.definition, NAME | ACCOUNT),
    "alert-channels": Noun(selectors.alert_channels, shapes.definition, NAME | ACCOUNT),
    "status-pages": Noun(selectors.status_pages, shapes.definition, NAME | ACCOUNT),
    "capacity-tests": Noun(
        selectors.capacity_tests, shapes.definition, NAME | ACCOUNT | {"pool": "pool__name", "region": "region__name"}
    ),
    "schedules": Noun(selectors.schedules, shapes.definition, NAME | ACCOUNT | {"target": "target_kind"}),
    "pools": Noun(selectors.pools, shapes.definition, NAME | ACCOUNT),
    "backends": Noun(selectors.backends, shapes.backend, ACCOUNT | {"pool": "pool__name", "region": "region__name"}),
    "servers": Noun(
        selectors.servers,
        shapes.server,
        NAME | ACCOUNT | {"pool": "backend__pool__name", "region": "backend__region__name"},
    ),
    "load-balancers": Noun(selectors.load_balancers, shapes.definition, NAME),
    "listeners": Noun(selectors.listeners, shapes.listener, NAME | {"load_balancer": "load_balancer__name"}),
    "memberships": Noun(members.memberships, member_shapes.membership, ACCOUNT | {"person": "user__username"}),
    "invitations": Noun(members.invitations, member_shapes.invitation, ACCOUNT),
    "tokens": Noun(members.tokens, member_shapes.token, NAME | ACCOUNT),
    "hostnames": Noun(selectors.hostnames, shapes.hostname, NAME | ACCOUNT),
}


def page_response(request: Request, items: list[dict[str, Any]], cursor: str | None) -> Response:
    """A page of a list: `items`, `next_cursor`, and the next page as a `Link`."""
    response = Response({"items": items, "next_cursor": cursor})
    if cursor:
        query = request.query_params.copy()
        query["cursor"] = cursor
        response["Link"] = f'<{request.path}?{query.urlencode()}>; rel="next"'
    return response


def with_key_sets(found: list[dict[str, Any]]) -> None:
    """Add to policies and routes what is known of the key set that their own rules name, in one query."""
    if not found or found[0].get("kind") not in ("Policy", "Route"):
        return
    named = [(shape["account"], url_of(shape["spec"].get("rules"))) for shape in found]
    known = facts_of([each for each in named if each[1]])
    for shape, each in zip(found, named, strict=True):
        shape["key_set"] = known.get(each)


def with_conditions(found: list[dict[str, Any]], actor: Actor) -> list[dict[str, Any]]:
    """The same shapes with their key sets, and with what nodes refuse of certificates, pools and routes.

    Of others' objects nothing is refused.
    """
    with_key_sets(found)
    kind = found[0].get("kind") if found else None
    if kind in CONDITIONED:
        conditions = conditions_of(kind, [shape["id"] for shape in found])
        for shape in found:
            own = actor.is_operator or shape["account"] == actor.account.name
            shape["conditions"] = [asdict(each) for each in conditions[shape["id"]]] if own else []
    return found


def one(rows: QuerySet[Any], pk: str) -> Any:
    """The row with this id among the visible ones. Raises NotFound, alike for foreign and missing ones."""
    return only(rows.filter(pk=int(pk)) if len(pk) < 19 else rows.none())


def only(rows: QuerySet[Any]) -> Any:
    """The row that is left of the visible ones. Raises NotFound, alike for foreign and missing ones."""
    return there(rows.first())


def when_it_rests(request: Request, read: Callable[[], Row], *, goes_on: Callable[[Row], bool], poll_s: float) -> Row:
    """What is read as soon as it does not go on, or as it stands when the seconds of `wait` are over."""
    deadline = time.monotonic() + requests.wait(request)
    found = read()
    while goes_on(found) and time.monotonic() < deadline:
        time.sleep(poll_s)
        found = read()
    return found


def page_by_id(request: Request, rows: QuerySet[Any], *, newest_first: bool = False) -> tuple[list[Any], str | None]:
    """The next rows in the order of their ids, and the cursor after them."""
    limit = requests.number(request, "limit", 100, 1, requests.MAX_LIMIT)
    rows = rows.order_by("-pk" if newest_first else "pk")
    if cursor := request.query_params.get("cursor"):
        last = selectors.read_cursor(cursor)[2]
        rows = rows.filter(pk__lt=last) if newest_first else rows.filter(pk__gt=last)
    found = list(rows[: limit + 1])
    more = len(found) > limit
    del found[limit:]
    return found, selectors.make_cursor(("", "", found[-1].pk)) if more else None


def listed(
    request: Request,
    rows: QuerySet[Any],
    show: Callable[[Any], dict[str, Any]],
    *,
    filters: Mapping[str, str] = MappingProxyType({}),
    newest_first: bool = False,
) -> Response:
    """A page of the rows that the plain filters leave, in the order of their ids."""
    found, cursor = page_by_id(request, narrowed(request, filters, rows), newest_first=newest_first)
    return page_response(request, [show(row) for row in found], cursor)


def narrowed(request: Request, filters: Mapping[str, str], rows: QuerySet[Any]) -> QuerySet[Any]:
    """The rows that the plain filters of the query leave."""
    for parameter, field in filters.items():
        if value := request.query_params.get(parameter):
            if not value.isprintable() or len(value) > 253:
                raise Invalid([FieldError(f"/{parameter}", "filter", "Use a name that an object can have.")])
            rows = tagged(rows, value) if field == TAGS else rows.filter(**{field: value})
    return rows


def of_state(request: Request, rows: QuerySet[Any], known: list[str]) -> QuerySet[Any]:
    """The rows in the `state` that the query names. Raises Invalid."""
    state = request.query_params.get("state")
    if state and state not in known:
        raise Invalid([FieldError("/state", "choice", f"Use one of {', '.join(known)}.")])
    return rows.filter(state=state) if state else rows


class ListView(APIView):
    """GET a page of one noun."""

    noun = ""

    def get(self, request: Request) -> Response:
        """`limit`, `cursor` and the noun's filters."""
        noun, actor = NOUNS[self.noun], requests.actor_of(request)
        rows, cursor = page_by_id(request, narrowed(request, noun.filters, noun.rows(actor)))
        return page_response(request, with_conditions([noun.show(row, actor) for row in rows], actor), cursor)


class DetailView(APIView):
    """GET one object, with its version as ETag where it has one."""

    noun = ""

    def get(self, request: Request, pk: str) -> Response:
        """The object, or 304."""
        noun, actor = NOUNS[self.noun], requests.actor_of(request)
        return detail_response(request, noun.show(one(noun.rows(actor), pk), actor))


def detail_response(request: Request, shape: dict[str, Any]) -> Response:
    """One object; 304 when the caller has this version, nothing is wrong with it, and nothing is fetched for it."""
    version = shape.get("version")
    with_conditions([shape], requests.actor_of(request))
    moves = shape.get("conditions") or shape.get("key_set")
    if version is not None and not moves and requests.unchanged(request, version):
        return Response(status=304, headers={"ETag": requests.etag(version)})
    headers = {"ETag": requests.etag(version)} if version is not None else {}
    return Response(shape, headers=headers)


class RouteList(APIView):
    """GET a page of routes in the order hostname, path, id; the filters are those of the page."""

    def get(self, request: Request) -> Response:
        """`limit`, `cursor`, `q`, `hostname`, `account`, `pool`, `load_balancer`, `action`."""
        actor = requests.actor_of(request)
        limit = requests.number(request, "limit", 100, 1, requests.MAX_LIMIT)
        rows = filter_routes(selectors.routes(actor), request.query_params)
        page = selectors.list_of_routes(rows, limit=limit, cursor=request.query_params.get("cursor", ""))
        found = with_conditions([shapes.definition(row, actor) for row in page.rows], actor)
        return page_response(request, found, page.next_cursor)

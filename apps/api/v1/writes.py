"""SHOW to machines: writes of routes and pools, servers in a hurry, and the whole set at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.actors import Actor
from apps.api.v1 import requests, shapes
from apps.api.v1.views import DetailView, ListView, RouteList, detail_response, one
from apps.core.errors import Conflict, Fault, Invalid, Stale
from apps.definitions import selectors, services
from apps.fleet.models import Fleet
from apps.fleet.selectors import fleet_ids, generations
from apps.overflow.foresight import overloads
from apps.rollouts.selectors import wait_until_live


def written(request: Request, response: Response, fleets: Iterable[Fleet]) -> Response:
    """Tell the caller which generation of which fleet makes the change live, and wait for it if asked to."""
    found = list(fleets)
    numbers = generations(found)
    if numbers:
        response["X-Spillway-Generation"] = ", ".join(f"{name}={number}" for name, number in numbers.items())
    if seconds := requests.wait(request):
        live = wait_until_live([fleet.pk for fleet in found], None, seconds)
        response["X-Spillway-Live"] = "true" if live else "false"
    return response


def plan_body(plan: services.Plan) -> dict[str, Any]:
    """A plan as the API shows it."""
    return {
        "stored": plan.stored,
        "counts": plan.counts,
        "changes": [shapes.change(change) for change in plan.changes],
        "generations": plan.generations,
    }


def planned(actor: Actor, kind: str, data: dict[str, Any]) -> Response:
    """What one write would do. Faults keep the pointers that the write itself would give."""
    try:
        plan = services.plan_document(actor=actor, objects=[{**data, "kind": kind}])
    except Invalid as invalid:
        faults = (Fault(fault.pointer.removeprefix("/objects/0"), fault.code, fault.detail) for fault in invalid.faults)
        raise Invalid(faults) from invalid
    return Response(plan_body(plan))


def no_dry_run(request: Request) -> None:
    """Refuse a dry run where there is none, instead of storing what was not meant to be stored."""
    if requests.dry_run(request):
        raise Invalid([Fault("/dry_run", "unsupported", "There is no dry run of this change yet; nothing was stored.")])


def save(request: Request, kind: str, data: dict[str, Any], *, version: int | None, create_only: bool) -> Any:
    """Call the service with an envelope."""
    unknown = set(data) - {"kind", "name", "account", "spec"}
    if unknown:
        detail = "There is no such field here; an object is {name, account?, spec}."
        raise Invalid(Fault(f"/{field[:63]}", "unknown_field", detail) for field in sorted(map(str, unknown)))
    return services.save_object(
        actor=requests.actor_of(request),
        kind=kind,
        name=data.get("name", ""),
        account=data.get("account"),
        spec=data.get("spec"),
        expected_version=version,
        create_only=create_only,
        reason=requests.reason(request),
    )


def stored(request: Request, kind: str, row: Any, status: int) -> Response:
    """The answer to a write: the object as a GET would show it, where it is, and when it will be live."""
    actor = requests.actor_of(request)
    fresh = one(selectors.routes(actor) if kind == "Route" else selectors.pools(actor), str(row.pk))
    headers = {"ETag": requests.etag(fresh.version), "Location": shapes.url_of(kind, fresh.pk)}
    response = Response(shapes.definition(fresh, actor), status=status, headers=headers)
    return written(request, response, selectors.fleets_of(fresh))


class Create(APIView):
    """POST of a kind: create only, 409 where the name is taken."""

    kind = ""

    def post(self, request: Request) -> Response:
        """`{name, account?, spec}`; `dry_run=plan`, `wait=SECONDS`."""
        data = requests.envelope(request, kind=self.kind)
        if requests.dry_run(request):
            return planned(requests.actor_of(request), self.kind, data)
        row = save(request, self.kind, data, version=None, create_only=True)
        return stored(request, self.kind, row, 201)


class Change(APIView):
    """PUT and DELETE of one object by id, with `If-Match`."""

    kind = ""

    def rows(self, request: Request) -> Any:
        """What the caller may see of the kind."""
        actor = requests.actor_of(request)
        return selectors.routes(actor) if self.kind == "Route" else selectors.pools(actor)

    def get(self, request: Request, pk: str) -> Response:
        """The object, or 304."""
        return detail_response(request, shapes.definition(one(self.rows(request), pk), requests.actor_of(request)))

    def put(self, request: Request, pk: str) -> Response:
        """Replace the specification."""
        row = one(self.rows(request), pk)
        data = requests.envelope(request, kind=self.kind, name=row.name, account=row.account.name)
        version = requests.expected_version(request, present=row.version)
        if requests.dry_run(request):
            return planned(requests.actor_of(request), self.kind, data)
        return stored(request, self.kind, save(request, self.kind, data, version=version, create_only=False), 200)

    def delete(self, request: Request, pk: str) -> Response:
        """Delete it; 409 names what uses it."""
        row = one(self.rows(request), pk)
        no_dry_run(request)
        version = requests.expected_version(request, present=row.version)
        return deleted(request, self.kind, row, version)


def deleted(request: Request, kind: str, row: Any, version: int) -> Response:
    """Delete and answer 204."""
    fleets = services.delete_object(
        actor=requests.actor_of(request),
        kind=kind,
        name=row.name,
        account=row.account.name,
        expected_version=version,
        reason=requests.reason(request),
    )
    return written(request, Response(status=204), fleets)


class ByName(Change):
    """The same by account and name: PUT creates what is not there, with `If-None-Match: *` creates only."""

    def row(self, request: Request, account: str, name: str) -> Any:
        """The row or None."""
        return self.rows(request).filter(account__name=account, name=name).first()

    def get(self, request: Request, account: str, name: str) -> Response:  # type: ignore[override] # another URL
        """The object, or 304."""
        row = self.row(request, account, name)
        return super().get(request, str(row.pk if row else 0))

    def put(self, request: Request, account: str, name: str) -> Response:  # type: ignore[override] # another URL
        """Create or replace."""
        row = self.row(request, account, name)
        data = requests.envelope(request, kind=self.kind, name=name, account=account)
        create_only = request.headers.get("If-None-Match", "").strip() == "*"
        if row and create_only:
            raise Stale(f"There is a {self.kind} {name} already.")
        version = requests.expected_version(request, present=row.version) if row else None
        if requests.dry_run(request):
            return planned(requests.actor_of(request), self.kind, data)
        saved = save(request, self.kind, data, version=version, create_only=row is None)
        return stored(request, self.kind, saved, 200 if row else 201)

    def delete(self, request: Request, account: str, name: str) -> Response:  # type: ignore[override] # another URL
        """Delete it."""
        row = self.row(request, account, name)
        return super().delete(request, str(row.pk if row else 0))


class RouteCollection(RouteList, Create):
    """GET the list, POST a new route."""

    kind = "Route"


class PoolCollection(ListView, Create):
    """GET the list, POST a new pool."""

    kind, noun = "Pool", "pools"


class ServerDetail(DetailView):
    """GET a server; PATCH its state and weight."""

    noun = "servers"

    def patch(self, request: Request, pk: str) -> Response:
        """`{state?, weight?}`."""
        actor = requests.actor_of(request)
        row = one(selectors.servers(actor), pk)
        no_dry_run(request)
        data = requests.envelope(request)
        unknown = [
            Fault(f"/{field[:63]}", "unknown_field", "Change state and weight here; the rest is in the pool.")
            for field in sorted(map(str, data))
            if field not in ("state", "weight")
        ]
        if unknown:
            raise Invalid(unknown)
        version = requests.expected_version(request, present=row.backend.pool.version)
        services.set_server(
            actor=actor, server_id=row.pk, expected_version=version, reason=requests.reason(request), **data
        )
        fresh = one(selectors.servers(actor), pk)
        shape = shapes.server(fresh, actor)
        response = Response(shape, headers={"ETag": requests.etag(shape["version"])})
        return written(request, response, selectors.fleets_of(fresh))


# Only these say where traffic can go.
CAPACITY_KINDS = frozenset({"Region", "Fleet", "Node", "Pool"})


def _overloads(actor: Actor, objects: object, change: Callable[[], object]) -> list[str]:
    """Warnings of a document; none is asked for when it says nothing of capacity."""
    kinds = {entry.get("kind") for entry in objects if isinstance(entry, dict)} if isinstance(objects, list) else set()
    return list(overloads(actor, change)) if kinds & CAPACITY_KINDS else []


def refuse_overload(warnings: Iterable[str]) -> None:
    """Raises Conflict when there is a warning."""
    if found := " ".join(warnings):
        raise Conflict(f"Nothing was changed. {found} Leave out refuse_overload to change it all the same.")


class Apply(APIView):
    """PUT the whole set of objects in one transaction."""

    def put(self, request: Request) -> Response:
        """`{objects: […]}`; `dry_run=plan`, `prune=true&manager=NAME`, `wait=SECONDS`, `refuse_overload=true`.

        A plan warns of regions that would be over their limits at the traffic of now; `refuse_overload` makes that 409.
        """
        actor, data = requests.actor_of(request), requests.envelope(request)
        unknown = [
            Fault(f"/{field[:63]}", "unknown_field", "Send {objects: […]}.") for field in data if field != "objects"
        ]
        if unknown:
            raise Invalid(unknown)
        prune, manager = requests.flag(request, "prune"), request.query_params.get("manager", "")
        objects, seconds = data.get("objects"), requests.wait(request)
        change = partial(services.apply_document, actor=actor, objects=objects, prune=prune, manager=manager)
        if requests.dry_run(request):
            plan = services.plan_document(actor=actor, objects=objects, prune=prune, manager=manager)
            return Response({**plan_body(plan), "warnings": _overloads(actor, objects, change)})
        if requests.flag(request, "refuse_overload"):
            refuse_overload(_overloads(actor, objects, change))
        plan = services.apply_document(
            actor=actor, objects=objects, prune=prune, manager=manager, reason=requests.reason(request)
        )
        body = plan_body(plan)
        if seconds:
            body["live"] = wait_until_live(fleet_ids(plan.generations), None, seconds)
        return Response(body)

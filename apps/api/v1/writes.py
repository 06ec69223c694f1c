"""Writes of every kind of object alike, and servers in a hurry."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1 import shapes
from apps.api.v1.protocol import requests
from apps.api.v1.protocol.merge_patch import merged
from apps.api.v1.views import NOUNS, DetailView, ListView, RouteList, Show, detail_response, one, with_conditions
from apps.core.errors import Conflict, FieldError, Invalid, Stale
from apps.definitions import selectors, services
from apps.definitions.models import Pool
from apps.definitions.services import Change as Changed
from apps.definitions.sharing import must_own
from apps.fleet.models import Fleet
from apps.fleet.selectors import generations

ENVELOPE = frozenset({"kind", "name", "account", "spec"})


def written(response: Response, fleets: Iterable[Fleet]) -> Response:
    """Tell the caller which generation of which fleet makes the change live."""
    numbers = generations(list(fleets))
    if numbers:
        response["X-Spillway-Generation"] = ", ".join(f"{name}={number}" for name, number in numbers.items())
    return response


def dry_run_answer(request: Request, change: Callable[[], object], unchanged: Changed | None = None) -> Response:
    """The answer to a dry run; `unchanged` is what is said of a change that would change nothing."""
    found = services.dry_run(requests.actor_of(request), change)
    changes = found.changes or ((unchanged,) if unchanged else ())
    return Response(shapes.plan(services.Plan(changes, found.generations, stored=False), found))


def done_or_dry_run(
    request: Request,
    change: Callable[[], object],
    fresh: Callable[[], Any],
    show: Show = shapes.definition,
    fleets: Callable[[Any], Iterable[Fleet]] = selectors.fleets_of,
) -> Response:
    """The object that `fresh` finds after the change, and when it will be live; or what the change would do."""
    if requests.dry_run(request):
        return dry_run_answer(request, change)
    change()
    row = fresh()
    shape = show(row, requests.actor_of(request))
    return written(Response(shape, headers={"ETag": requests.etag(shape["version"])}), fleets(row))


def no_dry_run(request: Request) -> None:
    """Refuse a dry run where there is none, instead of storing what was not meant to be stored."""
    if requests.dry_run(request):
        raise Invalid(
            [FieldError("/dry_run", "unsupported", "There is no dry run of this change; nothing was stored.")]
        )


def refuse_overload(warnings: Iterable[str]) -> None:
    """Raises Conflict when there is a warning."""
    if found := " ".join(warnings):
        raise Conflict(f"Nothing was changed. {found} Leave out refuse_overload to change it anyway.")


def save(request: Request, kind: str, data: dict[str, Any], *, version: int | None, create_only: bool) -> Any:
    """Call the service with an envelope."""
    if unknown := set(data) - ENVELOPE:
        detail = "There is no such field here; an object is {name, account?, spec}."
        raise Invalid(FieldError(f"/{field[:63]}", "unknown_field", detail) for field in sorted(map(str, unknown)))
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


def save_or_dry_run(
    request: Request, kind: str, data: dict[str, Any], *, version: int | None, create_only: bool
) -> Response:
    """Store the object and show it, or say what storing it would do."""
    change = partial(save, request, kind, data, version=version, create_only=create_only)
    if requests.dry_run(request):
        account = "" if kind in services.PLATFORM else data.get("account") or requests.actor_of(request).account.name
        return dry_run_answer(request, change, Changed(kind, account, str(data.get("name")), "unchanged"))
    return stored(request, kind, change(), 201 if create_only else 200)


def stored(request: Request, kind: str, row: Any, status: int) -> Response:
    """The answer to a write: the object as a GET would show it, where it is, and when it will be live."""
    actor = requests.actor_of(request)
    fresh = one(NOUNS[shapes.URLS[kind]].rows(actor), str(row.pk))
    headers = {"ETag": requests.etag(fresh.version), "Location": shapes.url_of(kind, fresh.pk)}
    (shape,) = with_conditions([shapes.definition(fresh, actor)], actor)
    response = Response(shape, status=status, headers=headers)
    return written(response, selectors.fleets_of(fresh))


class Create(APIView):
    """POST of a kind: create only, 409 where the name is taken."""

    kind = ""

    def post(self, request: Request) -> Response:
        """`{name, account?, spec}`; `dry_run=true`, `wait=SECONDS`."""
        data = requests.envelope(request, kind=self.kind)
        return save_or_dry_run(request, self.kind, data, version=None, create_only=True)


class Change(APIView):
    """GET, PUT, PATCH and DELETE of one object by id, with `If-Match`."""

    kind = ""

    def rows(self, request: Request) -> Any:
        """What the caller may see of the kind."""
        return NOUNS[shapes.URLS[self.kind]].rows(requests.actor_of(request))

    def own(self, request: Request, pk: str) -> Any:
        """The row, for a write, without those around it: the write reads them again in its transaction."""
        return self.owned(request, one(self.rows(request).prefetch_related(None), pk))

    def owned(self, request: Request, row: Any) -> Any:
        """The row itself; 403 for a pool that the caller only reads because it is shared."""
        if isinstance(row, Pool):
            must_own(requests.actor_of(request), row)
        return row

    def get(self, request: Request, pk: str) -> Response:
        """The object, or 304."""
        return detail_response(request, shapes.definition(one(self.rows(request), pk), requests.actor_of(request)))

    def put(self, request: Request, pk: str) -> Response:
        """Replace the specification; `dry_run=true`, `wait=SECONDS`, `break_glass=true`, `manager=NAME`."""
        return self.replaced(request, self.own(request, pk))

    def replaced(self, request: Request, row: Any) -> Response:
        """The answer to a PUT of an object that is there."""
        data = requests.envelope(request, kind=self.kind, **named(row))
        version = requests.expected_version(request, present=row.version)
        return save_or_dry_run(request, self.kind, data, version=version, create_only=False)

    def patch(self, request: Request, pk: str) -> Response:
        """`{spec}` as a JSON merge patch (RFC 7396) of the specification; the query is that of PUT."""
        row = self.owned(request, one(self.rows(request), pk))
        data = requests.envelope(request, kind=self.kind, **named(row))
        version = requests.expected_version(request, present=row.version)
        if not isinstance(data.get("spec"), dict):
            raise Invalid(
                [FieldError("/spec", "not_object", "Send {spec: {…}} with the fields that change; null clears.")]
            )
        data["spec"] = merged(selectors.describe(row), data["spec"])
        return save_or_dry_run(request, self.kind, data, version=version, create_only=False)

    def delete(self, request: Request, pk: str) -> Response:
        """Delete it; 409 names what uses it. `dry_run=true`, `wait=SECONDS`, `break_glass=true`, `manager=NAME`."""
        row = self.own(request, pk)
        change = partial(
            services.delete_object,
            actor=requests.actor_of(request),
            kind=self.kind,
            **named(row),
            expected_version=requests.expected_version(request, present=row.version),
            reason=requests.reason(request),
        )
        if requests.dry_run(request):
            return dry_run_answer(request, change)
        return written(Response(status=204), change())


def named(row: Any) -> dict[str, str]:
    """What identifies an object among those of its kind; what belongs to the platform has no account."""
    owned = shapes.kind_of(row) not in services.PLATFORM
    return {"name": row.name} | ({"account": row.account.name} if owned else {})


class ByName(Change):
    """The same by name: PUT creates what is not there, with `If-None-Match: *` creates only."""

    def row(self, request: Request, name: dict[str, str]) -> Any:
        """The row or None."""
        fields = {"account__name" if field == "account" else field: value for field, value in name.items()}
        return self.rows(request).prefetch_related(None).filter(**fields).first()

    def get(self, request: Request, **name: str) -> Response:  # type: ignore[override] # another URL
        """The object, or 304."""
        return super().get(request, self._pk(request, name))

    def put(self, request: Request, **name: str) -> Response:  # type: ignore[override] # another URL
        """Create or replace; `dry_run=true`, `wait=SECONDS`, `break_glass=true`, `manager=NAME`."""
        row = self.row(request, name)
        if row and requests.create_only(request):
            raise Stale(f"A {self.kind} named {row.name} already exists.", row.version)
        if row:
            return self.replaced(request, self.owned(request, row))
        data = requests.envelope(request, kind=self.kind, **name)
        return save_or_dry_run(request, self.kind, data, version=None, create_only=True)

    def patch(self, request: Request, **name: str) -> Response:  # type: ignore[override] # another URL
        """`{spec}` as a JSON merge patch."""
        return super().patch(request, self._pk(request, name))

    def delete(self, request: Request, **name: str) -> Response:  # type: ignore[override] # another URL
        """Delete it."""
        return super().delete(request, self._pk(request, name))

    def _pk(self, request: Request, name: dict[str, str]) -> str:
        row = self.row(request, name)
        return str(row.pk if row else 0)


class Collection(ListView, Create):
    """GET the list, POST a new object."""


class RouteCollection(RouteList, Create):
    """GET the list, POST a new route."""

    kind = "Route"


class ServerDetail(DetailView):
    """GET a server; PATCH its state and weight."""

    noun = "servers"

    def patch(self, request: Request, pk: str) -> Response:
        """`{state?, weight?}`; `dry_run=true`, `wait=SECONDS`."""
        actor = requests.actor_of(request)
        row = one(selectors.servers(actor), pk)
        data = requests.only(request, ("state", "weight"))
        version = requests.expected_version(request, present=row.backend.pool.version)
        change = partial(
            services.set_server,
            actor=actor,
            server_id=row.pk,
            expected_version=version,
            reason=requests.reason(request),
            **data,
        )
        return done_or_dry_run(request, change, lambda: one(selectors.servers(actor), pk), shapes.server)

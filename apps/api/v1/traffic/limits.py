"""The small calls of overflow: one limit of one pool, a region drained, a distance."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.actors import Actor
from apps.api.v1 import shapes
from apps.api.v1.protocol import requests
from apps.api.v1.schemas.nouns.pools import Measurement
from apps.api.v1.views import detail_response, only
from apps.api.v1.writes import done_or_dry_run, refuse_overload
from apps.capacity.use import staleness
from apps.core.errors import FieldError, Invalid
from apps.definitions import selectors, services
from apps.definitions.models import Backend
from apps.fleet import selectors as topology
from apps.overflow.preview import overloads

LIMIT_FIELDS = ("kind", "value", "scope", "capacity_scaler", "measured_by")


class PoolLimit(APIView):
    """GET and PATCH what a pool takes in one region."""

    def row(self, request: Request, account: str, name: str, region: str) -> Any:
        """The backend among those that the caller may see. Raises NotFound."""
        rows = selectors.backends(requests.actor_of(request))
        return only(rows.filter(pool__account__name=account, pool__name=name, region__name=region))

    def get(self, request: Request, account: str, name: str, region: str) -> Response:
        """The backend with its limit and how far its measurement can be relied on; or 304 where there is none."""
        row = self.row(request, account, name, region)
        shape = _backend(row, requests.actor_of(request))
        if shape["measurement"] is None:
            return detail_response(request, shape)
        # A measurement ages while the pool keeps its version.
        return Response(shape, headers={"ETag": requests.etag(row.pool.version)})

    def patch(self, request: Request, account: str, name: str, region: str) -> Response:
        """`{kind?, value?, scope?, capacity_scaler?, measured_by?}` with `If-Match`; what is absent stays.

        `refuse_overload=true` makes it 409 when a region would be over its limit at the traffic of now.
        """
        actor, row = requests.actor_of(request), self.row(request, account, name, region)
        data = requests.only(request, LIMIT_FIELDS)
        version = requests.expected_version(request, present=row.pool.version)
        change = partial(
            services.set_limit,
            actor=actor,
            pool_id=row.pool_id,
            region=region,
            expected_version=version,
            reason=requests.reason(request),
            **data,
        )
        if requests.flag(request, "refuse_overload"):
            refuse_overload(overloads(actor, change))
        fresh = partial(self.row, request, account, name, region)
        return done_or_dry_run(request, change, fresh, _backend, lambda row: selectors.fleets_of(row.pool))


def _backend(row: Backend, actor: Actor) -> shapes.Shape:
    """The backend, and beside a measured limit which run found it, on what, and whether it is still worth something."""
    found = staleness.of_limit(row)
    measurement = found and Measurement.of(found, run=row.limit_measured_by)
    return shapes.backend(row, actor) | {"measurement": measurement}


def _region(request: Request, name: str, change: Callable[[], object]) -> Response:
    """The region after a change of it, which concerns every fleet."""
    actor = requests.actor_of(request)
    rows = topology.regions(actor)
    return done_or_dry_run(request, change, lambda: rows.get(name=name), fleets=lambda _: topology.fleets(actor))


class RegionDrain(APIView):
    """POST takes a region's traffic away, or gives it back; twice is as good as once."""

    drained = True

    def post(self, request: Request, name: str) -> Response:
        """No body; `X-Change-Reason`, `dry_run=true`, `wait=SECONDS`."""
        change = partial(
            services.drain_region,
            actor=requests.actor_of(request),
            region=name,
            drained=self.drained,
            reason=requests.reason(request),
        )
        return _region(request, name, change)


class Latency(APIView):
    """PUT the round trip from one region to another."""

    def put(self, request: Request, name: str, to: str) -> Response:
        """`{ms}`; null goes back to what nodes measure. `dry_run=true`, `wait=SECONDS`."""
        data = requests.only(request, ("ms",))
        if "ms" not in data:
            raise Invalid([FieldError("/ms", "missing", "Fill in ms, or null for what nodes measure.")])
        change = partial(
            services.set_latency,
            actor=requests.actor_of(request),
            from_region=name,
            to_region=to,
            ms=data["ms"],
            reason=requests.reason(request),
        )
        return _region(request, name, change)

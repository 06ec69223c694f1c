"""The whole set of objects at once, as a plan first and then exactly so."""

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
from apps.api.v1.schemas.nouns import plans as shown
from apps.api.v1.views import page_response
from apps.api.v1.writes import refuse_overload
from apps.core.errors import FieldError, Invalid, there
from apps.core.requests import request_id
from apps.definitions import selectors, services
from apps.overflow.preview import overloads

# Only these say where traffic can go.
CAPACITY_KINDS = frozenset({"Region", "Fleet", "Node", "Pool"})


def _overloads(actor: Actor, objects: object, change: Callable[[], object]) -> list[str]:
    """Warnings of a document; none is asked for when it says nothing of capacity."""
    kinds = {entry.get("kind") for entry in objects if isinstance(entry, dict)} if isinstance(objects, list) else set()
    return list(overloads(actor, change)) if kinds & CAPACITY_KINDS else []


def done(plan: services.Plan) -> Response:
    """What was stored, and what makes it live."""
    response = Response(shapes.plan(plan) | {"change": request_id()})
    if plan.generations:
        named = (f"{name}={number}" for name, number in plan.generations.items())
        response["X-Spillway-Generation"] = ", ".join(named)
    return response


class Apply(APIView):
    """PUT the whole set of objects in one transaction."""

    def put(self, request: Request) -> Response:
        """`{objects: […]}`; `dry_run=plan`, `prune=true&manager=NAME`, `wait=SECONDS`, `refuse_overload=true`,
        `take_over=acme/shop/eu` for limits that capacity runs set, which stay else (`kept`).

        A plan is kept for 24 hours under `plan_id` and can be applied exactly so. It warns of regions that would be
        over their limits at the traffic of now; `refuse_overload` makes that 409.
        """
        actor, objects = requests.actor_of(request), requests.only(request, ("objects",)).get("objects")
        wanted: dict[str, Any] = {"prune": requests.flag(request, "prune")}
        wanted["manager"] = request.query_params.get("manager", "")
        change = partial(
            services.apply_document, actor=actor, objects=objects, reason=requests.reason(request), **wanted
        )
        if requests.dry_run(request):
            with services.confirming([services.ANYTHING]):  # a plan says what would be lost; who applies it confirms
                found = services.dry_run(actor, change)
                warnings = [*found.result.losses, *_overloads(actor, objects, change)]
            preview = services.Plan(found.result.changes, found.generations, stored=False, kept=found.result.kept)
            summary = shapes.plan(preview, found) | {"warnings": warnings}
            base = found.result.base
            row = services.store_plan(actor=actor, objects=objects, base=base, summary=summary, **wanted)
            return Response(summary | {"plan_id": row.pk, "expires_at": row.expires_at})
        if requests.flag(request, "refuse_overload"):
            refuse_overload(_overloads(actor, objects, change))
        return done(change())


class PlanList(APIView):
    """GET the plans of the caller's account, newest first."""

    def get(self, request: Request) -> Response:
        """`limit`, `cursor`; plans that were neither applied nor made within 24 hours are gone."""
        limit = requests.number(request, "limit", 100, 1, requests.MAX_LIMIT)
        cursor = request.query_params.get("cursor", "")
        page = selectors.page_of_plans(requests.actor_of(request), limit=limit, cursor=cursor)
        return page_response(request, [shown.Plan.of(row) for row in page.rows], page.next_cursor)


class PlanDetail(APIView):
    """GET one plan."""

    def get(self, request: Request, plan: str) -> Response:
        """The plan with all that it would do."""
        row = there(selectors.plans(requests.actor_of(request)).filter(pk=plan).first())
        return Response(shown.Plan.of(row) | row.summary)


class PlanApply(APIView):
    """POST: do exactly what a plan says."""

    def post(self, request: Request, plan: str) -> Response:
        """No body; `wait=SECONDS`. 409 when its base has moved, when it has expired, and when it was applied before."""
        if request.query_params.get("dry_run"):
            raise Invalid([FieldError("/dry_run", "unsupported", "The plan is its own dry run: GET it.")])
        actor = requests.actor_of(request)
        return done(services.apply_plan(actor=actor, plan_id=plan, reason=requests.reason(request)))

"""Overflow as it is and was, beside what the planner says, and what would be if; nothing is saved."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.protocol import requests
from apps.api.v1.schemas.nouns import progress as shown
from apps.api.v1.views import one, only
from apps.core.clock import now
from apps.core.errors import FieldError, Invalid
from apps.definitions import selectors as definitions
from apps.definitions.models import Pool
from apps.fleet import selectors as topology
from apps.overflow import selectors
from apps.overflow.comparison import prediction_error
from apps.overflow.flows import FULL, Flow, PoolUse, RegionUse, WhatIf

OLDEST = timedelta(weeks=2)
MOST_FACTOR, MOST_LIMIT = 1000, 1_000_000
WORST_POOLS = 20
FIELDS = ("pool", "factor", "failed_regions", "drained_regions", "limits")
Shape = dict[str, Any]


def flow(found: Flow) -> Shape:
    """Who is served where; `at` null means that nothing was measured."""
    return {
        "at": found.at,
        "age_s": found.age_s,
        "stale": found.stale,
        "unread_regions": list(found.unread),
        "rejected_rps": round(found.rejected_rps, 3),
        "regions": [_region(use) for use in found.regions],
        "lanes": [
            {
                "from": lane.source,
                "to": lane.target,
                "rps": round(lane.rps, 3),
                "added_ms": lane.added_ms,
                "reason": lane.reason,
            }
            for lane in found.lanes
        ],
    }


def _region(use: RegionUse) -> Shape:
    rates = {
        "demand_rps": use.demand_rps,
        "local_rps": use.local_rps,
        "served_rps": use.served_rps,
        "overflow_out_rps": use.overflow_out_rps,
        "overflow_in_rps": use.overflow_in_rps,
        "rejected_rps": use.rejected_rps,
    }
    return {
        "region": use.name,
        **{name: round(value, 3) for name, value in rates.items()},
        "capacity": shown.Capacity.of(use),
        "pools": len(use.pools) or 1,
        "pools_at_limit": use.pools_full if use.pools else int(use.usable and (use.used or 0.0) >= FULL),
        "pools_down": use.pools_down if use.pools else int(not use.healthy),
        "worst_pools": [_of_pool(each) for each in use.pools[:WORST_POOLS]],
        "drained": use.drained,
        "healthy": use.healthy,
        "reasons": list(use.sentences),
    }


def _of_pool(each: PoolUse) -> Shape:
    """One of several pools, beside its own limit."""
    return {
        "pool": each.pool,
        "served_rps": round(each.use.served_rps, 3),
        "overflow_out_rps": round(each.use.overflow_out_rps, 3),
        "rejected_rps": round(each.use.rejected_rps, 3),
        "capacity": shown.Capacity.of(each.use),
        "used": None if each.use.used is None else round(each.use.used, 3),
        "healthy": each.use.healthy,
    }


def instant(request: Request) -> datetime | None:
    """The time that `?at=` names (RFC 3339 or Unix seconds), None for now. Raises Invalid."""
    text = request.query_params.get("at")
    if text is None:
        return None
    try:
        at = datetime.fromtimestamp(int(text), UTC) if text.isdecimal() else datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError) as error:
        raise Invalid([FieldError("/at", "time", "Use Unix seconds or a time like 2026-11-21T12:04:00Z.")]) from error
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    if not now() - OLDEST <= at <= now():
        raise Invalid([FieldError("/at", "out_of_range", "Use a time of the last two weeks; older samples are gone.")])
    return at


def answer(request: Request, pool: Pool | None) -> Response:
    """The flow now, beside the plan for the same client traffic; or the flow at `?at=`, which has no plan."""
    actor, at = requests.actor_of(request), instant(request)
    body: Shape = {"pool": f"{pool.account.name}/{pool.name}" if pool else None}
    if at is not None:
        return Response(body | {"actual": flow(selectors.flow_of(actor, pool, at))})
    found, plan = selectors.flow_and_plan(actor, pool)
    error = prediction_error(plan, found)
    return Response(body | {"actual": flow(found), "predicted": flow(plan), "prediction_error": error})


class Overall(APIView):
    """GET the flow of all pools that the caller may see."""

    def get(self, request: Request) -> Response:
        """`at`."""
        return answer(request, None)


class OfPool(APIView):
    """GET the flow of one pool."""

    def get(self, request: Request, pk: str) -> Response:
        """`at`."""
        return answer(request, one(definitions.pools(requests.actor_of(request)).prefetch_related(None), pk))


class OfNamedPool(APIView):
    """GET the flow of one pool by its name."""

    def get(self, request: Request, account: str, name: str) -> Response:
        """`at`."""
        return answer(request, named_pool(request, account, name))


def named_pool(request: Request, account: str, name: str) -> Pool:
    """The pool among those that the caller may see. Raises NotFound."""
    rows = definitions.pools(requests.actor_of(request)).prefetch_related(None)
    found: Pool = only(rows.filter(account__name=account, name=name))
    return found


class WhatIfAnswer(APIView):
    """POST a question to the planner; nothing is stored, whatever the answer is."""

    scope = "read"

    def post(self, request: Request) -> Response:
        """`pool?` (`account/name`), `factor?`, `failed_regions?`, `drained_regions?`, `limits?` (requests/s)."""
        data = requests.envelope(request)
        question = Reader(data, {row.name: f"rgn-{row.pk}" for row in topology.regions(requests.actor_of(request))})
        asked = question.read()
        account, _, name = str(data.get("pool") or "").partition("/")
        pool = named_pool(request, account, name) if account else None
        current, predicted, differences = selectors.what_if(requests.actor_of(request), pool, asked)
        return Response({"current": flow(current), "predicted": flow(predicted), "differences": list(differences)})


class Reader:
    """Reads a question and remembers every error with its place."""

    def __init__(self, data: Shape, regions: dict[str, str]) -> None:
        self.data, self.regions = data, regions
        self.field_errors: list[FieldError] = []

    def read(self) -> WhatIf:
        """The question. Raises Invalid with all errors."""
        unknown = [field for field in sorted(map(str, self.data)) if field not in FIELDS]
        self.field_errors += [
            FieldError(f"/{field[:63]}", "unknown_field", f"Use {', '.join(FIELDS)}.") for field in unknown
        ]
        if not isinstance(self.data.get("pool", ""), str | None):
            self.field_errors.append(FieldError("/pool", "text", "Name the pool as account/name."))
        if self.data.get("limits") and not self.data.get("pool"):
            self.field_errors.append(
                FieldError("/limits", "pool", "Limits belong to pools: name the pool as account/name.")
            )
        question = WhatIf(
            self._regions("failed_regions"), self._regions("drained_regions"), self._factor(), self._limits()
        )
        if self.field_errors:
            raise Invalid(self.field_errors)
        return question

    def _regions(self, field: str) -> tuple[str, ...]:
        names = self.data.get(field, [])
        if not isinstance(names, list):
            self.field_errors.append(FieldError(f"/{field}", "list", "Send a list of names of regions."))
            return ()
        return tuple(filter(None, (self._region(f"/{field}/{at}", name) for at, name in enumerate(names))))

    def _region(self, pointer: str, name: object) -> str:
        found = self.regions.get(name, "") if isinstance(name, str) else ""
        if not found:
            self.field_errors.append(FieldError(pointer, "unknown_region", "There is no such region."))
        return found

    def _factor(self) -> float:
        return self._number("/factor", self.data.get("factor", 1.0), MOST_FACTOR)

    def _limits(self) -> dict[str, float]:
        limits = self.data.get("limits", {})
        if not isinstance(limits, dict):
            self.field_errors.append(FieldError("/limits", "not_object", "Send {region: requests/s}."))
            return {}
        return {
            self._region(f"/limits/{str(name)[:63]}", name): self._number(
                f"/limits/{str(name)[:63]}", value, MOST_LIMIT
            )
            for name, value in limits.items()
        }

    def _number(self, pointer: str, value: object, most: int) -> float:
        good = isinstance(value, int | float) and not isinstance(value, bool)
        if isinstance(value, int | float) and good and math.isfinite(value) and 0 <= value <= most:
            return float(value)
        self.field_errors.append(FieldError(pointer, "out_of_range", f"Use a number from 0 to {most:,}."))
        return 0.0

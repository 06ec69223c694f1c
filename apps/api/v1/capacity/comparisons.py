"""Comparisons of two capacity tests, and how many servers a rate needs."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.capacity.runs import NOUN
from apps.api.v1.protocol import requests
from apps.api.v1.schemas.nouns import capacity as shown
from apps.api.v1.views import listed, one
from apps.api.v1.writes import no_dry_run
from apps.capacity import selectors
from apps.capacity.measure import comparisons
from apps.capacity.models import Comparison
from apps.capacity.use import sizing
from apps.capacity.use.balance import balance
from apps.core.errors import FieldError, Invalid, there
from apps.core.written.numbers import plain
from apps.definitions.models import Pool
from apps.definitions.sharing import seen_pools

MOST_RATE = 10_000_000.0


def comparison_shape(row: Comparison) -> dict[str, Any]:
    """Two tests in turn; `result` is null while they run."""
    return shown.Comparison.of(row, runs=sorted(run.pk for run in row.runs.all()))


class ComparisonList(APIView):
    """GET comparisons, newest first; POST a new one."""

    scope_noun = NOUN

    def get(self, request: Request) -> Response:
        """`limit`, `cursor`."""
        found = selectors.comparisons(requests.actor_of(request)).prefetch_related("runs")
        return listed(request, found, comparison_shape, newest_first=True)

    def post(self, request: Request) -> Response:
        """`{first_id, second_id, rounds?}`; 202, the runs follow each other by themselves."""
        no_dry_run(request)
        data = requests.only(request, ("first_id", "second_id", "rounds"))
        numbers = {"rounds": 3} | data
        for field in ("first_id", "second_id", "rounds"):
            if type(numbers.get(field)) is not int or not 0 < numbers[field] < 2**63:
                raise Invalid([FieldError(f"/{field}", "not_integer", f"Write {field} as a whole number above 0.")])
        made = comparisons.request_comparison(
            actor=requests.actor_of(request), **numbers, reason=requests.reason(request)
        )
        headers = {"Location": f"/api/v1/capacity-comparisons/{made.pk}"}
        return Response(_shown(request, str(made.pk)), status=202, headers=headers)


class ComparisonDetail(APIView):
    """GET one comparison."""

    scope_noun = NOUN

    def get(self, request: Request, pk: str) -> Response:
        """The comparison with its result, once it is over."""
        return Response(_shown(request, pk))


class Sizing(APIView):
    """GET: how many servers does a pool need for a rate, also when a region is lost?"""

    scope_noun = NOUN

    def get(self, request: Request) -> Response:
        """`pool` (name, or account/name), `rate` in requests/s, `n_minus_1`, `cost_per_server`.

        Beside the answer stands who did the work in the last ten minutes, region by region.
        """
        actor, pool = requests.actor_of(request), _pool(request)
        found = sizing.sizing(
            actor,
            pool.pk,
            _number(request, "rate"),
            n_minus_1="n_minus_1" not in request.query_params or requests.flag(request, "n_minus_1"),
            cost_per_server=_number(request, "cost_per_server") if "cost_per_server" in request.query_params else None,
        )
        return Response({**asdict(found), "balance": [asdict(each) for each in balance(actor, pool.pk)]})


def _shown(request: Request, pk: str) -> dict[str, Any]:
    rows = selectors.comparisons(requests.actor_of(request)).prefetch_related("runs")
    return comparison_shape(one(rows, pk))


def _pool(request: Request) -> Pool:
    """The pool that the query names. Raises Invalid, NotFound."""
    actor = requests.actor_of(request)
    account, _, name = request.query_params.get("pool", "").rpartition("/")
    if not name:
        raise Invalid([FieldError("/pool", "missing", "Name the pool: pool=shop, or pool=acme/shop.")])
    rows = seen_pools(actor).filter(name=name, account__name=account or actor.account.name)
    row = rows.first() if (account + name).isprintable() else None  # no database takes a NUL
    return there(row)


def _number(request: Request, name: str) -> float:
    """A number of the query above 0. Raises Invalid."""
    try:
        found = float(request.query_params.get(name, ""))
    except ValueError:
        found = math.nan
    if not 0 < found <= MOST_RATE:
        raise Invalid(
            [FieldError(f"/{name}", "out_of_range", f"Use a number above 0 for {name}, at most {plain(MOST_RATE)}.")]
        )
    return found

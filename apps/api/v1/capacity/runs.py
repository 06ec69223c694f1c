"""Runs of capacity tests: asked for, watched, stopped, approved, made a limit; and blackouts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.protocol import requests
from apps.api.v1.schemas.nouns import capacity as shown
from apps.api.v1.views import listed, one, when_it_rests
from apps.api.v1.writes import no_dry_run
from apps.capacity import selectors, services
from apps.capacity.models import Run
from apps.capacity.run import checking
from apps.capacity.use import limits
from apps.core.errors import FieldError, Invalid
from apps.definitions.reading.fields import Reader
from apps.definitions.selectors import capacity_tests
from apps.definitions.shapes.base.words import read_instant as instant

POLL_S = 0.2
NOUN = "capacity-tests"
FILTERS: Mapping[str, str] = {
    "account": "account__name", "pool": "pool__name", "region": "region__name", "test": "test__name",
}  # fmt: skip


def run_shape(row: Run) -> dict[str, Any]:
    """One run; `terminal` says whether it is over, `plan` is the test as it was when the run was asked for."""
    waits = row.state == Run.State.WAITING and row.begin_by is None
    return shown.CapacityRun.of(row, terminal=row.state not in Run.OPEN, waits_for_approval=waits)


class RunTest(APIView):
    """POST: ask for a run of a test."""

    def post(self, request: Request, pk: str) -> Response:
        """`{approve?}`; 202 with the run, whose URL is in `Location`. One that may not run now is `refused`."""
        no_dry_run(request)
        data = requests.only(request, ("approve",)) if request.data else {}
        approve = data.get("approve", False)
        if not isinstance(approve, bool):
            raise Invalid([FieldError("/approve", "not_boolean", "Write true or false, without quotes.")])
        actor = requests.actor_of(request)
        test = one(capacity_tests(actor), pk)
        run = services.request_run(actor=actor, test_id=test.pk, approve=approve, reason=requests.reason(request))
        return _answer(request, run, 202)


class Checks(APIView):
    """GET: could a test run now, and what stands in its way?"""

    def get(self, request: Request, pk: str) -> Response:
        """`{may_run, checks: [{code, ok, message, passing}]}`."""
        actor = requests.actor_of(request)
        found = checking.checks_of(actor, one(capacity_tests(actor), pk).pk)
        checks = [shown.Check.of(check) for check in found]
        return Response({"may_run": all(check.ok for check in found), "checks": checks})


class RunList(APIView):
    """GET runs, newest first."""

    scope_noun = NOUN

    def get(self, request: Request) -> Response:
        """`limit`, `cursor`, `account`, `pool`, `region`, `test`."""
        rows = selectors.runs(requests.actor_of(request))
        return listed(request, rows, run_shape, filters=FILTERS, newest_first=True)


class RunDetail(APIView):
    """GET one run; `wait=SECONDS` returns at its end, or as it stands when the time is over."""

    scope_noun = NOUN

    def get(self, request: Request, pk: str) -> Response:
        """The run with its result."""
        found = when_it_rests(request, lambda: _run(request, pk), goes_on=_goes_on, poll_s=POLL_S)
        return Response(run_shape(found))


class StepList(APIView):
    """GET the steps of a run in their order."""

    scope_noun = NOUN

    def get(self, request: Request, pk: str) -> Response:
        """`limit`, `cursor`."""
        run = _run(request, pk)
        return listed(request, selectors.steps(requests.actor_of(request), run.pk), shown.CapacityStep.of)


class SecondList(APIView):
    """GET the seconds of a run in their order."""

    scope_noun = NOUN

    def get(self, request: Request, pk: str) -> Response:
        """`limit`, `cursor`."""
        run = _run(request, pk)
        return listed(request, selectors.seconds(requests.actor_of(request), run.pk), shown.CapacitySecond.of)


class Stop(APIView):
    """POST: end the load. Whoever sees the run may, so the scope is that of reading."""

    scope_noun, scope = NOUN, "read"

    def post(self, request: Request, pk: str) -> Response:
        """No body; 202 with the run as it is. The load is at zero within two seconds."""
        return _act(request, pk, services.stop_run)


class Approve(APIView):
    """POST: an operator lets a run begin that waits for it."""

    scope_noun = NOUN

    def post(self, request: Request, pk: str) -> Response:
        """No body; 202 with the run. 409 for one that does not wait."""
        return _act(request, pk, services.approve_run)


class SetLimit(APIView):
    """POST: make what a run measured the limit of its pool in its region."""

    scope_noun = NOUN

    def post(self, request: Request, pk: str) -> Response:
        """`{margin?}`, 0 to 0.9, the policy's where it is left out; 200 with the run."""
        no_dry_run(request)
        data = requests.only(request, ("margin",)) if request.data else {}
        run = _run(request, pk)
        limits.set_as_limit(
            actor=requests.actor_of(request),
            run_id=run.pk,
            margin=data.get("margin"),
            reason=requests.reason(request),
        )
        return _answer(request, run, 200)


class BlackoutList(APIView):
    """GET the blackouts; POST a new one."""

    scope_noun = NOUN

    def get(self, request: Request) -> Response:
        """`limit`, `cursor`."""
        return listed(request, selectors.blackouts(requests.actor_of(request)), shown.Blackout.of)

    def post(self, request: Request) -> Response:
        """`{starts_at, ends_at, reason}`; operators only."""
        no_dry_run(request)
        data = requests.only(request, ("starts_at", "ends_at", "reason"))
        field_errors: list[FieldError] = []
        reader = Reader(data, "", field_errors)
        starts_at, ends_at = (reader.required(field, instant) for field in ("starts_at", "ends_at"))
        reason = data.get("reason", "")
        if not isinstance(reason, str):
            reader.add_error("reason", "not_text", "Write the reason as text.")
        if field_errors:
            raise Invalid(field_errors)
        actor = requests.actor_of(request)
        made = services.set_blackout(actor=actor, starts_at=starts_at, ends_at=ends_at, reason=reason)
        return Response(shown.Blackout.of(made), status=201, headers={"Location": f"/api/v1/blackouts/{made.pk}"})


class BlackoutDetail(APIView):
    """GET one blackout; DELETE ends it."""

    scope_noun = NOUN

    def get(self, request: Request, pk: str) -> Response:
        """The blackout."""
        return Response(shown.Blackout.of(one(selectors.blackouts(requests.actor_of(request)), pk)))

    def delete(self, request: Request, pk: str) -> Response:
        """204; operators only."""
        no_dry_run(request)
        actor = requests.actor_of(request)
        services.end_blackout(actor=actor, blackout_id=one(selectors.blackouts(actor), pk).pk)
        return Response(status=204)


def _goes_on(row: Run) -> bool:
    return row.state in Run.OPEN


def _run(request: Request, pk: str) -> Run:
    found: Run = one(selectors.runs(requests.actor_of(request)), pk)
    return found


def _act(request: Request, pk: str, service: Callable[..., Run]) -> Response:
    """Do to a run what needs no more than its number and, perhaps, a reason."""
    no_dry_run(request)
    run = _run(request, pk)
    reason = requests.reason(request)
    return _answer(request, service(actor=requests.actor_of(request), run_id=run.pk, reason=reason), 202)


def _answer(request: Request, run: Run, status: int) -> Response:
    headers = {"Location": f"/api/v1/capacity-runs/{run.pk}"}
    return Response(run_shape(_run(request, str(run.pk))), status=status, headers=headers)

"""Schedules beyond their definition: look ahead, run now, pause, their runs, and topics."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.protocol import requests
from apps.api.v1.schemas.nouns import schedules as shown
from apps.api.v1.views import NOUNS, listed, of_state, one
from apps.api.v1.writes import stored
from apps.calendars import describe, upcoming
from apps.core.clock import now
from apps.definitions.models import Schedule
from apps.definitions.shapes.base.reading import read_or_raise
from apps.definitions.shapes.operations.schedule import TimingSpec
from apps.schedules import selectors, services
from apps.schedules.models import ScheduleRun
from apps.schedules.triggers import topics
from apps.schedules.triggers.signing import rotate_signing_secret

PREVIEWED = 10
RUN_FILTERS = {"schedule": "schedule__name", "account": "account__name"}


def schedule_run_shape(row: ScheduleRun) -> dict[str, Any]:
    """One occurrence, and what came of it."""
    return shown.ScheduleRun.of(row, next_try_at=row.next_try_at if row.state == ScheduleRun.State.WAITING else None)


def schedule_of(request: Request, pk: str) -> Schedule:
    """The schedule. Raises NotFound."""
    row: Schedule = one(NOUNS["schedules"].rows(requests.actor_of(request)), pk)
    return row


class Preview(APIView):
    """POST: what a timing would do; nothing is stored."""

    scope = "read"

    def post(self, request: Request) -> Response:
        """`{when, zone?, starts_at?, ends_at?}` → a sentence and the next ten instants."""
        timing = read_or_raise(TimingSpec, requests.only(request, ("when", "zone", "starts_at", "ends_at"))).timing
        found = upcoming(timing, now(), PREVIEWED)
        return Response({"sentence": describe(timing), "instants": found, "ends": len(found) < PREVIEWED})


class ScheduleRunList(APIView):
    """GET occurrences, newest first."""

    def get(self, request: Request) -> Response:
        """`limit`, `cursor`, `state`, `schedule`, `account`."""
        return _page(request, selectors.runs(requests.actor_of(request)))


class RunsOfSchedule(APIView):
    """GET the runs of one schedule, newest first."""

    def get(self, request: Request, pk: str) -> Response:
        """`limit`, `cursor`, `state`."""
        rows = selectors.runs(requests.actor_of(request)).filter(schedule=schedule_of(request, pk))
        return _page(request, rows)


def _page(request: Request, rows: Any) -> Response:
    rows = of_state(request, rows, ScheduleRun.State.values)
    return listed(request, rows, schedule_run_shape, filters=RUN_FILTERS, newest_first=True)


class ScheduleRunDetail(APIView):
    """GET one occurrence."""

    def get(self, request: Request, pk: str) -> Response:
        """The run."""
        return Response(schedule_run_shape(one(selectors.runs(requests.actor_of(request)), pk)))


class Retry(APIView):
    """POST: try a dead run again, under the same key."""

    scope_noun = "schedules"

    def post(self, request: Request, pk: str) -> Response:
        """No body; 202 with the schedule run, 409 for one that is not dead."""
        actor = requests.actor_of(request)
        row = one(selectors.runs(actor), pk)
        services.retry_run(actor=actor, run_id=row.pk, reason=requests.reason(request))
        return _accepted(request, row.pk)


class RunNow(APIView):
    """POST: run a schedule now, also a paused one."""

    def post(self, request: Request, pk: str) -> Response:
        """No body; 202 with the schedule run, 409 while an earlier one does not let it in."""
        actor, row = requests.actor_of(request), schedule_of(request, pk)
        made = services.run_now(actor=actor, schedule_id=row.pk, reason=requests.reason(request))
        return _accepted(request, made.pk)


def _accepted(request: Request, run_id: int) -> Response:
    row = selectors.run(requests.actor_of(request), run_id)
    return Response(schedule_run_shape(row), status=202, headers={"Location": f"/api/v1/schedule-runs/{row.pk}"})


class Pause(APIView):
    """POST: book no more instants, or again."""

    paused = True

    def post(self, request: Request, pk: str) -> Response:
        """No body; 200 with the schedule, also when it is so already."""
        actor, row = requests.actor_of(request), schedule_of(request, pk)
        act = services.pause if self.paused else services.resume
        act(actor=actor, schedule_id=row.pk, reason=requests.reason(request))
        return stored(request, "Schedule", row, 200)


class SigningSecret(APIView):
    """POST: a new secret that signs what the schedule sends; the one before signs as well for another 24 hours."""

    def post(self, request: Request, pk: str) -> Response:
        """No body; the answer holds `secret`, this once."""
        actor, row = requests.actor_of(request), schedule_of(request, pk)
        secret = rotate_signing_secret(actor=actor, schedule_id=row.pk, reason=requests.reason(request))
        return Response({"schedule_id": row.pk, "secret": secret})


class Messages(APIView):
    """GET what was sent to a topic of the own account."""

    def get(self, request: Request, name: str) -> Response:
        """`after` (the id of the last message that was read), `limit`, `wait`."""
        found = topics.read(
            requests.actor_of(request),
            name,
            after=request.query_params.get("after", ""),
            limit=requests.number(request, "limit", 100, 1, requests.MAX_LIMIT),
            wait_s=requests.wait(request),
        )
        return Response({"topic": name, "items": [shown.Message.of(each) for each in found]})

"""The table, schedules in the API: their runs, their triggers, topics, and calls from outside."""

from __future__ import annotations

from typing import Any

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.core.clock import now
from apps.definitions.services import save_object
from apps.schedules.models import ScheduleRun
from apps.schedules.triggers.services import make_trigger
from tests.permissions.rows import Open, Row, codes

ANY = {"If-Match": "*"}
LIST = codes(200, 200, 200)
READ_OWN = codes(404, 200, 200)
# The role is asked before the row: a viewer of any account learns the same.
WRITE_OWN = codes(404, "403 200 200", "403 200 200")
SEND = codes(404, "403 202 202", "403 202 202")
OF_SCHEDULE, OF_TRIGGER, OF_SCHEDULE_RUN = {"pk": "$schedule"}, {"pk": "$trigger"}, {"pk": "$schedulerun"}
SCHEDULE: dict[str, Any] = {
    "when": {"cron": "30 2 * * *"},
    "overlap": "allow",
    "target": {"webhook": {"url": "https://hooks.example/x"}},
}


def make_schedule_rows(account: Account) -> None:
    """A schedule with a trigger and a run that came to nothing."""
    actor, moment = Actor("somebody", account, "admin"), now()
    row = save_object(actor=actor, kind="Schedule", name="nightly", spec=SCHEDULE)
    make_trigger(actor=actor, schedule_id=row.pk, name="ci")
    ScheduleRun.objects.create(
        schedule=row,
        account=account,
        scheduled_at=moment,
        due_at=moment,
        next_try_at=moment,
        finished_at=moment,
        state=ScheduleRun.State.DEAD,
        message="The receiver answered 500, not 2xx.",
    )


SCHEDULES_API: tuple[Row, ...] = (
    Row("api:schedules-preview", "POST", LIST, body={"when": {"every_s": 60}}, only_asks=True),
    Row("api:schedules-runs", "GET", READ_OWN, OF_SCHEDULE, "schedule"),
    Row("api:schedules-run", "POST", SEND, OF_SCHEDULE, "schedule"),
    Row("api:schedules-pause", "POST", WRITE_OWN, OF_SCHEDULE, "schedule"),
    Row("api:schedules-resume", "POST", WRITE_OWN, OF_SCHEDULE, "schedule"),
    Row("api:schedules-secret", "POST", WRITE_OWN, OF_SCHEDULE, "schedule"),
    Row("api:schedule-runs-list", "GET", LIST, holds="all"),
    Row("api:schedule-runs-detail", "GET", READ_OWN, OF_SCHEDULE_RUN, "schedulerun"),
    Row("api:schedule-runs-retry", "POST", SEND, OF_SCHEDULE_RUN, "schedulerun"),
    Row("api:triggers-list", "GET", LIST, holds="all"),
    Row(
        "api:triggers-list",
        "POST",
        codes("403 404 404", "403 201 201", "403 201 201"),
        holds="schedule",
        body={"schedule_id": "$schedule", "name": "new"},
    ),
    Row("api:triggers-detail", "GET", READ_OWN, OF_TRIGGER, "trigger"),
    Row("api:triggers-detail", "PATCH", WRITE_OWN, OF_TRIGGER, "trigger", {"per_minute": 7}, headers=ANY),
    Row(
        *("api:triggers-detail", "DELETE", codes(404, "403 204 204", "403 204 204"), OF_TRIGGER, "trigger"),
        headers=ANY,
    ),
    Row("api:triggers-rotate", "POST", WRITE_OWN, OF_TRIGGER, "trigger", headers=ANY),
    # Topics live in Redis, which may be away here; whose topic is read: tests/interfaces/api/test_api_schedules.py.
    Row("api:topics-messages", "GET", codes(422, 422, 422), {"name": "nightly"}, query={"after": "never"}),
    Row("hook", "POST", Open(404, 404), {"key_id": "x" * 22}),
)

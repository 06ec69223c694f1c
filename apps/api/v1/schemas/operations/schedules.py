"""What each URL of schedules, their runs, triggers and topics does."""

from __future__ import annotations

from dataclasses import replace

from apps.api.v1.schemas.derived import serializer_of
from apps.api.v1.schemas.nouns import schedules
from apps.api.v1.schemas.operations.building import (
    READ_REFUSALS,
    Operation,
    Table,
    at_once,
    change,
    create,
    detail,
    managed,
    noun,
    of_one,
    read,
    remove,
    written,
)
from apps.definitions.shapes.operations.schedule import TimingSpec

SCHEDULE = noun(
    "Schedule",
    "a schedule",
    "schedules",
    about="A schedule, with its next instant and how many it missed.",
    facts=schedules.ScheduleFacts,
)
RUN = of_one("Run a schedule now", {202: schedules.ScheduleRun})
RUNS = read(
    "schedule-runs",
    schedules.ScheduleRun,
    "a schedule run",
    "schedule runs",
    "state-word-schedule-run",
    "schedule",
    "account",
    version=False,
)
OPERATIONS: Table = {
    **written("schedules", SCHEDULE, "name", "account", "target"),
    ("schedules-preview", "POST"): Operation(
        summary="Preview the next runs of a timing",
        shown={200: schedules.Preview},
        sent=serializer_of(TimingSpec),
        refuses=(400, *READ_REFUSALS, 413, 415),
    ),
    ("schedules-runs", "GET"): replace(
        RUNS["schedule-runs-list", "GET"],
        summary="List the runs of a schedule",
        query=("limit", "cursor", "state-word-schedule-run"),
        refuses=(*READ_REFUSALS, 404),
    ),
    ("schedules-run", "POST"): replace(RUN, tells=("Location", *RUN.tells)),
    ("schedules-pause", "POST"): managed(of_one("Pause a schedule", {200: SCHEDULE.item})),
    ("schedules-resume", "POST"): managed(of_one("Resume a schedule", {200: SCHEDULE.item})),
    ("schedules-secret", "POST"): of_one(
        "Rotate the signing secret; the previous one also signs for a day", {200: schedules.SigningSecret}
    ),
    **RUNS,
    ("schedule-runs-retry", "POST"): replace(
        of_one("Retry a failed schedule run with the same key", {202: schedules.ScheduleRun}),
        tells=("Location", *RUN.tells),
    ),
    **read("triggers", schedules.Trigger, "a trigger", "triggers", "name", "account", "schedule"),
    ("triggers-list", "POST"): replace(
        at_once(create(schedules.TriggerSecret, schedules.CreateTrigger, "a trigger")), refuses=RUN.refuses
    ),
    ("triggers-detail", "PATCH"): at_once(change("Change a trigger", {200: schedules.Trigger}, schedules.TriggerPatch)),
    ("triggers-detail", "DELETE"): at_once(remove("a trigger")),
    ("triggers-rotate", "POST"): at_once(
        change(
            "Rotate the secret; the previous one works for the given time",
            {200: schedules.TriggerSecret},
            schedules.TriggerRotation,
        )
    ),
    ("topics-messages", "GET"): replace(
        detail(schedules.Messages, "the messages of a topic", "after", "limit", "wait", version=False),
        refuses=(*READ_REFUSALS, 404, 503),
    ),
}

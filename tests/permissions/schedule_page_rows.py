"""The table, pages of schedules; what they are asked about is made by schedule_api_rows.py."""

from __future__ import annotations

from tests.permissions.page_rows import (
    ALL_REFUSED,
    EDIT,
    EDIT_FAULTY,
    LIST,
    NEW,
    NEW_FAULTY,
    READ_OWN,
    SENT,
    SENT_BY_ROLE,
    sent,
    shown,
)
from tests.permissions.rows import Row, codes

OF_SCHEDULE, OF_TRIGGER = {"pk": "$schedule"}, {"pk": "$schedule", "trigger": "$trigger"}
SECRET = codes(404, "403 200 200", "403 200 200")

SCHEDULE_PAGES: tuple[Row, ...] = (
    *shown("schedules", LIST, "all"),
    *shown("schedules-calendar", LIST, "all"),
    Row("web:schedule-new", "GET", NEW, holds="all"),
    sent("schedule-new", NEW_FAULTY, "all"),
    sent("schedule-preview", READ_OWN, "schedule", schedule="$schedule"),
    sent("schedules-bulk", ALL_REFUSED, "all", do="pause", schedule="$schedule"),
    *shown("schedule", READ_OWN, "schedule", OF_SCHEDULE),
    Row("web:schedule-edit", "GET", EDIT, OF_SCHEDULE, "schedule"),
    sent("schedule-edit", EDIT_FAULTY, "schedule", OF_SCHEDULE),
    sent("schedule-run", SENT_BY_ROLE, "schedule", OF_SCHEDULE),
    sent("schedule-pause", SENT_BY_ROLE, "schedule", OF_SCHEDULE),
    sent("schedule-resume", SENT_BY_ROLE, "schedule", OF_SCHEDULE),
    sent("schedule-delete", SENT, "schedule", OF_SCHEDULE, confirm="nightly"),
    sent("schedule-sign", SECRET, "schedule", OF_SCHEDULE),
    sent("trigger-new", SECRET, "schedule", OF_SCHEDULE, form={"name": "more", "sender": "secret", "per_minute": "6"}),
    sent("trigger-rotate", SECRET, "trigger", OF_TRIGGER),
    sent("trigger-delete", SENT, "trigger", OF_TRIGGER),
    sent("schedule-run-retry", SENT, "schedulerun", {"pk": "$schedulerun"}),
)

"""All parts with since when; the newest errors of every process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from apps.core.clock import database_now
from apps.system.models import PartState, Process
from apps.system.parts import backups, broker, console_settings, database, machine, processes, publications, web
from apps.system.parts.part import Answer, Part, asked

MOST_ERRORS = 20
EVENTS = partial(processes.kind, "events", "spillway-events.service")
WEB = partial(processes.kind, "web", "spillway-web.service")
ASKED: tuple[tuple[str, str, Callable[[], Answer]], ...] = (
    ("database", "Database", database.server),
    ("schema", "Tables", database.tables),
    ("locks", "Locks", database.locks),
    ("connections", "Database connections", database.connections),
    ("key", "Secret key", machine.key),
    ("redis", "Redis", broker.redis),
    ("queues", "Queues", broker.waiting),
    ("web", "Web", WEB),
    ("http", "Pages and API", web.answers),
    ("events", "Event streams", EVENTS),
    ("workers", "Workers", processes.workers),
    ("schedule", "Scheduler", processes.schedule),
    ("collector", "Collectors", processes.collector),
    ("log-collector", "Log collectors", processes.log_collector),
    ("publications", "Published definitions", publications.publications),
    ("clocks", "Clocks", machine.clocks),
    ("certificates", "Certificates of the console", machine.certificates),
    ("backups", "Backups", backups.backups),
    ("versions", "Versions", processes.versions),
    ("folders", "Folders of this console", machine.folders),
    ("settings", "Settings", console_settings.settings_fit),
)


@dataclass(frozen=True, slots=True)
class LoggedError:
    """An error that a process logged; `text` has no secrets."""

    at: datetime
    process: str
    text: str


def parts() -> list[Part]:
    """Every part as it is now, in a fixed order."""
    return [asked(name, title, ask) for name, title, ask in ASKED]


def parts_since() -> list[Part]:
    """The same with since when, as far as the scheduler noted it. Raises django.db.Error."""
    known = {row.name: row for row in PartState.objects.all()}
    found = parts()
    return [
        replace(each, since=known[each.name].since)
        if each.name in known and known[each.name].state == each.state
        else each
        for each in found
    ]


def errors() -> list[LoggedError]:
    """The newest of all processes, the newest first. Raises django.db.Error."""
    found = [
        LoggedError(datetime.fromisoformat(each["at"]), str(row), each["text"])
        for row in Process.objects.order_by("-heard_at")[:200]
        for each in row.errors
    ]
    return sorted(found, key=lambda each: each.at, reverse=True)[:MOST_ERRORS]


def note_states() -> None:
    """Keep the state of each part and since when it is in it. Raises django.db.Error."""
    instant = database_now()
    known = {row.name: row for row in PartState.objects.all()}
    for part in parts():
        row = known.get(part.name)
        if row is None:
            PartState.objects.get_or_create(name=part.name, defaults={"state": part.state, "since": instant})
        elif row.state != part.state:
            PartState.objects.filter(pk=row.pk, state=row.state).update(state=part.state, since=instant)

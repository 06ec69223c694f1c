"""Schedules as lists show them: narrowed by the query of the page, a keyset page at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.core.errors import FieldError, Invalid
from apps.definitions.models import Schedule
from apps.definitions.shapes.operations.schedule import TARGETS
from apps.schedules.models import ScheduleRun
from apps.web.finding.sorting import Chip, chips
from apps.web.schedules.words import SCHEDULE_RUNS, Mark, sentence, state_of, target_of

MOST_TEXT = 253
RELATIVE = timedelta(days=7)
A_DAY = timedelta(days=1)
BAD = (ScheduleRun.State.DEAD, ScheduleRun.State.MISSED)
MOST_TROUBLED = 5
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NO_INSTANT = {"cron": "", "every_s": None, "at": ""}
_GAVE_UP = Exists(ScheduleRun.objects.filter(schedule=OuterRef("pk"), state=ScheduleRun.State.DEAD))
# What `?state=` may say, each with its word and the rows that it means.
STATES: dict[str, tuple[str, Callable[[QuerySet[Schedule]], QuerySet[Schedule]]]] = {
    "on": ("Active", lambda rows: rows.filter(paused=False).filter(Q(next_at__isnull=False) | Q(**NO_INSTANT))),
    "paused": ("Paused", lambda rows: rows.filter(paused=True)),
    "ended": ("No upcoming runs", lambda rows: rows.filter(paused=False, next_at=None).exclude(**NO_INSTANT)),
    "gave-up": ("Has failed runs", lambda rows: rows.filter(_GAVE_UP)),
    "missed": ("Has missed runs", lambda rows: rows.filter(missed__gt=0)),
}
FILTERS = {"q": "Search", "state": "Status", "target": "Action", "account": "Account"}


def chips_of(chosen: Mapping[str, str], **more: str) -> list[Chip]:
    """The filters that are set, and `more` of the page's own with their labels."""
    return chips(chosen, FILTERS | more, {state: word for state, (word, _) in STATES.items()} | TARGETS)


@dataclass(frozen=True, slots=True)
class ListedSchedule:
    """A schedule as a line: in words, with its state, whether it is due so soon that pages count, and its last run."""

    row: Schedule
    sentence: str
    target: str
    state: Mark
    soon: bool
    last: ScheduleRun | None
    last_mark: Mark | None


def narrowed(rows: QuerySet[Schedule], chosen: Mapping[str, str]) -> QuerySet[Schedule]:
    """Narrow by `q` (name, target), `state`, `target` and `account`. Raises Invalid naming what cannot be used."""
    text = _text(chosen, "q")
    if text:
        rows = rows.filter(Q(name__icontains=text) | Q(target__icontains=text))
    if account := _text(chosen, "account"):
        rows = rows.filter(account__name=account)
    if target := chosen.get("target", ""):
        rows = rows.filter(target_kind=_one_of("target", target, TARGETS))
    if state := chosen.get("state", ""):
        rows = STATES[_one_of("state", state, STATES)][1](rows)
    return rows


def _text(chosen: Mapping[str, str], name: str) -> str:
    text = chosen.get(name, "").strip()
    if len(text) > MOST_TEXT or not text.isprintable():
        detail = f"Search for at most {MOST_TEXT} printable characters."
        raise Invalid([FieldError(f"/{name}", "filter", detail)])
    return text


def _one_of(name: str, value: str, known: Iterable[str]) -> str:
    if value not in known:
        raise Invalid([FieldError(f"/{name}", "filter", f"Choose one of {', '.join(known)} for {name}.")])
    return value


def page_of(rows: QuerySet[Schedule], after: str, limit: int) -> tuple[list[Schedule], str]:
    """Schedules by name from the cursor `after` on, and the cursor of the page that follows, empty on the last."""
    name, _, number = after.rpartition(".")
    if after:
        if not (name.isprintable() and number.isascii() and number.isdecimal() and len(number) < 19):
            raise Invalid([FieldError("/after", "filter", "This page does not exist. Start with the first page.")])
        rows = rows.filter(Q(name__gt=name) | Q(name=name, pk__gt=int(number)))
    found = list(rows.order_by("name", "pk")[: limit + 1])
    last = found[limit - 1] if len(found) > limit else None
    return found[:limit], f"{last.name}.{last.pk}" if last else ""


def listed(rows: list[Schedule]) -> list[ListedSchedule]:
    """The rows in words, with two more queries however many they are."""
    last = last_runs([row.pk for row in rows])
    return [_listed(row, last.get(row.pk)) for row in rows]


def _listed(row: Schedule, last: ScheduleRun | None) -> ListedSchedule:
    return ListedSchedule(
        row=row,
        sentence=sentence(row),
        target=target_of(row.target_kind, row.target),
        state=state_of(row),
        soon=row.next_at is not None and row.next_at - now() < RELATIVE,
        last=last,
        last_mark=SCHEDULE_RUNS[ScheduleRun.State(last.state)] if last else None,
    )


def last_runs(ids: list[int]) -> dict[int, ScheduleRun]:
    """The newest run of each schedule that has one, by the schedule's id."""
    newest = ScheduleRun.objects.filter(schedule=OuterRef("pk")).order_by("-scheduled_at").values("pk")[:1]
    numbers = Schedule.objects.filter(pk__in=ids).order_by().values_list(Subquery(newest), flat=True)
    return {run.schedule_id: run for run in ScheduleRun.objects.filter(pk__in=[number for number in numbers if number])}


def page_of_runs(rows: QuerySet[ScheduleRun], state: str, before: str, limit: int) -> tuple[list[ScheduleRun], str]:
    """Runs of one schedule, newest first, below the cursor `before` (microseconds); and the cursor that follows."""
    if state in ScheduleRun.State.values:
        rows = rows.filter(state=state)
    if before.isascii() and before.isdecimal() and len(before) < 18:
        rows = rows.filter(scheduled_at__lt=_moment(int(before)))
    found = list(rows.order_by("-scheduled_at")[: limit + 1])
    return found[:limit], str(_micros(found[limit - 1].scheduled_at)) if len(found) > limit else ""


def _micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def _moment(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


class Trouble(NamedTuple):
    """A schedule with how often it gave up, and was missed, within the last day."""

    pk: int
    name: str
    gave_up: int
    missed: int


def troubled(actor: Actor) -> list[Trouble]:
    """Schedules with which something went wrong within a day, the worst first."""
    bad = actor.visible(ScheduleRun.objects.filter(state__in=BAD, scheduled_at__gte=now() - A_DAY)).order_by()
    counts = bad.values("schedule", "schedule__name").annotate(
        gave_up=Count("pk", filter=Q(state=ScheduleRun.State.DEAD)),
        missed=Count("pk", filter=Q(state=ScheduleRun.State.MISSED)),
    )
    rows = counts.order_by("-gave_up", "-missed", "schedule__name")[:MOST_TROUBLED]
    return [Trouble(row["schedule"], row["schedule__name"], row["gave_up"], row["missed"]) for row in rows]

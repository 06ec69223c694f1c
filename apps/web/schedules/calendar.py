"""The calendar of schedules: a week or a month, what came of the past and what is to come."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import F, Q
from django.http import HttpResponse

from apps.capacity.models import Blackout, Run
from apps.core.clock import now
from apps.core.errors import FieldError, Invalid
from apps.definitions.selectors import schedules as visible_schedules
from apps.definitions.shapes.operations.schedule import TARGETS
from apps.web.kit.pages import PageRequest, page, show
from apps.web.schedules.calendar_days import DUE, Day, Span, add_blackouts, add_runs, fill
from apps.web.schedules.form import zones
from apps.web.schedules.rows import FILTERS, STATES, chips_of, narrowed
from apps.web.schedules.words import SCHEDULE_RUNS

MOST_SCHEDULES = 100
MOST_RUNS = 200
SHOWN_PER_DAY = {"week": 40, "month": 4}
VIEWS = ("week", "month")


@page
def index(request: PageRequest) -> HttpResponse:
    """`?view=` week or month around `?on=`, in `?zone=`, narrowed as the list of schedules is."""
    actor, chosen = request.actor, request.GET
    view = chosen.get("view", "") if chosen.get("view", "") in VIEWS else "week"
    context: dict[str, Any] = {
        "view": view,
        "chosen": chosen,
        "filtered": any(chosen.get(name) for name in FILTERS),
        "chips": chips_of(chosen, zone="Time zone"),
        "states": [(value, word) for value, (word, _) in STATES.items()],
        "targets": TARGETS.items(),
        "zones": zones(),
    }
    try:
        zone = _zone(chosen.get("zone", ""))
        rows = narrowed(visible_schedules(actor), chosen.dict())
    except Invalid as error:
        return show(
            request, "pages/schedules/calendar.html", context | {"field_errors": error.field_errors}, status=422
        )
    moment = now()
    today = moment.astimezone(zone).date()
    days = _days(view, _day(chosen.get("on", ""), today), zone)
    shown = list(rows.order_by(F("next_at").asc(nulls_last=True), "name", "pk")[: MOST_SCHEDULES + 1])
    left_out = fill(days, shown[:MOST_SCHEDULES], moment)
    if not context["filtered"] or chosen.get("target") == "capacity_test":
        add_runs(days, _runs(request, days))
        add_blackouts(days, Blackout.objects.filter(starts_at__lt=days.ends, ends_at__gt=days.starts)[:MOST_RUNS])
    context |= _around(view, days, today)
    context |= {"left_out": left_out, "more": len(shown) > MOST_SCHEDULES, "shown": MOST_SCHEDULES}
    context |= {"zone": zone.key, "any": bool(shown), "legend": (*SCHEDULE_RUNS.values(), DUE)}
    return show(request, "pages/schedules/calendar.html", context)


def _zone(name: str) -> ZoneInfo:
    """The zone in whose days the calendar thinks. Raises Invalid for one that does not exist."""
    if not name:
        return ZoneInfo("UTC")
    if name not in zones():
        detail = "Unknown time zone. Choose one from the list, such as Europe/Berlin."
        raise Invalid([FieldError("/zone", "zone", detail)])
    return ZoneInfo(name)


def _day(text: str, today: date) -> date:
    """The day that was asked for, within what calendars of people reach; else today."""
    try:
        found = date.fromisoformat(text)
    except ValueError:
        return today
    return found if abs((found - today).days) < 4000 else today


def _days(view: str, on: date, zone: ZoneInfo) -> Span:
    """The week of the day, or the whole weeks of its month; weeks begin on Monday."""
    if view == "week":
        return Span.of(on - timedelta(days=on.weekday()), 7, zone)
    first = on.replace(day=1)
    last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    starts = first - timedelta(days=first.weekday())
    return Span.of(starts, (last - starts).days // 7 * 7 + 7, zone)


def _runs(request: PageRequest, days: Span) -> list[Run]:
    """Runs of capacity tests that began, or were asked for, on these days."""
    rows = request.actor.visible(Run.objects.all())
    began = Q(started_at__gte=days.starts, started_at__lt=days.ends)
    asked = Q(started_at=None, created_at__gte=days.starts, created_at__lt=days.ends)
    return list(rows.filter(began | asked).order_by("-id")[:MOST_RUNS])


def _around(view: str, days: Span, today: date) -> dict[str, Any]:
    """The days as the template shows them, their heading, and the way to what comes before and after."""
    middle = days.days[len(days.days) // 2].date
    first, last = days.days[0].date, days.days[-1].date
    if view == "month":
        heading = f"{middle:%B %Y}"
        before = middle.replace(day=1) - timedelta(days=1)
        after = (middle.replace(day=1) + timedelta(days=31)).replace(day=1)
    else:
        heading = f"{first.day} {'' if first.month == last.month else f'{first:%B} '}– {last.day} {last:%B %Y}"
        before, after = first - timedelta(days=7), first + timedelta(days=7)
    lines = [
        _line(day, today, SHOWN_PER_DAY[view], view == "month" and day.date.month != middle.month) for day in days.days
    ]
    return {"heading": heading, "before": before.isoformat(), "after": after.isoformat(), "days": lines}


def _line(day: Day, today: date, most: int, elsewhere: bool) -> dict[str, Any]:
    return {
        "date": day.date,
        "today": day.date == today,
        "past": day.date < today,
        "elsewhere": elsewhere,
        "entries": day.entries[:most],
        "more": max(len(day.entries) - most, 0),
    }

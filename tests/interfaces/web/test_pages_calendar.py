"""The calendar of schedules: past and future day by day, bands instead of thousands of dots."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.test import Client

from apps.accounts.actors import Actor
from apps.capacity.models import Blackout, Run
from apps.core.clock import now
from apps.definitions.models import Schedule
from apps.web.schedules.calendar_days import BUDGET, Day, Span, fill
from tests.interfaces.people import client_of
from tests.interfaces.web.test_pages_schedules import make, run, text_of

MONDAY = date(2027, 3, 22)  # clocks of Berlin go forward on the Sunday of this week
NOON = datetime(2027, 3, 24, 12, tzinfo=UTC)


@pytest.fixture
def client(acme: Actor) -> Client:
    """The browser of an owner of acme."""
    return client_of(acme)


def filled(*rows: Schedule, zone: str = "UTC", days: int = 7) -> list[Day]:
    """The week, looked at on its Wednesday at noon."""
    page = Span.of(MONDAY, days, ZoneInfo(zone))
    fill(page, rows, NOON)
    return page.days


def lines(day: Day) -> list[str]:
    """Entries as text."""
    return [f"{entry.clock} {entry.name}: {entry.word}" for entry in day.entries]


def test_what_is_to_come_stands_on_its_day_and_what_is_over_does_not(acme: Actor) -> None:
    row = make(acme, zone="UTC", when={"cron": "0 9,15 * * *"})
    assert [lines(day) for day in filled(row)][:4] == [
        [], [], ["15:00 nightly: Due"], ["09:00 nightly: Due", "15:00 nightly: Due"],
    ]  # fmt: skip


def test_days_are_those_of_the_chosen_zone(acme: Actor) -> None:
    row = make(acme, zone="UTC", when={"cron": "30 23 * * *"})
    assert lines(filled(row)[2]) == ["23:30 nightly: Due"]
    berlin = filled(row, zone="Europe/Berlin")
    assert lines(berlin[2]) == []
    assert lines(berlin[3]) == ["00:30 nightly: Due"]
    sunday = berlin[6]
    assert sunday.ends - sunday.starts == timedelta(hours=23)


def test_a_schedule_every_second_is_one_band_a_day(acme: Actor) -> None:
    row = make(acme, when={"every_s": 1})
    assert [lines(day) for day in filled(row)][2:5] == [["every 1 s nightly: Due"]] * 3


def test_a_band_says_from_when_and_leaves_out_days_without_it(acme: Actor) -> None:
    row = make(acme, zone="UTC", when={"cron": "*/15 13-17 * * 1-5"})
    days = filled(row)
    assert lines(days[3]) == ["from 13:00 nightly: every 15 min"]
    assert lines(days[5]) == []


def test_the_past_says_what_came_of_it(acme: Actor) -> None:
    row = make(acme, zone="UTC")
    run(row, NOON - timedelta(days=1), "done")
    run(row, NOON - timedelta(days=2), "missed")
    days = filled(row)
    assert lines(days[1]) == ["12:00 nightly: Done"]
    assert lines(days[0]) == ["12:00 nightly: Missed"]


def test_many_runs_of_a_day_are_one_line_that_names_the_worst(acme: Actor) -> None:
    row = make(acme, zone="UTC")
    for number in range(9):
        run(row, NOON - timedelta(days=1, minutes=number), "dead" if number == 4 else "done")
    (entry,) = filled(row)[1].entries
    assert entry.mark.kind == "bad"
    assert entry.word == "1 failed, 8 done"


def test_a_band_of_the_past_shows_only_what_went_wrong(acme: Actor) -> None:
    row = make(acme, when={"every_s": 10})
    Schedule.objects.filter(pk=row.pk).update(created_at=NOON - timedelta(days=30))
    row.refresh_from_db()
    run(row, NOON - timedelta(days=2), "done")
    run(row, NOON - timedelta(days=1), "missed")
    days = filled(row)
    assert lines(days[0]) == ["every 10 s nightly: No failures"]
    assert lines(days[1]) == ["12:00 nightly: Missed"]


def test_a_paused_schedule_has_nothing_to_come(acme: Actor) -> None:
    assert not any(day.entries for day in filled(make(acme, paused=True)))


def test_the_work_of_one_page_is_bounded_and_what_is_left_out_is_counted(acme: Actor) -> None:
    rows = [
        Schedule(pk=number, account=acme.account, name=f"s{number}", cron="0 6,14,22 * * *", created_at=NOON)
        for number in range(1, 101)
    ]
    page = Span.of(MONDAY, 42, ZoneInfo("UTC"))
    left_out = fill(page, rows, NOON)
    assert left_out > 0
    assert sum(len(day.entries) for day in page.days) <= BUDGET


def test_the_page_shows_runs_and_blackouts(client: Client, acme: Actor) -> None:
    at = now()
    Run.objects.create(account=acme.account, label="acme/shop in us-central1", plan={}, state="done", actor="x",
                       started_at=at, begin_by=at)  # fmt: skip
    Blackout.objects.create(starts_at=at, ends_at=at + timedelta(hours=1), reason="Sale", set_by="x")
    page = text_of(client, "/schedules/calendar")
    for words in ("acme/shop in us-central1", "Test done", "No capacity tests", "Sale"):
        assert words in page


@pytest.mark.parametrize("view", ["week", "month"])
def test_the_page_goes_back_and_forth(client: Client, acme: Actor, view: str) -> None:
    make(acme)
    page = text_of(client, f"/schedules/calendar?view={view}&on=2027-01-31&zone=Europe/Berlin")
    assert "January 2027" in page
    assert "02:30" in page
    before, after = (re.search(rf'rel="{rel}" href="([^"]+)"', page) for rel in ("prev", "next"))
    assert before
    assert after
    for link in (before[1], after[1]):
        assert "Europe/Berlin" in text_of(client, f"/schedules/calendar{link}".replace("&amp;", "&"))


@pytest.mark.parametrize("query", ["on=soon", "on=9999-12-31", "on=0001-01-01", "view=odd"])
def test_a_day_that_no_calendar_shows_is_today(client: Client, query: str) -> None:
    assert "today" in text_of(client, f"/schedules/calendar?{query}")


@pytest.mark.parametrize("query", ["zone=Mars/Olympus", "zone=../etc/passwd", "zone=%00", "state=odd"])
def test_a_zone_or_filter_that_does_not_exist_is_refused(client: Client, query: str) -> None:
    assert "This filter is not valid." in text_of(client, f"/schedules/calendar?{query}", 422)


def test_an_empty_calendar_says_what_to_do(client: Client) -> None:
    assert "No schedules yet" in text_of(client, "/schedules/calendar")

"""The form of a schedule: the next ten before saving, errors at their fields, edit conflicts."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from apps.accounts.actors import Actor
from apps.calendars import read_timing
from apps.definitions.models import Schedule
from apps.definitions.selectors import describe
from apps.definitions.services import save_object
from apps.web.schedules.words import next_instants
from tests.interfaces.people import client_of
from tests.interfaces.web.test_pages_schedules import FORM, make, text_of


@pytest.fixture
def client(acme: Actor) -> Client:
    """The browser of an owner of acme."""
    return client_of(acme)


def errors_of(page: str) -> str:
    """What the form refuses, field by field and at its top."""
    return " ".join(re.findall(r'<p class="error">(.*?)</p>', page) + re.findall(r'(?s)role="alert".*?</div>', page))


def test_a_schedule_is_made(client: Client) -> None:
    assert client.post("/schedules/new", FORM).status_code == 302
    row = Schedule.objects.get()
    assert (row.name, row.cron, row.target["url"]) == ("nightly", "30 2 * * *", "https://hooks.example.com/x")
    assert row.next_at is not None


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ({"when": "every_s", "every": "2", "unit": "3600"}, {"every_s": 7200}),
        ({"when": "at", "at": "2999-01-01T10:00"}, {"at": "2999-01-01T10:00:00"}),
        ({"when": "trigger"}, {"trigger": True}),
        ({"when": "cron", "cron": "@daily"}, {"cron": "@daily"}),
    ],
)
def test_each_way_to_say_when_is_stored(client: Client, typed: dict[str, str], stored: dict[str, Any]) -> None:
    assert client.post("/schedules/new", FORM | typed).status_code == 302
    assert describe(Schedule.objects.get())["when"] == stored


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ({"target": "topic", "topic": "beats", "message": "a\r\nb"}, {"topic": {"topic": "beats", "message": "a\nb"}}),
        ({"target": "webhook", "body": "x"}, {"webhook": {"url": "https://hooks.example.com/x", "body": "x"}}),
    ],
)
def test_each_target_is_stored(client: Client, typed: dict[str, str], stored: dict[str, Any]) -> None:
    assert client.post("/schedules/new", FORM | typed).status_code == 302
    assert describe(Schedule.objects.get())["target"] == stored


def test_a_change_is_typed_as_json(client: Client, tutorial_env: Actor) -> None:
    pool = {"kind": "Pool", "name": "later", "spec": {"protocol": "http", "backends": []}}
    sent = FORM | {"target": "change", "object": json.dumps(pool), "restore_after_s": "60"}
    assert client.post("/schedules/new", sent).status_code == 302
    target = describe(Schedule.objects.get(name="nightly"))["target"]["change"]
    assert (target["object"]["name"], target["restore_after_s"]) == ("later", 60)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"cron": "99 * * * *"}, "99"),
        ({"cron": ""}, "This field is required."),
        ({"zone": "Mars/Olympus"}, "zone"),
        ({"zone": "Mars/Olympus", "attempts": ""}, "zone"),
        ({"name": "Not A Name"}, "lower-case"),
        ({"url": "http://10.0.0.1/x"}, "10.0.0.1"),
        ({"target": "change", "object": "{"}, "not JSON"),
        ({"target": "topic", "topic": ""}, "This field is required."),
        ({"attempts": "0"}, "1"),
        ({"when": "at", "at": "soon"}, "2026-12-01T10:00:00"),
        ({"starts_at": "soon"}, "2"),
    ],
)
def test_an_error_stands_beside_its_field_and_what_was_typed_stays(
    client: Client, typed: dict[str, str], words: str
) -> None:
    answer = client.post("/schedules/new", FORM | {"reason": "as typed"} | typed)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert words.lower() in errors_of(page).lower()
    assert 'value="as typed"' in page
    assert not Schedule.objects.exists()


def test_customers_cannot_choose_a_rollout(client: Client) -> None:
    assert 'value="rollout"' not in text_of(client, "/schedules/new")
    assert client.post("/schedules/new", FORM | {"target": "rollout", "fleet": "x"}).status_code == 422


def test_operators_can_choose_a_rollout_and_an_account(tutorial_env: Actor) -> None:
    client = client_of(tutorial_env)
    page = text_of(client, "/schedules/new")
    assert 'value="rollout"' in page
    sent = FORM | {"target": "rollout", "fleet": "us-central1", "account": "operator"}
    assert client.post("/schedules/new", sent).status_code == 302
    assert client.post("/schedules/new", FORM | {"account": "acme"}).status_code == 302
    assert Schedule.objects.get(name="nightly", account__name="acme")


def test_the_next_ten_show_before_anything_is_saved(client: Client) -> None:
    page = client.post("/schedules/preview", FORM | {"zone": "Europe/Berlin"}).content.decode()
    assert "At 02:30 every day, Europe/Berlin" in page
    assert len(re.findall(r"02:30:00 CES?T<", page)) == 10
    assert not Schedule.objects.exists()


def test_the_next_ten_show_without_scripts_too(client: Client) -> None:
    answer = client.post("/schedules/new", FORM | {"preview": "1"})
    assert answer.status_code == 200
    assert len(re.findall(r"02:30:00 UTC<", answer.content.decode())) == 10
    assert not Schedule.objects.exists()


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"cron": "61 * * * *"}, "Not yet"),
        ({"cron": "0 0 30 2 *"}, "No runs are left"),
        ({"when": "trigger"}, "has no timetable"),
        ({"when": "at", "at": ""}, "Not yet"),
    ],
)
def test_the_look_ahead_says_why_it_has_nothing_to_show(client: Client, typed: dict[str, str], words: str) -> None:
    answer = client.post("/schedules/preview", FORM | typed)
    assert answer.status_code == 200
    assert words in answer.content.decode()


def notes(cron: str, zone: str, day: str) -> list[str]:
    """The next three instants after that moment, each with what is noted at it."""
    found = next_instants(read_timing(cron=cron, zone=zone), datetime.fromisoformat(day).replace(tzinfo=UTC), 3)
    return [f"{each.local}: {each.note}" if each.note else "" for each in found]


def test_a_night_that_clocks_make_shorter_is_noted() -> None:
    said = notes("30 2 * * *", "Europe/Berlin", "2027-03-27")
    moved = "Sun 2027-03-28 03:00:00 CEST: Clocks skip 02:00–03:00 on that day: 02:30 moves to 03:00."
    assert said == ["", moved, ""]


def test_a_moved_instant_that_meets_another_joins_it() -> None:
    (said,) = [text for text in notes("30 2,3 * * *", "Europe/Berlin", "2027-03-28") if text]
    assert said.endswith("02:30 moves to 03:00.")
    (said,) = [text for text in notes("0,30 2-3 * * *", "Europe/Berlin", "2027-03-28") if text]
    assert said.endswith("02:00 and what follows joins 03:00.")


def test_a_night_that_clocks_make_longer_is_noted() -> None:
    (said,) = [text for text in notes("30 2 * * *", "Europe/Berlin", "2027-10-30T12:00:00") if text]
    assert said.endswith("Clocks show 02:30 twice on that day. The schedule runs once, the first time.")


def test_days_without_a_clock_change_are_not_noted() -> None:
    assert notes("0 3 * * *", "Europe/Berlin", "2027-03-27") == ["", "", ""]
    assert notes("30 2 * * *", "UTC", "2027-03-27") == ["", "", ""]


def test_an_edit_shows_what_is_stored_and_saves_what_is_typed(client: Client, acme: Actor) -> None:
    row = make(acme, when={"every_s": 7200}, zone="UTC")
    page = text_of(client, f"/schedules/{row.pk}/edit")
    assert re.search(r'name="every" value="2"', page)
    assert re.search(r'value="3600" selected', page)
    began = re.search(r'name="began" value="([^"]+)"', page)
    assert began
    sent = FORM | {"version": "1", "began": began[1], "when": "every_s", "every": "3", "unit": "60"}
    assert client.post(f"/schedules/{row.pk}/edit", sent).status_code == 302
    assert Schedule.objects.get().every_s == 180


def test_two_edits_that_met_are_shown_beside_each_other(client: Client, acme: Actor) -> None:
    row = make(acme, zone="UTC")
    page = text_of(client, f"/schedules/{row.pk}/edit")
    began = re.search(r'name="began" value="([^"]+)"', page)
    assert began
    save_object(actor=acme, kind="Schedule", name=row.name, spec=describe(row) | {"timeout_s": 60})
    answer = client.post(f"/schedules/{row.pk}/edit", FORM | {"version": "1", "began": began[1], "cron": "45 3 * * *"})
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "Someone saved this schedule while you were editing it" in page
    assert 'value="45 3 * * *"' in page
    assert re.search(r'name="timeout_s" value="60"', page)

"""Schedules on pages: listed in words, run, paused, retried, called, deleted."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from apps.accounts.actors import Actor
from apps.accounts.models import Membership
from apps.core.clock import now
from apps.definitions.models import Schedule
from apps.definitions.services import save_object
from apps.schedules.models import ScheduleRun, SigningSecret, Trigger
from tests.interfaces.people import client_of

HOOK = {"webhook": {"url": "https://hooks.example.com/x", "body": "{}"}}
# What a browser sends of the form as it is opened.
FORM = {
    "name": "nightly", "when": "cron", "cron": "30 2 * * *", "every": "15", "unit": "60", "at": "", "zone": "UTC",
    "target": "webhook", "url": "https://hooks.example.com/x", "body": "{}", "overlap": "skip", "catch_up": "once",
    "catch_up_window_s": "300", "attempts": "3", "backoff_s": "5", "timeout_s": "30", "window_s": "0", "jitter_s": "0",
}  # fmt: skip


@pytest.fixture
def client(acme: Actor) -> Client:
    """The browser of an owner of acme."""
    return client_of(acme)


def make(actor: Actor, name: str = "nightly", **spec: Any) -> Schedule:
    """A stored schedule, every night at 02:30."""
    when: dict[str, Any] = {"when": {"cron": "30 2 * * *"}, "zone": "Europe/Berlin", "target": HOOK}
    row: Schedule = save_object(actor=actor, kind="Schedule", name=name, spec=when | spec)
    return row


def run(row: Schedule, at: datetime, state: str = "done", **columns: Any) -> ScheduleRun:
    """An occurrence that came to its end."""
    return ScheduleRun.objects.create(
        schedule=row, account=row.account, scheduled_at=at, due_at=at, next_try_at=at, state=state, **columns
    )


def text_of(client: Client, url: str, status: int = 200) -> str:
    """The page as text."""
    answer = client.get(url)
    assert answer.status_code == status, answer.content
    return answer.content.decode()


def test_an_account_without_schedules_is_told_what_to_do(client: Client) -> None:
    page = text_of(client, "/schedules")
    assert "No schedules yet" in page
    assert "/api/v1/apply" in page


def test_the_list_says_when_what_and_how_it_went(client: Client, acme: Actor) -> None:
    row = make(acme)
    run(row, now() - timedelta(hours=1), "dead")
    Schedule.objects.filter(pk=row.pk).update(missed=3)
    page = text_of(client, "/schedules")
    for words in ("At 02:30 every day, Europe/Berlin", "POST to https://hooks.example.com/x", "Failed", "1 of 1"):
        assert words in page
    assert '<span class="badge warn">3</span>' in page


NARROWED = {
    "q=night": {"nightly"},
    "q=hooks.example": {"nightly", "asleep"},
    "state=paused": {"asleep"},
    "state=on": {"nightly", "called", "beat"},
    "state=ended": {"past"},
    "state=gave-up": {"nightly"},
    "state=missed": {"beat"},
    "target=topic": {"called", "beat", "past"},
    "q=nothing-like-it": set(),
}


@pytest.mark.both_engines  # the target is JSON
def test_the_list_is_narrowed_by_the_query(client: Client, acme: Actor) -> None:
    topic = {"target": {"topic": {"topic": "beats"}}}
    run(make(acme), now() - timedelta(hours=1), "dead")
    make(acme, "asleep", paused=True)
    make(acme, "called", when={"trigger": True}, **topic)
    make(acme, "beat", when={"every_s": 10}, **topic)
    Schedule.objects.filter(name="beat").update(missed=1)
    make(acme, "past", when={"at": "2999-01-01T00:00:00"}, **topic)
    Schedule.objects.filter(name="past").update(next_at=None)
    for query, names in NARROWED.items():
        page = text_of(client, f"/schedules?{query}")
        assert set(re.findall(r'row-link" href="/schedules/\d+">([a-z-]+)<', page)) == names, query
        assert names or "No matching schedules" in page


@pytest.mark.both_engines  # NUL, which PostgreSQL takes in no text
def test_a_filter_that_cannot_be_used_says_so(client: Client) -> None:
    for query in ("state=odd", "target=odd", "after=x", "q=" + "x" * 300, "q=%00"):
        assert "This filter is not valid." in text_of(client, f"/schedules?{query}", 422), query


def test_the_pages_of_a_long_list_hold_every_schedule_once(client: Client, acme: Actor, globex: Actor) -> None:
    make(globex, "theirs")
    Schedule.objects.bulk_create(
        Schedule(account=acme.account, name=f"s{number:03}", every_s=60, target_kind="topic", target={"topic": "t"})
        for number in range(120)
    )
    seen, url = [], "/schedules"
    while url:
        page = text_of(client, url)
        seen += re.findall(r'row-link" href="/schedules/\d+">(s\d+)<', page)
        following = re.search(r'rel="next" href="([^"]+)"', page)
        url = f"/schedules{following[1]}" if following else ""
    assert seen == [f"s{number:03}" for number in range(120)]


def test_others_see_nothing_of_a_schedule(acme: Actor, globex: Actor) -> None:
    row = make(acme, "not-theirs")
    dead = run(row, now(), "dead")
    client = client_of(globex)
    assert row.name not in text_of(client, "/schedules") + text_of(client, "/schedules/calendar")
    missing = client.get("/schedules/999999")
    for path in ("", "/edit"):
        found = client.get(f"/schedules/{row.pk}{path}")
        assert found.status_code == missing.status_code == 404
    for path in ("run", "pause", "resume", "delete", "triggers", "signing-secret"):
        assert client.post(f"/schedules/{row.pk}/{path}", {"confirm": row.name}).status_code == 404
    assert client.post(f"/schedule-runs/{dead.pk}/retry").status_code == 404


def test_a_viewer_reads_and_cannot_act(acme: Actor) -> None:
    row = make(acme)
    dead = run(row, now(), "dead")
    client = client_of(acme, Membership.Role.VIEWER)
    page = text_of(client, f"/schedules/{row.pk}")
    assert "Run now" not in page
    assert "Retry" not in page
    assert "New schedule" not in text_of(client, "/schedules")
    for path in ("run", "pause", "resume", "delete", "triggers", "signing-secret"):
        assert client.post(f"/schedules/{row.pk}/{path}", {"name": "ci", "sender": "secret"}).status_code == 403
    assert client.post(f"/schedule-runs/{dead.pk}/retry").status_code == 403
    assert client.get("/schedules/new").status_code == 403


def test_one_page_tells_the_next_ten_and_the_history(client: Client, acme: Actor) -> None:
    row = make(acme)
    began = now() - timedelta(days=1)
    run(row, began, "done", attempt=2, message="The receiver took it.", started_at=began + timedelta(seconds=1.25),
         finished_at=began + timedelta(seconds=1.5), result={"run": 7})  # fmt: skip
    run(row, began - timedelta(days=1), "missed")
    page = text_of(client, f"/schedules/{row.pk}")
    assert len(re.findall(r"02:30:00 CES?T<", page)) == 10
    for words in ("The receiver took it.", "1.25 s", "0.25 s", 'href="/capacity-runs/7"', "Missed"):
        assert words in page
    assert "The receiver took it." not in text_of(client, f"/schedules/{row.pk}?state=missed")
    assert "No matching runs" in text_of(client, f"/schedules/{row.pk}?state=dead")


def test_the_pages_of_a_long_history_hold_every_run_once(client: Client, acme: Actor) -> None:
    row = make(acme)
    rows = [run(row, now() - timedelta(seconds=number)) for number in range(60)]
    seen, url = [], f"/schedules/{row.pk}"
    while url:
        page = text_of(client, url)
        seen += re.findall(r'<tr id="run-(\d+)"', page)
        following = re.search(r'rel="next" href="([^"]+)"', page)
        url = f"/schedules/{row.pk}{following[1]}" if following else ""
    assert seen == [str(each.pk) for each in rows]


def test_a_person_runs_pauses_and_resumes(client: Client, acme: Actor) -> None:
    row = make(acme)
    assert "The run starts now" in client.post(f"/schedules/{row.pk}/run", follow=True).content.decode()
    assert ScheduleRun.objects.get().cause == ScheduleRun.Cause.BY_HAND
    assert "still active" in client.post(f"/schedules/{row.pk}/run", follow=True).content.decode()
    assert "Paused." in client.post(f"/schedules/{row.pk}/pause", follow=True).content.decode()
    assert Schedule.objects.get().paused
    client.post(f"/schedules/{row.pk}/resume")
    assert not Schedule.objects.get().paused


def test_several_schedules_are_paused_at_once_and_foreign_ones_are_not(
    client: Client, acme: Actor, globex: Actor
) -> None:
    rows = [make(acme, "one"), make(acme, "two"), make(globex, "theirs")]
    chosen = {"schedule": [str(row.pk) for row in rows], "do": "pause", "reason": "The receiver is away"}
    page = client.post("/schedules/bulk", chosen, follow=True).content.decode()
    assert "2 schedules paused." in page
    assert set(Schedule.objects.filter(paused=True).values_list("name", flat=True)) == {"one", "two"}
    none = client.post("/schedules/bulk", {"do": "pause"}, follow=True)
    assert "Select at least one schedule" in none.content.decode()


def test_what_gave_up_is_tried_again_by_hand(client: Client, acme: Actor) -> None:
    row = make(acme)
    dead, done = run(row, now() - timedelta(hours=1), "dead"), run(row, now(), "done")
    assert "The run is retried." in client.post(f"/schedule-runs/{dead.pk}/retry", follow=True).content.decode()
    assert ScheduleRun.objects.get(pk=dead.pk).state == ScheduleRun.State.WAITING
    assert "Only a dead run" in client.post(f"/schedule-runs/{done.pk}/retry", follow=True).content.decode()


def test_a_schedule_is_deleted_once_its_name_is_typed(client: Client, acme: Actor) -> None:
    row = make(acme)
    client.post(f"/schedules/{row.pk}/delete", {"confirm": "other"})
    assert Schedule.objects.exists()
    client.post(f"/schedules/{row.pk}/delete", {"confirm": row.name})
    assert not Schedule.objects.exists()


def test_a_trigger_is_made_rotated_and_deleted_and_its_secret_shown_once(client: Client, acme: Actor) -> None:
    row = make(acme)
    answer = client.post(f"/schedules/{row.pk}/triggers", {"name": "ci", "sender": "secret", "per_minute": "6"})
    trigger, page = Trigger.objects.get(), answer.content.decode()
    assert f"/hooks/{trigger.key_id}" in page
    assert "no-store" in answer["Cache-Control"]
    (secret,) = re.findall(r"Authorization: Bearer ([^&\"' ]+)", page)
    rotated = client.post(f"/schedules/{row.pk}/triggers/{trigger.pk}/rotate").content.decode()
    assert secret not in rotated
    assert "The previous secret also works until" in rotated
    assert "old secret works until" in text_of(client, f"/schedules/{row.pk}")
    ended = client.post(f"/schedules/{row.pk}/triggers/{trigger.pk}/rotate", {"grace_s": "0"}).content.decode()
    assert "The previous secret also works until" not in ended
    assert "old secret works until" not in text_of(client, f"/schedules/{row.pk}")
    wrong = client.post(f"/schedules/{row.pk}/triggers/{trigger.pk}/rotate", {"grace_s": "forever"}, follow=True)
    assert 'toast bad"' in wrong.content.decode()
    for url in (f"/schedules/{row.pk}", "/audit", "/schedules"):
        assert secret not in text_of(client, url)
    assert trigger.key_id in text_of(client, f"/schedules/{row.pk}")
    client.post(f"/schedules/{row.pk}/triggers/{trigger.pk}/delete")
    assert not Trigger.objects.exists()


def test_a_trigger_with_an_error_is_refused_in_a_sentence(client: Client, acme: Actor) -> None:
    row = make(acme)
    bad = {"name": "Not A Name", "sender": "odd", "per_minute": "x"}
    assert 'toast bad"' in client.post(f"/schedules/{row.pk}/triggers", bad, follow=True).content.decode()
    assert not Trigger.objects.exists()


def test_a_trigger_of_another_schedule_is_not_found_below_this_one(client: Client, acme: Actor) -> None:
    row, other = make(acme), make(acme, "other")
    client.post(f"/schedules/{other.pk}/triggers", {"name": "ci", "sender": "secret", "per_minute": "6"})
    for path in ("rotate", "delete"):
        url = f"/schedules/{row.pk}/triggers/{Trigger.objects.get().pk}/{path}"
        assert client.post(url).status_code == 404


def test_the_signing_secret_is_shown_once(client: Client, acme: Actor) -> None:
    row = make(acme)
    answer = client.post(f"/schedules/{row.pk}/signing-secret")
    assert "whsec_" in answer.content.decode()
    assert "no-store" in answer["Cache-Control"]
    assert SigningSecret.objects.count() == 1
    topic = make(acme, "topic", target={"topic": {"topic": "t"}})
    page = client.post(f"/schedules/{topic.pk}/signing-secret", follow=True).content.decode()
    assert "whsec_" not in page


def test_the_first_page_names_schedules_with_which_something_went_wrong(client: Client, acme: Actor) -> None:
    row = make(acme)
    assert "Schedules that need attention" not in text_of(client, "/")
    run(row, now() - timedelta(hours=2), "missed")
    assert "Schedules that need attention" in text_of(client, "/")


def test_the_palette_finds_schedules(client: Client, acme: Actor) -> None:
    row = make(acme)
    assert f'href="/schedules/{row.pk}"' in text_of(client, "/search?q=night")

"""Schedules are looked at before they are stored, run, paused, asked for their runs; topics."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.definitions.models import Schedule
from apps.schedules.models import ScheduleRun
from apps.schedules.run.working import work_off
from apps.schedules.triggers import topics
from tests.interfaces.api.test_api_objects import Api, assert_problem

TOPIC = {"topic": {"topic": "nightly", "message": "go"}}
SPEC: dict[str, Any] = {"when": {"cron": "30 2 * * *"}, "zone": "Europe/Berlin", "target": TOPIC}


@pytest.fixture
def api(db: None, acme: Actor) -> Api:
    """Acme's program."""
    return Api(acme)


@pytest.fixture
def redis_topics(live_redis: str) -> Iterator[None]:
    """Topics in a Redis of this test's own."""
    topics.client.cache_clear()
    yield
    topics.client.cache_clear()


def booked(api: Api, name: str = "nightly", **spec: Any) -> dict[str, Any]:
    """A schedule as the API shows it."""
    answer = api("POST", "schedules", {"name": name, "spec": SPEC | spec})
    assert answer.status_code == 201, answer.content
    found: dict[str, Any] = answer.json()
    return found


def test_a_timing_shows_its_next_ten_instants_before_it_is_stored(api: Api) -> None:
    answer = api("POST", "schedules/preview", {"when": {"cron": "30 2 * * *"}, "zone": "Europe/Berlin"}).json()
    assert answer["sentence"] == "At 02:30 every day, Europe/Berlin"
    assert len(answer["instants"]) == 10
    assert answer["instants"] == sorted(answer["instants"])
    assert datetime.fromisoformat(answer["instants"][0]).utcoffset() is not None
    once = api("POST", "schedules/preview", {"when": {"at": "2199-01-01T00:00:00"}}).json()
    assert (len(once["instants"]), once["ends"]) == (1, True)
    body = assert_problem(api("POST", "schedules/preview", {"when": {"cron": "99 * * * *"}, "zoon": "UTC"}), 422)
    assert {error["pointer"] for error in body["errors"]} == {"/zoon"}
    body = assert_problem(api("POST", "schedules/preview", {"when": {"cron": "99 * * * *"}}), 422)
    assert body["errors"][0]["pointer"] == "/when/cron"


def test_a_schedule_is_made_changed_and_deleted_like_every_object(api: Api) -> None:
    made = booked(api)
    assert made["sentence"] == "At 02:30 every day, Europe/Berlin"
    assert made["next_at"]
    url = f"schedules/{made['id']}"
    assert api("GET", "schedules/acme/nightly").json() == made
    assert_problem(api("PATCH", url, {"spec": {"timeout_s": 9}}), 428)
    changed = api("PATCH", url, {"spec": {"timeout_s": 9}}, If_Match='"rev-1"').json()
    assert (changed["version"], changed["spec"]["timeout_s"]) == (2, 9)
    assert_problem(api("PATCH", url, {"spec": {"timeout_s": 8}}, If_Match='"rev-1"'), 412)
    plan = api("PATCH", f"{url}?dry_run=plan", {"spec": {"paused": True}}, If_Match="*").json()
    assert plan["changes"][0]["fields"] == [{"path": "/paused", "before": False, "after": True}]
    assert api("DELETE", url, If_Match="*").status_code == 204
    assert not Schedule.objects.exists()


def test_what_runs_now_is_followed_to_its_end(api: Api, redis_topics: object) -> None:
    made = booked(api)
    answer = api("POST", f"schedules/{made['id']}/run")
    assert answer.status_code == 202
    run = answer.json()
    assert (run["cause"], run["state"], run["key"]) == ("by_hand", "waiting", f"schedule-run-{run['id']}")
    work_off(seconds=5)
    done = api("GET", f"schedule-runs/{run['id']}").json()
    assert (done["state"], done["message"]) == ("done", "Sent to topic nightly.")
    for url in (
        "schedule-runs",
        f"schedules/{made['id']}/runs",
        "schedule-runs?state=done",
        "schedule-runs?schedule=nightly",
    ):
        assert api("GET", url).json()["items"] == [done]
    assert api("GET", "schedule-runs?state=dead").json()["items"] == []
    assert_problem(api("GET", "schedule-runs?state=odd"), 422)
    assert_problem(api("POST", f"schedule-runs/{run['id']}/retry"), 409)


def test_a_dead_run_is_tried_again_under_its_key(api: Api, redis_topics: object) -> None:
    made = booked(api)
    run = api("POST", f"schedules/{made['id']}/run").json()
    ScheduleRun.objects.update(state="dead", attempt=3, message="Redis was away.")
    again = api("POST", f"schedule-runs/{run['id']}/retry")
    assert (again.status_code, again.json()["state"], again.json()["key"]) == (202, "waiting", run["key"])
    work_off(seconds=5)
    assert api("GET", f"schedule-runs/{run['id']}").json()["state"] == "done"


def test_pause_and_resume_say_how_the_schedule_is_then(api: Api) -> None:
    made = booked(api)
    paused = api("POST", f"schedules/{made['id']}/pause").json()
    assert paused["spec"]["paused"] is True
    assert api("POST", f"schedules/{made['id']}/pause").json()["version"] == paused["version"]
    assert api("POST", f"schedules/{made['id']}/resume").json()["spec"]["paused"] is False


@pytest.mark.slow(reason="It waits a second for a message that does not come.")
def test_messages_of_a_topic_are_read_from_an_id_on(api: Api, redis_topics: object, globex: Actor) -> None:
    made = booked(api, overlap="allow")
    runs = [api("POST", f"schedules/{made['id']}/run").json() for _ in range(3)]
    work_off(seconds=5)
    items = api("GET", "topics/nightly/messages").json()["items"]
    assert [item["key"] for item in items] == [run["key"] for run in runs]
    assert items[0]["message"] == "go"
    rest = api("GET", f"topics/nightly/messages?after={items[1]['id']}&limit=5").json()["items"]
    assert rest == items[2:]
    assert api("GET", f"topics/nightly/messages?after={items[2]['id']}&wait=1").json()["items"] == []
    assert Api(globex)("GET", "topics/nightly/messages").json()["items"] == []  # a topic is its account's
    assert_problem(api("GET", "topics/nightly/messages?after=yesterday"), 422)


def test_signing_secrets_are_for_schedules_that_sign(api: Api) -> None:
    made = booked(api)
    assert_problem(api("POST", f"schedules/{made['id']}/signing-secret"), 409)
    signing = booked(api, "signing", target={"webhook": {"url": "https://hooks.example/x"}})
    first = api("POST", f"schedules/{signing['id']}/signing-secret").json()["secret"]
    second = api("POST", f"schedules/{signing['id']}/signing-secret").json()["secret"]
    assert first.startswith("whsec_")
    assert first != second


def test_triggers_are_made_changed_given_a_new_secret_and_closed(api: Api) -> None:
    made = booked(api)
    order = {"schedule_id": made["id"], "name": "push", "sender": "github", "per_minute": 5}
    answer = api("POST", "triggers", order)
    assert answer.status_code == 201, answer.content
    trigger = answer.json()
    secret = trigger.pop("secret")
    assert trigger["hook"].startswith("/hooks/")
    assert api("GET", f"triggers/{trigger['id']}").json() == trigger
    assert api("GET", "triggers?schedule=nightly").json()["items"] == [trigger]
    assert_problem(api("POST", "triggers", order), 409)
    assert_problem(api("PATCH", f"triggers/{trigger['id']}", {"per_minute": 6}), 428)
    changed = api("PATCH", f"triggers/{trigger['id']}", {"per_minute": 6}, If_Match="*").json()
    assert (changed["per_minute"], changed["version"]) == (6, 2)
    rotated = api("POST", f"triggers/{trigger['id']}/rotate", If_Match="*").json()
    assert rotated["secret"] != secret
    assert rotated["old_secret_until"] is not None
    ended = api("POST", f"triggers/{trigger['id']}/rotate", {"grace_s": 0}, If_Match="*").json()
    assert ended["old_secret_until"] is None
    for wrong in (-1, 7 * 86_400 + 1, True, "60"):
        answer = api("POST", f"triggers/{trigger['id']}/rotate", {"grace_s": wrong}, If_Match="*")
        assert [error["pointer"] for error in assert_problem(answer, 422)["errors"]] == ["/grace_s"]
    assert api("DELETE", f"triggers/{trigger['id']}", If_Match="*").status_code == 204
    assert api("GET", "triggers").json()["items"] == []


@pytest.mark.parametrize(
    ("field", "value"),
    [("name", "A b"), ("sender", "fax"), ("per_minute", 0), ("per_minute", True), ("schedule_id", "1"), ("more", 1)],
)
def test_every_wrong_field_of_a_trigger_is_named(api: Api, field: str, value: Any) -> None:
    made = booked(api)
    body = assert_problem(api("POST", "triggers", {"schedule_id": made["id"], "name": "push"} | {field: value}), 422)
    assert [error["pointer"] for error in body["errors"]] == [f"/{field}"]

"""Sessions: the list, ending them, how long they live, and that a new password ends the others."""

from __future__ import annotations

import json

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from apps.accounts.bootstrap import found_operator
from apps.accounts.models import User
from apps.audit.models import Entry
from apps.core.clock import now
from apps.web.sign_in import session_age
from apps.web.sign_in.your_sessions import device_of
from tests.interfaces.signing_in import PASSWORD, person, signed_in

pytestmark = pytest.mark.django_db
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
SAFARI = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5) AppleWebKit/605.1 (KHTML, like Gecko) Version/18.5 Safari/604.1"
NEW = "another horse battery"


@pytest.fixture
def ada(db: None) -> User:
    return person()


def browser(agent: str = FIREFOX, name: str = "ada") -> Client:
    return signed_in(name, headers={"user-agent": agent})


def alive(client: Client) -> bool:
    return client.get("/pools").status_code == 200


def test_the_list_names_browser_and_address_and_says_which_is_this(ada: User) -> None:
    here, there = browser(), browser(SAFARI)
    page = here.get("/account/sessions").content.decode()
    assert page.index("Firefox 140 on Linux") < page.index(">this browser<") < page.index("Safari 18 on iPhone")
    assert page.count("127.0.0.1") == 2
    assert alive(there)


def test_one_session_is_ended_from_another(ada: User) -> None:
    here, lost = browser(), browser(SAFARI)
    row = UserSession.objects.get(user_agent=SAFARI)
    assert here.post("/account/sessions/end", {"session": row.pk}).status_code == 302
    assert not alive(lost)
    assert alive(here)
    entry = Entry.objects.filter(action="end_sessions").get()
    assert entry.after == {"sessions": ["Safari 18 on iPhone"]}


def test_all_others_are_ended_at_once(ada: User) -> None:
    here, *others = (browser() for _ in range(4))
    here.post("/account/sessions/end")
    assert alive(here)
    assert not any(alive(other) for other in others)


def test_nobody_ends_sessions_of_others(ada: User) -> None:
    person("bob", "acme", "customer")
    here, foreign = browser(), browser(name="bob")
    row = UserSession.objects.get(user__username="bob")
    missing = here.post("/account/sessions/end", {"session": 99_999_999})
    refused = here.post("/account/sessions/end", {"session": row.pk})
    assert (refused.status_code, missing.status_code) == (404, 404)
    here.post("/account/sessions/end")
    assert alive(foreign)
    assert "Safari" not in here.get("/account/sessions").content.decode()


@pytest.mark.parametrize("number", ["", "x", "-1", "٣", "9" * 40, "1e3"])
def test_a_session_that_is_no_number_does_not_exist(ada: User, number: str) -> None:
    assert browser().post("/account/sessions/end", {"session": number}).status_code == 404


def test_the_list_asks_as_few_questions_for_many_sessions_as_for_one(ada: User) -> None:
    here = browser()

    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            here.get("/account/sessions")
        return len(queries)

    asked()
    few = asked()
    for _ in range(5):
        browser(SAFARI)
    assert asked() == few


def test_a_session_ends_twelve_hours_after_signing_in_however_busy(ada: User, settings: Settings) -> None:
    here = browser()
    session = here.session
    assert alive(here)
    session = here.session
    session[session_age.SIGNED_IN_AT] -= settings.SESSION_GREATEST_AGE + 1
    session.save()
    assert here.get("/pools").headers["Location"].startswith("/sign-in")


def test_a_session_that_is_not_used_lives_two_hours(ada: User, settings: Settings) -> None:
    here = browser()
    here.get("/pools")
    row = Session.objects.get(session_key=here.session.session_key)
    left = (row.expire_date - now()).total_seconds()
    assert settings.SESSION_COOKIE_AGE - 60 < left <= settings.SESSION_COOKIE_AGE


def test_using_a_session_keeps_it_but_writes_at_most_every_five_minutes(ada: User) -> None:
    here = browser()
    here.get("/pools")
    with CaptureQueriesContext(connection) as queries:
        here.get("/pools")
    assert [query["sql"] for query in queries if query["sql"].startswith(("UPDATE", "INSERT"))] == []
    session = here.session
    session[session_age.SEEN_AT] -= session_age.SEEN_EVERY
    session.save()
    before = Session.objects.get(session_key=session.session_key).expire_date
    seen = UserSession.objects.get().last_seen_at
    here.get("/pools")
    assert Session.objects.get(session_key=session.session_key).expire_date > before
    assert UserSession.objects.get().last_seen_at > seen


def test_signing_in_gives_the_session_a_new_key(ada: User) -> None:
    client = Client()
    session = client.session
    session["basket"] = 1
    session.save()
    client.cookies["sessionid"] = str(session.session_key)
    client.post("/sign-in", {"username": "ada", "password": PASSWORD})
    assert client.cookies["sessionid"].value != session.session_key
    assert client.cookies["sessionid"]["httponly"]


def test_a_new_password_needs_the_old_one_and_ends_other_sessions(ada: User) -> None:
    here, there = browser(), browser(SAFARI)
    wrong = {"oldpassword": "wrong", "password1": NEW, "password2": NEW}
    assert "not your current password" in here.post("/account/security/password", wrong).content.decode()
    right = wrong | {"oldpassword": PASSWORD}
    assert here.post("/account/security/password", right).headers["Location"] == "/account/security"
    assert alive(here)
    assert "Safari" not in here.get("/account/sessions").content.decode()
    assert not alive(there)
    assert Client().post("/sign-in", {"username": "ada", "password": NEW}).status_code == 302
    assert Entry.objects.filter(action="change_password").count() == 1
    assert NEW not in json.dumps(list(Entry.objects.values_list("after", flat=True)))


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (FIREFOX, "Firefox 140 on Linux"),
        (SAFARI, "Safari 18 on iPhone"),
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537 Chrome/138.0 Safari/537 Edg/138.0", "Edge 138 on Windows"),
        ("Mozilla/5.0 (Macintosh; Intel) AppleWebKit/537 Chrome/138.0 Safari/537", "Chrome 138 on macOS"),
        ("curl/8.1", "curl/8.1"),
        ("", "Unknown application"),
    ],
)
def test_a_browser_is_named_in_words(agent: str, words: str) -> None:
    assert device_of(agent) == words


def test_the_first_person_whose_name_is_written_in_another_case_is_no_second_one(ada: User) -> None:
    found_operator(username="Ada", password=NEW)
    assert User.objects.get() == ada
    assert Client().post("/sign-in", {"username": "ada", "password": NEW}).status_code == 302

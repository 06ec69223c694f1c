"""Second factors: codes that work once, recovery codes, few tries, who must have one, and what is written down."""

from __future__ import annotations

import io
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import DjangoCaptureOnCommitCallbacks
from pytest_django.fixtures import Settings

from apps.accounts.models import FailedSignIn, User
from apps.accounts.sign_in import limits, second_factor
from apps.audit.models import Entry
from tests.fixture_cache import CachedFixture
from tests.interfaces.signing_in import PASSWORD, code, person, prove_again, signed_in, with_app
from tests.ports import spare_port

NO_SIGNATURE = json.dumps(
    {
        "id": "AA",
        "rawId": "AA",
        "type": "public-key",
        "response": {"userHandle": "////", "clientDataJSON": "e30", "authenticatorData": "AA", "signature": "AA"},
    }
)
pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(db: None) -> User:
    return person()


App = tuple[Client, str, list[str]]
KEPT: dict[str, Any] = {}


def _build() -> None:
    person()
    browser, KEPT["secret"], KEPT["codes"] = with_app()
    KEPT["session"] = browser.cookies[settings.SESSION_COOKIE_NAME].value


_WITH_APP = CachedFixture(_build)


@pytest.fixture
def app(db: None) -> App:
    """A browser of ada, who has set up an app; its secret and the recovery codes."""
    _WITH_APP.put()
    browser = Client()
    browser.cookies[settings.SESSION_COOKIE_NAME] = KEPT["session"]
    return browser, KEPT["secret"], KEPT["codes"]


def second_step(given: str, browser: Client | None = None) -> tuple[int, str]:
    """Status and URL after the right password and this code."""
    browser = browser or Client()
    first = browser.post("/sign-in", {"username": "ada", "password": PASSWORD})
    assert first.headers["Location"] == "/sign-in/code"
    answer = browser.post("/sign-in/code", {"code": given})
    return answer.status_code, answer.headers.get("Location", "")


def test_refused_second_factors_stand_in_the_log_without_what_was_typed(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    _, secret, codes = app
    given = code(secret)
    answers = [second_step(each)[0] for each in ("no-code", given, given, codes[0], codes[0])]
    Client().post("/sign-in/passkey", {"credential": NO_SIGNATURE})
    said = [each.getMessage() for each in caplog.records if each.name == "apps.accounts.sign_in.limits"]
    assert answers == [200, 302, 200, 302, 200]
    assert said == [
        *["sign-in refused: wrong code for 'ada' from '127.0.0.1'"] * 3,
        "sign-in refused: wrong passkey for an unknown person from '127.0.0.1'",
    ]


def test_the_password_alone_shows_nothing_once_an_app_is_set_up(ada: User) -> None:
    with_app()
    browser = Client()
    assert browser.post("/sign-in", {"username": "ada", "password": PASSWORD}).headers["Location"] == "/sign-in/code"
    assert browser.get("/pools").headers["Location"].startswith("/sign-in")
    assert "Second step" in browser.get("/sign-in/code").content.decode()


def test_the_code_of_the_app_is_the_second_step(app: App) -> None:
    _, secret, _ = app
    browser = Client()
    assert second_step(code(secret), browser) == (302, "/")
    assert browser.get("/pools").status_code == 200


def test_a_code_works_once_even_when_the_cache_forgets(app: App) -> None:
    from django.core.cache import cache

    _, secret, _ = app
    given = code(secret)
    assert second_step(given)[0] == 302
    cache.clear()
    assert second_step(given)[0] == 200


def test_signing_in_goes_on_without_redis_and_a_code_still_works_once(app: App, settings: Settings) -> None:
    _, secret, _ = app
    away = {"BACKEND": "apps.core.caching.ForgivingRedisCache", "LOCATION": f"redis://127.0.0.1:{spare_port()}/0"}
    settings.CACHES = {"default": away}
    given = code(secret)
    assert second_step(given)[0] == 302
    assert second_step(given)[0] == 200


def test_without_the_remembered_step_the_code_would_work_twice(app: App) -> None:
    from django.core.cache import cache

    _, secret, _ = app
    given = code(secret)
    assert second_step(given)[0] == 302
    cache.clear()
    row = Authenticator.objects.get(type="totp")
    del row.data[second_factor.STEP]
    row.save()
    assert second_step(given)[0] == 302


def test_codes_of_a_minute_ago_and_of_tomorrow_are_refused(app: App) -> None:
    _, secret, _ = app
    assert second_step(code(secret, -3))[0] == 200
    assert second_step(code(secret, 3))[0] == 200
    assert second_step("٠١٢٣٤٥")[0] == 200


def test_a_recovery_code_works_once(app: App) -> None:
    _, _, codes = app
    assert second_step(codes[3]) == (302, "/")
    assert second_step(codes[3])[0] == 200
    assert second_step(codes[4])[0] == 302


def test_recovery_codes_are_shown_once(ada: User) -> None:
    browser, _, codes = with_app()
    again = browser.get("/account/security/recovery-codes").content.decode()
    assert codes[0] not in again
    assert "cannot be shown again" in again


def test_after_five_wrong_codes_even_the_right_one_waits(app: App) -> None:
    _, secret, codes = app
    for _ in range(limits.ALLOWED[FailedSignIn.Kind.CODE].name_and_address):
        assert second_step("000000")[0] == 200
    assert second_step(code(secret))[0] == 429
    assert second_step(codes[0])[0] == 429
    FailedSignIn.objects.update(at=FailedSignIn.objects.latest("id").at - limits.WINDOW - timedelta(seconds=1))
    assert second_step(code(secret))[0] == 302


def test_secrets_rest_sealed(app: App) -> None:
    _, secret, codes = app
    stored = json.dumps(list(Authenticator.objects.values_list("data", flat=True)))
    assert secret not in stored
    assert all(each not in stored for each in codes)


@pytest.mark.parametrize(
    "path",
    [
        "/account/security/app",
        "/account/security/passkeys/new",
    ],
)
def test_a_change_of_second_factors_asks_again_who_it_is(ada: User, path: str) -> None:
    browser = signed_in()
    assert browser.get(path).headers["Location"] == f"/sign-in/again?next={path.replace('/', '%2F')}"
    prove_again(browser)
    assert browser.get(path).status_code == 200


def test_an_app_is_not_removed_without_asking_again(app: App) -> None:
    _, secret, _ = app
    browser = Client()
    second_step(code(secret), browser)
    assert browser.post("/account/security/app/remove").headers["Location"].startswith("/sign-in/again")
    assert Authenticator.objects.filter(type="totp").exists()
    prove_again(browser)
    assert browser.post("/account/security/app/remove").headers["Location"] == "/account/security"
    assert not Authenticator.objects.exists()  # recovery codes go with the last factor


def test_guessing_the_password_when_asked_again_is_slowed(ada: User) -> None:
    browser = signed_in()
    for _ in range(limits.PER_NAME_AND_ADDRESS):
        assert browser.post("/sign-in/again", {"password": "wrong"}).status_code == 200
    assert "Too many failed attempts" in browser.post("/sign-in/again", {"password": PASSWORD}).content.decode()


@pytest.mark.parametrize(("asked", "led"), [("", False), ("operators", True), ("everyone", True)])
def test_the_settings_lead_an_operator_without_a_factor_to_get_one(
    ada: User, settings: Settings, asked: str, led: bool
) -> None:
    settings.REQUIRE_SECOND_FACTOR = asked
    answer = signed_in().get("/pools")
    assert (answer.status_code, answer.headers.get("Location")) == ((302, "/account/security") if led else (200, None))


def test_the_page_to_which_people_are_led_asks_by_itself_for_nothing_that_leads_away(
    ada: User, settings: Settings
) -> None:
    settings.REQUIRE_SECOND_FACTOR = "operators"
    browser = signed_in()
    page = browser.get("/account/security").content.decode()
    by_itself = re.findall(r'hx-get="([^"]+)"[^>]*hx-trigger="(?:load|every|spillway)', page)
    assert "/badges" in by_itself
    assert {part: browser.get(part).status_code for part in by_itself} == dict.fromkeys(by_itself, 204)
    assert "first: an authenticator app" not in browser.get("/account/security").content.decode()


def test_customers_are_led_only_when_everyone_is(db: None, settings: Settings) -> None:
    person("bob", "acme", "customer")
    settings.REQUIRE_SECOND_FACTOR = "operators"
    assert signed_in("bob").get("/pools").status_code == 200
    settings.REQUIRE_SECOND_FACTOR = "everyone"
    assert signed_in("bob").get("/pools").status_code == 302


def test_who_has_a_factor_is_not_led_anywhere(app: App, settings: Settings) -> None:
    settings.REQUIRE_SECOND_FACTOR = "everyone"
    browser, _, _ = app
    assert browser.get("/pools").status_code == 200


NO_PASSKEYS = (
    "",
    "null",
    "[]",
    "{}",
    '"x"',
    "{",
    '{"response": {}}',
    '{"response": {"userHandle": 7}}',
    NO_SIGNATURE,
    '{"id": "\\u0000", "response": {}}',
    "[" * 10_000,
    '{"response": {"a": "' + "x" * 30_000 + '"}}',
)


@pytest.mark.both_engines  # NUL, which PostgreSQL takes in no text
def test_what_is_no_passkey_is_refused_in_words(ada: User) -> None:
    browser, _, _ = with_app()
    waiting = Client()
    waiting.post("/sign-in", {"username": "ada", "password": PASSWORD})
    for sent in NO_PASSKEYS:
        FailedSignIn.objects.all().delete()  # else the limit answers
        assert Client().post("/sign-in/passkey", {"credential": sent}).headers["Location"] == "/sign-in", sent
        answer = browser.post("/account/security/passkeys/new", {"credential": sent, "name": "key"})
        assert answer.status_code == 200, sent
        assert 'role="alert"' in answer.content.decode(), sent
        assert waiting.post("/sign-in/code", {"credential": sent}).status_code == 200, sent


def test_an_operator_takes_a_lost_factor_away_and_it_is_recorded(ada: User) -> None:
    with_app()
    call_command("reset_mfa", "ada", reason="called back at her desk", stdout=io.StringIO())
    signed_in()
    entry = Entry.objects.get(action="remove_second_factor")
    assert (entry.object_label, entry.reason) == ("ada", "called back at her desk")
    with pytest.raises(CommandError, match="There is no user"):
        call_command("reset_mfa", "eve")


def test_the_record_says_who_signed_in_and_what_changed(
    ada: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        _, secret, codes = with_app()
        second_step("000000")
        browser = Client()
        second_step(codes[0], browser)
        prove_again(browser)
    with django_capture_on_commit_callbacks(execute=True):
        browser.post("/account/security/app/remove")
    said = [(entry.action, (entry.after or {}).get("factor")) for entry in Entry.objects.order_by("id")]
    assert said[0] == ("sign_in", None)
    assert ("add_second_factor", "authenticator app") in said
    assert ("fail_second_factor", "authenticator app") in said
    assert ("remove_second_factor", "authenticator app") in said
    kept = json.dumps(list(Entry.objects.values_list("after", flat=True)))
    assert secret not in kept
    assert codes[0] not in kept

"""Signing in by hand in a real Chromium, with a virtual authenticator that makes and uses passkeys, and with an app."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.conf import settings as installed
from playwright.sync_api import Browser, Page, expect
from pytest_django.fixtures import Settings
from pytest_django.live_server_helper import LiveServer

from apps.accounts.models import User
from apps.audit.models import Entry
from apps.web.sign_in.urls import urlpatterns
from tests.browser import NARROW, WIDE, axe_errors, fits, listen, look, needs_browser, patient_context, wrong_in
from tests.interfaces.signing_in import PASSWORD, code, person

pytestmark = [
    pytest.mark.long,
    pytest.mark.e2e,
    pytest.mark.browser,
    pytest.mark.timeout(300),
    pytest.mark.django_db(transaction=True),
    needs_browser,
]
SHOTS = Path(installed.BASE_DIR) / "var" / "screenshots"
# Forms and cards of one sentence as another page has them: test_the_pages_are_clean_and_fit_in_every_look asks them.
ALIKE = {
    *("prove-again-code", "prove-again-passkey", "forgotten-sent", "forgotten-done", "inactive"),
    *("recovery-codes-new", "app-remove", "passkey-rename"),
}
LOOKS = {"light": ("light", WIDE), "dark": ("dark", WIDE), "narrow": ("light", NARROW)}


@pytest.fixture
def ada(live_server: LiveServer) -> User:
    return person()


@pytest.fixture
def page(chromium: Browser, live_server: LiveServer) -> Page:
    context = patient_context(chromium, base_url=live_server.url, viewport={"width": WIDE, "height": 900})
    # The event stream is another program; without it the pages would complain in the console.
    context.route("**/events", lambda route: route.fulfill(status=200, content_type="text/event-stream", body=":\n\n"))
    return context.new_page()


def virtual_key(page: Page, **options: Any) -> None:
    """Plug a key with resident credentials and a finger into the browser."""
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    kind = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    session.send("WebAuthn.addVirtualAuthenticator", {"options": kind | options})


def press(page: Page, button: str) -> None:
    """Send the form of this button and wait until the answer, which may have the same address, has loaded."""
    page.evaluate("document.documentElement.dataset.sent = ''")
    page.get_by_role("button", name=button, exact=True).click()
    page.locator("html:not([data-sent])").wait_for(state="attached")
    page.wait_for_load_state("load")


def sign_in(page: Page) -> None:
    page.goto("/sign-in")
    page.get_by_label("Username").fill("ada")
    page.get_by_label("Password").fill(PASSWORD)
    press(page, "Sign in")


def prove_again(page: Page) -> None:
    """Before what changes how one signs in."""
    page.get_by_label("Password").fill(PASSWORD)
    press(page, "Continue")


def add_passkey(page: Page, name: str) -> None:
    """From one's account, proving once more who it is."""
    page.goto("/account/security")
    page.get_by_role("link", name="Add passkey").click()
    prove_again(page)
    page.get_by_label("name", exact=False).first.fill(name)
    page.get_by_role("button", name="Add passkey").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Recovery codes")
    page.get_by_role("link", name="Done").click()


def sign_out(page: Page) -> None:
    page.get_by_role("button", name="Your account").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def test_a_passkey_signs_in_alone_and_after_the_password_until_it_is_removed(ada: User, page: Page) -> None:
    complaints = listen(page)
    virtual_key(page)
    sign_in(page)
    add_passkey(page, "laptop")
    expect(page.get_by_role("row", name=re.compile("laptop"))).to_be_visible()
    sign_out(page)
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("button", name="Your account")).to_be_visible()
    assert [entry.action for entry in Entry.objects.order_by("id")] == [
        "sign_in",
        "add_second_factor",
        "add_second_factor",
        "sign_out",
        "sign_in",
    ]
    sign_out(page)
    sign_in(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("Second step")
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("button", name="Your account")).to_be_visible()
    page.goto("/account/security")
    page.get_by_role("link", name="Rename laptop").click()
    prove_again(page)
    page.get_by_label("Name").fill("found")
    page.get_by_role("button", name="Rename").click()
    page.get_by_role("link", name="Remove found").click()
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("The passkey is removed")).to_be_visible()
    assert complaints == []
    sign_out(page)
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_text("This passkey does not belong to an account here")).to_be_visible()


def test_a_key_that_asks_for_no_finger_signs_nobody_in(ada: User, page: Page) -> None:
    virtual_key(page, hasUserVerification=False, isUserVerified=False)
    sign_in(page)
    page.goto("/account/security/passkeys/new")
    prove_again(page)
    page.get_by_role("button", name="Add passkey").click()
    expect(page.get_by_text("The browser returned no passkey")).to_be_visible()
    assert not Authenticator.objects.exists()


@pytest.mark.exhaustive  # the way is walked without a browser in tests/interfaces
def test_who_must_have_a_second_factor_is_led_through_it(ada: User, page: Page, settings: Settings) -> None:
    settings.REQUIRE_SECOND_FACTOR = "operators"
    sign_in(page)
    expect(page.get_by_text("Set up a second factor first.")).to_be_visible()
    page.get_by_role("link", name="Set up an authenticator app").click()
    prove_again(page)
    secret = page.get_by_role("region", name="Secret").inner_text().replace(" ", "").strip()
    page.get_by_label("Authenticator code").fill(code(secret))
    page.get_by_role("button", name="Turn on codes").click()
    page.get_by_role("link", name="Done").click()
    page.get_by_role("link", name="Pools").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Pools")


def test_every_page_of_signing_in_is_looked_at() -> None:
    # URLs without a page: answers to forms, and the ways to and from a provider, which test_sign_in_openid.py walks.
    parts = {"mfa_login_webauthn", "openid_connect_login", "openid_connect_callback", "socialaccount_login_cancelled"}
    # For people who came through a provider: the forms of another page under another heading.
    parts |= {"usersessions_end", "account_set_password", "socialaccount_connections"}
    looked_at = {
        *("account_login", "account_reset_password", "account_reset_password_done", "account_inactive", "mfa_index"),
        *("account_reset_password_from_key", "account_reset_password_from_key_done", "account_reauthenticate"),
        *("mfa_reauthenticate", "mfa_reauthenticate_webauthn", "mfa_authenticate", "mfa_activate_totp"),
        *("mfa_deactivate_totp", "mfa_view_recovery_codes", "mfa_generate_recovery_codes", "mfa_add_webauthn"),
        *("mfa_edit_webauthn", "mfa_remove_webauthn", "account_change_password", "usersessions_list"),
    }
    assert {pattern.name for pattern in urlpatterns} == looked_at | parts


def test_the_pages_are_clean_and_fit(ada: User, page: Page) -> None:
    complaints = listen(page)
    turns, found = itertools.count(), dict[str, list[str]]()

    def looked_at(name: str) -> None:
        found[name] = wrong_in(page, next(turns))

    visit_every_page(page, looked_at, ALIKE)
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
    assert complaints == []


@pytest.mark.exhaustive  # every page in three looks, with pictures
@pytest.mark.parametrize("name_of_look", LOOKS)
def test_the_pages_are_clean_and_fit_in_every_look(ada: User, page: Page, name_of_look: str) -> None:
    look(page, *LOOKS[name_of_look])
    complaints = listen(page)

    def looked_at(name: str) -> None:
        SHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SHOTS / f"account-{name}-{name_of_look}.png", full_page=True)
        assert fits(page), name
        assert axe_errors(page) == [], name

    visit_every_page(page, looked_at)
    assert complaints == []


def visit_every_page(page: Page, looked_at: Callable[[str], None], passed_by: Collection[str] = ()) -> None:
    """All that a person sees of signing in, from the first page to the second step, but what is passed by."""

    def look_at_each(pages: Mapping[str, str]) -> None:
        for name, path in pages.items():
            if name not in passed_by:
                page.goto(path)
                looked_at(name)

    virtual_key(page)
    look_at_each({"sign-in": "/sign-in", "forgotten": "/sign-in/forgotten"})
    sign_in(page)
    page.goto("/account/security")
    looked_at("security-empty")
    page.goto("/account/security/app")
    looked_at("prove-again")
    prove_again(page)
    looked_at("app-add")
    secret = page.get_by_role("region", name="Secret").inner_text().replace(" ", "").strip()
    page.get_by_label("Authenticator code").fill("000000")
    press(page, "Turn on codes")
    looked_at("app-wrong")
    page.get_by_label("Authenticator code").fill(code(secret))
    press(page, "Turn on codes")
    looked_at("recovery-codes")
    look_at_each(
        {
            "passkey-add": "/account/security/passkeys/new",
            "password": "/account/security/password",
            "recovery-codes-new": "/account/security/recovery-codes/new",
            "app-remove": "/account/security/app/remove",
        }
    )
    page.goto("/account/security/passkeys/new")
    page.get_by_label("name", exact=False).first.fill("laptop")
    press(page, "Add passkey")
    looked_at("security")
    look_at_each(
        {
            "passkey-rename": page.get_by_role("link", name="Rename laptop").get_attribute("href") or "",
            "passkey-remove": page.get_by_role("link", name="Remove laptop").get_attribute("href") or "",
            "prove-again-code": "/sign-in/again/code",
            "prove-again-passkey": "/sign-in/again/passkey",
            "forgotten-sent": "/sign-in/forgotten/sent",
            "forgotten-done": "/sign-in/forgotten/done",
            "forgotten-link": "/sign-in/forgotten/1-abc",
            "inactive": "/sign-in/inactive",
            "sessions": "/account/sessions",
        }
    )
    page.context.clear_cookies()
    sign_in(page)
    looked_at("second-step")

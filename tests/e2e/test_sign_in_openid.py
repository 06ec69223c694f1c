"""OpenID Connect against a real provider process: the whole code flow, and every answer that must not sign in."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from allauth.socialaccount.models import SocialAccount
from django.conf import settings as installed
from django.contrib.sessions.models import Session
from pytest_django.fixtures import Settings
from pytest_django.live_server_helper import LiveServer

from apps.accounts.models import Account, Invitation, Membership, User
from apps.audit.models import Entry
from apps.members.invitations import invite
from tests.conftest import actor_of
from tests.e2e import oidc_provider
from tests.e2e.demo import until
from tests.interfaces.signing_in import PASSWORD, person
from tests.ports import spare_port

pytestmark = [
    pytest.mark.long,
    pytest.mark.e2e,
    pytest.mark.timeout(300),
    pytest.mark.django_db(transaction=True),
]


@dataclass
class Provider:
    """The process, and where it is."""

    url: str
    callback: str

    def misbehave(self, what: str) -> None:
        """Make every ID token wrong in this way from now on."""
        httpx.get(f"{self.url}/mischief", params={"what": what}).raise_for_status()


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory, live_server: LiveServer) -> Iterator[Provider]:
    port, directory = spare_port(), tmp_path_factory.mktemp("provider")
    callback = f"{live_server.url}/sign-in/with/sso/back"
    program = [sys.executable, str(Path(oidc_provider.__file__)), str(port), str(directory), callback]
    with (directory / "log").open("w") as log, subprocess.Popen(program, stdout=log, stderr=log) as process:
        made = Provider(f"http://127.0.0.1:{port}", callback)
        try:
            assert until(lambda: _answers(made.url)), (directory / "log").read_text()
            yield made
        finally:
            process.terminate()


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/o/.well-known/openid-configuration").status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture(autouse=True)
def configured(settings: Settings, provider: Provider) -> None:
    """The console knows the provider; the provider behaves."""
    known: Any = copy.deepcopy(installed.SOCIALACCOUNT_PROVIDERS)
    known["openid_connect"]["APPS"] = [
        {
            "provider_id": "sso",
            "name": "Example ID",
            "client_id": oidc_provider.CLIENT_ID,
            "secret": oidc_provider.CLIENT_SECRET,
            "settings": {"server_url": f"{provider.url}/o"},
        }
    ]
    settings.SOCIALACCOUNT_PROVIDERS = known
    settings.OIDC_ISSUER = f"{provider.url}/o"
    provider.misbehave("")


class Browser(httpx.Client):
    """Somebody's browser, which walks between console and provider."""

    def __init__(self, console: str, **options: Any) -> None:
        super().__init__(follow_redirects=False, timeout=20, **options)
        self.console = console

    def to_provider(self, query: str = "") -> str:
        """Click "Sign in with"; returns where the provider is asked."""
        answer = self.get(f"{self.console}/sign-in/with/sso{query}")
        assert answer.status_code == 302, answer.text
        return answer.headers["Location"]

    def at_provider(self, asked: str, name: str) -> str:
        """Sign in there as somebody; returns the way back."""
        there = httpx.URL(asked)
        answer = self.get(there)
        if "/login" in answer.headers["Location"]:
            here = asked.removeprefix(f"{there.scheme}://{there.netloc.decode()}")
            self.get(there.join("/login"), params={"as": name, "next": here})
            answer = self.get(there)
        assert answer.status_code == 302, answer.text
        return str(answer.headers["Location"])

    def sign_in(self, name: str = "ann", query: str = "") -> httpx.Response:
        """The whole way; the console's answer at the end of it."""
        return self.get(self.at_provider(self.to_provider(query), name))

    def is_in(self) -> bool:
        return self.get(f"{self.console}/pools").status_code == 200


@pytest.fixture
def browser(live_server: LiveServer) -> Iterator[Browser]:
    with Browser(live_server.url) as made:
        yield made


def connected(name: str = "ann") -> User:
    """Somebody here who is connected to the provider's person of this name."""
    user = person(f"our-{name}")
    SocialAccount.objects.create(user=user, provider="sso", uid=f"{name}-at-the-provider")
    return user


def invited() -> str:
    """The secret of an invitation into acme."""
    target = actor_of("acme", Account.Kind.CUSTOMER).account
    operator = actor_of("operator", Account.Kind.OPERATOR)
    return invite(actor=operator, email="ann@example.org", role="editor", account=target.name)[1]


def test_somebody_who_is_connected_signs_in_through_the_provider(browser: Browser) -> None:
    connected()
    assert browser.sign_in().headers["Location"] == "/"
    assert browser.is_in()
    assert Entry.objects.filter(action="sign_in", actor="our-ann").count() == 1


def test_the_way_there_carries_state_nonce_and_pkce(browser: Browser) -> None:
    asked = parse_qs(urlsplit(browser.to_provider()).query)
    assert asked["response_type"] == ["code"]
    assert asked["code_challenge_method"] == ["S256"]
    assert len(asked["state"][0]) >= 16
    assert len(asked["nonce"][0]) >= 32


def test_a_page_that_was_asked_for_comes_after_the_provider(browser: Browser) -> None:
    connected()
    assert browser.sign_in(query="?next=/pools").headers["Location"] == "/pools"


def test_nobody_is_led_to_another_site_by_the_provider(browser: Browser) -> None:
    connected()
    assert browser.sign_in(query="?next=https://evil.example/").headers["Location"] == "/"


def test_somebody_without_an_invitation_gets_no_account(browser: Browser) -> None:
    answer = browser.sign_in()
    assert answer.status_code == 403
    assert "You have no account here yet" in answer.text
    assert not browser.is_in()
    assert not User.objects.exists()


def test_a_first_sign_in_accepts_the_open_invitation(browser: Browser) -> None:
    secret = invited()
    assert "Example ID" in browser.get(f"{browser.console}/invitations/{secret}").text
    assert browser.sign_in().headers["Location"] == "/"
    assert browser.is_in()
    membership = Membership.objects.get(account__name="acme")
    assert (membership.role, membership.user.username, membership.user.email) == ("editor", "ann", "ann@example.org")
    assert not membership.user.has_usable_password()
    assert Invitation.objects.get().accepted_by == membership.user


def test_an_invitation_is_accepted_once_through_the_provider_too(browser: Browser, live_server: LiveServer) -> None:
    secret = invited()
    browser.get(f"{browser.console}/invitations/{secret}")
    with Browser(live_server.url) as other:
        other.get(f"{other.console}/invitations/{secret}")
        assert browser.sign_in("ann").headers["Location"] == "/"
        assert "You have no account here yet" in other.sign_in("ben").text
    assert User.objects.filter(username__in=["ann", "ben"]).count() == 1


@pytest.mark.parametrize(
    ("name", "allowed", "is_in"), [("ann", True, True), ("ann", False, False), ("ben", True, False)]
)
def test_a_verified_address_connects_only_when_the_settings_say_so(
    browser: Browser, settings: Settings, name: str, *, allowed: bool, is_in: bool
) -> None:
    settings.OIDC_CONNECT_BY_EMAIL = allowed
    User.objects.filter(pk=person().pk).update(email=f"{name}@example.org")
    browser.sign_in(name)
    assert browser.is_in() is is_in
    assert SocialAccount.objects.exists() is is_in


def test_two_people_with_one_address_are_not_guessed_between(browser: Browser, settings: Settings) -> None:
    settings.OIDC_CONNECT_BY_EMAIL = True
    for name in ("ada", "eve"):
        User.objects.filter(pk=person(name).pk).update(email="ann@example.org")
    browser.sign_in()
    assert not browser.is_in()


@pytest.mark.parametrize(
    "what",
    ["nonce", "no nonce", "audience", "issuer", "expired", "person", "signature", "unsigned", "shared secret"],
)
def test_an_id_token_that_is_not_right_signs_nobody_in(browser: Browser, provider: Provider, what: str) -> None:
    connected()
    provider.misbehave(what)
    answer = browser.sign_in()
    assert answer.status_code == 401
    assert "Sign-in failed" in answer.text
    assert not browser.is_in()


def test_after_an_id_token_that_is_not_right_a_right_one_signs_in(browser: Browser, provider: Provider) -> None:
    connected()
    provider.misbehave("signature")
    browser.sign_in()
    provider.misbehave("")
    browser.sign_in()
    assert browser.is_in()


def test_a_state_of_another_browser_or_of_before_signs_nobody_in(browser: Browser, live_server: LiveServer) -> None:
    connected()
    back = browser.at_provider(browser.to_provider(), "ann")
    with Browser(live_server.url) as victim:
        victim.to_provider()
        assert victim.get(back).status_code == 401
        assert not victim.is_in()
    assert browser.get(back.replace("state=", "state=x")).status_code == 401
    assert browser.get(back).status_code == 302
    assert browser.get(back).status_code == 401  # once


def test_a_code_without_the_verifier_of_this_session_is_refused_by_the_provider(browser: Browser) -> None:
    connected()
    back = browser.at_provider(browser.to_provider(), "ann")
    row = Session.objects.get(session_key=browser.cookies["sessionid"])
    data = row.get_decoded()
    for state, _, _ in data["socialaccount_states"].values():
        state["pkce_code_verifier"] = "x" * 48
    row.session_data = Session.objects.encode(data)
    row.save()
    assert browser.get(back).status_code == 401


def test_somebody_who_stops_at_the_provider_comes_back_to_the_sign_in_page(browser: Browser) -> None:
    state = parse_qs(urlsplit(browser.to_provider()).query)["state"][0]
    answer = browser.get(f"{browser.console}/sign-in/with/sso/back?error=access_denied&state={state}")
    assert browser.get(str(answer.url.join(answer.headers["Location"]))).headers["Location"] == "/sign-in"


def test_a_provider_that_is_away_is_said_in_words(browser: Browser, settings: Settings) -> None:
    apps: Any = settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"]
    settings.OIDC_ISSUER = apps[0]["settings"]["server_url"] = f"http://127.0.0.1:{spare_port()}/o"
    answer = browser.get(f"{browser.console}/sign-in/with/sso")
    assert answer.status_code == 401
    assert "could not be reached" in answer.text


def test_an_unknown_provider_does_not_exist(browser: Browser) -> None:
    assert browser.get(f"{browser.console}/sign-in/with/other").status_code == 404


def test_somebody_who_is_signed_in_connects_after_proving_who_it_is(browser: Browser) -> None:
    person()
    page = browser.get(f"{browser.console}/sign-in").text
    token = page.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]
    form = {"username": "ada", "password": PASSWORD, "csrfmiddlewaretoken": token}
    assert browser.post(f"{browser.console}/sign-in", data=form).status_code == 302
    asked = browser.sign_in()
    assert asked.headers["Location"] == "/sign-in/again"
    assert not SocialAccount.objects.exists()
    page = browser.get(f"{browser.console}/sign-in/again").text
    token = page.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]
    answer = browser.post(f"{browser.console}/sign-in/again", data={"password": PASSWORD, "csrfmiddlewaretoken": token})
    assert answer.headers["Location"] == "/account/security"
    assert SocialAccount.objects.get().uid == "ann-at-the-provider"

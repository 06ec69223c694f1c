"""Signing in: who comes in, where they go, and how guessing is slowed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client, RequestFactory
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.accounts.models import FailedSignIn, Membership, User
from apps.accounts.sign_in import limits
from apps.web.kit.errors import server_error
from tests.conftest import actor_of
from tests.interfaces.people import client_of

URL = "/sign-in"
PASSWORD = "correct horse battery"


@pytest.fixture
def person(db: None) -> User:
    user = User.objects.create_user("ada", password=PASSWORD)
    Membership.objects.create(user=user, account=actor_of("operator", "operator").account, role="admin")
    return user


def attempt(password: str, username: str = "ada", **query: str) -> tuple[int, str]:
    """Status and URL that a try leads to."""
    answer = Client().post(URL, {"username": username, "password": password, **query})
    return answer.status_code, answer.headers.get("Location", "")


def test_the_right_password_leads_to_the_overview(person: User) -> None:
    assert attempt(PASSWORD) == (302, "/")


def test_a_page_that_was_asked_for_comes_after_signing_in(person: User) -> None:
    asked = Client().get("/pools")
    assert asked.headers["Location"] == "/sign-in?next=/pools"
    assert attempt(PASSWORD, next="/pools") == (302, "/pools")


LOOKED_AT = "http://testserver/pools?region=eu#rows"


@pytest.mark.parametrize(
    ("method", "headers", "afterwards"),
    [
        ("GET", {"HX-Request": "true", "HX-Current-URL": LOOKED_AT}, "/pools%3Fregion%3Deu"),
        ("POST", {"Referer": LOOKED_AT}, "/pools%3Fregion%3Deu"),
        ("POST", {}, "/"),
        ("GET", {"HX-Request": "true", "HX-Current-URL": "https://evil.example/pools"}, "/"),
        ("GET", {"HX-Request": "true"}, "/"),
        ("GET", {"Referer": LOOKED_AT}, "/badges"),
    ],
)
def test_after_signing_in_again_one_is_where_one_was_and_not_at_a_part_of_it(
    db: None, method: str, headers: dict[str, str], afterwards: str
) -> None:
    asked = Client().generic(method, "/badges", headers=headers)
    assert asked.headers["Location"] == f"/sign-in?next={afterwards}"


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "javascript:alert(1)", "/\\evil.example"]
)
def test_nobody_is_led_to_another_site(person: User, target: str) -> None:
    assert attempt(PASSWORD, next=target) == (302, "/")


def test_a_page_runs_nothing_and_sends_nothing_that_is_not_of_this_site(db: None) -> None:
    policy = Client().get(URL).headers["Content-Security-Policy"].split("; ")
    assert {"default-src 'self'", "form-action 'self'", "frame-ancestors 'none'", "object-src 'none'"} <= set(policy)
    assert "unsafe" not in " ".join(policy)


def test_after_five_wrong_passwords_even_the_right_one_waits(person: User) -> None:
    for _ in range(limits.PER_NAME_AND_ADDRESS):
        assert attempt("wrong")[0] == 200
    assert attempt(PASSWORD)[0] == 429


def test_without_remembered_failures_the_right_one_would_not_wait(person: User) -> None:
    for _ in range(limits.PER_NAME_AND_ADDRESS):
        attempt("wrong")
    FailedSignIn.objects.all().delete()
    assert attempt(PASSWORD)[0] == 302


def test_others_are_not_kept_out_by_somebody_who_guesses(person: User) -> None:
    for _ in range(limits.PER_NAME_AND_ADDRESS):
        attempt("wrong", username="nobody")
    assert attempt(PASSWORD)[0] == 302


def test_trying_many_names_from_one_address_is_stopped(person: User) -> None:
    for number in range(limits.PER_ADDRESS):
        attempt("wrong", username=f"name{number}")
    assert attempt(PASSWORD)[0] == 429


def test_failures_are_forgotten_after_a_while(person: User) -> None:
    for _ in range(limits.PER_NAME_AND_ADDRESS):
        attempt("wrong")
    row = FailedSignIn.objects.latest("id")
    FailedSignIn.objects.update(at=row.at - limits.WINDOW - timedelta(seconds=1))
    assert attempt(PASSWORD)[0] == 302


def test_a_person_without_an_account_is_told_so(db: None) -> None:
    client = Client()
    client.force_login(User.objects.create_user("lost"))
    answer = client.get("/pools")
    assert answer.status_code == 403
    assert "belong to no account" in answer.content.decode()


def test_signing_out_needs_a_form_and_ends_the_session(person: User) -> None:
    client = client_of(actor_of("operator", "operator"))
    assert client.get(reverse("web:sign-out")).status_code == 405
    client.post(reverse("web:sign-out"))
    assert client.get("/pools").status_code == 302


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/nothing/here", "/pools/999999", "/routes/0"])
def test_what_does_not_exist_is_a_page_with_the_request_id(path: str) -> None:
    answer = client_of(actor_of("operator", "operator")).get(path)
    assert answer.status_code == 404
    assert answer.headers["X-Request-ID"] in answer.content.decode()


@pytest.mark.django_db
def test_search_finds_only_what_the_actor_may_see(tutorial_env: object) -> None:
    acme, globex = client_of(actor_of("acme", "customer")), client_of(actor_of("globex", "customer"))
    assert "acme/shop" in acme.get("/search?q=shop").content.decode()
    assert "shop" not in globex.get("/search?q=shop").content.decode()
    assert acme.get("/search?q=s").content.decode().strip() == ""


@pytest.mark.parametrize("path", ["/api/nothing", "/api/v1/nothing"])
def test_what_does_not_exist_in_the_api_is_a_problem_document(db: None, path: str) -> None:
    answer = Client().get(path)
    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_a_request_for_a_foreign_host_is_refused_as_a_page(db: None) -> None:
    answer = Client(headers={"host": "evil.example"}).get("/sign-in")
    assert answer.status_code == 400
    assert answer.headers["X-Request-ID"] in answer.content.decode()


def test_a_form_without_its_token_is_refused_as_a_page(db: None) -> None:
    answer = Client(enforce_csrf_checks=True).post(URL, {"username": "ada", "password": PASSWORD})
    assert answer.status_code == 403
    assert answer.headers["X-Request-ID"] in answer.content.decode()


def test_a_form_without_its_token_leads_back_to_its_page_and_to_none_of_others(operator: Actor) -> None:
    client = Client(enforce_csrf_checks=True)
    client.cookies = client_of(operator).cookies
    for page, back in (
        ("http://testserver/fleets?q=a#x", "/fleets?q=a"),
        ("http://evil.example/fleets", "/"),
        ("", "/"),
    ):
        answer = client.post("/fleets/1/push", headers={"referer": page})
        assert answer.status_code == 403
        assert f'href="{back}">Reload the page' in answer.content.decode(), page


def test_the_address_of_a_form_says_that_it_is_no_page(operator: Actor) -> None:
    client = client_of(operator)
    for address in ("/fleets/1/push", "/switch", "/account/sessions/end"):
        answer = client.get(address)
        assert (answer.status_code, answer.headers["Allow"]) == (405, "POST"), address
        assert answer.headers["X-Request-ID"] in answer.content.decode()


def test_what_breaks_is_a_page_that_names_nothing_of_the_inside(rf: RequestFactory) -> None:
    answer = server_error(rf.get("/"))
    assert answer.status_code == 500
    assert "Something went wrong on our side" in answer.content.decode()


def test_names_and_searches_with_a_zero_byte_are_refused_in_words(person: User) -> None:
    assert attempt("wrong", username="a\0da")[0] == 200
    assert client_of(actor_of("operator", "operator")).get("/search", {"q": "a\0b"}).status_code == 200

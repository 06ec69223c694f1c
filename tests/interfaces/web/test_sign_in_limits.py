"""Guessing: many tries at one moment, names that nobody has, and forgotten passwords."""

from __future__ import annotations

import re
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core import mail
from django.db import connection
from django.test import Client
from pytest_django.fixtures import Settings

from apps.accounts.models import FailedSignIn, User
from apps.accounts.sign_in import limits
from tests.interfaces.signing_in import PASSWORD, person, signed_in

PASSWORDS = FailedSignIn.Kind.PASSWORD
AT_ONCE = 16
HERE = {"username": "ada", "address": "192.0.2.7"}


def checked(tries: int) -> int:
    """How many of so many tries at one moment are judged."""

    def one(_: int) -> bool:
        try:
            return limits.take_try(kind=PASSWORDS, **HERE)
        finally:
            connection.close()

    with ThreadPoolExecutor(AT_ONCE) as threads:
        return sum(threads.map(one, range(tries)))


@pytest.mark.both_engines
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("guesses", [40, pytest.param(200, marks=pytest.mark.exhaustive)])
def test_of_many_guesses_at_one_moment_five_are_judged(guesses: int) -> None:
    assert checked(guesses) == limits.PER_NAME_AND_ADDRESS
    assert FailedSignIn.objects.count() == limits.PER_NAME_AND_ADDRESS


@pytest.mark.django_db(transaction=True)
def test_without_counting_first_many_more_would_be_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = threading.Barrier(AT_ONCE)

    def look_then_count(*, kind: str, **who: str) -> bool:
        blocked = limits._is_blocked(PASSWORDS, who["username"], who["address"])
        looked.wait(20)  # all have looked before anybody has counted
        FailedSignIn.objects.create(kind=kind, username=who["username"], address=who["address"])
        return not blocked

    monkeypatch.setattr(limits, "take_try", look_then_count)
    assert checked(AT_ONCE) == AT_ONCE > limits.PER_NAME_AND_ADDRESS


@pytest.mark.django_db
def test_a_name_in_another_case_is_the_same_name() -> None:
    names = ("ada", "Ada", "aDa", "adA", "ADa", "ADA", "AdA")
    taken = [limits.take_try(kind=PASSWORDS, username=name, address="192.0.2.7") for name in names]
    assert taken == [True] * limits.PER_NAME_AND_ADDRESS + [False] * 2
    limits.forgive(kind=PASSWORDS, username="ADA", address="192.0.2.7")
    assert limits.take_try(kind=PASSWORDS, **HERE)


@pytest.mark.django_db
def test_a_right_try_forgives_only_its_own_kind() -> None:
    for kind in (FailedSignIn.Kind.PASSWORD, FailedSignIn.Kind.CODE):
        assert limits.take_try(kind=kind, **HERE)
    limits.forgive(kind=FailedSignIn.Kind.PASSWORD, **HERE)
    assert list(FailedSignIn.objects.values_list("kind", flat=True)) == ["code"]


@pytest.mark.django_db
def test_codes_of_a_person_are_limited_over_all_addresses() -> None:
    code = FailedSignIn.Kind.CODE
    taken = [limits.take_try(kind=code, username="ada", address=f"192.0.2.{number}") for number in range(12)]
    assert taken == [True] * limits.ALLOWED[code].name + [False] * 2


@pytest.mark.django_db
def test_a_name_that_nobody_has_answers_the_same_and_takes_as_long(settings: Settings) -> None:
    settings.PASSWORD_HASHERS = ["tests.hashing.SomeScrypt"]
    person()

    def ask(name: str) -> tuple[float, str]:
        FailedSignIn.objects.all().delete()
        begin = time.thread_time()  # work, which nothing beside this test lengthens
        answer = Client().post("/sign-in", {"username": name, "password": "wrong"})
        took = time.thread_time() - begin
        text = re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", answer.content.decode())
        return took, text.replace(name, "NAME")

    ask("ada"), ask("bob")
    known, unknown = zip(*((ask("ada"), ask("bob")) for _ in range(5)), strict=True)
    assert {text for _, text in known} == {text for _, text in unknown}
    ratio = statistics.median(took for took, _ in known) / statistics.median(took for took, _ in unknown)
    assert 0.6 < ratio < 1.67  # without the dummy hash it is above 3


@pytest.mark.django_db
def test_a_person_who_is_switched_off_learns_nothing_from_the_right_password() -> None:
    ada = person()
    User.objects.filter(pk=ada.pk).update(is_active=False)
    answer = Client().post("/sign-in", {"username": "ada", "password": PASSWORD})
    assert answer.status_code == 200
    assert "Please enter a correct username and password" in answer.content.decode()


@pytest.mark.django_db
def test_where_no_mail_goes_out_the_page_says_whom_to_ask(settings: Settings) -> None:
    settings.MAILS = False
    assert "Ask an operator" in Client().get("/sign-in/forgotten").content.decode()
    assert Client().post("/sign-in/forgotten", {"email": "ada@example.org"}).status_code == 200
    assert mail.outbox == []


def refusals(log: pytest.LogCaptureFixture) -> list[str]:
    """What the log says of tries that were refused."""
    return [each.getMessage() for each in log.records if each.name == "apps.accounts.sign_in.limits"]


@pytest.mark.django_db
def test_a_refused_try_stands_in_the_log_with_name_and_address_and_without_what_was_typed_by_mistake(
    caplog: pytest.LogCaptureFixture,
) -> None:
    person()
    browser = Client(REMOTE_ADDR="192.0.2.7")
    for _ in range(limits.PER_NAME_AND_ADDRESS + 1):
        browser.post("/sign-in", {"username": "ada", "password": "a-slip-of-the-pen"})
    browser.post("/sign-in", {"username": PASSWORD, "password": "ada"})
    wrong = "sign-in refused: wrong password for 'ada' from '192.0.2.7'"
    assert refusals(caplog) == [
        *[wrong] * limits.PER_NAME_AND_ADDRESS,
        "sign-in refused: too many tries for 'ada' from '192.0.2.7'",
        "sign-in refused: wrong password for an unknown person from '192.0.2.7'",
    ]
    signed_in(REMOTE_ADDR="192.0.2.8")
    assert len(refusals(caplog)) == limits.PER_NAME_AND_ADDRESS + 2


@pytest.mark.django_db
def test_a_name_writes_no_line_of_its_own_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    name = "ada\r\nsign-in \x1b[2J\u2028\u202eroot"
    User.objects.create_user(name)
    limits.log_refusal("wrong password", username=name, address="192.0.2.7\n\x1b[2J")
    (line,) = refusals(caplog)
    assert line.isprintable()
    assert line.isascii()


def sent_mails(count: int) -> list[str]:
    """The texts of the mails, which go out beside the request."""
    end = time.monotonic() + 30
    while len(mail.outbox) < count and time.monotonic() < end:
        time.sleep(0.01)
    return [str(message.body) for message in mail.outbox]


@pytest.mark.django_db
def test_a_link_by_mail_gives_a_new_password_once_and_ends_sessions(settings: Settings) -> None:
    settings.MAILS = True
    ada = person()
    User.objects.filter(pk=ada.pk).update(email="ada@example.org")
    before = signed_in()
    browser = Client()
    answer = browser.post("/sign-in/forgotten", {"email": "ada@example.org"})
    assert answer.headers["Location"] == "/sign-in/forgotten/sent"
    (text,) = sent_mails(1)
    link = re.search(r"http://testserver(\S+)", text)
    assert link is not None
    form = browser.get(link[1]).headers["Location"]
    assert "set-password" in form
    new = {"password1": "another horse battery", "password2": "another horse battery"}
    assert browser.post(form, new).headers["Location"] == "/sign-in/forgotten/done"
    assert before.get("/pools").status_code == 302
    assert "no longer works" in Client().get(link[1]).content.decode()
    assert Client().post("/sign-in", {"username": "ada", "password": "another horse battery"}).status_code == 302


@pytest.mark.django_db
def test_an_address_that_nobody_has_gets_no_mail_and_the_same_answer(settings: Settings) -> None:
    settings.MAILS = True
    answer = Client().post("/sign-in/forgotten", {"email": "nobody@example.org"})
    assert answer.headers["Location"] == "/sign-in/forgotten/sent"
    assert mail.outbox == []


@pytest.mark.django_db
def test_nobody_is_flooded_with_links(settings: Settings) -> None:
    settings.MAILS = True
    ada = person()
    User.objects.filter(pk=ada.pk).update(email="ada@example.org")
    codes = [Client().post("/sign-in/forgotten", {"email": "ADA@example.org"}).status_code for _ in range(5)]
    assert codes == [302, 302, 302, 200, 200]
    assert len(sent_mails(3)) == 3

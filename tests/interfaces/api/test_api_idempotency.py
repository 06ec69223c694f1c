"""A request with a key is done once, whoever repeats it, whatever crashes, however many come."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.audit.models import Entry
from apps.core.clock import now
from apps.core.errors import Conflict, InProgress
from apps.definitions.models import Pool
from apps.retries import services
from apps.retries.models import KeyedRequest
from tests.interfaces.api.test_api_objects import ROUTE, Api, assert_problem, house
from tests.interfaces.api.test_api_objects import api as api_of_acme

__all__ = ["api_of_acme", "house"]
pytestmark = pytest.mark.both_engines  # claims, and answers that are kept
POOL: dict[str, Any] = {"name": "extra", "spec": {"backends": [{"region": "us-central1"}]}}


@pytest.fixture
def api(api_of_acme: Api) -> Api:
    """Acme's program."""
    return api_of_acme


def test_the_same_request_gets_the_same_answer_and_its_work_is_done_once(api: Api) -> None:
    first, again = (api("POST", "pools", POOL, Idempotency_Key="one") for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201)
    assert (first["Idempotency-Replayed"], again["Idempotency-Replayed"]) == ("false", "true")
    assert first.content == again.content
    for header in ("ETag", "Location", "Content-Type", "X-Spillway-Generation"):
        assert first.headers.get(header) == again.headers.get(header)
    assert first["X-Request-ID"] != again["X-Request-ID"]
    assert Entry.objects.filter(object_kind="Pool", action="create", object_label__contains="extra").count() == 1


def test_without_a_key_or_with_another_the_work_is_done_again(api: Api) -> None:
    assert api("POST", "pools", POOL, Idempotency_Key="one").status_code == 201
    assert_problem(api("POST", "pools", POOL, Idempotency_Key="two"), 409)
    assert_problem(api("POST", "pools", POOL), 409)


@pytest.mark.parametrize(
    ("method", "url", "body", "headers"),
    [
        ("POST", "pools", {**POOL, "name": "other"}, {}),
        ("POST", "routes", POOL, {}),
        ("POST", "pools?dry_run=plan", POOL, {}),
        ("PUT", "pools/acme/extra", POOL, {"If_None_Match": "*"}),
        ("POST", "pools", POOL, {"If_Match": "*"}),
    ],
)
def test_another_request_with_the_same_key_is_422(
    api: Api, method: str, url: str, body: Any, headers: dict[str, str]
) -> None:
    api("POST", "pools", POOL, Idempotency_Key="one")
    problem = assert_problem(api(method, url, body, Idempotency_Key="one", **headers), 422)
    assert (problem["errors"][0]["pointer"], problem["errors"][0]["code"]) == ("/Idempotency-Key", "key_used")


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 256, "schlüssel", "a\x7f"])
def test_a_key_outside_of_its_grammar_is_refused(api: Api, key: str) -> None:
    body = assert_problem(api("POST", "pools", POOL, Idempotency_Key=key), 422)
    assert body["errors"][0]["pointer"] == "/Idempotency-Key"
    assert not Pool.objects.filter(name="extra").exists()


def test_the_longest_key_is_taken_and_a_read_has_no_use_for_one(api: Api) -> None:
    assert api("POST", "pools", POOL, Idempotency_Key="~" * 255).status_code == 201
    assert "Idempotency-Replayed" not in api("GET", "pools", Idempotency_Key="one")


def test_keys_of_two_programs_never_meet(api: Api, house: Api, acme: Actor) -> None:
    assert api("POST", "pools", POOL, Idempotency_Key="one").status_code == 201
    second = Api(acme)
    assert_problem(second("POST", "pools", POOL, Idempotency_Key="one"), 409)
    assert house("POST", "pools", {**POOL, "account": "globex"}, Idempotency_Key="one").status_code == 201


def test_a_final_refusal_is_repeated_and_nothing_of_it_was_stored(api: Api) -> None:
    wrong = {"name": "extra", "spec": {"balance": "none"}}
    answers = [api("POST", "pools", wrong, Idempotency_Key="one") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [422, 422]
    assert answers[0].content == answers[1].content
    assert answers[1]["Idempotency-Replayed"] == "true"


def test_an_answer_is_forgotten_after_a_day(api: Api) -> None:
    api("POST", "pools", POOL, Idempotency_Key="one")
    KeyedRequest.objects.update(created_at=now() - timedelta(hours=24, seconds=1))
    assert_problem(api("POST", "pools", POOL, Idempotency_Key="one"), 409)
    assert KeyedRequest.objects.count() == 1


def test_answers_are_sealed_at_rest(api: Api) -> None:
    api("POST", "pools", POOL, Idempotency_Key="one")
    row = KeyedRequest.objects.get()
    assert b"us-central1" not in bytes(row.sealed_body)
    KeyedRequest.objects.update(sealed_body=b"changed")
    assert_problem(api("POST", "pools", POOL, Idempotency_Key="one"), 409)


def test_a_suspended_account_gets_no_answer_again(api: Api, acme: Actor) -> None:
    api("POST", "pools", POOL, Idempotency_Key="one")
    Account.objects.filter(pk=acme.account.pk).update(suspended_at=now())
    assert_problem(api("POST", "pools", POOL, Idempotency_Key="one"), 403)


@pytest.mark.slow(reason="It waits twice, a second each, for what does not become live.")
def test_waiting_comes_after_the_commit_and_again_with_the_repeated_answer(api: Api) -> None:
    spec = {"spec": ROUTE | {"path": "/kept"}}
    for replayed in ("false", "true"):
        answer = api("PUT", "routes/acme/kept?wait=1", spec, If_None_Match="*", Idempotency_Key="one")
        assert (answer.status_code, answer["Idempotency-Replayed"]) == (201, replayed)
        assert answer["X-Spillway-Live"] == "false"
    assert_problem(api("POST", "routes?wait=x", spec, Idempotency_Key="two"), 422)


def test_an_apply_in_yaml_is_repeated_too(api: Api) -> None:
    text = "objects: [{kind: Pool, name: extra, spec: {}}]"
    counts = [
        api("PUT", "apply", text, Content_Type="application/yaml", Idempotency_Key="y").json()["counts"]["create"]
        for _ in range(2)
    ]
    assert counts == [1, 1]


class Breaking:
    """The middleware before a view that breaks in a way that the test chooses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.then: Callable[[], None] | None = None
        inner = services.keep

        def keep(mine: services.Claim, answer: services.Answer) -> None:
            if self.then:
                self.then()
            inner(mine, answer)

        monkeypatch.setattr(services, "keep", keep)


@pytest.fixture
def breaking(monkeypatch: pytest.MonkeyPatch) -> Breaking:
    """Breaks after the work and before its answer is kept."""
    return Breaking(monkeypatch)


class Killed(BaseException):
    """The process ends here."""


def test_a_process_that_dies_before_the_answer_is_kept_has_done_nothing(api: Api, breaking: Breaking) -> None:
    def die() -> None:
        raise Killed

    breaking.then = die
    api.client.raise_request_exception = True
    with pytest.raises(Killed):
        api("POST", "pools", POOL, Idempotency_Key="one")
    breaking.then = None
    assert not Pool.objects.filter(name="extra").exists()
    waits = api("POST", "pools", POOL, Idempotency_Key="one")
    assert_problem(waits, 409)  # it might still be at work
    assert waits["Retry-After"] == "10"
    KeyedRequest.objects.update(began_at=now() - timedelta(seconds=61))
    assert api("POST", "pools", POOL, Idempotency_Key="one").status_code == 201
    assert Pool.objects.filter(name="extra").count() == 1


def test_an_attempt_whose_turn_was_taken_over_is_undone(api: Api, breaking: Breaking) -> None:
    def another_takes_over() -> None:
        KeyedRequest.objects.update(turn="another")

    breaking.then = another_takes_over
    assert_problem(api("POST", "pools", POOL, Idempotency_Key="one"), 409)
    assert not Pool.objects.filter(name="extra").exists()
    assert not Entry.objects.filter(object_label__contains="extra").exists()


def test_a_refusal_that_asks_to_come_again_is_not_kept(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(*_: object, **__: object) -> None:
        raise InProgress("Records are being written. Try again in a moment.")

    with monkeypatch.context() as patched:
        patched.setattr("apps.definitions.services.save_object", wait)
        first = api("POST", "pools", POOL, Idempotency_Key="one")
    assert (first.status_code, first["Retry-After"]) == (409, "2")
    assert api("POST", "pools", POOL, Idempotency_Key="one").status_code == 201


def test_what_went_wrong_here_is_not_kept(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    with monkeypatch.context() as patched:
        patched.setattr("apps.definitions.services.save_object", fail)
        assert_problem(api("POST", "pools", POOL, Idempotency_Key="one"), 500)
    assert not KeyedRequest.objects.exists()
    assert api("POST", "pools", POOL, Idempotency_Key="one").status_code == 201


def test_a_key_of_a_live_attempt_is_taken_over_by_nobody(operator: Actor) -> None:
    services.claim(actor=operator, key="k", fingerprint="f")
    with pytest.raises(Conflict):
        services.claim(actor=operator, key="k", fingerprint="f")
    KeyedRequest.objects.update(began_at=now() - timedelta(minutes=2))
    taken = services.claim(actor=operator, key="k", fingerprint="f")
    assert isinstance(taken, services.Claim)
    with pytest.raises(Conflict), transaction.atomic():
        services.keep(services.Claim(taken.row, "the first"), services.Answer(200, {}, b""))
    services.let_go(services.Claim(taken.row, "the first"))
    assert KeyedRequest.objects.exists()


@pytest.mark.slow(reason="sixteen requests race")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("key", "requests"), [("one", 16), (None, 16), pytest.param("one", 50, marks=pytest.mark.exhaustive)]
)
def test_many_requests_at_once_with_one_key_make_one_object(house: Api, key: str | None, requests: int) -> None:
    """Without the key (the negative control) each makes an object of its own."""
    start = threading.Barrier(requests)

    def send(number: int) -> tuple[int, str]:
        start.wait()
        try:
            body = {**POOL, "account": "acme", "name": "extra" if key else f"extra-{number}"}
            headers = {"Idempotency_Key": key} if key else {}
            answer = house("POST", "pools", body, **headers)
            return answer.status_code, answer.headers.get("Idempotency-Replayed", "")
        finally:
            connection.close()

    with ThreadPoolExecutor(requests) as threads:
        answers = Counter(threads.map(send, range(requests)))
    made = Pool.objects.filter(name__startswith="extra").count()
    if key is None:
        assert made == requests
        return
    assert made == 1
    assert answers[201, "false"] == 1
    assert set(answers) <= {(201, "false"), (201, "true"), (409, "")}

"""Who asks too often is told so, others go on, and a cache that is away stops nobody."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.accounts.tokens import create_token
from apps.api.v1.protocol import rate_limits
from apps.core.caching import ForgivingRedisCache
from tests.interfaces.api.test_api_objects import Api, assert_problem

NOON = datetime(2026, 11, 21, 12, 0, 20, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _limited(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits are on, and it is always 20 s past a minute."""
    settings.API_RATE_LIMITS = True
    monkeypatch.setattr(rate_limits, "now", lambda: NOON)


def allow(actor: Actor, per_minute: int) -> None:
    """Give the actor's account this quota."""
    actor.account.quotas = {"requests_per_minute": per_minute}
    actor.account.save()


def test_every_answer_says_what_is_left(acme: Actor) -> None:
    api = Api(acme)
    for left in (1199, 1198):
        answer = api("GET", "routes")
        assert answer["RateLimit-Policy"] == '"account";q=1200;w=60, "token";q=900;w=60'
        assert answer["RateLimit"] == f'"account";r={left};t=40, "token";r={left - 300};t=40'
    assert api("GET", "nope")["RateLimit"].startswith('"account";r=1197')
    assert api("POST", "routes", "{")["RateLimit"].startswith('"account";r=1196')


def test_a_token_that_asks_too_often_is_told_when_to_come_again_and_leaves_room_for_others(acme: Actor) -> None:
    allow(acme, 8)
    wild, calm = Api(acme), Api(acme)
    assert [wild("GET", "routes").status_code for _ in range(6)] == [200] * 6
    refused = wild("GET", "routes")
    body = assert_problem(refused, 429)
    assert refused["Retry-After"] == "40"
    assert '"token";r=0;t=40' in refused["RateLimit"]
    assert "token may make 6 requests per minute" in body["detail"]
    assert calm("GET", "routes").status_code == 200
    assert "account may make 8" in assert_problem(calm("GET", "routes"), 429)["detail"]


def test_one_account_s_requests_are_not_another_s(acme: Actor, globex: Actor) -> None:
    allow(acme, 1)
    api = Api(acme)
    api("GET", "routes")
    assert_problem(api("GET", "routes"), 429)
    assert Api(globex)("GET", "routes").status_code == 200


def test_the_next_minute_is_a_new_one(acme: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(acme, 1)
    api = Api(acme)
    api("GET", "routes")
    assert_problem(api("GET", "routes"), 429)
    monkeypatch.setattr(rate_limits, "now", lambda: NOON.replace(minute=1, second=0))
    assert api("GET", "routes").status_code == 200


def test_what_was_refused_for_its_pace_did_nothing(acme: Actor) -> None:
    allow(acme, 1)
    api = Api(acme)
    api("GET", "pools")
    assert_problem(api("POST", "pools", {"name": "x", "spec": {}}, Idempotency_Key="k"), 429)
    allow(acme, 1000)
    assert api("POST", "pools", {"name": "x", "spec": {}}, Idempotency_Key="k").status_code == 201


def test_an_address_that_guesses_tokens_is_not_looked_at_any_more_and_others_are(
    acme: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limits, "FAILED_TRIES", 3)
    good = create_token(account=acme.account, name="good", role="admin")

    def status(token: str, address: str = "192.0.2.7") -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        return Client(REMOTE_ADDR=address).get("/api/v1/routes", headers=headers)

    assert [status(f"sw_{'0' * 12}_{'a' * 43}").status_code for _ in range(3)] == [401] * 3
    refused = status(good)
    assert_problem(refused, 429)
    assert refused["Retry-After"] == "40"
    assert status(good, "192.0.2.8").status_code == 200


def test_requests_without_a_token_are_401_and_count_nothing(acme: Actor) -> None:
    for _ in range(5):
        answer = Client().get("/api/v1/routes")
        assert_problem(answer, 401)
    assert "RateLimit" not in answer


def test_while_the_cache_is_away_requests_pass(acme: Actor, settings: Settings) -> None:
    settings.CACHES = {
        "default": {
            "BACKEND": "apps.core.caching.ForgivingRedisCache",
            "LOCATION": "redis://127.0.0.1:1/0",
            "OPTIONS": {"socket_connect_timeout": 0.2},
        }
    }
    assert isinstance(cache._connections["default"], ForgivingRedisCache)  # type: ignore[attr-defined] # Django's own
    allow(acme, 1)
    api = Api(acme)
    answers = [api("GET", "routes") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200] * 3
    assert "RateLimit" not in answers[0]


def test_the_headers_are_in_the_form_of_the_draft(acme: Actor) -> None:
    answer = Api(acme)("GET", "routes")
    item = r'"[a-z]+"(?:;[a-z]=[0-9]+)+'
    for name in ("RateLimit", "RateLimit-Policy"):
        assert re.fullmatch(rf"{item}(?:, {item})*", answer[name])

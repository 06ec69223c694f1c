"""The event stream for programs, by token: what the account may know, and nothing lost between."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any

import httpx
import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Account, ApiToken
from apps.accounts.tokens import create_token
from apps.core import events
from apps.core.clock import now
from apps.observe.live.hub import PAST, Client, Hub
from apps.observe.live.stream import EventStream
from tests.interfaces.streaming import Listening, serving, stream, wait_for

__all__ = ["stream"]
TOPICS = ("samples", "nodes", "rollouts", "runs", "stacks", "zones", "definitions", "lines")


@pytest.fixture
def people(transactional_db: None, operator: Actor, acme: Actor) -> tuple[str, str]:
    """Tokens of the operator and of acme."""
    return tuple(create_token(account=each.account, name="events", role="viewer") for each in (operator, acme))  # type: ignore[return-value] # two


def api_url(url: str) -> str:
    """Where programs listen, beside the pages' URL."""
    return url.replace("/events", "/api/v1/events")


@contextmanager
def listening(url: str, token: str, last: str = "") -> Iterator[Listening]:
    headers = {"Authorization": f"Bearer {token}"} | ({"Last-Event-ID": last} if last else {})
    with httpx.Client(timeout=10, trust_env=False) as client, client.stream("GET", url, headers=headers) as response:
        assert response.status_code == 200, response.read()
        program = Listening(response)
        program.until(": Spillway")
        yield program


def refused(url: str, token: str = "", method: str = "GET") -> dict[str, Any]:
    """The problem that the caller gets."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with httpx.Client(timeout=10, trust_env=False) as client, client.stream(method, url, headers=headers) as response:
        assert response.headers["content-type"] == "application/problem+json"
        body: dict[str, Any] = json.loads(response.read())
        assert body["status"] == response.status_code
        assert body["request_id"] == response.headers["x-request-id"]
        return body


def with_id(program: Listening) -> tuple[str, str, dict[str, Any]]:
    """The next event with its id."""
    number = program.until("id: ").removeprefix("id: ")
    return number, *program.event()


def test_programs_hear_what_their_account_may_know(stream: EventStream, people: tuple[str, str]) -> None:
    with (
        serving(stream) as url,
        listening(api_url(url), people[0]) as operator,
        listening(api_url(url), people[1]) as acme,
    ):
        wait_for(stream.hub)
        events.publish("nodes", node=3)
        events.publish("samples", at=5, secret="x")
        assert [operator.event() for _ in range(2)] == [("nodes", {"node": 3}), ("samples", {"at": 5, "secret": "x"})]
        assert [acme.event() for _ in range(2)] == [("nodes", {}), ("samples", {"at": 5})]


def test_who_comes_back_hears_what_was_said_in_between(stream: EventStream, people: tuple[str, str]) -> None:
    with serving(stream) as url:
        with listening(api_url(url), people[0]) as program:
            wait_for(stream.hub)
            events.publish("nodes", node=1)
            last, *_ = with_id(program)
        with listening(api_url(url), people[0]) as other:
            events.publish("nodes", node=2)
            events.publish("rollouts", rollout=7)
            assert [other.event()[0] for _ in range(2)] == ["nodes", "rollouts"]
        with listening(f"{api_url(url)}?topics=rollouts", people[0], last) as some:
            assert some.event() == ("rollouts", {"rollout": 7})
        with listening(api_url(url), people[0], last) as again:
            assert [again.event() for _ in range(2)] == [("nodes", {"node": 2}), ("rollouts", {"rollout": 7})]
            events.publish("nodes", node=3)
            assert again.event() == ("nodes", {"node": 3})


def test_who_comes_back_after_too_long_is_told_that_anything_may_have_moved(
    stream: EventStream, people: tuple[str, str]
) -> None:
    with serving(stream) as url:
        for last in ("0badc0de-1", "nonsense", "-", "x" * 500, "0badc0de-99999999999999999999"):
            with listening(api_url(url), people[0], last) as program:
                assert [program.event() for _ in TOPICS] == [(topic, {}) for topic in TOPICS], last


def test_the_past_is_kept_as_far_as_it_is_told_to_be_kept() -> None:
    hub, client = Hub("redis://127.0.0.1:1/0"), Client("somebody", True, frozenset(TOPICS))
    for number in range(PAST + 10):
        hub.publish(json.dumps({"topic": "nodes", "node": number}).encode())
    assert len(hub.missed(client, f"{hub._word}-10")) == PAST
    assert len(hub.missed(client, f"{hub._word}-{PAST + 9}")) == 1
    assert hub.missed(client, f"{hub._word}-{PAST + 10}") == []
    for last in (f"{hub._word}-9", f"{hub._word}-{PAST + 11}", f"{hub._word}-x"):
        assert [b"data: {}" in each for each in hub.missed(client, last)] == [True] * len(TOPICS)


def test_suspended_accounts_and_tokens_that_are_narrow_or_not_live_do_not_listen(
    stream: EventStream, people: tuple[str, str], acme: Actor
) -> None:
    narrow = create_token(account=acme.account, name="n", role="viewer", scopes=["routes:read"])
    wide = create_token(account=acme.account, name="w", role="viewer", scopes=["events:read"])
    far = create_token(account=acme.account, name="f", role="viewer", networks=["192.0.2.0/24"])
    with serving(stream) as url:
        assert "events:read" in refused(api_url(url), narrow)["detail"]
        for token in ("", "nonsense", f"sw_{'0' * 12}_{'a' * 43}", far):
            assert refused(api_url(url), token)["status"] == 401, token
        with listening(api_url(url), wide):
            pass
        Account.objects.filter(pk=acme.account.pk).update(suspended_at=now())
        assert refused(api_url(url), people[1])["status"] == 403


def test_other_methods_and_topics_are_problems_and_a_session_opens_nothing_here(
    stream: EventStream, people: tuple[str, str]
) -> None:
    with serving(stream) as url:
        assert refused(api_url(url), people[0], "POST")["status"] == 405
        assert "topics are" in refused(f"{api_url(url)}?topics=secrets", people[0])["detail"]


def revoke(token: ApiToken) -> None:
    ApiToken.objects.filter(pk=token.pk).update(revoked_at=now())


def expire(token: ApiToken) -> None:
    ApiToken.objects.filter(pk=token.pk).update(expires_at=now() - timedelta(seconds=1))


def suspend(token: ApiToken) -> None:
    Account.objects.filter(pk=token.account_id).update(suspended_at=now())


ENDINGS: tuple[Callable[[ApiToken], None], ...] = (revoke, expire, suspend)  # the last ends more than its own


def test_a_stream_ends_when_its_token_does(live_redis: str, people: tuple[str, str], acme: Actor) -> None:
    tokens = [create_token(account=acme.account, name=end.__name__, role="viewer") for end in ENDINGS]
    with serving(EventStream(beat=0.1, check=0.1, per_user=len(tokens))) as url, ExitStack() as stack:
        kept = stack.enter_context(listening(api_url(url), people[0]))
        programs = [stack.enter_context(listening(api_url(url), token)) for token in tokens]
        for program in (kept, *programs):
            program.until(": beat")
        for end, program in zip(ENDINGS, programs, strict=True):
            end(ApiToken.objects.get(name=end.__name__))
            with pytest.raises(StopIteration):
                program.until("never said")
        assert kept.until(": beat")


def test_an_account_has_a_limited_number_of_streams(stream: EventStream, people: tuple[str, str], acme: Actor) -> None:
    second = create_token(account=acme.account, name="second", role="viewer")
    with serving(stream) as url, listening(api_url(url), people[1]), listening(api_url(url), second):
        assert refused(api_url(url), people[1])["status"] == 429
        with listening(api_url(url), people[0]):
            pass

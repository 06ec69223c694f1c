"""The event stream, served by the real server over real sockets, with a real Redis."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from django.contrib.sessions.backends.db import SessionStore

from apps.accounts.models import Account, Membership, User
from apps.core import events
from apps.core.clock import now
from apps.observe.live.hub import QUEUE, Client, Hub
from apps.observe.live.stream import EventStream, wanted_topics
from tests.interfaces.streaming import (
    COOKIE,
    customer_session,
    listening,
    operator_session,
    serving,
    sign_in,
    status_of,
    stream,
    wait_for,
)

__all__ = ["customer_session", "operator_session", "stream"]


@pytest.mark.both_engines  # sessions are looked up on another connection
def test_an_event_reaches_every_open_page(stream: EventStream, operator_session: str) -> None:
    with serving(stream) as url, listening(url, operator_session) as one, listening(url, operator_session) as two:
        wait_for(stream.hub)
        assert one.response.headers["content-type"].startswith("text/event-stream")
        assert "no-store" in one.response.headers["cache-control"]
        events.publish("rollouts", rollout=7)
        assert one.event() == two.event() == ("rollouts", {"rollout": 7})


def test_customers_learn_that_something_moved_and_not_what(
    stream: EventStream, operator_session: str, customer_session: str
) -> None:
    with serving(stream) as url, listening(url, customer_session) as bob, listening(url, operator_session) as ada:
        wait_for(stream.hub)
        events.publish("nodes", node=3)
        events.publish("definitions", account="somebody-else")
        events.publish("samples", at=5, secret="x")
        assert [bob.event() for _ in range(3)] == [("nodes", {}), ("definitions", {}), ("samples", {"at": 5})]
        assert ada.event() == ("nodes", {"node": 3})


def test_a_page_gets_only_the_topics_that_it_asked_for(stream: EventStream, operator_session: str) -> None:
    with serving(stream) as url, listening(f"{url}?topics=nodes,samples", operator_session) as page:
        wait_for(stream.hub)
        events.publish("rollouts", rollout=1)
        events.publish("nodes", node=1)
        assert page.event() == ("nodes", {"node": 1})


def test_strangers_other_paths_methods_and_topics_are_refused(stream: EventStream, operator_session: str) -> None:
    with serving(stream) as url:
        for session in ("", "nobody-has-this-session-key-000000", "'; DROP TABLE"):
            assert status_of(url, session) == 401, session
        # No header may hold \x7f: such a request is refused before anybody looks at it.
        assert status_of(url, "\x7f") == 400
        assert status_of(f"{url}/x", operator_session) == 404
        assert status_of(url, operator_session, "POST") == 405
        assert status_of(f"{url}?topics=secrets", operator_session) == 400


def test_a_person_has_a_limited_number_of_streams(stream: EventStream, operator_session: str) -> None:
    with serving(stream) as url:
        with listening(url, operator_session), listening(url, operator_session):
            assert status_of(url, operator_session) == 429
        deadline = time.monotonic() + 10
        while len(stream.hub):
            assert time.monotonic() < deadline, "closed pages still count"
            time.sleep(0.02)
        assert status_of(url, operator_session) == 200


def sign_out(_: User, session: str) -> None:
    SessionStore(session).delete()


def deactivate(user: User, _: str) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def take_membership(user: User, _: str) -> None:
    Membership.objects.filter(user=user).delete()


def suspend(user: User, _: str) -> None:
    Account.objects.filter(memberships__user=user).update(suspended_at=now())


def change_password(user: User, _: str) -> None:
    user.set_unusable_password()
    user.save()


ENDINGS: tuple[Callable[[User, str], None], ...] = (sign_out, deactivate, take_membership, suspend, change_password)


def test_a_stream_ends_when_its_session_does(stream: EventStream, transactional_db: None) -> None:
    with serving(stream) as url, ExitStack() as stack:
        sessions = [sign_in(end.__name__, "customer", account=end.__name__) for end in ENDINGS]
        kept = stack.enter_context(listening(url, sign_in("ada", "operator")))
        pages = [stack.enter_context(listening(url, session)) for session in sessions]
        for page in (kept, *pages):
            page.until(": beat")
        for end, session, page in zip(ENDINGS, sessions, pages, strict=True):
            end(User.objects.get(username=end.__name__), session)
            with pytest.raises(StopIteration):
                page.until("never said")
        assert kept.until(": beat")


def test_a_client_that_does_not_keep_up_is_dropped() -> None:
    async def fill() -> bool:
        client = Client("user 1", True, {"samples"})
        for _ in range(QUEUE):
            client.offer(b"x")
        assert not client.slow.is_set()
        client.offer(b"x")
        return client.slow.is_set()

    assert asyncio.run(fill())


def test_a_blocked_connection_is_cut(stream: EventStream, operator_session: str) -> None:
    with serving(stream) as url:
        port = int(url.rpartition(":")[2].partition("/")[0])
        with socket.socket() as page:
            page.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            page.connect(("127.0.0.1", port))
            page.sendall(f"GET /events HTTP/1.1\r\nhost: x\r\ncookie: {COOKIE}={operator_session}\r\n\r\n".encode())
            wait_for(stream.hub)
            deadline = time.monotonic() + 30
            while len(stream.hub):
                assert time.monotonic() < deadline, "a page that reads nothing was kept"
                for _ in range(200):
                    events.publish("nodes", note="x" * 4000)
                time.sleep(0.01)


def test_who_has_no_stream_left_is_forgotten() -> None:
    async def come_and_go() -> tuple[list[str], list[str]]:
        hub = Hub("redis://127.0.0.1:1/0")
        with hub.client("ada", operator=True, topics=("nodes",)):
            for who in ("ada", "bob", "carla"):
                with hub.client(who, operator=False, topics=("nodes",)):
                    pass
            left = list(hub._users)
        hub.close()
        return left, list(hub._users)

    assert asyncio.run(come_and_go()) == (["ada"], [])


@pytest.mark.parametrize("text", [b"", b"[]", b"3", b"{", b"{}", b'{"topic": "secrets"}', b'{"topic": ["a"]}', b"\xff"])
def test_nonsense_on_the_channel_is_ignored(text: bytes) -> None:
    Hub("redis://127.0.0.1:1/0").publish(text)


@pytest.mark.parametrize(
    ("query", "topics"),
    [
        (b"topics=nodes", {"nodes"}),
        (b"topics=nodes,x", set()),
        (b"topics=", {"samples", "nodes", "rollouts", "runs", "stacks", "zones", "definitions", "lines"}),
    ],
)
def test_topics_of_the_query(query: bytes, topics: set[str]) -> None:
    assert wanted_topics(query) == topics

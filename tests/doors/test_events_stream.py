"""SHOW to open pages: the event stream, served by the real server over real sockets, with a real Redis."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from asgiref.sync import SyncToAsync
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection
from pytest_django.fixtures import Settings

from apps.accounts.models import Account, Membership, User
from apps.core import events
from apps.core.clock import now
from apps.observe.hub import QUEUE, Client, Hub
from apps.observe.stream import EventStream, wanted_topics
from tests.database_url import database_url
from tests.servers import redis

ROOT = Path(__file__).resolve().parents[2]
COOKIE = "sessionid"


def sign_in(name: str, kind: str) -> str:
    """A session key of a person in an account of this kind."""
    account, _ = Account.objects.get_or_create(name=f"{kind}-account", defaults={"title": kind, "kind": kind})
    user, _ = User.objects.get_or_create(username=name)
    Membership.objects.get_or_create(account=account, user=user, defaults={"role": "admin"})
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    assert session.session_key
    return session.session_key


@contextlib.contextmanager
def serving(app: EventStream) -> Iterator[str]:
    """uvicorn in a thread on a free port; yields the URL of the stream."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2, lifespan="on")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/events"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
        SyncToAsync.single_thread_executor.submit(hang_up).result()


def hang_up() -> None:
    """The thread that looks sessions up outlives the server; its connection must not outlive the test."""
    connection.close()


class Listening:
    """A page that listens: lines as they come."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._lines = response.iter_lines()

    def until(self, start: str) -> str:
        """The next line with this start; httpx's timeout ends a wait that is in vain."""
        return next(line for line in self._lines if line.startswith(start))

    def event(self) -> tuple[str, dict[str, Any]]:
        """The next event."""
        name = self.until("event: ").removeprefix("event: ")
        return name, json.loads(self.until("data: ").removeprefix("data: "))


@contextlib.contextmanager
def listening(url: str, session: str, timeout: float = 10) -> Iterator[Listening]:
    with (
        httpx.Client(timeout=timeout, cookies={COOKIE: session}, trust_env=False) as client,
        client.stream("GET", url) as response,
    ):
        assert response.status_code == 200, response.read()
        page = Listening(response)
        page.until(": Spillway")
        yield page


def status_of(url: str, session: str = "", method: str = "GET") -> int:
    with (
        httpx.Client(timeout=10, cookies={COOKIE: session} if session else {}, trust_env=False) as client,
        client.stream(method, url) as response,
    ):
        return response.status_code


def wait_for(hub: Hub) -> None:
    deadline = time.monotonic() + 10
    while not hub.subscribed.is_set():
        assert time.monotonic() < deadline, "the hub did not subscribe"
        time.sleep(0.01)


@pytest.fixture
def operator_session(transactional_db: None) -> str:
    return sign_in("ada", "operator")


@pytest.fixture
def customer_session(transactional_db: None) -> str:
    return sign_in("bob", "customer")


@pytest.fixture
def stream(live_redis: str) -> EventStream:
    return EventStream(beat=0.3, check=0.3, per_user=2)


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


def test_a_silent_stream_beats(stream: EventStream, operator_session: str) -> None:
    with serving(stream) as url, listening(url, operator_session) as page:
        assert page.until(": beat")


@pytest.mark.parametrize("session", ["", "nobody-has-this-session-key-000000", "'; DROP TABLE", "\x7f"])
def test_nobody_listens_without_a_session(stream: EventStream, transactional_db: None, session: str) -> None:
    with serving(stream) as url:
        # No header may hold \x7f: such a request is refused before anybody looks at it.
        assert status_of(url, session) == (400 if session == "\x7f" else 401)


def test_other_paths_methods_and_topics_are_refused(stream: EventStream, operator_session: str) -> None:
    with serving(stream) as url:
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


@pytest.mark.parametrize("how", ["signed out", "deactivated", "membership taken", "suspended", "password changed"])
def test_a_stream_ends_when_its_session_does(stream: EventStream, operator_session: str, how: str) -> None:
    with serving(stream) as url, listening(url, operator_session) as page:
        page.until(": beat")
        user = User.objects.get(username="ada")
        if how == "signed out":
            SessionStore(operator_session).delete()
        elif how == "deactivated":
            User.objects.filter(pk=user.pk).update(is_active=False)
        elif how == "membership taken":
            Membership.objects.filter(user=user).delete()
        elif how == "suspended":
            Account.objects.update(suspended_at=now())
        else:
            user.set_unusable_password()
            user.save()
        with pytest.raises(StopIteration):
            page.until("never said")


def test_streams_outlive_redis_and_are_woken_when_it_is_back(
    operator_session: str, settings: Settings, tmp_path: Path
) -> None:
    with contextlib.ExitStack() as stack:
        settings.REDIS_URL = stack.enter_context(redis(tmp_path))
        port = settings.REDIS_URL.rpartition(":")[2].partition("/")[0]
        stream = EventStream(beat=0.3)
        url = stack.enter_context(serving(stream))
        page = stack.enter_context(listening(url, operator_session))
        wait_for(stream.hub)
        subprocess.run(["redis-cli", "-p", port, "shutdown", "nosave"], check=False, capture_output=True)
        page.until(": beat")
        command = ["redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", str(tmp_path)]
        again = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        stack.callback(again.wait)
        stack.callback(again.terminate)
        assert [page.event() for _ in range(7)] == [
            (t, {}) for t in ("samples", "nodes", "rollouts", "runs", "stacks", "zones", "definitions")
        ]


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


@pytest.mark.parametrize("text", [b"", b"[]", b"3", b"{", b"{}", b'{"topic": "secrets"}', b'{"topic": ["a"]}', b"\xff"])
def test_nonsense_on_the_channel_is_ignored(text: bytes) -> None:
    Hub("redis://127.0.0.1:1/0").publish(text)


@pytest.mark.parametrize(
    ("query", "topics"),
    [
        (b"topics=nodes", {"nodes"}),
        (b"topics=nodes,x", set()),
        (b"topics=", {"samples", "nodes", "rollouts", "runs", "stacks", "zones", "definitions"}),
    ],
)
def test_topics_of_the_query(query: bytes, topics: set[str]) -> None:
    assert wanted_topics(query) == topics


def test_the_process_ends_at_once_while_pages_listen(operator_session: str, live_redis: str) -> None:
    with tempfile.TemporaryDirectory(prefix="spw-") as directory:
        path = f"{directory}/e.sock"
        environment = os.environ | {"SPILLWAY_DATABASE_URL": database_url(), "SPILLWAY_REDIS_URL": live_redis}
        command = [sys.executable, "-m", "uvicorn", "controlplane.events:app", "--uds", path, "--no-access-log"]
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
        try:
            transport = httpx.HTTPTransport(uds=path, retries=0)
            deadline = time.monotonic() + 30
            while not Path(path).exists():
                assert time.monotonic() < deadline
                time.sleep(0.05)
            with (
                httpx.Client(transport=transport, timeout=20, cookies={COOKIE: operator_session}) as client,
                client.stream("GET", "http://spillway/events") as response,
            ):
                page = Listening(response)
                page.until(": Spillway")
                began = time.monotonic()
                process.send_signal(signal.SIGTERM)
                # The stream ends in an orderly way: no exception, no cut.
                with pytest.raises(StopIteration):
                    page.until("never said")
                process.wait(10)
                assert time.monotonic() - began < 5
        finally:
            process.kill()
            _, said = process.communicate()
    assert "Traceback" not in said

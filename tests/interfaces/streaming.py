"""The event stream on the real server over real sockets, and pages that listen to it."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import uvicorn
from asgiref.sync import SyncToAsync
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection

from apps.accounts.models import Account, Membership, User
from apps.observe.live.hub import Hub
from apps.observe.live.stream import EventStream

COOKIE = "sessionid"


def sign_in(name: str, kind: str, account: str = "") -> str:
    """A session key of a person in an account of this kind."""
    house, _ = Account.objects.get_or_create(name=account or f"{kind}-account", defaults={"title": kind, "kind": kind})
    user, _ = User.objects.get_or_create(username=name)
    Membership.objects.get_or_create(account=house, user=user, defaults={"role": "admin"})
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
    return EventStream(beat=0.1, check=0.1, per_user=2)

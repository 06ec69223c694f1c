"""SHOW to open pages: `GET /events` as server-sent events, for people who are signed in."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import signal
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.db import Error, close_old_connections
from django.http import HttpRequest
from django.http.cookie import parse_cookie

from apps.accounts.choosing import actor_of_session
from apps.accounts.models import User
from apps.observe.hub import TOPICS, Client, Hub, TooMany

Scope = dict[str, Any]
Receive = Callable[[], Any]
Send = Callable[[dict[str, Any]], Any]

logger = logging.getLogger(__name__)
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
]


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who listens."""

    user_id: int
    operator: bool


def visitor_of(session_key: str) -> Visitor | None:
    """The person behind a session cookie now, None when the session ended; raises django.db.Error."""
    close_old_connections()
    try:
        request = HttpRequest()
        request.session = importlib.import_module(settings.SESSION_ENGINE).SessionStore(session_key)
        user = get_user(request)
        if not isinstance(user, User) or user.pk is None or (actor := actor_of_session(user, request.session)) is None:
            return None
        return Visitor(user.pk, actor.is_operator)
    finally:
        close_old_connections()


class EventStream:
    """The ASGI application; `beat` seconds between heartbeats, `check` seconds between looks at the session."""

    def __init__(self, *, beat: float = 15.0, check: float = 30.0, per_user: int = 20) -> None:
        self.hub = Hub(settings.REDIS_URL, per_user)
        self._beat = beat
        self._check = check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection, or the life of the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Start and end with the server; the streams must end first, or the server waits for them."""
        await receive()
        _before_signals(self.hub.close)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self.hub.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != "/events":
            return await _refuse(send, 404, "There is nothing here.")
        if scope["method"] != "GET":
            return await _refuse(send, 405, "Only GET.")
        topics = wanted_topics(scope["query_string"])
        if not topics:
            return await _refuse(send, 400, f"The topics are {', '.join(TOPICS)}.")
        session_key = session_key_of(scope["headers"])
        try:
            visitor = await sync_to_async(visitor_of)(session_key) if session_key else None
        except Error:
            return await _refuse(send, 503, "The database does not answer.")
        if visitor is None:
            return await _refuse(send, 401, "Sign in first.")
        if self.hub.closed:
            return await _refuse(send, 503, "This process is ending.")
        try:
            with self.hub.client(visitor.user_id, operator=visitor.operator, topics=topics) as client:
                await self._stream(client, visitor, session_key, receive, send)
        except TooMany:
            await _refuse(send, 429, "Too many open pages; close some.")
        return None

    async def _stream(self, client: Client, visitor: Visitor, session_key: str, receive: Receive, send: Send) -> None:
        """Write until the client leaves, is too slow, or is signed out; whichever ends first ends the rest."""
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        ends = [
            asyncio.ensure_future(each)
            for each in (
                self._write(client, send),
                _gone(receive),
                client.slow.wait(),
                self._signed_out(visitor, session_key),
            )
        ]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in ends:
                each.cancel()
            results = await asyncio.gather(*ends, return_exceptions=True)
        if client.slow.is_set():
            logger.info("dropped a stream that did not keep up")
            # Raising makes the server cut the connection; a polite end would wait in the same full buffer.
            raise ConnectionAbortedError("too slow")
        if not isinstance(results[1], bool):
            with contextlib.suppress(OSError):
                await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _write(self, client: Client, send: Send) -> None:
        async for chunk in self._chunks(client):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def _chunks(self, client: Client) -> AsyncIterator[bytes]:
        """Events as they come, a comment when there are none for a while."""
        yield b"retry: 2000\n: Spillway\n\n"
        while True:
            try:
                # Not wait_for: in Python 3.11 it swallows a cancellation that meets a full queue.
                async with asyncio.timeout(self._beat):
                    chunk = await client.queue.get()
            except TimeoutError:
                chunk = b": beat\n\n"
            if chunk is None:
                return
            yield chunk

    async def _signed_out(self, visitor: Visitor, session_key: str) -> None:
        """Return when the session is no longer this person's with these rights, or cannot be looked up."""
        while True:
            await asyncio.sleep(self._check)
            try:
                if await sync_to_async(visitor_of)(session_key) != visitor:
                    return
            except Error:
                return


def wanted_topics(query: bytes) -> frozenset[str]:
    """The topics of `?topics=nodes,samples`: all without it, none when a word is unknown."""
    given = parse_qs(query.decode("ascii", "replace")).get("topics")
    if given is None:
        return frozenset(TOPICS)
    words = frozenset(word for part in given for word in part.split(","))
    return words if words <= frozenset(TOPICS) else frozenset()


def session_key_of(headers: list[tuple[bytes, bytes]]) -> str:
    """The session cookie's value, empty without one."""
    text = "; ".join(value.decode("latin-1") for name, value in headers if name == b"cookie")
    return parse_cookie(text).get(settings.SESSION_COOKIE_NAME, "")


async def _gone(receive: Receive) -> bool:
    while (await receive())["type"] != "http.disconnect":
        pass
    return True


async def _refuse(send: Send, status: int, sentence: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{sentence}\n".encode()})


def _before_signals(close: Callable[[], None]) -> None:
    """End the streams when the process is asked to end: the server tells applications only after all streams ended."""
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        before = signal.getsignal(number)
        if callable(before):

            def handle(received: int, frame: Any, then: Any = before) -> None:
                loop.call_soon_threadsafe(close)
                then(received, frame)

            signal.signal(number, handle)

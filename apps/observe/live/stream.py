"""What moves: server-sent events for pages (`GET /events`) and for programs (`GET /api/v1/events`)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import Error

from apps.core.errors import Forbidden
from apps.observe.live.hub import TOPICS, Client, Hub, TooMany
from apps.observe.live.subscribers import Lookup, Visitor, program_of, session_key_of, value_of, visitor_of

Scope = dict[str, Any]
Receive = Callable[[], Any]
Send = Callable[[dict[str, Any]], Any]

API_PATH = "/api/v1/events"

logger = logging.getLogger(__name__)
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One of the two URLs: for pages with a session, for programs with a token; `refuse` says no in its own way."""

    lookup: Lookup
    stranger: str
    refuse: Callable[[Send, int, str], Awaitable[None]]


def endpoint_of(scope: Scope) -> Endpoint | None:
    """What is asked for, None where nothing is."""
    headers, path = scope["headers"], scope["path"]
    if path == "/events":
        key = session_key_of(headers)
        return Endpoint(lambda: visitor_of(key) if key else None, "Sign in first.", _refuse)
    if path == API_PATH:
        peer = (scope.get("client") or ("",))[0]
        return Endpoint(lambda: program_of(headers, peer), "The token is unknown or no longer valid.", _problem)
    return None


class EventStream:
    """The ASGI application; `beat` seconds between heartbeats, `check` seconds between looks at who listens."""

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
        endpoint = endpoint_of(scope)
        if endpoint is None:
            return await _refuse(send, 404, "Not found.")
        if scope["method"] != "GET":
            return await endpoint.refuse(send, 405, "Only GET.")
        topics = wanted_topics(scope["query_string"])
        if not topics:
            return await endpoint.refuse(send, 400, f"The topics are {', '.join(TOPICS)}.")
        try:
            visitor = await sync_to_async(endpoint.lookup)()
        except Error:
            return await endpoint.refuse(send, 503, "The database does not answer.")
        except Forbidden as error:
            return await endpoint.refuse(send, 403, error.detail)
        if visitor is None:
            return await endpoint.refuse(send, 401, endpoint.stranger)
        if self.hub.closed:
            return await endpoint.refuse(send, 503, "This process is ending.")
        try:
            with self.hub.client(visitor.who, operator=visitor.operator, topics=topics) as client:
                missed = self.hub.missed(client, value_of(scope["headers"], b"last-event-id"))
                await self._stream(client, missed, self._gone_away(visitor, endpoint.lookup), receive, send)
        except TooMany:
            await endpoint.refuse(send, 429, "Too many open streams; close some.")
        return None

    async def _stream(
        self, client: Client, missed: list[bytes], gone: Coroutine[Any, Any, None], receive: Receive, send: Send
    ) -> None:
        """Write until the client leaves, is too slow, or may not listen; whichever ends first ends the rest."""
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        ends = [
            asyncio.ensure_future(each)
            for each in (self._write(client, missed, send), _gone(receive), client.slow.wait(), gone)
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

    async def _write(self, client: Client, missed: list[bytes], send: Send) -> None:
        async for chunk in self._chunks(client, missed):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def _chunks(self, client: Client, missed: list[bytes]) -> AsyncIterator[bytes]:
        """What was missed, then events as they come, a comment when there are none for a while."""
        yield b"retry: 2000\n: Spillway\n\n"
        for each in missed:
            yield each
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

    async def _gone_away(self, visitor: Visitor, lookup: Lookup) -> None:
        """Return when the caller is no longer this one with these rights, or cannot be looked up."""
        while True:
            await asyncio.sleep(self._check)
            try:
                if await sync_to_async(lookup)() != visitor:
                    return
            except (Error, Forbidden):
                return


def wanted_topics(query: bytes) -> frozenset[str]:
    """The topics of `?topics=nodes,samples`: all without it, none when a word is unknown."""
    given = parse_qs(query.decode("ascii", "replace")).get("topics")
    if given is None:
        return frozenset(TOPICS)
    words = frozenset(word for part in given for word in part.split(","))
    return words if words <= frozenset(TOPICS) else frozenset()


async def _gone(receive: Receive) -> bool:
    while (await receive())["type"] != "http.disconnect":
        pass
    return True


async def _refuse(send: Send, status: int, sentence: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{sentence}\n".encode()})


async def _problem(send: Send, status: int, sentence: str) -> None:
    """The same for programs, as RFC 9457 has it."""
    request_id, title = secrets.token_hex(8), HTTPStatus(status).phrase
    body = {"type": "about:blank", "title": title, "status": status, "detail": sentence}
    body |= {"instance": API_PATH, "request_id": request_id, "errors": []}
    headers = [(b"content-type", b"application/problem+json"), (b"cache-control", b"no-store")]
    headers.append((b"x-request-id", request_id.encode()))
    if status == HTTPStatus.UNAUTHORIZED:
        headers.append((b"www-authenticate", b'Bearer realm="spillway"'))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})


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

"""The fan-out: one Redis subscription per process, handed to every open stream of that process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import random
import re
import secrets
from collections import Counter, deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import get_args

import redis.asyncio
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeout

from apps.core.events import CHANNEL, Topic
from apps.core.stores import redis_clients

TOPICS: tuple[str, ...] = get_args(Topic)
QUEUE = 64
PAST = 1000
LONGEST_WAIT = 10.0
# A host that vanished or hangs closes nothing: after so many seconds without a word it is asked for one.
SILENCE = 10.0
# What customers may know of a topic beyond its name: nodes and rollouts are the operator's.
FOR_CUSTOMERS = {"samples": ("at",)}

logger = logging.getLogger(__name__)


class TooMany(Exception):
    """The person, or the account of the program, has as many streams open as one may have."""


@dataclass(eq=False, slots=True)
class Client:
    """One open stream; what it should write waits in `queue`, None means end."""

    who: str
    operator: bool
    topics: Collection[str]
    queue: asyncio.Queue[bytes | None] = field(default_factory=lambda: asyncio.Queue(QUEUE))
    slow: asyncio.Event = field(default_factory=asyncio.Event)

    def offer(self, chunk: bytes | None) -> None:
        """Hand over without waiting; a client that does not keep up is dropped."""
        try:
            self.queue.put_nowait(chunk)
        except asyncio.QueueFull:
            self.slow.set()


@dataclass(frozen=True, slots=True)
class Event:
    """One message as operators and as customers get it."""

    number: int
    topic: str
    full: bytes
    little: bytes

    def for_(self, client: Client) -> bytes:
        """What this client may know of it."""
        return self.full if client.operator else self.little


class Hub:
    """Knows the clients of this process and feeds them from Redis until closed."""

    def __init__(self, url: str, per_user: int = 20) -> None:
        self._url = url
        self._per_user = per_user
        self._clients: set[Client] = set()
        self._users: Counter[str] = Counter()
        # Ids of another process are no numbers of ours: it is told apart by this word.
        self._word = secrets.token_hex(4)
        self._number = 0
        self._past: deque[Event] = deque(maxlen=PAST)
        self._task: asyncio.Task[None] | None = None
        self.closed = False
        self.subscribed = asyncio.Event()

    @contextlib.contextmanager
    def client(self, who: str, *, operator: bool, topics: Collection[str]) -> Iterator[Client]:
        """A slot in the hub for as long as the stream is open; raises TooMany."""
        if self._users[who] >= self._per_user:
            raise TooMany
        client = Client(who, operator, topics)
        self._users[who] += 1
        self._clients.add(client)
        self._start()
        try:
            yield client
        finally:
            self._clients.discard(client)
            self._users[who] -= 1
            self._users += Counter()  # who has no stream left is forgotten

    def __len__(self) -> int:
        return len(self._clients)

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._feed())

    def close(self) -> None:
        """End every stream, now and from now on."""
        self.closed = True
        for client in self._clients:
            client.offer(None)
        if self._task is not None:
            self._task.cancel()

    async def _feed(self) -> None:
        """Listen; when Redis goes away come back with growing pauses, and then wake every page once."""
        pause, lost = 0.25, False
        while not self.closed:
            try:
                waiting = redis_clients.listening(self._url, socket_connect_timeout=2)
                async with waiting as connection, connection.pubsub() as subscription:
                    await subscription.subscribe(CHANNEL)
                    if lost:
                        logger.info("events: Redis answers again")
                        self._wake_everything()
                    pause, lost = 0.25, False
                    self.subscribed.set()
                    await self._pass_on(subscription)
            except (RedisError, OSError) as error:
                if not lost:
                    logger.warning("events: Redis is away: %s", error)
            self.subscribed.clear()
            lost = True
            await asyncio.sleep(pause * random.uniform(0.7, 1.3))  # noqa: S311 - jitter, not a secret
            pause = min(LONGEST_WAIT, pause * 2)

    async def _pass_on(self, subscription: redis.asyncio.client.PubSub) -> None:
        """Until it is closed; raises RedisError where Redis says nothing at all, though it was asked."""
        asked = False
        while not self.closed:
            message = await subscription.get_message(ignore_subscribe_messages=True, timeout=SILENCE)
            if message is not None:
                asked = False
                if message["type"] != "pong":
                    self.publish(message["data"])
            elif asked:
                raise RedisTimeout(f"it has said nothing for {2 * SILENCE:g} s")
            else:
                asked = True
                await subscription.ping()

    def _wake_everything(self) -> None:
        # Whatever was said while nobody listened: pages read the state again.
        for topic in TOPICS:
            self.publish(json.dumps({"topic": topic}).encode())

    def publish(self, text: bytes) -> None:
        """Hand one message of the channel to those who want and may have it; nonsense is ignored."""
        try:
            data = json.loads(text)
            topic = data.pop("topic")
        except (ValueError, KeyError, AttributeError, TypeError):
            return
        if topic not in TOPICS:
            return
        known = {name: data[name] for name in FOR_CUSTOMERS.get(topic, ()) if name in data}
        self._number += 1
        event = Event(self._number, topic, self._chunk(topic, data), self._chunk(topic, known))
        self._past.append(event)
        for client in self._clients:
            if topic in client.topics:
                client.offer(event.for_(client))

    def _chunk(self, topic: str, data: dict[str, object]) -> bytes:
        return chunk(topic, data, f"{self._word}-{self._number}")

    def missed(self, client: Client, last_id: str) -> list[bytes]:
        """What was said since the event with this id; when that is not known, that anything may have moved.

        Nothing without an id. Call it before anything else may run after `client`, so that nothing is lost between.
        """
        if not last_id:
            return []
        word, _, number = last_id.partition("-")
        since = int(number) if word == self._word and re.fullmatch("[0-9]{1,15}", number, re.ASCII) else -1
        oldest = self._past[0].number if self._past else self._number + 1
        if not oldest - 1 <= since <= self._number:
            return [self._chunk(topic, {}) for topic in TOPICS if topic in client.topics]
        return [each.for_(client) for each in self._past if each.number > since and each.topic in client.topics]


def chunk(topic: str, data: dict[str, object], number: str) -> bytes:
    """One server-sent event; JSON has no line breaks, so the data is one line."""
    return f"id: {number}\nevent: {topic}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()

"""Django's cache in Redis that forgives (without Redis all is a miss, never an error), and what is made once in it."""

from __future__ import annotations

import functools
import hashlib
import logging
import time
from collections.abc import Callable
from typing import Any

from django.core.cache import cache
from django.core.cache.backends.redis import RedisCache, RedisCacheClient
from redis import Redis
from redis.exceptions import RedisError

from apps.core.errors import Conflict
from apps.core.stores import redis_clients

# Whoever makes something may die over it; then each of those who wait makes its own.
MAKING_S, LOOK_EVERY_S = 10.0, 0.02
# A test asks somebody else's machine, and holds a process of the console meanwhile.
BETWEEN_TESTS_S = 3

logger = logging.getLogger(__name__)


def _forgiving(name: str, otherwise: Any) -> Callable[..., Any]:
    strict = getattr(RedisCache, name)

    @functools.wraps(strict)
    def call(self: RedisCache, *args: Any, **kwargs: Any) -> Any:
        try:
            return strict(self, *args, **kwargs)
        except RedisError as error:
            logger.warning("the cache is away (%s): %s", name, error)
            return kwargs.get("default", otherwise)

    return call


class _Client(RedisCacheClient):
    """Django's, with connections to the one Redis that all of Spillway uses."""

    def __init__(self, servers: list[str], **options: Any) -> None:
        super().__init__(servers)
        self._connections = redis_clients.pool(servers[0], **options)

    def get_client(self, key: Any = None, *, write: bool = False) -> Redis:  # noqa: ARG002 - as in the base class
        """There is no other server to read from."""
        return Redis(connection_pool=self._connections)


class ForgivingRedisCache(RedisCache):
    """What is counted or remembered here may be lost at any time; whoever needs more asks the database.

    `incr` answers None when Redis is away, and raises ValueError for a key that is not there, as Django's does.
    """

    def __init__(self, server: Any, params: dict[str, Any]) -> None:
        # Django takes a comma for the end of a URL; in ours it stands between Sentinels.
        super().__init__([server] if isinstance(server, str) else server, params)
        self._class = _Client

    add = _forgiving("add", otherwise=True)
    get = _forgiving("get", otherwise=None)
    set = _forgiving("set", otherwise=None)
    touch = _forgiving("touch", otherwise=False)
    delete = _forgiving("delete", otherwise=False)
    incr = _forgiving("incr", otherwise=None)
    has_key = _forgiving("has_key", otherwise=False)
    get_many = _forgiving("get_many", otherwise={})
    set_many = _forgiving("set_many", otherwise=[])
    delete_many = _forgiving("delete_many", otherwise=None)


def pause_between_tests(*words: object) -> None:
    """Let whoever the words name test a connection once in a while, in whatever process; without Redis, always.

    Raises Conflict for a test that comes too early.
    """
    key = hashlib.sha256(repr(words).encode()).hexdigest()
    if not cache.add(f"first:{key}", True, timeout=BETWEEN_TESTS_S):
        raise Conflict(f"You tested a moment ago; wait {BETWEEN_TESTS_S} seconds.")


def made_once(key: str, make: Callable[[], bytes], lasts_s: float, meanwhile: bytes | None = None) -> bytes:
    """What `make` made for this key in any process within `lasts_s`; who asks while it is made gets `meanwhile`.

    Where there is nothing for the meantime, they wait for it.
    """
    made = cache.get(key)
    if made is None and not cache.add(f"{key}:making", True, timeout=MAKING_S):
        made = _wait(key) if meanwhile is None else meanwhile
    if made is None:
        try:
            made = cache.get(key)  # somebody may have made it since the first look
            if made is None:
                made = make()
                cache.set(key, made, lasts_s)
        finally:
            cache.delete(f"{key}:making")
    return bytes(made)


def _wait(key: str) -> bytes | None:
    """What somebody else is making, or None when that takes too long."""
    until = time.monotonic() + MAKING_S
    while time.monotonic() < until and cache.has_key(f"{key}:making"):
        time.sleep(LOOK_EVERY_S)
    return cache.get(key)  # type: ignore[no-any-return]  # what `made_once` put there

"""Connections to Redis, wherever it is at present: one that is named, or the master that Sentinels name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import redis
import redis.asyncio
import redis.asyncio.retry
import redis.asyncio.sentinel
import redis.backoff
import redis.sentinel
from redis.sentinel import MasterNotFoundError

from apps.core.stores import redis_url

NOBODY = "no Sentinel that answers names a master {}"

# They have no types.
_Plain: Any = redis.sentinel.Sentinel
_Async: Any = redis.asyncio.sentinel.Sentinel
_SentinelPool: Any = redis.sentinel.SentinelConnectionPool
_AsyncSentinelPool: Any = redis.asyncio.sentinel.SentinelConnectionPool


class _Sentinel(_Plain):  # type: ignore[misc]
    """That of redis-py, whose error would be a page about its own objects for each line of a log."""

    def discover_master(self, service_name: str) -> Any:
        """Host and port. Raises MasterNotFoundError."""
        try:
            return super().discover_master(service_name)
        except MasterNotFoundError:
            raise MasterNotFoundError(NOBODY.format(service_name)) from None


class _AsyncSentinel(_Async):  # type: ignore[misc]
    """The same."""

    async def discover_master(self, service_name: str) -> Any:
        """Host and port. Raises MasterNotFoundError."""
        try:
            return await super().discover_master(service_name)
        except redis.asyncio.sentinel.MasterNotFoundError:
            raise MasterNotFoundError(NOBODY.format(service_name)) from None


def pool(url: str, **options: Any) -> redis.ConnectionPool:
    """A pool whose connections are made anew to wherever the Redis of this URL is; raises ValueError for a wrong URL.

    `options` are those of redis-py's connections; nothing is tried twice.
    """
    where = redis_url.read(url)
    ours = {**where.of_server(), **options}
    if where.master:
        sentinels = _Sentinel(where.hosts, sentinel_kwargs=where.of_sentinels(**_patience(options)))
        found: redis.ConnectionPool = _SentinelPool(where.master, sentinels, ssl=where.files is not None, **ours)
        return found
    host, port = where.hosts[0]
    kind = redis.Connection if where.files is None else redis.SSLConnection
    return redis.ConnectionPool(connection_class=kind, host=host, port=port, **ours)


def client(url: str, **options: Any) -> redis.Redis:
    """The commands over such a pool."""
    return redis.Redis(connection_pool=pool(url, **options))


@asynccontextmanager
async def listening(url: str, **options: Any) -> AsyncIterator[redis.asyncio.Redis]:
    """The same for asyncio, for whoever waits for messages; closed at the end with all that it opened."""
    where = redis_url.read(url)
    ours = {**where.of_server(), **options}
    if not where.master:
        host, port = where.hosts[0]
        kind = redis.asyncio.Connection if where.files is None else redis.asyncio.SSLConnection
        plain = redis.asyncio.ConnectionPool(connection_class=kind, host=host, port=port, **ours)
        async with redis.asyncio.Redis.from_pool(plain) as found:
            yield found
        return
    retry = {"retry": redis.asyncio.retry.Retry(redis.backoff.NoBackoff(), 0)}
    told = {**where.of_sentinels(**_patience(options)), **retry}
    sentinels = _AsyncSentinel(where.hosts, sentinel_kwargs=told)
    secured = where.files is not None
    managed = _AsyncSentinelPool(where.master, sentinels, ssl=secured, **ours)
    try:
        async with redis.asyncio.Redis.from_pool(managed) as found:
            yield found
    finally:
        await asyncio.gather(*(each.aclose() for each in sentinels.sentinels))


def _patience(options: dict[str, Any]) -> dict[str, Any]:
    """Sentinels are waited for as long as the Redis itself."""
    connect = options.get("socket_connect_timeout", 0.5)
    return {"socket_connect_timeout": connect, "socket_timeout": connect}

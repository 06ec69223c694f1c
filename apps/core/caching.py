"""Django's cache in Redis that forgives: a Redis that is away is a miss, never an error."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

from django.core.cache.backends.redis import RedisCache
from redis.exceptions import RedisError

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


class ForgivingRedisCache(RedisCache):
    """What is counted or remembered here may be lost at any time; whoever needs more asks the database.

    `incr` answers None when Redis is away, and raises ValueError for a key that is not there, as Django's does.
    """

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

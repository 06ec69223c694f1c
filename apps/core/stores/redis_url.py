"""SPILLWAY_REDIS_URL: one Redis, or the one that Sentinels name; in the clear, or over TLS with a verified certificate.

The broker of Celery and our own connections are made of the same reading, so that they never disagree.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

from redis.backoff import NoBackoff
from redis.retry import Retry

from apps.core.stores.hosts import split, user_and_hosts

CLEAR, TLS = ("redis", "redis+sentinel"), ("rediss", "rediss+sentinel")
PORT, SENTINEL_PORT = 6379, 26379
TLS_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
OF_SENTINELS = ("sentinel_username", "sentinel_password")
LOGIN = ("username", "password")
# Whoever only listens would believe in a host that vanished for hours: it is missed after 5 + 3 × 2 seconds.
KEEPALIVE: dict[str, Any] = {
    "socket_keepalive": True,
    "socket_keepalive_options": {
        socket.TCP_KEEPIDLE: 5,
        socket.TCP_KEEPINTVL: 2,
        socket.TCP_KEEPCNT: 3,
        socket.TCP_USER_TIMEOUT: 10_000,
    },
}


@dataclass(frozen=True, slots=True)
class RedisUrl:
    """`hosts` are Sentinels where `master` is not empty; `files` are arguments of TLS, and None without it."""

    hosts: tuple[tuple[str, int], ...]
    master: str
    database: int
    login: tuple[tuple[str, str], ...]
    sentinel_login: tuple[tuple[str, str], ...]
    files: tuple[tuple[str, str], ...] | None

    def of_server(self) -> dict[str, Any]:
        """Arguments of a connection to the Redis itself, wherever it is."""
        return {"db": self.database, **dict(self.login), **self.of_tls()}

    def of_sentinels(self, **patience: float) -> dict[str, Any]:
        """Arguments of the clients that ask Sentinels: each is asked once, and then the next one."""
        tls = {"ssl": True, **self.of_tls()} if self.files is not None else {}
        return {**dict(self.sentinel_login), **tls, **patience, "retry": Retry(NoBackoff(), 0)}

    def of_tls(self) -> dict[str, Any]:
        """The certificate has to be valid, and of this host; empty without TLS."""
        if self.files is None:
            return {}
        return {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_check_hostname": True, **dict(self.files)}

    def broker(self) -> str:
        """The same place in the words of Celery, which has no word for TLS and for the master in its URL."""
        login = dict(self.login)
        user = "".join(f"{quote(login.get(name, ''), safe='')}{mark}" for name, mark in zip(LOGIN, ":@", strict=True))
        scheme = "sentinel" if self.master else "redis"
        brokers = [f"{scheme}://{user if login else ''}{_bracketed(host)}:{port}" for host, port in self.hosts]
        return ";".join(f"{each}/{self.database}" for each in brokers)

    def broker_options(self, **patience: float) -> dict[str, Any]:
        """Transport options of Celery beside its own."""
        if not self.master:
            return {}
        return {"master_name": self.master, "sentinel_kwargs": self.of_sentinels(**patience)}


def read(url: str) -> RedisUrl:
    """Raises ValueError for what is no such URL."""
    parts = split(url)
    if parts.scheme not in CLEAR + TLS or parts.fragment:
        raise ValueError("not a URL of Redis")
    by_sentinels, secured = parts.scheme.endswith("+sentinel"), parts.scheme in TLS
    user, hosts = user_and_hosts(parts.netloc)
    if not all(host for host, _ in hosts) or (len(hosts) > 1 and not by_sentinels):
        raise ValueError("one host, or Sentinels")
    master, number = _path(parts.path, by_sentinels=by_sentinels)
    said = _query(parts.query, (TLS_FILES if secured else ()) + (OF_SENTINELS if by_sentinels else ()))
    name, _, password = user.removesuffix("@").partition(":")
    return RedisUrl(
        hosts=tuple((host, port or (SENTINEL_PORT if by_sentinels else PORT)) for host, port in hosts),
        master=master,
        database=number,
        login=_said(username=unquote(name), password=unquote(password)),
        sentinel_login=_said(**{each.removeprefix("sentinel_"): said.get(each, "") for each in OF_SENTINELS}),
        files=_said(**{each: said.get(each, "") for each in TLS_FILES}) if secured else None,
    )


def fits(url: str) -> bool:
    """Whether `read` takes it."""
    try:
        read(url)
    except ValueError:
        return False
    return url.isprintable() and " " not in url


def _path(path: str, *, by_sentinels: bool) -> tuple[str, int]:
    """`/master/0` of Sentinels, `/0` of one Redis; the number may be left out."""
    words = path.strip("/").split("/") if path.strip("/") else []
    master = words.pop(0) if by_sentinels and words else ""
    number = words.pop(0) if words else "0"
    if words or (by_sentinels and not master) or not number.isascii() or not number.isdecimal() or int(number) > 999:
        raise ValueError("the path is a master, where Sentinels are named, and the number of a database")
    return master, int(number)


def _query(query: str, known: tuple[str, ...]) -> dict[str, str]:
    said = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    if unknown := sorted(set(said) - set(known)):
        raise ValueError(f"nobody knows {unknown[0]}")
    return said


def _said(**values: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in values.items() if value)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host

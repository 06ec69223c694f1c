"""A Redis with a replica and three Sentinels, all over TLS: its master hangs, the next one dies, and all go on."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Empty
from typing import Any

import kombu
import pytest
import redis
from django.core.cache.backends.base import BaseCache
from kombu.exceptions import OperationalError

from apps.core.caching import ForgivingRedisCache
from apps.core.events import CHANNEL
from apps.core.stores import redis_clients, redis_url
from apps.observe.live import hub as live
from tests.authorities import Authority
from tests.conformance.real_agent import short_folder
from tests.ports import spare_port

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(300)]
HOST, MASTER, PASSWORD = "127.0.0.1", "main", "a-password-of-redis"
DOWN_AFTER_MS = 1000
# What is heard again after a master fell: the Sentinels agree in about three seconds, whoever listens asks each ten.
AGAIN_S = 60.0


class Stores:
    """Two of Redis and three Sentinels, as processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        authority = Authority()
        (folder / "ca.pem").write_text(authority.pem)
        (folder / "other.pem").write_text(Authority("Somebody else").pem)
        (folder / "pair.pem").write_text(authority.signed(HOST))
        self.ports = [spare_port() for _ in range(5)]
        self.processes: list[subprocess.Popen[bytes]] = []
        plain = (f"requirepass {PASSWORD}", f"masterauth {PASSWORD}", 'save ""')
        self._start(self.ports[0], *plain)
        self._start(self.ports[1], *plain, f"replicaof {HOST} {self.ports[0]}")
        watch = (
            f"sentinel monitor {MASTER} {HOST} {self.ports[0]} 2",
            f"sentinel auth-pass {MASTER} {PASSWORD}",
            f"sentinel down-after-milliseconds {MASTER} {DOWN_AFTER_MS}",
            f"sentinel failover-timeout {MASTER} 6000",
        )
        for port in self.ports[2:]:
            self._start(port, *watch, sentinel=True)
        until(self._follows, "one follows the other")
        until(
            lambda: all(map(self._knows_all, self.ports[2:])), "the Sentinels know each other: none is replaced before"
        )

    def _start(self, port: int, *more: str, sentinel: bool = False) -> None:
        pair, authority = self.folder / "pair.pem", self.folder / "ca.pem"
        file = self.folder / f"{port}.conf"
        said = ("port 0", f"tls-port {port}", f"bind {HOST}", f"dir {self.folder}", "tls-replication yes")
        tls = (f"tls-cert-file {pair}", f"tls-key-file {pair}", f"tls-ca-cert-file {authority}", "tls-auth-clients no")
        file.write_text("\n".join((*said, *tls, *more)) + "\n")
        command = ["redis-server", str(file), *(["--sentinel"] if sentinel else [])]
        with (self.folder / f"{port}.log").open("wb") as log:
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=log))

    def ask(self, port: int) -> redis.Redis:
        """One of the two, whoever is master."""
        return redis_clients.client(f"rediss://:{PASSWORD}@{HOST}:{port}/0?ssl_ca_certs={self.folder}/ca.pem")

    def _follows(self) -> bool:
        with contextlib.suppress(redis.RedisError):
            return bool(self.ask(self.ports[0]).info("replication")["connected_slaves"] == 1)
        return False

    def _knows_all(self, port: int) -> bool:
        """Whether this Sentinel has heard of the two others and of the replica."""
        sentinel = redis.Redis(HOST, port, ssl=True, ssl_ca_certs=str(self.folder / "ca.pem"))
        with contextlib.suppress(redis.RedisError):
            seen: Any = sentinel.sentinel_master(MASTER)
            return bool((seen["num-other-sentinels"], seen["num-slaves"]) == (2, 1))
        return False

    def first_follows(self) -> bool:
        """Whether the one that was the master at first is a replica now."""
        with contextlib.suppress(redis.RedisError):
            return bool(self.ask(self.ports[0]).info("replication")["role"] == "slave")
        return False

    def url(self, authority: str = "ca.pem") -> str:
        """What SPILLWAY_REDIS_URL says."""
        hosts = ",".join(f"{HOST}:{port}" for port in self.ports[2:])
        return f"rediss+sentinel://:{PASSWORD}@{hosts}/{MASTER}/0?ssl_ca_certs={self.folder / authority}"

    def end(self) -> None:
        """All of them."""
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def stores() -> Iterator[Stores]:
    found = Stores(short_folder())
    yield found
    found.end()


def until(true: Any, what: str, patience: float = AGAIN_S) -> float:
    """The seconds until it holds."""
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < patience, f"waited in vain: {what}"
        time.sleep(0.1)
    return time.monotonic() - began


class Clients:
    """Each of those that the product has: the cache, the broker of Celery, live events."""

    def __init__(self, url: str) -> None:
        where = redis_url.read(url)
        self.cache: BaseCache = ForgivingRedisCache(url, {"OPTIONS": PATIENCE})
        options = {"max_retries": 0, **PATIENCE, **redis_url.KEEPALIVE, **where.broker_options(**PATIENCE)}
        self.broker = kombu.Connection(where.broker(), ssl=where.of_tls(), transport_options=options)
        self.events = redis_clients.client(url, **PATIENCE)

    def cached(self) -> bool:
        """Whether the cache keeps what it is given."""
        word = str(time.monotonic())
        self.cache.set("word", word, 60)
        return bool(self.cache.get("word") == word)

    def woken(self) -> bool:
        """Whether a message comes through a queue."""
        with contextlib.suppress(OperationalError, Empty, *self.broker.connection_errors):
            with self.broker.clone() as fresh, contextlib.closing(fresh.SimpleQueue("tried")) as queue:
                queue.put({"at": time.monotonic()})
                queue.get(timeout=2).ack()
            return True
        return False


PATIENCE: dict[str, float] = {"socket_connect_timeout": 0.5, "socket_timeout": 0.5}


async def heard(hub: live.Hub, client: live.Client, events: redis.Redis) -> float:
    """The seconds until a page hears of something again."""
    began = time.monotonic()
    while time.monotonic() - began < AGAIN_S:
        with contextlib.suppress(redis.RedisError):
            await asyncio.to_thread(events.publish, CHANNEL, '{"topic": "nodes", "at": 7}')
        with contextlib.suppress(asyncio.TimeoutError):
            if b'"at":7' in (await asyncio.wait_for(client.queue.get(), 0.3) or b""):
                return time.monotonic() - began
    raise AssertionError("nothing was heard again")


def test_the_cache_the_broker_and_live_events_follow_the_master(stores: Stores) -> None:
    async def whole() -> None:
        clients, hub = Clients(stores.url()), live.Hub(stores.url())
        with hub.client("somebody", operator=True, topics=frozenset(live.TOPICS)) as client:
            await asyncio.wait_for(hub.subscribed.wait(), 10)
            assert clients.cached()
            assert clients.woken()
            for what, master, number in (("hangs", 0, signal.SIGSTOP), ("dies", 1, signal.SIGKILL)):
                began = time.monotonic()
                stores.processes[master].send_signal(number)
                await asyncio.to_thread(until, clients.cached, "the cache works")
                cached = time.monotonic() - began
                await asyncio.to_thread(until, clients.woken, "a message comes through")
                woken = time.monotonic() - began
                await heard(hub, client, clients.events)
                print(f"{what}: cache {cached:.1f} s, queue {woken:.1f} s, events {time.monotonic() - began:.1f} s")
                if number == signal.SIGSTOP:
                    stores.processes[master].send_signal(signal.SIGCONT)
                    await asyncio.to_thread(until, stores.first_follows, "the old master follows the new one")
        hub.close()

    asyncio.run(whole())


def test_another_authority_is_refused_by_each_of_them(stores: Stores) -> None:
    clients = Clients(stores.url("other.pem"))
    assert not clients.cached()
    assert not clients.woken()
    one = f"rediss://:{PASSWORD}@{HOST}:{stores.ports[0]}/0"
    right = f"{one}?ssl_ca_certs={stores.folder}/ca.pem"
    assert redis_clients.client(right).ping()
    # Of somebody else, of none that the system knows, and for another name.
    for wrong in (right.replace("/ca.pem", "/other.pem"), one, right.replace(HOST, "localhost")):
        with pytest.raises(redis.ConnectionError, match="CERTIFICATE_VERIFY_FAILED"):
            redis_clients.client(wrong).ping()

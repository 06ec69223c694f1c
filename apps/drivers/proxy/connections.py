"""Connections to agents that are kept: with a new one an answer costs about twenty times the processor time."""

from __future__ import annotations

import functools
import http.client
import os
import select
import socket
import ssl
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from apps.drivers.proxy.contract import NodeTarget

# A node that is off the network is missed after this long, whatever is asked of it.
CONNECT_SECONDS = 2.0
HANDSHAKE_SECONDS = 5.0
# The agent closes what was silent for 120 s, so we never take one that it is about to close.
LONGEST_IDLE_S = 60.0
# Certificates are asked for again and again, so that one that was taken back does not last.
LONGEST_LIFE_S = 600.0
MOST_IDLE = 4096
SWEEP_S = 10.0
# The other side closed a connection that lay idle: the question did not arrive.
GONE = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError, ssl.SSLEOFError)

Files = tuple[tuple[str, int], ...]
Key = tuple[str, str, Files]


@dataclass(eq=False, slots=True)
class Kept:
    """A connection and its times, in seconds of a counter."""

    connection: http.client.HTTPConnection
    made: float
    used: float


@dataclass(slots=True)
class Connections:
    """The idle connections of this process, by node; any thread takes one and gives it back after the answer."""

    _idle: OrderedDict[Key, list[Kept]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _swept: float = 0.0

    def ask(
        self, target: NodeTarget, method: str, path: str, content: bytes | None, timeout: float
    ) -> tuple[int, bytes]:
        """Status and body of one answer. Raises OSError, http.client.HTTPException or ValueError.

        Only a question that changes nothing is asked again, once, when the connection proves to be closed.
        """
        key = (target.name, target.url, _files(target))
        kept = self._take(key)
        if kept is not None:
            try:
                return self._exchange(key, kept, method, path, content, timeout)
            except GONE:
                if method != "GET":
                    raise
        began = time.monotonic()
        return self._exchange(key, Kept(_open(target, key[2], timeout), began, began), method, path, content, timeout)

    def close(self) -> None:
        """Close what lies idle."""
        with self._lock:
            every = [kept for each in self._idle.values() for kept in each]
            self._idle.clear()
        for kept in every:
            kept.connection.close()

    def _exchange(
        self, key: Key, kept: Kept, method: str, path: str, content: bytes | None, timeout: float
    ) -> tuple[int, bytes]:
        connection, whole = kept.connection, False
        try:
            if connection.sock is not None:
                connection.sock.settimeout(timeout)
            connection.request(method, path, content, {"content-type": "application/json"})
            response = connection.getresponse()
            body = response.read()
            whole = not response.will_close
            return response.status, body
        finally:
            if whole:
                self._give_back(key, kept)
            else:
                connection.close()

    def _take(self, key: Key) -> Kept | None:
        """The one used last that still lives."""
        while True:
            with self._lock:
                kept = self._idle[key].pop() if self._idle.get(key) else None
            if kept is None or _lives(kept):
                return kept
            kept.connection.close()

    def _give_back(self, key: Key, kept: Kept) -> None:
        kept.used = time.monotonic()
        with self._lock:
            self._idle.setdefault(key, []).append(kept)
            over = self._sweep(kept.used)
        for each in over:
            each.connection.close()

    def _sweep(self, moment: float) -> list[Kept]:
        """Take out what is too old, and of too many those whose node was asked longest ago."""
        over: list[Kept] = []
        if moment - self._swept < SWEEP_S:
            return over
        self._swept = moment
        for key in list(self._idle):
            fresh = [each for each in self._idle[key] if _is_young(each, moment)]
            over += [each for each in self._idle[key] if each not in fresh]
            self._idle[key] = fresh
            if not fresh:
                del self._idle[key]
        while sum(map(len, self._idle.values())) > MOST_IDLE:
            over += self._idle.popitem(last=False)[1]
        return over


def _is_young(kept: Kept, moment: float) -> bool:
    return moment - kept.used < LONGEST_IDLE_S and moment - kept.made < LONGEST_LIFE_S


def _lives(kept: Kept) -> bool:
    """Whether it is young enough and nothing came while nobody asked: that would be its end."""
    if kept.connection.sock is None or not _is_young(kept, time.monotonic()):
        return False
    poll = select.poll()
    poll.register(kept.connection.sock, select.POLLIN)
    return not poll.poll(0)


def _files(target: NodeTarget) -> Files:
    """The PEM files with the time of their last change: new ones mean new connections. Raises OSError."""
    if urlsplit(target.url).scheme == "unix":
        return ()
    paths = (target.ca_file, target.certificate_file, target.key_file)
    return tuple((path, Path(path).stat().st_mtime_ns) for path in paths)


@functools.lru_cache(maxsize=8)
def _context(files: Files) -> ssl.SSLContext:
    """One for all nodes: making one costs more than the answer to a question."""
    (ca, _), (certificate, _), (key, _) = files
    context = ssl.create_default_context(cafile=ca)
    context.load_cert_chain(certificate, key)
    return context


def _open(target: NodeTarget, files: Files, timeout: float) -> http.client.HTTPConnection:
    url = urlsplit(target.url)
    if url.scheme == "unix":
        return _UnixConnection(url.path, timeout)
    return _NamedConnection(target.name, _context(files), url.hostname or "", url.port or 443, timeout)


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(CONNECT_SECONDS)
        self.sock.connect(self._path)
        self.sock.settimeout(self.timeout)


class _NamedConnection(http.client.HTTPConnection):
    """HTTPS whose certificate must carry the node's name, wherever the node is reached."""

    def __init__(self, name: str, context: ssl.SSLContext, host: str, port: int, timeout: float) -> None:
        super().__init__(host, port, timeout=timeout)
        self._name, self._context = name, context

    def connect(self) -> None:
        raw = socket.create_connection((self.host, self.port), CONNECT_SECONDS)
        try:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                # What was sent and not received: a kept connection shows no sooner that its node is off the network.
                raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(CONNECT_SECONDS * 1000))
            raw.settimeout(HANDSHAKE_SECONDS)
            self.sock = self._context.wrap_socket(raw, server_hostname=self._name)
        except BaseException:
            raw.close()
            raise
        self.sock.settimeout(self.timeout)


CONNECTIONS = Connections()
os.register_at_fork(after_in_child=CONNECTIONS.__init__)  # type: ignore[misc]  # the parent goes on with its own

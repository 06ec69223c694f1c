"""Connections to agents that are kept: with a new one an answer costs about twenty times the processor time."""

from __future__ import annotations

import functools
import hashlib
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

from apps.drivers.proxy.contract import Credentials, NodeTarget, Revoked

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
Key = tuple[str, str, Credentials | None, Files]


@dataclass(frozen=True, slots=True)
class Shown:
    """The certificate at the other end of a connection: its SHA-256 (hex), and when it ends in Unix seconds."""

    sha256: str = ""
    ends: float | None = None


NOTHING = Shown()


@dataclass(eq=False, slots=True)
class Kept:
    """A connection and its times, in seconds of a counter."""

    connection: _UnixConnection | _NamedConnection
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
    ) -> tuple[int, bytes, Shown]:
        """Status and body of one answer, and the certificate that stood for it.

        Raises Revoked, OSError, http.client.HTTPException or ValueError.

        Only a question that changes nothing is asked again, once, when the connection proves to be closed.
        """
        key = (target.name, target.url, target.credentials, _files(target))
        kept = self._take(key, target.revoked)
        if kept is not None:
            try:
                return self._exchange(key, kept, method, path, content, timeout)
            except GONE:
                if method != "GET":
                    raise
        began = time.monotonic()
        return self._exchange(key, Kept(_open(target, key[3], timeout), began, began), method, path, content, timeout)

    def close(self) -> None:
        """Close what lies idle."""
        with self._lock:
            every = [kept for each in self._idle.values() for kept in each]
            self._idle.clear()
        for kept in every:
            kept.connection.close()

    def _exchange(
        self, key: Key, kept: Kept, method: str, path: str, content: bytes | None, timeout: float
    ) -> tuple[int, bytes, Shown]:
        connection, whole = kept.connection, False
        try:
            if connection.sock is not None:
                connection.sock.settimeout(timeout)
            connection.request(method, path, content, {"content-type": "application/json"})
            response = connection.getresponse()
            body = response.read()
            whole = not response.will_close
            return response.status, body, connection.shown
        finally:
            if whole:
                self._give_back(key, kept)
            else:
                connection.close()

    def _take(self, key: Key, revoked: frozenset[str]) -> Kept | None:
        """The one used last that still lives, and whose certificate still counts."""
        while True:
            with self._lock:
                kept = self._idle[key].pop() if self._idle.get(key) else None
            if kept is None or (_lives(kept) and kept.connection.shown.sha256 not in revoked):
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
    if urlsplit(target.url).scheme == "unix" or (target.credentials and not target.ca_file):
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


@functools.lru_cache(maxsize=4)
def _context_of(credentials: Credentials) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=credentials.authorities)
    # OpenSSL reads a key only from a file: this one has no name and is in memory alone.
    with os.fdopen(os.memfd_create("credentials", os.MFD_CLOEXEC), "w") as file:
        file.write(credentials.certificate + credentials.key)
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
    return context


def _contexts(target: NodeTarget, files: Files) -> list[ssl.SSLContext]:
    """How to speak to the node, in the order to be tried."""
    found = [] if target.credentials is None else [_context_of(target.credentials)]
    return [*found, _context(files)] if files else found


def _open(target: NodeTarget, files: Files, timeout: float) -> _UnixConnection | _NamedConnection:
    url = urlsplit(target.url)
    if url.scheme == "unix":
        return _UnixConnection(url.path, timeout)
    return _NamedConnection(target, _contexts(target, files), url.hostname or "", url.port or 443, timeout)


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    shown = NOTHING

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(CONNECT_SECONDS)
        self.sock.connect(self._path)
        self.sock.settimeout(self.timeout)


class _NamedConnection(http.client.HTTPConnection):
    """HTTPS whose certificate must carry the node's name, wherever the node is reached, and not be revoked."""

    def __init__(
        self, target: NodeTarget, contexts: list[ssl.SSLContext], host: str, port: int, timeout: float
    ) -> None:
        super().__init__(host, port, timeout=timeout)
        self._target, self._contexts = target, contexts
        self.shown = NOTHING

    def connect(self) -> None:
        """Raises Revoked; OSError as everybody does."""
        *first, last = self._contexts
        for context in first:
            try:
                self.sock = self._secured(context)
                break
            except ssl.SSLCertVerificationError:
                continue  # its certificate is of the other authority, and so is what it believes
        else:
            self.sock = self._secured(last)
        self.sock.settimeout(self.timeout)

    def _secured(self, context: ssl.SSLContext) -> ssl.SSLSocket:
        raw = socket.create_connection((self.host, self.port), CONNECT_SECONDS)
        try:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                # What was sent and not received: a kept connection shows no sooner that its node is off the network.
                raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(CONNECT_SECONDS * 1000))
            raw.settimeout(HANDSHAKE_SECONDS)
            secured = context.wrap_socket(raw, server_hostname=self._target.name)
            self.shown = _shown_by(secured)
            if self.shown.sha256 in self._target.revoked:
                name = self._target.name
                raise Revoked(f"The certificate of {name} was revoked, so nothing is said to it. Enrol it again.")
        except BaseException:
            raw.close()
            raise
        return secured


def _shown_by(connection: ssl.SSLSocket) -> Shown:
    sha256 = hashlib.sha256(connection.getpeercert(binary_form=True) or b"").hexdigest()
    ends = (connection.getpeercert() or {}).get("notAfter")
    return Shown(sha256, ssl.cert_time_to_seconds(ends) if isinstance(ends, str) else None)


CONNECTIONS = Connections()
os.register_at_fork(after_in_child=CONNECTIONS.__init__)  # type: ignore[misc]  # the parent goes on with its own

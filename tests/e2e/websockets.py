"""WebSocket as tests need it: a server that answers each message with the same, and clients of HTTP/1.1 and HTTP/2."""

from __future__ import annotations

import base64
import hashlib
import os
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.e2e.rendered_proxy import PATIENCE_S

_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_TEXT, _MASKED, _LAST = 1, 0x80, 0x80
_DATA, _HEADERS, _RESET, _SETTINGS, _WINDOW = 0, 1, 3, 4, 8
_END_STREAM, _END_HEADERS, _ACK = 1, 4, 1
CONNECT_PROTOCOL = 8
"""The setting by which a server of HTTP/2 says that it takes extended CONNECT (RFC 8441)."""


class Refused(Exception):
    """The first answer, where it is no WebSocket."""


class Plain:
    """The bytes of a connection of HTTP/1.1."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def upgrade(self, host: str, path: str) -> None:
        """The handshake of RFC 6455. Raises Refused."""
        key = base64.b64encode(os.urandom(16))
        self.send(
            f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n".encode()
            + b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n" % key
        )
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += self.receive(1)
        if not answer.startswith(b"HTTP/1.1 101 ") or accepted(key) not in answer:
            raise Refused(answer)

    def send(self, data: bytes) -> None:
        """All of it."""
        self._sock.sendall(data)

    def receive(self, count: int) -> bytes:
        """That many bytes. Raises ConnectionError where the other side ends before, TimeoutError."""
        found = b""
        while len(found) < count:
            part = self._sock.recv(count - len(found))
            if not part:
                raise ConnectionResetError
            found += part
        return found


class Http2:
    """The bytes of one stream of HTTP/2, opened by extended CONNECT."""

    def __init__(self, sock: socket.socket) -> None:
        self._connection = Plain(sock)
        self._kept = b""
        self._secure = isinstance(sock, ssl.SSLSocket)
        self.settings: dict[int, int] = {}

    def upgrade(self, host: str, path: str) -> None:
        """The handshake of RFC 8441. Raises Refused."""
        self._connection.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(_SETTINGS, 0, 0, b""))
        said = {
            ":method": "CONNECT",
            ":protocol": "websocket",
            ":scheme": "https" if self._secure else "http",
            ":path": path,
            ":authority": host,
            "sec-websocket-version": "13",
        }
        # Literals that nobody keeps, with lengths below 127 (RFC 7541, 6.2.2).
        pairs = ((name.encode(), value.encode()) for name, value in said.items())
        block = b"".join(b"\0%c%b%c%b" % (len(name), name, len(value), value) for name, value in pairs)
        self._connection.send(frame(_HEADERS, _END_HEADERS, 1, block))
        while (head := self._next())[0] != _HEADERS:
            pass
        if head[1][:1] != b"\x88":  # `:status: 200` of the static table
            raise Refused(head[1])

    def send(self, data: bytes) -> None:
        """All of it, in frames as large as everybody takes; not more than the other side's first window."""
        for start in range(0, len(data), 16_384):
            self._connection.send(frame(_DATA, 0, 1, data[start : start + 16_384]))

    def receive(self, count: int) -> bytes:
        """That many bytes. Raises ConnectionError where the other side ends before, TimeoutError."""
        while len(self._kept) < count:
            kind, payload = self._next()
            if kind == _DATA:
                self._kept += payload
        found, self._kept = self._kept[:count], self._kept[count:]
        return found

    def _next(self) -> tuple[int, bytes]:
        head = self._connection.receive(9)
        kind, flags = head[3], head[4]
        payload = self._connection.receive(int.from_bytes(head[:3], "big"))
        if kind == _RESET or (kind == _DATA and flags & _END_STREAM):
            raise ConnectionResetError
        if kind == _SETTINGS and not flags & _ACK:
            self.settings |= dict(struct.iter_unpack("!HI", payload))
            self._connection.send(frame(_SETTINGS, _ACK, 0, b""))
        if kind == _DATA and payload:
            more = len(payload).to_bytes(4, "big")
            self._connection.send(frame(_WINDOW, 0, 0, more) + frame(_WINDOW, 0, 1, more))
        return kind, payload


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """A frame of HTTP/2."""
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def accepted(key: bytes) -> bytes:
    """What proves that the server understood the handshake."""
    return base64.b64encode(hashlib.sha1(key + _MAGIC).digest())  # noqa: S324  # as RFC 6455 has it


def say(side: Plain | Http2, text: bytes, *, masked: bool = True) -> None:
    """One message; clients mask theirs."""
    size, mask = len(text), os.urandom(4) if masked else b""
    bit = _MASKED if masked else 0
    length = bytes((bit | size,)) if size < 126 else bytes((bit | 127,)) + size.to_bytes(8, "big")
    side.send(bytes((_LAST | _TEXT,)) + length + mask + (_unmasked(text, mask) if masked else text))


def hear(side: Plain | Http2) -> bytes:
    """The next message. Raises ConnectionError where none comes, TimeoutError."""
    _, second = side.receive(2)
    size = second & 0x7F
    if size > 125:
        size = int.from_bytes(side.receive(8 if size == 127 else 2), "big")
    mask = side.receive(4) if second & _MASKED else b""
    text = side.receive(size)
    return _unmasked(text, mask) if mask else text


def _unmasked(text: bytes, mask: bytes) -> bytes:
    return bytes(byte ^ mask[index % 4] for index, byte in enumerate(text))


@contextmanager
def websocket_server(asked: list[bytes], context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Says every message back; what was asked for `/no` is refused. Yields its port."""
    listening = socket.create_server(("127.0.0.1", 0))

    def talk(plain: socket.socket) -> None:
        with suppress(OSError), plain, _secured(plain, context) as sock:
            side, request = Plain(sock), b""
            while not request.endswith(b"\r\n\r\n"):
                request += side.receive(1)
            asked.append(request)
            key = next(line[19:] for line in request.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key:"))
            if request.startswith(b"GET /no"):
                side.send(b"HTTP/1.1 403 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                return
            proof = accepted(key)
            side.send(b"HTTP/1.1 101 Yes\r\nupgrade: websocket\r\nconnection: upgrade\r\n")
            side.send(b"sec-websocket-accept: %s\r\n\r\n" % proof)
            while True:
                say(side, hear(side), masked=False)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=talk, args=(listening.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield int(listening.getsockname()[1])
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def _secured(plain: socket.socket, context: ssl.SSLContext | None) -> socket.socket:
    return context.wrap_socket(plain, server_side=True) if context else plain


@contextmanager
def connected(
    port: int, host: str, path: str, *, http2: bool, context: ssl.SSLContext | None
) -> Iterator[Plain | Http2]:
    """An open WebSocket. Raises Refused."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as plain:
        sock = context.wrap_socket(plain, server_hostname=host) if context else plain
        with sock:
            side = Http2(sock) if http2 else Plain(sock)
            side.upgrade(host, path)
            yield side

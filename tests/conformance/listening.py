"""A server of somebody else for tests: a real socket that counts who comes, keeps what they say, and says no."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread

NO = b"HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


@dataclass
class Stranger:
    """A server of somebody else: counts who comes, keeps what they say, answers `answer` to everybody."""

    port: int
    answer: bytes = NO
    connections: int = 0
    heard: list[bytes] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def take(self, connection: socket.socket) -> None:
        """One caller: what it says first is kept, then it is answered and left."""
        self.connections += 1
        connection.settimeout(60)
        with connection:
            said = connection.recv(65536)
            while b"\r\n\r\n" in said and len(said.partition(b"\r\n\r\n")[2]) < _length(said):
                said += connection.recv(65536)
            self.heard.append(said)
            connection.sendall(self.answer)


def _length(said: bytes) -> int:
    lines = said.partition(b"\r\n\r\n")[0].lower().split(b"\r\n")
    return next((int(line[16:]) for line in lines if line.startswith(b"content-length: ")), 0)


@contextmanager
def listening() -> Iterator[Stranger]:
    """A stranger on a socket of its own."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        stranger = Stranger(server.getsockname()[1])

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                try:
                    stranger.take(connection)
                except OSError:
                    continue

        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield stranger
        server.shutdown(socket.SHUT_RDWR)
    thread.join(10)

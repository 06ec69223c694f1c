"""Servers of a few lines, a function for each connection."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def answering(serve: Callable[[socket.socket], object]) -> Iterator[int]:
    """Run `serve` for every connection to a port, which is yielded; it is closed when `serve` is done."""
    listening = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_accept, args=(listening, serve), daemon=True).start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def read_until(connection: socket.socket, end: bytes) -> bytes:
    """What comes until that, or until nothing does."""
    found = b""
    while end not in found and (more := connection.recv(65536)):
        found += more
    return found


def _accept(listening: socket.socket, serve: Callable[[socket.socket], object]) -> None:
    with contextlib.suppress(OSError):  # the test is over
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=_serve, args=(connection, serve), daemon=True).start()


def _serve(connection: socket.socket, serve: Callable[[socket.socket], object]) -> None:
    with connection, contextlib.suppress(OSError):
        serve(connection)

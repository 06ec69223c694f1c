"""A client of HTTP/3, and the HAProxys among HAPROXY_BINARIES that speak it."""

from __future__ import annotations

import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.conformance.slow_haproxy import BINARIES
from tests.e2e.rendered_proxy import PATIENCE_S, Answer

LARGEST_DATAGRAM = 65536
RESET_TOKEN = 16


def _has_quic(binary: str) -> bool:
    return "+QUIC " in subprocess.run([binary, "-vv"], capture_output=True, text=True, check=False).stdout


NONE = pytest.param("", marks=pytest.mark.skip(reason="HAPROXY_BINARIES names no HAProxy with QUIC; test-all does"))
every_quic = pytest.mark.parametrize("binary", [each for each in BINARIES if _has_quic(each)] or [NONE])


class Ended(Exception):
    """The other side has closed the connection, or never opened it."""


class Client:
    """One connection, driven by whoever waits for an answer; `tickets` are those that the other side gave."""

    def __init__(self, address: tuple[str, int], name: str, patience_s: float) -> None:
        library = {each: pytest.importorskip(f"aioquic.{each}") for each in ("h3.connection", "quic.connection")}
        configuration = pytest.importorskip("aioquic.quic.configuration").QuicConfiguration(
            is_client=True,
            alpn_protocols=library["h3.connection"].H3_ALPN,
            verify_mode=ssl.CERT_NONE,
            server_name=name,
            idle_timeout=patience_s,
        )
        self.tickets: list[Any] = []
        self._quic = library["quic.connection"].QuicConnection(
            configuration=configuration, session_ticket_handler=self.tickets.append
        )
        self._http = library["h3.connection"].H3Connection(self._quic)
        self._answers: dict[int, tuple[dict[str, str], bytearray]] = {}
        self._done: set[int] = set()
        self._address = address
        self._socket = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.connect(address)
        self._quic.connect(address, now=time.monotonic())

    def ask(self, host: str, path: str = "/", **headers: str) -> int:
        """Send a request; its number."""
        number: int = self._quic.get_next_available_stream_id()
        self._answers[number] = ({}, bytearray())
        words = {":method": "GET", ":scheme": "https", ":authority": host, ":path": path, **headers}
        self._http.send_headers(number, [(k.encode(), v.encode()) for k, v in words.items()], end_stream=True)
        self._send()
        return number

    def answer(self, number: int) -> Answer:
        """What came back. Raises Ended."""
        until = time.monotonic() + PATIENCE_S
        while number not in self._done:
            assert time.monotonic() < until, "no answer"
            self.go_on(0.1)
        headers, body = self._answers[number]
        return Answer(int(headers[":status"]), headers, body.decode())

    def go_on(self, seconds: float) -> None:
        """Take what arrives within this time, at most until the next thing is due. Raises Ended."""
        due = self._quic.get_timer()
        self._socket.settimeout(max(0.001, min(seconds, due - time.monotonic() if due else seconds)))
        try:
            datagram = self._socket.recv(LARGEST_DATAGRAM)
            # The library does not look: whoever knows this word knows the connection no more (RFC 9000, 10.3).
            if datagram.endswith(self._quic._peer_cid.stateless_reset_token or b"\0" * RESET_TOKEN):
                raise Ended("reset")
            self._quic.receive_datagram(datagram, self._address, now=time.monotonic())
        except TimeoutError:
            if due and time.monotonic() >= due:
                self._quic.handle_timer(now=time.monotonic())
        except ConnectionRefusedError:
            raise Ended("nobody listens") from None
        while (event := self._quic.next_event()) is not None:
            if type(event).__name__ == "ConnectionTerminated":
                raise Ended(event.reason_phrase)
            for each in self._http.handle_event(event):
                self._note(each)
        self._send()

    def close(self) -> None:
        """Say good-bye."""
        self._quic.close()
        self._send()
        self._socket.close()

    def _note(self, event: Any) -> None:
        headers, body = self._answers.get(getattr(event, "stream_id", -1), ({}, bytearray()))
        headers.update({name.decode(): value.decode() for name, value in getattr(event, "headers", ())})
        body.extend(getattr(event, "data", b""))
        if getattr(event, "stream_ended", False):
            self._done.add(event.stream_id)

    def _send(self) -> None:
        for datagram, _ in self._quic.datagrams_to_send(now=time.monotonic()):
            self._socket.send(datagram)


@contextmanager
def connected(port: int, name: str, address: str = "127.0.0.1", patience_s: float = PATIENCE_S) -> Iterator[Client]:
    """A connection for the name, whatever certificate is shown; closed at the end. Who is silent so long is gone."""
    client = Client((address, port), name, patience_s)
    try:
        yield client
    finally:
        client.close()


def ask(port: int, name: str, path: str = "/", host: str = "", **headers: str) -> Answer:
    """One request on a connection of its own, for the name of the handshake unless another host is given."""
    with connected(port, name) as client:
        return client.answer(client.ask(host or name, path, **headers))

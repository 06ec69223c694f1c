"""HTTP/2 of the engine: against HAProxy, and frame by frame against a server that does what it should not."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from apps.drivers.load import engine
from apps.drivers.load.contract import Arrivals, Endpoint, LoadError, Plan, Request, Tls
from apps.drivers.load.engine import tls_of
from apps.drivers.load.http2 import (
    ACK,
    CANCEL,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    RST_STREAM,
    SETTINGS,
    frame,
)
from tests.conformance.load_certificate import write_certificate
from tests.conformance.load_server import wait_until
from tests.conformance.test_load_generators import total
from tests.conformance.test_load_http1 import REQUESTS, outcomes, patient, run
from tests.ports import spare_port

__all__ = ["patient"]
EMPTY_SETTINGS = frame(SETTINGS, 0, 0)


def plan_of(port: int, path: str = "/", **values: Any) -> Plan:
    """20 requests in a tenth of a second over HTTP/2; with `users` as many as they can."""
    usual: dict[str, Any] = {
        "endpoints": (Endpoint("127.0.0.1", port),),
        "request": Request("a.example", path, headers={"X-Load-Test": "run-17"}),
        "arrivals": Arrivals.CONSTANT,
        "ramp_s": 0.0,
        "duration_s": 0.1,
        "timeout_s": 60.0,
        "rate": 0.0 if "users" in values else REQUESTS / 0.1,
        "protocol": "http2",
    }
    return Plan(**{**usual, **values})


@dataclass(frozen=True)
class Proxy:
    """HAProxy with its ports: clear text, TLS with h2, TLS without."""

    clear: int
    secured: int
    old: int
    chain: Path


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """Answers with the status that the path names, when it says X-Load-Test."""
    folder = tmp_path_factory.mktemp("h2")
    chain, key = write_certificate(folder, "a.example")
    both = folder / "both.pem"
    both.write_text(chain.read_text() + key.read_text())
    clear, secured, old = spare_port(), spare_port(), spare_port()
    statuses = "".join(
        f"    http-request return status {status} if {{ path /{status} }}\n" for status in (200, 404, 429, 500, 503)
    )
    config = folder / "haproxy.cfg"
    config.write_text(
        "defaults\n    mode http\n    timeout client 10s\nfrontend h2\n"
        f"    bind 127.0.0.1:{clear} proto h2\n"
        f"    bind 127.0.0.1:{secured} ssl crt {both} alpn h2,http/1.1\n"
        f"    bind 127.0.0.1:{old} ssl crt {both} alpn http/1.1\n"
        "    http-request return status 400 unless { req.hdr(x-load-test) run-17 }\n"
        "    http-request redirect location /followed if { path /elsewhere }\n"
        f"{statuses}"
        '    http-request return status 200 content-type text/plain lf-string "%[req.body]" if METH_POST\n'
        "    http-request return status 200 content-type text/plain string ok\n"
    )
    process = subprocess.Popen([shutil.which("haproxy") or "/usr/sbin/haproxy", "-db", "-f", str(config)])
    try:
        assert wait_until(lambda: _listens(old))
        yield Proxy(clear, secured, old, chain)
    finally:
        process.terminate()
        process.wait(10)


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@pytest.mark.parametrize("status", [200, 404, 429, 500, 503])
def test_statuses_are_read(proxy: Proxy, status: int) -> None:
    seconds = run(plan_of(proxy.clear, f"/{status}", users=2))
    assert outcomes(seconds) == {status: total(seconds, "sent")}
    assert total(seconds, "sent") > 2
    assert seconds[0].connections <= 2


def test_a_redirect_is_not_followed(proxy: Proxy) -> None:
    assert set(outcomes(run(plan_of(proxy.clear, "/elsewhere")))) == {302}


def test_it_speaks_over_tls_where_both_agree(proxy: Proxy) -> None:
    plan = plan_of(proxy.secured, tls=Tls("a.example", str(proxy.chain)))
    assert set(outcomes(run(plan))) == {200}


def test_a_server_that_does_not_speak_it_is_an_error(proxy: Proxy) -> None:
    plan = plan_of(proxy.old, tls=Tls("a.example", str(proxy.chain)))
    assert set(outcomes(run(plan))) <= {"protocol", "tls"}


def test_a_certificate_that_does_not_fit_is_an_error(proxy: Proxy) -> None:
    assert set(outcomes(run(plan_of(proxy.secured, tls=Tls("b.example", str(proxy.chain)))))) == {"tls"}


def test_a_body_arrives(proxy: Proxy) -> None:
    request = Request("a.example", "/", "POST", {"X-Load-Test": "run-17"}, b"x" * 2000)
    assert set(outcomes(run(plan_of(proxy.clear, request=request)))) == {200}


def test_users_share_connections(proxy: Proxy) -> None:
    seconds = run(plan_of(proxy.clear, users=20))
    assert set(outcomes(seconds)) == {200}
    assert total(seconds, "answered") > 20
    assert max(each.in_flight for each in seconds) <= 20
    assert seconds[0].connections < 20


def test_without_keep_alive_each_request_has_a_connection_of_its_own(proxy: Proxy) -> None:
    seconds = run(plan_of(proxy.clear, keep_alive=False))
    assert outcomes(seconds) == {200: total(seconds, "sent")}


def test_more_than_a_frame_takes_is_refused() -> None:
    request = Request("a.example", "/", "POST", body=b"x" * 20_000)
    with pytest.raises(LoadError, match="16384"):
        run(plan_of(1, request=request))


# A server of our own, frame by frame

Turn = Callable[["Talk", int], None]


@dataclass
class Talk:
    """One connection of the server: what arrived, and what it may say."""

    writer: asyncio.StreamWriter
    number: int
    seen: Script
    has_read_our_settings: bool = False

    def answer(self, stream: int, status: bytes = b"\x88") -> None:
        """Without a body."""
        self.writer.write(frame(HEADERS, END_HEADERS | END_STREAM, stream, status))

    def say(self, *frames: bytes) -> None:
        """Anything."""
        self.writer.write(b"".join(frames))


@dataclass
class Script:
    """What the server does with each request, and what it saw."""

    turn: Turn
    settings: bytes = EMPTY_SETTINGS
    port: int = 0
    connections: int = 0
    requests: int = 0
    kinds: list[tuple[int, int]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Until the client leaves."""
        self.connections += 1
        talk = Talk(writer, self.connections, self)
        with suppress(asyncio.IncompleteReadError, OSError):
            assert (await reader.readexactly(24)).startswith(b"PRI * HTTP/2.0")
            writer.write(self.settings)
            while True:
                first, flags, stream = struct.unpack(">IBI", await reader.readexactly(9))
                await reader.readexactly(first >> 8)
                self.kinds.append((first & 0xFF, flags))
                talk.has_read_our_settings |= self.kinds[-1] == (SETTINGS, ACK)
                if first & 0xFF == HEADERS:
                    self.requests += 1
                    self.turn(talk, stream)
                    await writer.drain()
        writer.close()


@contextmanager
def scripted(turn: Turn, settings: bytes = EMPTY_SETTINGS) -> Iterator[Script]:
    """Such a server in a thread."""
    script = Script(turn, settings)
    started, ending = threading.Event(), threading.Event()

    async def serving() -> None:
        server = await asyncio.start_server(script.serve, "127.0.0.1", 0)
        script.port = server.sockets[0].getsockname()[1]
        started.set()
        await asyncio.to_thread(ending.wait)
        server.close()

    thread = threading.Thread(target=asyncio.run, args=(serving(),), daemon=True)
    thread.start()
    started.wait()
    try:
        yield script
    finally:
        ending.set()
        thread.join(5)


def test_all_frames_of_an_answer_are_read_over() -> None:
    def turn(talk: Talk, stream: int) -> None:
        talk.say(
            frame(PING, 0, 0, b"12345678"),
            frame(HEADERS, END_HEADERS, stream, b"\x08\x03103"),
            frame(HEADERS, END_HEADERS | 0x8 | 0x20, stream, b"\x02" + b"\0" * 5 + b"\x88" + b"\0\0"),
            frame(0x77, 0, 0, b"nobody knows this kind"),
            frame(DATA, 0, stream, b"x" * 16_384),
            frame(HEADERS, END_HEADERS | END_STREAM, stream, b"\x00\x01a\x01b"),
        )

    with scripted(turn) as script:
        assert outcomes(run(plan_of(script.port))) == {200: script.requests}
        assert (PING, ACK) in script.kinds
        assert (SETTINGS, ACK) in script.kinds


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\x82"), "protocol"),
        (frame(DATA, END_STREAM, 1, b"no status"), "protocol"),
        (b"\xff" * 30, "protocol"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "protocol"),
    ],
)
def test_what_is_not_http2_is_an_error_of_protocol(said: bytes, kind: str) -> None:
    with scripted(lambda talk, _: talk.say(said)) as script:
        assert set(outcomes(run(plan_of(script.port)))) == {kind}


def test_a_stream_that_is_reset_is_one_lost_request() -> None:
    def turn(talk: Talk, stream: int) -> None:
        if talk.seen.requests % 4:
            talk.answer(stream)
        else:
            talk.say(frame(HEADERS, END_HEADERS, stream, b"\x88"), frame(RST_STREAM, 0, stream, b"\0\0\0\2"))

    with scripted(turn) as script:
        found = outcomes(run(plan_of(script.port)))
        assert found["reset"] == script.requests // 4
        assert found[200] == script.requests - script.requests // 4
        assert script.connections == 1


def test_a_server_that_goes_away_is_left_and_what_it_did_not_take_is_asked_again() -> None:
    def turn(talk: Talk, stream: int) -> None:
        if stream <= 9:
            talk.answer(stream)
        else:
            talk.say(frame(GOAWAY, 0, 0, struct.pack(">II", 9, 0)))

    with scripted(turn) as script:
        seconds = run(plan_of(script.port, duration_s=0.2), quiet_at_last=True)
        assert outcomes(seconds) == {200: total(seconds, "sent")}
        assert script.connections >= REQUESTS / 6


def test_a_server_that_always_goes_away_is_not_asked_without_end() -> None:
    with scripted(lambda talk, _: talk.say(frame(GOAWAY, 0, 0, struct.pack(">II", 0, 0)))) as script:
        seconds = run(plan_of(script.port))
        assert outcomes(seconds) == {"reset": total(seconds, "sent")}
        assert script.requests <= REQUESTS


@pytest.fixture
def no_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is under way when a plan ends is not waited for."""
    monkeypatch.setattr(engine, "DRAIN_S", 0.01)


@pytest.mark.usefixtures("no_answers")
def test_no_more_streams_than_the_server_allows() -> None:
    held: dict[int, int] = {}
    too_many = []

    def turn(talk: Talk, _: int) -> None:
        held[talk.number] = held.get(talk.number, 0) + 1
        # Until its settings are read, a connection may have been given more.
        if talk.has_read_our_settings and held[talk.number] > 2:
            too_many.append(talk.number)

    two = frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 2))
    with scripted(turn, two) as script:
        run(plan_of(script.port))
        assert script.connections > 1
        assert script.kinds.count((SETTINGS, ACK)) > 1
        assert too_many == []


def test_a_request_that_takes_too_long_is_cancelled_and_the_connection_stays() -> None:
    with scripted(lambda *_: None) as script:
        assert set(outcomes(run(plan_of(script.port, timeout_s=0.03)))) == {"timeout"}
        assert script.connections == 1
        assert any(kind == RST_STREAM for kind, _ in script.kinds)
        assert CANCEL == 8


def test_an_answer_longer_than_the_plan_allows_is_cut_off() -> None:
    def turn(talk: Talk, stream: int) -> None:
        talk.say(frame(HEADERS, END_HEADERS, stream, b"\x88"), *[frame(DATA, 0, stream, b"x" * 10_000)] * 3)

    with scripted(turn) as script:
        assert set(outcomes(run(plan_of(script.port, max_answer_bytes=25_000)))) == {"too_big"}


@pytest.mark.usefixtures("no_answers")
def test_when_all_requests_in_flight_are_taken_one_more_is_refused() -> None:
    with scripted(lambda *_: None) as script:
        seconds = run(plan_of(script.port, max_connections=10))
        assert max(each.in_flight for each in seconds) == 10
        assert outcomes(seconds) == {"refused": REQUESTS - 10}


def test_a_server_that_takes_no_such_body_is_an_error() -> None:
    small = frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 10))
    with scripted(lambda *_: None, small) as script:
        request = Request("a.example", "/", "POST", body=b"x" * 100)
        found = outcomes(run(plan_of(script.port, request=request)))
        assert found["protocol"] > 0
        assert 200 not in found


def test_tls_asks_for_http2() -> None:
    context = tls_of(plan_of(1, tls=Tls("a.example")))
    assert context is not None
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)

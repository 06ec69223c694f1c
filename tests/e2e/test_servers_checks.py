"""Health checks of every kind through real HAProxy: servers that answer well are up, the others down."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.servers import AgentCheck, CheckKind, OutlierEjection
from apps.compiler.model.shared import HealthCheck, Protocol
from tests.e2e.rendered_proxy import running
from tests.pure.compiler_fixtures import front, pool, route, server, snapshot

pytestmark = pytest.mark.e2e
Talk = Callable[[Any], None]
TIMES: dict[str, Any] = {"interval_ms": 100, "timeout_ms": 2000, "rise": 1, "fall": 1}
MYSQL_HELLO = (
    b"\x0a5.7.0\0" + bytes((1, 0, 0, 0)) + b"12345678\0\xff\xf7\x08\x02\0\x0f\x80\x15" + bytes(10) + b"1" * 12 + b"\0"
)


@contextmanager
def talking(talk: Talk) -> Iterator[int]:
    """A server that talks so with whoever connects; yields its port."""

    class Handler(socketserver.BaseRequestHandler):
        """One connection."""

        def handle(self) -> None:
            """Talk until the other side has had enough."""
            with suppress(OSError):
                talk(self.request)

    class Server(socketserver.ThreadingTCPServer):
        """Any number of them at once."""

        daemon_threads = allow_reuse_address = True

    with Server(("127.0.0.1", 0), Handler) as talker:
        threading.Thread(target=talker.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield int(talker.server_address[1])
        finally:
            talker.shutdown()


def says(first: bytes, *answers: bytes) -> Talk:
    """Say something at once if it is something, then one answer for each message; then wait."""

    def talk(connection: Any) -> None:
        if first:
            connection.sendall(first)
        for answer in (*answers, b""):
            if not connection.recv(65536):
                return
            connection.sendall(answer)
        connection.recv(65536)

    return talk


def http(status: str, body: str = "", asks: str = "") -> Talk:
    """Answer with that status where the request holds `asks`, else 500."""

    def talk(connection: Any) -> None:
        request = b""
        while b"\r\n\r\n" not in request or (asks and asks.encode() not in request):
            part = connection.recv(65536)
            if not part:
                break
            request += part
        found = status if asks.encode() in request else "500 Wrong"
        connection.sendall(f"HTTP/1.1 {found}\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode())

    return talk


def mysql(payload: bytes, number: int = 0) -> bytes:
    """One packet."""
    return len(payload).to_bytes(3, "little") + bytes((number,)) + payload


def fleet_of(port: int, check: HealthCheck | None, protocol: Protocol = Protocol.HTTP, **fields: Any) -> Snapshot:
    """A pool of one server."""
    servers = (server(1, address="127.0.0.1", port=port),)
    one = pool(1, servers=servers, protocol=protocol, health_check=check, **fields)
    fronts = (front(route(1)),) if protocol is Protocol.HTTP else (front(),)
    return snapshot(*fronts, pools=(one,), local_development=True)


def state_of(fleet: Snapshot, directory: Path, state: str) -> None:
    """Wait until the server has the state; it is taken for up before it is checked, so nothing else is told apart."""
    compilation = compile_snapshot(fleet)
    assert compilation.left_out == ()
    with running(compilation.output, directory) as proxy:
        proxy.until(lambda: proxy.last_checks().get("srv-1", "") not in ("", "INI"), "it was checked")
        proxy.until_checked("srv-1", state)


ASKED = HealthCheck(
    path="/up", method="POST", headers=(("X-Check", "yes"),), body="ping", expect_statuses=("200-299", "304"), **TIMES
)
WITH_TEXT = HealthCheck(path="/up", expect_body="all is well", **TIMES)


@pytest.mark.parametrize(
    ("check", "talk", "state"),
    [
        (ASKED, http("204 No", asks="ping"), "UP"),
        (ASKED, http("304 Same", asks="X-Check: yes".lower()), "UP"),
        (ASKED, http("301 Moved"), "DOWN"),
        (WITH_TEXT, http("200 OK", "here all is well"), "UP"),
        (WITH_TEXT, http("200 OK", "all is lost"), "DOWN"),
    ],
)
def test_a_check_by_http_asks_and_expects_what_it_is_told(
    tmp_path: Path, check: HealthCheck, talk: Talk, state: str
) -> None:
    with talking(talk) as port:
        state_of(fleet_of(port, check), tmp_path, state)


LDAP_OK = bytes.fromhex("300c02010161070a010004000400")
PLAIN = {
    CheckKind.TCP: (says(b"", b"+PONG\r\n"), says(b"", b"-ERR\r\n")),
    CheckKind.REDIS: (says(b"", b"+PONG\r\n"), says(b"", b"-NOAUTH\r\n")),
    CheckKind.SMTP: (says(b"220 hello\r\n", b"250 well\r\n", b"221 bye\r\n"), says(b"421 busy\r\n")),
    CheckKind.POSTGRESQL: (says(b"", b"R\0\0\0\x08\0\0\0\0"), says(b"", b"E\0\0\0\x08SFAT\0")),
    CheckKind.MYSQL: (says(mysql(MYSQL_HELLO), mysql(b"\0\0\0\2\0\0\0", 2)), says(mysql(b"\xff\x10\x04Too many"))),
    CheckKind.LDAP: (says(b"", LDAP_OK), says(b"", b"HTTP/1.1 400 Bad\r\n\r\n")),
}


@pytest.mark.parametrize("kind", PLAIN)
def test_a_check_of_a_protocol_tells_a_server_that_is_well_from_one_that_answers_otherwise(
    tmp_path: Path, kind: CheckKind
) -> None:
    words: dict[str, Any] = {"send": "PING\n", "expect": "+PONG"} if kind is CheckKind.TCP else {}
    words |= {"user": "spillway"} if kind in (CheckKind.POSTGRESQL, CheckKind.MYSQL) else {}
    check = HealthCheck(kind=kind, **words, **TIMES)
    for talk, state in zip(PLAIN[kind], ("UP", "DOWN"), strict=True):
        with talking(talk) as port:
            state_of(fleet_of(port, check, Protocol.TCP), tmp_path, state)


def test_an_agent_says_how_much_its_server_takes(tmp_path: Path) -> None:
    def agent(connection: Any) -> None:
        connection.sendall(b"drain\n")

    with talking(agent) as asked, talking(http("200 OK")) as port:
        one = fleet_of(port, None, agent_check=AgentCheck(asked, 100))
        with running(compile_snapshot(one).output, tmp_path) as proxy:
            proxy.until_checked("srv-1", "DRAIN")


@pytest.mark.parametrize(
    ("ejection", "ejected"), [(OutlierEjection(errors=3, return_after_ms=1500), True), (None, False)]
)
def test_a_server_that_fails_requests_is_left_out_and_comes_back(
    tmp_path: Path, ejection: OutlierEjection | None, ejected: bool
) -> None:
    def talk(connection: Any) -> None:
        request = connection.recv(65536)
        status = "200 OK" if b"/up" in request.split(b"\r\n")[0] else "500 Broken"
        connection.sendall(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())

    check = HealthCheck(path="/up", interval_ms=60_000, timeout_ms=2000, rise=1, fall=3)
    with talking(talk) as port:
        compiled = compile_snapshot(fleet_of(port, check, outlier_ejection=ejection))
        with running(compiled.output, tmp_path) as proxy:
            statuses = [proxy.ask("lst-1", "a.example", "/").status for _ in range(5)]
            assert statuses == ([500, 500, 500, 503, 503] if ejected else [500] * 5)
            if ejected:
                proxy.until_checked("srv-1", "UP")

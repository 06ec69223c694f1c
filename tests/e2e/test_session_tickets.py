"""Session tickets of real nodes, asked with OpenSSL: who resumes where, and which key is gone for good."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.agent.bodies import read_tickets
from apps.agent.errors import Malformed
from apps.compiler.bundle import Bundle
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.listener_options import ClientCertificates, ClientVerify, ListenerTls
from apps.compiler.model.shared import Certificate, FixedResponse, Protocol
from apps.compiler.targets.haproxy.listeners import tls
from apps.drivers.proxy.contract import Refused
from apps.rollouts.tickets import digest_of
from tests.authorities import Authority
from tests.conformance.inside import Inside, inside
from tests.conformance.real_agent import RealAgent
from tests.pure.compiler_fixtures import front, listener, route, snapshot

pytestmark = pytest.mark.e2e

NAMES = ("a.example", "b.example")
ISSUER, A, B = Authority(), Authority("Authority A"), Authority("Authority B")
PEMS = tuple(map(ISSUER.signed, NAMES))
OF_CLIENTS = tuple(
    ClientCertificates(ClientVerify.REQUIRED, each.pem, hostnames=(name,))
    for each, name in zip((A, B), NAMES, strict=True)
)
VERSIONS = ("-tls1_2", "-tls1_3")


def given(*letters: str) -> tuple[str, ...]:
    """Three secrets by a letter each."""
    return tuple(letter.encode().hex() * 32 for letter in letters)


FIRST, SECOND, THIRD = given("a", "b", "c"), given("b", "c", "d"), given("c", "d", "e")


def bundle(ports: tuple[int, ...], **fields: Any) -> Bundle:
    """An https listener on each port, all with the same certificates."""
    certificates = tuple(
        Certificate(f"crt-{number}", name, "acme", pem, (name,))
        for number, (name, pem) in enumerate(zip(NAMES, PEMS, strict=True), 1)
    )
    keys = tuple(each.id for each in certificates)
    listeners = tuple(
        listener(number, port=port, protocol=Protocol.HTTPS, certificate_ids=keys, **fields)
        for number, port in enumerate(ports, 1)
    )
    routes = (route(number, name, fixed_response=FixedResponse(200)) for number, name in enumerate(NAMES, 1))
    found = compile_snapshot(snapshot(front(*routes, listeners=listeners), certificates=certificates))
    assert found.left_out == ()
    return found.output


@pytest.fixture(scope="module")
def nodes() -> Iterator[tuple[Inside, Inside]]:
    """Two nodes of a fleet, with two listeners; they have no secrets in common yet."""
    with inside() as first, inside({"address": "127.0.0.2"}) as second:
        wanted = bundle((first.port, second.port))
        for each in (first, second):
            each.push(wanted, 1)
        yield first, second


def take(secrets: tuple[str, ...], *nodes: Inside) -> None:
    for each in nodes:
        each.node.tickets.take(secrets, each.node.proxy, running=True)


class Visitor:
    """A client that keeps its session in a file, as `openssl s_client` does."""

    def __init__(self, folder: Path, version: str, port: int) -> None:
        self.version, self.port = version, port
        self.session = folder / "session.pem"

    def comes_to(self, node: Inside, port: int = 0, name: str = NAMES[0], *, keep: bool = False) -> str:
        """New or Reused; `keep` says to come back with what is handed out."""
        where = f"{node.settings.address}:{port or self.port}"
        known = ["-sess_in", str(self.session)] if self.session.exists() else []
        kept = ["-sess_out", str(self.session)] if keep else []
        program = shutil.which("openssl") or "openssl"
        command = [program, "s_client", "-connect", where, "-servername", name, self.version, "-ign_eof"]
        asked = f"GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n"
        done = subprocess.run(
            [*command, *known, *kept], input=asked, capture_output=True, text=True, timeout=60, check=False
        )
        assert "HTTP/1.1 200" in done.stdout, done.stdout + done.stderr
        return next(word for word in ("New", "Reused") if f"\n{word}, TLSv1." in done.stdout)


def restart(node: Inside) -> None:
    """A new worker, by a push of what runs with another text."""
    node.push(bundle(tuple(bind.port for bind in node.node.releases.manifest(live_of(node)).binds)), generation(node))


def live_of(node: Inside) -> Path:
    found = node.node.releases.live()
    assert found is not None
    return found


def generation(node: Inside) -> int:
    return node.node.confirmed.generation + 1


@pytest.mark.parametrize("version", VERSIONS)
def test_a_session_goes_on_at_another_node_after_a_reload_and_until_its_key_is_gone(
    nodes: tuple[Inside, Inside], tmp_path: Path, version: str
) -> None:
    first, second = nodes
    take(FIRST, first, second)
    visitor = Visitor(tmp_path, version, first.port)
    assert visitor.comes_to(first, keep=True) == "New"
    reloads = second.node.confirmed.reloads
    assert visitor.comes_to(second) == "Reused"
    restart(second)
    assert visitor.comes_to(second) == "Reused"
    assert second.node.confirmed.reloads == reloads + 1
    take(SECOND, first, second)
    assert [visitor.comes_to(each) for each in nodes] == ["Reused", "Reused"]
    take(THIRD, first)
    assert [visitor.comes_to(each) for each in nodes] == ["New", "Reused"]
    restart(first)
    assert visitor.comes_to(first) == "New"
    assert second.node.confirmed.reloads == reloads + 1


@pytest.mark.parametrize("version", VERSIONS)
def test_nodes_with_secrets_of_their_own_do_not_know_each_others_tickets(
    nodes: tuple[Inside, Inside], tmp_path: Path, version: str
) -> None:
    """The control: it is the secrets by which they do."""
    first, second = nodes
    take(FIRST, first)
    take(given("x", "y", "z"), second)
    visitor = Visitor(tmp_path, version, first.port)
    visitor.comes_to(first, keep=True)
    assert [visitor.comes_to(each) for each in nodes] == ["Reused", "New"]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_ticket_of_a_listener_is_nothing_to_another_one(
    nodes: tuple[Inside, Inside], tmp_path: Path, version: str
) -> None:
    first, second = nodes
    take(FIRST, first, second)
    visitor = Visitor(tmp_path, version, first.port)
    visitor.comes_to(first, keep=True)
    assert visitor.comes_to(second, second.port) == "New"
    assert visitor.comes_to(second, first.port) == "Reused"


def test_a_node_says_that_it_has_secrets_only_when_its_worker_has_them(nodes: tuple[Inside, Inside]) -> None:
    first, _ = nodes
    take(FIRST, first)
    before = first.node.state()["ticket_secrets"]
    real = first.node.proxy.worker

    def silent(command: str, timeout: float = 3.0, *, most: int = 0) -> str:
        if command.startswith("set ssl"):
            raise TimeoutError("nobody answers")
        return real(command, timeout, most=most)

    first.node.proxy.worker = silent  # type: ignore[method-assign]
    try:
        with pytest.raises(OSError, match="nobody answers"):
            take(SECOND, first)
    finally:
        first.node.proxy.worker = real  # type: ignore[method-assign]
    assert first.node.state()["ticket_secrets"] == before
    take(SECOND, first)
    assert first.node.state()["ticket_secrets"] != before


def test_keys_lie_beside_the_releases_for_nobody_else_and_what_is_lost_is_written_anew(
    nodes: tuple[Inside, Inside], tmp_path: Path
) -> None:
    first, _ = nodes
    take(FIRST, first)
    folder = first.settings.tickets_dir
    files = sorted(folder.iterdir())
    assert [each.name for each in files] == ["lst-1.keys", "lst-2.keys"]
    texts = [each.read_text() for each in files]
    assert texts[0] != texts[1]
    assert all(each.stat().st_mode & 0o007 == 0 for each in (*files, folder))
    inner = [path for path in live_of(first).rglob("*") if path.is_file()]
    secret = FIRST[1]
    assert not any(secret in path.read_text("latin-1") or texts[0][:100] in path.read_text("latin-1") for path in inner)
    assert secret not in str(first.node.state())
    files[0].unlink()
    restart(first)
    assert files[0].read_text() == texts[0]


def test_tickets_can_be_left_out(tmp_path: Path) -> None:
    for words, expected in ((None, True), (ListenerTls(session_tickets=False), False)):
        with inside() as node:
            node.push(bundle((node.port,), tls=words), 1)
            assert (node.settings.tickets_dir / "lst-1.keys").exists() is expected
            done = subprocess.run(
                [shutil.which("openssl") or "openssl", "s_client", "-connect", f"127.0.0.1:{node.port}", "-tls1_2",
                 "-servername", NAMES[0]],
                input="", capture_output=True, text=True, timeout=60, check=False,
            )  # fmt: skip
            assert ("TLS session ticket:" in done.stdout) is expected


class Anna:
    """A client with a certificate of authority A; a session belongs to its context."""

    def __init__(self, folder: Path, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._context.check_hostname, self._context.verify_mode = False, ssl.CERT_NONE
        self._context.maximum_version = version
        (folder / "anna.pem").write_text(A.signed("anna"))
        self._context.load_cert_chain(folder / "anna.pem")
        self.session: ssl.SSLSession | None = None

    def asks(self, node: Inside, name: str) -> tuple[int, bool]:
        """The status, and whether the session went on."""
        with (
            socket.create_connection(("127.0.0.1", node.port), 30) as raw,
            self._context.wrap_socket(raw, server_hostname=name, session=self.session) as stream,
        ):
            stream.sendall(f"GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
            status = int(stream.recv(65536).split()[1])
            self.session = stream.session  # with TLS 1.3 it comes behind the handshake
            return status, bool(stream.session_reused)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_who_is_verified_for_one_authority_is_not_resumed_where_another_is_needed(
    tmp_path: Path, version: ssl.TLSVersion
) -> None:
    with inside() as node:
        node.push(bundle((node.port,), client_certificates=OF_CLIENTS), 1)
        assert list(node.settings.tickets_dir.iterdir()) == []
        anna = Anna(tmp_path, version)
        assert anna.asks(node, NAMES[0]) == (200, False)
        assert anna.asks(node, NAMES[1]) == (403, False)


def test_with_tickets_there_one_authority_opens_what_needs_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: that is why listeners that verify clients give none."""
    monkeypatch.setattr(tls, "offers_tickets", lambda _: True)
    with inside() as node:
        node.push(bundle((node.port,), client_certificates=OF_CLIENTS), 1)
        anna = Anna(tmp_path)
        assert anna.asks(node, NAMES[0]) == (200, False)
        assert anna.asks(node, NAMES[1]) == (200, True)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"secrets": ["aa"]}', b'{"secrets": ["", "", ""]}'])
def test_what_are_no_secrets_is_refused(body: bytes) -> None:
    with pytest.raises(Malformed):
        read_tickets(body)


def test_a_secret_is_hex_and_nothing_that_haproxy_could_read_as_a_command(agent: RealAgent) -> None:
    assert len(agent.state().ticket_secrets) == 64
    for hostile in ("a" * 63 + "\n", "a" * 60 + ";del", "A" * 64, "ä" * 64):
        with pytest.raises(Refused, match="32 bytes in hex"):
            agent.driver.give_ticket_secrets((hostile, *FIRST[1:]))
    assert agent.driver.give_ticket_secrets(FIRST).ticket_secrets == digest_of(FIRST)
    agent.kill()
    agent.start()
    assert agent.state().ticket_secrets == digest_of(FIRST)

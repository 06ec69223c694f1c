"""Certificates of clients, asked of a real HAProxy: who is let in, what servers are told, and every way around it.

Names and authorities of listener 1: a.example asks for none, b.example needs one of A, c.example takes one of B,
x.w.example needs one of A while the listener has a certificate for `*.w.example` alone.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from apps.agent.bodies import Bind
from apps.agent.release.probes import probe
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.listener_options import ClientCertificates, ClientVerify
from apps.compiler.model.shared import Certificate, Listener, Protocol
from apps.compiler.targets.haproxy.listeners import client_certificates
from tests.authorities import Authority
from tests.e2e.rendered_proxy import PATIENCE_S, PROBE, RenderedProxy, echo_servers, running
from tests.e2e.websockets import frame
from tests.pure.compiler_fixtures import certificate_pem, front, listener, pool, route, server, snapshot

pytestmark = pytest.mark.e2e

HEADERS, SETTINGS, END_OF_STREAM, END_OF_BOTH = 1, 4, 1, 5

HOSTS = ("a.example", "b.example", "c.example", "*.w.example")
A, B, STRANGER = Authority("Authority A"), Authority("Authority B"), Authority("Authority A")
GOOD, OTHER, FOREIGN = A.signed("anna"), B.signed("bob"), STRANGER.signed("anna")
EXPIRED, REVOKED = A.signed("old", days=-1), A.signed("stolen")
HOSTILE = A.signed("evil", subject='evil\r\nX-Admin: yes\x00"Ü')
TOLD = ("verified", "subject", "name", "fingerprint")
NEEDS_A = ClientCertificates(ClientVerify.REQUIRED, A.pem, A.revoked(REVOKED), ("b.example", "x.w.example"))
TAKES_B = ClientCertificates(ClientVerify.OPTIONAL, B.pem, hostnames=("c.example",))
VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)


def secure(number: int, *entries: ClientCertificates, default: str | None = None) -> Listener:
    """An https listener with all certificates."""
    keys = tuple(f"crt-{index}" for index in range(1, len(HOSTS) + 1))
    certificates = {"certificate_ids": keys, "default_certificate_id": default}
    return listener(number, protocol=Protocol.HTTPS, client_certificates=entries, **certificates)


LISTENERS = (
    secure(1, NEEDS_A, TAKES_B),
    secure(2, replace(NEEDS_A, hostnames=()), default="crt-1"),
    secure(3, replace(TAKES_B, mode=ClientVerify.REQUIRED, hostnames=("b.example",))),
    listener(4),
    secure(5, replace(NEEDS_A, hostnames=(), crl=A.revoked(days=-1))),
)


def topology(port: int, *listeners: Listener) -> Snapshot:
    """All hosts on an echo."""
    routes = tuple(route(number, name) for number, name in enumerate(HOSTS, 1))
    certificates = tuple(
        Certificate(f"crt-{number}", name, "acme", certificate_pem(name), (name,))
        for number, name in enumerate(HOSTS, 1)
    )
    pools = (pool(1, servers=(server(1, address="127.0.0.1", port=port),)),)
    return snapshot(front(*routes, listeners=listeners), pools=pools, certificates=certificates, local_development=True)


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RenderedProxy]:
    with echo_servers(1) as ports:
        compiled = compile_snapshot(topology(ports[0], *LISTENERS))
        assert not compiled.left_out
        with running(compiled.output, tmp_path_factory.mktemp("proxy")) as started:
            yield started


@dataclass(frozen=True)
class Client:
    """Speaks TLS with a certificate (PEM with its key), or with none."""

    context: ssl.SSLContext

    def ask(
        self,
        proxy: RenderedProxy,
        number: int,
        host: str | None,
        name: str | None = "same",
        session: ssl.SSLSession | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, dict[str, list[str]], ssl.SSLSession | None]:
        """Status, what the server got, and the session; `name` is that of the handshake."""
        raw = socket.create_connection(("127.0.0.1", proxy.ports[f"lst-{number}"]), timeout=PATIENCE_S / 4)
        asked = host if name == "same" else name
        with self.context.wrap_socket(raw, server_hostname=asked, session=session) as stream:
            said = "".join(f"{key}: {value}\r\n" for key, value in (headers or {}).items())
            begin = f"GET / HTTP/1.1\r\nHost: {host}\r\n" if host else "GET / HTTP/1.0\r\n"
            stream.sendall(f"{begin}{said}Connection: close\r\n\r\n".encode())
            response = http.client.HTTPResponse(stream)
            response.begin()
            body = response.read()
            found = json.loads(body)["headers"] if response.status == 200 else {}
            return response.status, found, stream.session


def client(directory: Path, pem: str = "", version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> Client:
    """Whoever shows this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = context.maximum_version = version
    if pem:
        path = directory / "client.pem"
        path.write_text(pem)
        context.load_cert_chain(path)
    return Client(context)


def told(headers: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """What the server was told of the certificate."""
    return {name: headers[f"x-client-cert-{name}"] for name in TOLD if f"x-client-cert-{name}" in headers}


@pytest.mark.parametrize("version", VERSIONS)
def test_only_a_valid_certificate_of_the_right_authority_is_let_in(
    proxy: RenderedProxy, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    for pem, status in ((GOOD, 200), ("", 403), (OTHER, 403), (FOREIGN, 403), (EXPIRED, 403), (REVOKED, 403)):
        for number, host in ((1, "b.example"), (1, "x.w.example"), (2, "a.example")):
            assert client(tmp_path, pem, version).ask(proxy, number, host)[0] == status, (pem, number, host)
    assert client(tmp_path, "", version).ask(proxy, 1, "a.example")[0] == 200
    assert client(tmp_path, "", version).ask(proxy, 1, "y.w.example")[0] == 200
    assert client(tmp_path, GOOD, version).ask(proxy, 3, "b.example")[0] == 403


def test_without_a_revocation_list_the_revoked_certificate_is_let_in(tmp_path: Path) -> None:
    """The control: it is the list that keeps it out."""
    with echo_servers(1) as ports:
        compiled = compile_snapshot(topology(ports[0], secure(1, replace(NEEDS_A, crl=""))))
        with running(compiled.output, tmp_path) as proxy:
            assert client(tmp_path, REVOKED).ask(proxy, 1, "b.example")[0] == 200


def test_a_revocation_list_that_is_out_of_date_lets_nobody_in(proxy: RenderedProxy, tmp_path: Path) -> None:
    assert client(tmp_path, GOOD).ask(proxy, 5, "a.example")[0] == 403


def test_servers_are_told_whose_certificate_it_is(proxy: RenderedProxy, tmp_path: Path) -> None:
    pem = ssl.PEM_cert_to_DER_cert(GOOD.partition("-----BEGIN PRIVATE")[0])
    seen = told(client(tmp_path, GOOD).ask(proxy, 1, "b.example", headers=forged())[1])
    fingerprint = hashlib.sha256(pem).hexdigest()
    assert seen == {"verified": ["yes"], "subject": ["CN=anna"], "name": ["anna"], "fingerprint": [fingerprint]}


def forged() -> dict[str, str]:
    """What a client claims about itself."""
    return {f"X-Client-Cert-{name}": "root" for name in (*TOLD, "anything")}


def test_an_optional_certificate_is_told_when_it_is_valid(proxy: RenderedProxy, tmp_path: Path) -> None:
    assert told(client(tmp_path, OTHER).ask(proxy, 1, "c.example")[1])["name"] == ["bob"]
    for pem in ("", GOOD, FOREIGN):
        status, headers, _ = client(tmp_path, pem).ask(proxy, 1, "c.example", headers=forged())
        assert (status, told(headers)) == (200, {"verified": ["no"]})


def test_what_clients_claim_is_dropped_on_every_listener(proxy: RenderedProxy, tmp_path: Path) -> None:
    headers = client(tmp_path, GOOD).ask(proxy, 1, "a.example", headers=forged())[1]
    assert not [name for name in headers if name.startswith("x-client-cert")]
    plain = proxy.ask("lst-4", "b.example", "/", headers=forged()).json["headers"]
    assert isinstance(plain, dict)
    assert not [name for name in plain if name.startswith("x-client-cert")]


def test_a_hostile_subject_adds_no_header(proxy: RenderedProxy, tmp_path: Path) -> None:
    status, headers, _ = client(tmp_path, HOSTILE).ask(proxy, 1, "b.example")
    assert status == 200
    assert "x-admin" not in headers
    assert told(headers)["subject"] == ['CN=evil\\0D\\0AX-Admin: yes\\00\\"\\C3\\9C']
    assert "name" not in told(headers)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("a.example", "b.example"),
        ("a.example", "x.w.example"),
        ("y.w.example", "x.w.example"),
        ("c.example", "b.example"),
        ("b.example", "a.example"),
        ("a.example", "B.Example."),
        ("A.example", "b.example:443"),
        ("b.example", None),
    ],
)
def test_a_request_for_another_host_than_the_handshake_is_sent_back(
    proxy: RenderedProxy, tmp_path: Path, version: ssl.TLSVersion, name: str, host: str | None
) -> None:
    for pem in ("", GOOD, OTHER):
        assert client(tmp_path, pem, version).ask(proxy, 1, host, name)[0] == 421


def test_hosts_of_one_authority_share_a_connection(proxy: RenderedProxy, tmp_path: Path) -> None:
    assert client(tmp_path, GOOD).ask(proxy, 1, "x.w.example", "b.example")[0] == 200
    assert client(tmp_path).ask(proxy, 1, "y.w.example", "a.example")[0] == 200


def over_http2(proxy: RenderedProxy, *names: str) -> list[bytes]:
    """The heads of the answers to requests for these hosts on one connection of HTTP/2, opened for a.example."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    raw = socket.create_connection(("127.0.0.1", proxy.ports["lst-1"]), timeout=PATIENCE_S / 4)
    found = []
    with context.wrap_socket(raw, server_hostname="a.example") as stream:
        stream.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, b""))
        reader = stream.makefile("rb")
        for number, name in enumerate(names):
            # GET, https and / of the static table; the host as a literal that nobody keeps (RFC 7541).
            block = b"\x82\x87\x84\x01" + bytes((len(name),)) + name.encode()
            stream.sendall(frame(HEADERS, END_OF_BOTH, 2 * number + 1, block))
            while (head := reader.read(9))[3] != HEADERS:
                reader.read(int.from_bytes(head[:3], "big"))
            found.append(reader.read(int.from_bytes(head[:3], "big")))
            while not head[4] & END_OF_STREAM:
                head = reader.read(9)
                reader.read(int.from_bytes(head[:3], "big"))
    return found


def test_a_connection_of_http2_is_not_used_for_a_host_that_needs_a_certificate(proxy: RenderedProxy) -> None:
    first, second, third = over_http2(proxy, "a.example", "b.example", "y.w.example")
    assert first.startswith(b"\x88")  # `:status: 200` of the static table
    assert b"421" in second[:8]
    assert third.startswith(b"\x88")


def test_the_name_of_the_handshake_is_what_keeps_it_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: authorities that a certificate of B satisfies would open what needs one of A."""
    monkeypatch.setattr(client_certificates, "refuse_other_hosts", lambda _: None)
    with echo_servers(1) as ports:
        compiled = compile_snapshot(topology(ports[0], secure(1, NEEDS_A, TAKES_B)))
        with running(compiled.output, tmp_path) as proxy:
            assert client(tmp_path, OTHER).ask(proxy, 1, "b.example", "c.example")[0] == 200


@pytest.mark.parametrize("version", VERSIONS)
def test_a_session_is_not_taken_to_other_authorities(
    proxy: RenderedProxy, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    for pem, first, second in ((OTHER, (1, "c.example"), (1, "b.example")), (GOOD, (1, "b.example"), (3, "b.example"))):
        asker = client(tmp_path, pem, version)
        status, _, session = asker.ask(proxy, *first)
        assert status == 200
        number, host = second
        assert asker.ask(proxy, number, host, session=session)[0] == 403


def test_without_that_a_session_opens_what_needs_another_authority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: HAProxy itself keeps the sessions of all listeners together."""
    monkeypatch.setattr("apps.compiler.targets.haproxy.render.resumes_sessions", lambda _: True)
    with echo_servers(1) as ports:
        compiled = compile_snapshot(topology(ports[0], *LISTENERS))
        with running(compiled.output, tmp_path) as proxy:
            asker = client(tmp_path, GOOD)
            session = asker.ask(proxy, 1, "b.example")[2]
            assert asker.ask(proxy, 3, "b.example", session=session)[0] == 200


def test_with_one_authority_sessions_are_resumed_and_stay_what_they_were(tmp_path: Path) -> None:
    with echo_servers(1) as ports:
        compiled = compile_snapshot(topology(ports[0], secure(1, NEEDS_A)))
        with running(compiled.output, tmp_path) as proxy:
            for version in VERSIONS:
                asker = client(tmp_path, "", version)
                session = asker.ask(proxy, 1, "a.example")[2]
                assert asker.ask(proxy, 1, "b.example", session=session)[0] in (403, 421)
                asker = client(tmp_path, GOOD, version)
                session = asker.ask(proxy, 1, "b.example")[2]
                status, headers, _ = asker.ask(proxy, 1, "b.example", session=session)
                assert (status, told(headers)["name"]) == (200, ["anna"])


def test_strangers_names_need_the_certificate_as_well(proxy: RenderedProxy, tmp_path: Path) -> None:
    for name in (None, "unknown.example"):
        assert client(tmp_path).ask(proxy, 2, "a.example", name)[0] == 403
        assert client(tmp_path, GOOD).ask(proxy, 2, "a.example", name)[0] == 200


def test_the_agent_needs_no_certificate_for_its_probe(proxy: RenderedProxy) -> None:
    for number in (1, 2):
        port = proxy.ports[f"lst-{number}"]
        answer = probe(Bind(f"lst-{number}", None, port, "https"), "127.0.0.1", port, PROBE, proxy.directory)
        assert (answer.problem, answer.generation) == ("", "7")

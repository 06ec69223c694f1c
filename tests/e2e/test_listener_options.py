"""What listeners are told beyond their port, asked of a real HAProxy: who the client is, times, TLS, compression."""

from __future__ import annotations

import gzip
import http.client
import io
import json
import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import Pool, Snapshot
from apps.compiler.model.listener_options import (
    ClientAddress,
    Compression,
    Connections,
    KeepAlive,
    ListenerTls,
    TlsPreset,
    TlsVersion,
)
from apps.compiler.model.shared import Certificate, Listener, Protocol, WeightedPool
from tests.e2e.rendered_proxy import PATIENCE_S, RenderedProxy, echo_servers, running
from tests.pure.compiler_fixtures import certificate_pem, front, listener, pool, route, server, snapshot

pytestmark = pytest.mark.e2e

HTTP, HTTPS, TCP = Protocol.HTTP, Protocol.HTTPS, Protocol.TCP
STRANGER, CDN, INNER, BALANCER = "127.0.0.9", "127.0.0.2", "127.0.0.3", "127.0.0.4"
BODY = "Compress me. " * 100
V2 = b"\r\n\r\n\x00\r\nQUIT\n"


def secure(number: int, tls: ListenerTls | None = None, default: str | None = None) -> Listener:
    """An https listener with the certificates of a.example, b.example and r.example, the last with an RSA key."""
    certificates = {"certificate_ids": ("crt-1", "crt-2", "crt-3"), "default_certificate_id": default}
    return listener(number, protocol=HTTPS, tls=tls, **certificates)


LISTENERS = (
    listener(1),
    listener(2, client_address=ClientAddress(forwarded_from=(f"{CDN}/32", f"{INNER}/32"))),
    # The node itself is in this network: what it asks itself still begins with no PROXY protocol.
    listener(3, client_address=ClientAddress(("127.0.0.0/29",), ("203.0.113.0/24",))),
    listener(4, connections=Connections(2, 700, 300, 300)),
    listener(5, compression=Compression(), monitor_path="/monitor", connections=Connections(keep_alive=KeepAlive.NONE)),
    secure(6, ListenerTls(TlsPreset.MODERN)),
    secure(7, ListenerTls(TlsPreset.INTERMEDIATE, http2=False)),
    secure(8, default="crt-2"),
    secure(9, ListenerTls(minimum_version=TlsVersion.V13)),
    listener(10, protocol=TCP, default_pool_id="pool-2", client_address=ClientAddress((f"{BALANCER}/32",))),
)


class _Text(BaseHTTPRequestHandler):
    """Answers with a long text."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """The text."""
        self.send_response(200)
        self.send_header("Content-Type", "image/png" if self.path.endswith("png") else "text/plain")
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        """Keep quiet."""


@contextmanager
def text_server() -> Iterator[int]:
    """A server of long texts; its port."""
    found = ThreadingHTTPServer(("127.0.0.1", 0), _Text)
    found.daemon_threads = True
    threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield found.server_address[1]
    finally:
        found.shutdown()
        found.server_close()


def pool_at(number: int, port: int, protocol: Protocol = HTTP) -> Pool:
    """A pool with one server."""
    return pool(number, protocol=protocol, servers=(server(number, address="127.0.0.1", port=port),))


def topology(echo: int, texts: int) -> Snapshot:
    """One host on an echo, one path with long texts."""
    text = route(2, "a.example", "/text", pools=(WeightedPool("pool-3", 1),))
    certificates = tuple(
        Certificate(f"crt-{number}", name, "acme", certificate_pem(name, key=key), (name,))
        for number, name, key in (
            (1, "a.example", None),
            (2, "b.example", None),
            (3, "r.example", rsa.generate_private_key(65537, 2048)),
        )
    )
    return snapshot(
        front(route(1), text, listeners=LISTENERS),
        pools=(pool_at(1, echo), pool_at(2, echo, TCP), pool_at(3, texts)),
        certificates=certificates,
        local_development=True,
    )


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RenderedProxy]:
    with echo_servers(1) as ports, text_server() as texts:
        compiled = compile_snapshot(topology(ports[0], texts))
        assert not compiled.left_out
        with running(compiled.output, tmp_path_factory.mktemp("proxy")) as started:
            yield started


@contextmanager
def connected(
    proxy: RenderedProxy, number: int, source: str, first: bytes = b""
) -> Iterator[http.client.HTTPConnection]:
    """A connection to a listener from this address, on which these bytes were sent already."""
    port = proxy.ports[f"lst-{number}"]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S / 4, source_address=(source, 0))
    connection.connect()
    connection.sock.sendall(first)
    try:
        yield connection
    finally:
        connection.close()


def seen(connection: http.client.HTTPConnection, headers: Iterable[tuple[str, str]] = ()) -> dict[str, list[str]]:
    """The headers that the server got, of one request."""
    connection.putrequest("GET", "/", skip_host=True)
    connection.putheader("Host", "a.example")
    for name, value in headers:
        connection.putheader(name, value)
    connection.endheaders()
    response = connection.getresponse()
    assert response.status == 200
    found: dict[str, list[str]] = json.loads(response.read())["headers"]
    return found


def client_of(headers: Mapping[str, list[str]]) -> str:
    """Where the server believes the client to be; both headers agree."""
    assert headers["x-forwarded-for"] == headers["x-real-ip"]
    assert len(headers["x-real-ip"]) == 1
    return headers["x-real-ip"][0]


def forged(address: str = "198.51.100.7") -> list[tuple[str, str]]:
    """What a client claims about itself."""
    said = {"X-Forwarded-For": address, "X-Real-IP": address, "Forwarded": f"for={address}"}
    return [*said.items(), ("X-Forwarded-Proto", "https"), ("X-Forwarded-Port", "443")]


def test_servers_are_told_address_scheme_and_port_whatever_the_client_claims(proxy: RenderedProxy) -> None:
    with connected(proxy, 1, STRANGER) as connection:
        headers = seen(connection, forged())
    assert client_of(headers) == STRANGER
    assert headers["x-forwarded-proto"] == ["http"]
    assert headers["x-forwarded-port"] == [str(proxy.ports["lst-1"])]
    assert "forwarded" not in headers


def test_a_header_with_an_underscore_is_no_twin_of_ours(proxy: RenderedProxy) -> None:
    """Many servers take the two for one header."""
    assert proxy.ask("lst-1", "a.example", "/", headers={"X_Forwarded_For": "198.51.100.7"}).status == 403
    assert proxy.ask("lst-1", "a.example", "/", headers={"X-Canary": "yes"}).status == 200


def test_who_is_named_says_who_the_client_is_and_nobody_else(proxy: RenderedProxy) -> None:
    with connected(proxy, 2, CDN) as connection:
        headers = seen(connection, forged())
        assert client_of(headers) == "198.51.100.7"
        assert (headers["x-forwarded-proto"], headers["x-forwarded-port"]) == (["https"], ["443"])
        # Each request of one connection has a client of its own.
        assert client_of(seen(connection, [("X-Forwarded-For", "2001:db8::7")])) == "2001:db8::7"
        assert client_of(seen(connection)) == CDN
    with connected(proxy, 2, STRANGER) as connection:
        headers = seen(connection, forged())
    assert client_of(headers) == STRANGER
    assert headers["x-forwarded-proto"] == ["http"]
    assert headers["x-forwarded-port"] == [str(proxy.ports["lst-2"])]


@pytest.mark.parametrize(
    ("values", "client"),
    [
        (["198.51.100.7"], "198.51.100.7"),
        (["6.6.6.6, 198.51.100.7"], "198.51.100.7"),  # what the client wrote itself stands before it
        (["6.6.6.6", "198.51.100.7"], "198.51.100.7"),
        ([f"6.6.6.6, 198.51.100.7, {INNER}"], "198.51.100.7"),
        ([f"6.6.6.6, 198.51.100.7, {INNER}, {CDN}"], "198.51.100.7"),
        ([f"6.6.6.6, junk, {INNER}"], INNER),
        (["6.6.6.6, junk"], CDN),
        (["junk"], CDN),
        ([""], CDN),
        ([f"{INNER}"], INNER),
    ],
)
def test_the_last_address_that_is_none_of_the_named_ones_is_the_client(
    proxy: RenderedProxy, values: list[str], client: str
) -> None:
    with connected(proxy, 2, CDN) as connection:
        assert client_of(seen(connection, [("X-Forwarded-For", value) for value in values])) == client


@pytest.mark.parametrize("port", ["0", "65536", "443abc", "junk", "-1", "443, 80", ""])
@pytest.mark.parametrize("scheme", ["ftp", "https, http", ""])
def test_what_is_no_scheme_and_no_port_is_not_believed(proxy: RenderedProxy, scheme: str, port: str) -> None:
    with connected(proxy, 2, CDN) as connection:
        headers = seen(connection, [("X-Forwarded-Proto", scheme), ("X-Forwarded-Port", port)])
    assert headers["x-forwarded-proto"] == ["http"]
    assert headers["x-forwarded-port"][0] in (str(proxy.ports["lst-2"]), "443")
    assert len(headers["x-forwarded-port"]) == 1


def v1(address: str) -> bytes:
    """The PROXY protocol, version 1."""
    return f"PROXY TCP4 {address} 192.0.2.1 40000 443\r\n".encode()


def v2(address: str) -> bytes:
    """The PROXY protocol, version 2."""
    body = socket.inet_aton(address) + socket.inet_aton("192.0.2.1") + struct.pack("!HH", 40000, 443)
    return V2 + b"\x21\x11" + struct.pack("!H", len(body)) + body


@pytest.mark.parametrize("head", [v1, v2])
def test_a_balancer_in_front_names_the_client_in_the_proxy_protocol(proxy: RenderedProxy, head: object) -> None:
    assert callable(head)
    with connected(proxy, 3, BALANCER, head("198.51.100.8")) as connection:
        headers = seen(connection, forged())
    assert client_of(headers) == "198.51.100.8"
    assert headers["x-forwarded-port"] == ["443"]
    assert headers["x-forwarded-proto"] == ["http"]


def test_behind_the_proxy_protocol_may_be_somebody_who_is_believed(proxy: RenderedProxy) -> None:
    with connected(proxy, 3, BALANCER, v1("203.0.113.5")) as connection:
        assert client_of(seen(connection, forged())) == "198.51.100.7"


def test_strangers_cannot_speak_the_proxy_protocol(proxy: RenderedProxy) -> None:
    """Neither where somebody may, nor where nobody does; and who may has to."""
    for number, source in ((3, STRANGER), (1, STRANGER), (1, BALANCER)):
        with connected(proxy, number, source, v1("198.51.100.8")) as connection:
            connection.putrequest("GET", "/")
            connection.endheaders()
            assert connection.getresponse().status == 400
    with connected(proxy, 3, STRANGER) as connection:
        assert client_of(seen(connection)) == STRANGER
    with connected(proxy, 3, BALANCER) as connection, pytest.raises((OSError, http.client.HTTPException)):
        seen(connection)


def test_a_node_asks_itself_without_the_proxy_protocol(proxy: RenderedProxy) -> None:
    assert proxy.ask("lst-3", "a.example", "/").status == 200


def test_connections_of_tcp_come_through_a_balancer_too(proxy: RenderedProxy) -> None:
    with connected(proxy, 10, BALANCER, v2("198.51.100.8")) as connection:
        assert "host" in seen(connection)
    with connected(proxy, 10, STRANGER) as connection:
        assert "host" in seen(connection)
    with connected(proxy, 10, STRANGER, v1("198.51.100.8")) as connection:
        connection.putrequest("GET", "/")
        connection.endheaders()
        with pytest.raises(http.client.BadStatusLine):  # the server got it as it is
            connection.getresponse()


def test_networks_are_changed_without_a_reload(proxy: RenderedProxy) -> None:
    path = proxy.directory / "maps" / "lst-2-forwarders.map"
    assert path.read_text() == f"{CDN}/32 yes\n{INNER}/32 yes\n"
    proxy.command("add map maps/lst-2-forwarders.map 127.0.0.8/31 yes")
    try:
        with connected(proxy, 2, STRANGER) as connection:
            assert client_of(seen(connection, forged())) == "198.51.100.7"
    finally:
        proxy.command("del map maps/lst-2-forwarders.map 127.0.0.8/31")
    with connected(proxy, 2, STRANGER) as connection:
        assert client_of(seen(connection, forged())) == STRANGER


def lasted(proxy: RenderedProxy, number: int, sent: bytes) -> float:
    """How long a client that then falls silent stays connected, in seconds; at most three."""
    with socket.create_connection(("127.0.0.1", proxy.ports[f"lst-{number}"]), timeout=3) as client:
        client.sendall(sent)
        began = time.monotonic()
        try:
            while client.recv(65536):
                pass
        except TimeoutError:
            return 3.0
        return time.monotonic() - began


def test_a_listener_has_its_own_patience(proxy: RenderedProxy) -> None:
    half, whole = b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"
    with ThreadPoolExecutor() as at_once:
        short, long = (at_once.map(partial(lasted, proxy, number), (half, whole)) for number in (4, 1))
        assert max(short) < 2
        assert list(long) == [3, 3]


def test_a_listener_takes_no_more_clients_than_it_is_told(proxy: RenderedProxy) -> None:
    shown = proxy.command("show stat").splitlines()
    names = shown[0].lstrip("# ").split(",")
    rows = [dict(zip(names, line.split(","), strict=False)) for line in shown[1:] if line]
    limits = {row["pxname"]: row["slim"] for row in rows if row["svname"] == "FRONTEND"}
    assert limits["lst-4"] == "2"
    assert limits["lst-1"] != "2"


def test_a_listener_closes_after_each_answer_where_it_is_told_to(proxy: RenderedProxy) -> None:
    assert proxy.ask("lst-5", "a.example", "/").headers["connection"] == "close"
    assert "connection" not in proxy.ask("lst-1", "a.example", "/").headers


def test_texts_are_compressed_for_those_who_take_it(proxy: RenderedProxy) -> None:
    def asked(number: int, takes: str, path: str = "/text") -> tuple[str | None, bytes]:
        with connected(proxy, number, STRANGER) as connection:
            connection.request("GET", path, headers={"Host": "a.example", "Accept-Encoding": takes})
            response = connection.getresponse()
            return response.getheader("Content-Encoding"), response.read()

    encoding, body = asked(5, "br, gzip")
    assert encoding == "gzip"
    assert gzip.GzipFile(fileobj=io.BytesIO(body)).read().decode() == BODY
    assert asked(5, "identity") == (None, BODY.encode())
    assert asked(5, "gzip", "/text/x.png") == (None, BODY.encode())
    assert asked(1, "gzip") == (None, BODY.encode())


def test_the_monitor_path_answers_on_any_host_and_nowhere_else(proxy: RenderedProxy) -> None:
    assert proxy.ask("lst-5", "nobody.example", "/monitor").status == 200
    assert proxy.ask("lst-5", "nobody.example", "/monitored").status == 404
    assert proxy.ask("lst-1", "nobody.example", "/monitor").status == 404


def shaken(proxy: RenderedProxy, number: int, *options: str, name: str = "a.example") -> str:
    """What `openssl s_client` says of a handshake; empty where there is none."""
    named = ("-servername", name) if name else ("-noservername",)
    where = ("-connect", f"127.0.0.1:{proxy.ports[f'lst-{number}']}")
    program = shutil.which("openssl") or "openssl"
    done = subprocess.run(
        [program, "s_client", *where, *named, *options],
        input="",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout if "Cipher is (NONE)" not in done.stdout and done.returncode == 0 else ""


TLS12 = ("-tls1_2",)
KINDS = {"a.example": "ECDSA", "r.example": "RSA"}
OF_12 = ("AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305")
OF_13 = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")


def known_to_openssl(ciphers: str) -> list[str]:
    """What a client offers that is told so."""
    program = shutil.which("openssl") or "openssl"
    done = subprocess.run([program, "ciphers", ciphers], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.split(":")


@pytest.mark.parametrize("name", KINDS)
def test_each_cipher_of_the_guidelines_is_accepted_and_all_others_are_refused(proxy: RenderedProxy, name: str) -> None:
    wanted = [f"ECDHE-{KINDS[name]}-{cipher}" for cipher in OF_12]
    others = ":".join(("ALL", "COMPLEMENTOFALL", "@SECLEVEL=0", *(f"!{cipher}" for cipher in wanted)))
    assert len(known_to_openssl(others)) > 50  # the control: they are offered indeed
    for number in (7, 8):  # intermediate, and a listener that says nothing
        for cipher in wanted:
            assert f"Cipher is {cipher}" in shaken(proxy, number, *TLS12, "-cipher", cipher, name=name)
        assert not shaken(proxy, number, *TLS12, "-cipher", others, name=name)
    for number in (6, 7, 8):
        for suite in OF_13:
            assert f"Cipher is {suite}" in shaken(proxy, number, "-tls1_3", "-ciphersuites", suite, name=name)
        assert not shaken(proxy, number, "-tls1_3", "-ciphersuites", "TLS_AES_128_CCM_SHA256", name=name)
    for number in (6, 9):
        assert not shaken(proxy, number, *TLS12, "-cipher", "ALL:COMPLEMENTOFALL:@SECLEVEL=0", name=name)


@pytest.mark.parametrize("version", ["-tls1", "-tls1_1", "-tls1_2", "-tls1_3"])
def test_versions_are_those_of_the_guidelines(proxy: RenderedProxy, version: str) -> None:
    for number, refused in ((6, 3), (7, 2), (8, 2), (9, 3)):
        accepted = ["-tls1", "-tls1_1", "-tls1_2", "-tls1_3"][refused:]
        weakest = () if version == "-tls1_3" else ("-cipher", "ALL:@SECLEVEL=0")
        assert bool(shaken(proxy, number, version, *weakest)) is (version in accepted), number


def test_http2_can_be_left_out(proxy: RenderedProxy) -> None:
    assert "ALPN protocol: h2" in shaken(proxy, 6, "-alpn", "h2,http/1.1")
    assert "ALPN protocol: http/1.1" in shaken(proxy, 7, "-alpn", "h2,http/1.1")


def test_early_data_is_never_offered_and_tickets_not_without_keys(proxy: RenderedProxy) -> None:
    assert "allow-0rtt" not in (proxy.directory / "haproxy.cfg").read_text()
    assert "session ticket" not in shaken(proxy, 7, *TLS12).lower()


@pytest.mark.parametrize("name", ["unknown.example", ""])
def test_strangers_names_see_the_default_certificate_or_nothing(proxy: RenderedProxy, name: str) -> None:
    assert "CN = b.example" in shaken(proxy, 8, name=name)
    assert not shaken(proxy, 7, name=name)
    assert "CN = a.example" in shaken(proxy, 8)
    assert "CN = a.example" in shaken(proxy, 7)

"""Calls to addresses that somebody else chose: never a private one, exactly the checked one, within the time."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pytest_django.fixtures import Settings

from apps.core import outbound
from apps.core.called_urls import Refused, read_url
from apps.core.clock import now
from apps.core.outbound import Unreachable, fetch

HTTP = ("http", "https")
PATIENCE_S = 30.0  # of a busy machine; what drips goes on for ever
Serve = Callable[[socket.socket], None]


@contextmanager
def server(serve: Serve, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """A server on loopback that handles each connection with `serve`; yields its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def loop() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                try:
                    with context.wrap_socket(peer, server_side=True) if context else peer as sock:
                        serve(sock)
                except OSError:
                    continue

        threading.Thread(target=loop, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def answering(text: str) -> Serve:
    """Read a request, answer with this text."""

    def serve(sock: socket.socket) -> None:
        sock.recv(65536)
        sock.sendall(text.encode())

    return serve


def dripping(sock: socket.socket) -> None:
    """Say one header after another, for ever."""
    sock.recv(65536)
    sock.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        time.sleep(0.1)
        sock.sendall(b"X: y\r\n")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hooks.example.com",
        "//hooks.example.com/",
        "ftp://hooks.example.com/",
        "javascript:alert(1)",
        "https://",
        "https:///x",
        "https://user@hooks.example.com/",
        "https://a:b@hooks.example.com/",
        "https://hooks.example.com/#x",
        "https://hooks.example.com\\@127.0.0.1/",
        "https://hooks.example.com:0/",
        "https://hooks.example.com:65536/",
        "https://hooks.example.com:x/",
        "https://hooks.example.com/a b",
        "https://hooks.example.com/\r\nX: y",
        "https://hooks.example.com/\x7f",
        "https://hooks.example.com/é",
        "https://hooks_example.com/",
        "https://-a.example/",
        "https://a..example/",
        "https://a.example./",
        "https://2130706433/",
        "https://127.1/",
        "https://0177.0.0.1/",
        "https://0x7f.0.0.1/",
        "https://0x7f000001/",
        "https://[::1/",
        "https://[v1.x]/",
        "https://hooks.example.com/" + "x" * 2048,
        "http://hooks.example.com/",
    ],
)
def test_a_url_that_is_not_plain_https_is_refused_with_a_sentence(url: str) -> None:
    with pytest.raises(Refused) as refusal:
        read_url(url)
    assert str(refusal.value).endswith(".")


def test_a_plain_url_is_taken_apart() -> None:
    target = read_url("https://Hooks.example.com:8443/a/b?c=d")
    assert (target.host, target.port, target.path) == ("hooks.example.com", 8443, "/a/b?c=d")
    assert read_url("https://[2606:4700::1111]").port == 443


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "100.100.100.200", "169.254.169.254"),
        *("0.0.0.0", "224.0.0.1", "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "168.63.129.16"),
        *("[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:8.8.8.8]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]"),
        *("[fe80::1]", "[fc00::1]", "[fd00:ec2::254]", "[ff02::1]", "[2001:db8::1]", "[::127.0.0.1]", "[4000::1]"),
        *("localhost", "a.localhost"),
    ],
)
def test_an_address_that_is_not_public_is_never_called(settings: Settings, host: str) -> None:
    settings.OUTBOUND_NETWORKS = []
    with pytest.raises(Refused):
        outbound.check_target(read_url(f"https://{host}/"))
    if not host.endswith("localhost"):
        with pytest.raises(Refused):
            fetch(f"https://{host}/", timeout=1)


@pytest.mark.parametrize("host", ["169.254.169.254", "100.100.100.200", "[fd00:ec2::254]", "[64:ff9b::a9fe:a9fe]"])
def test_metadata_services_stay_refused_whatever_is_allowed(settings: Settings, host: str) -> None:
    settings.OUTBOUND_NETWORKS = ["0.0.0.0/0", "::/0"]
    with pytest.raises(Refused):
        fetch(f"https://{host}/", timeout=1)


def test_public_addresses_and_allowed_networks_may_be_called(settings: Settings) -> None:
    settings.OUTBOUND_NETWORKS = ["10.1.0.0/16"]
    for host in ("8.8.8.8", "[2606:4700::1111]", "10.1.2.3", "hooks.example.com"):
        outbound.check_target(read_url(f"https://{host}/"))


def test_a_name_that_means_a_private_address_is_refused_and_one_that_means_an_allowed_one_is_called(
    settings: Settings,
) -> None:
    with server(answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")) as port:
        url = f"http://localhost:{port}/"
        settings.OUTBOUND_NETWORKS = []
        with pytest.raises(Refused, match="is loopback"):
            fetch(url, schemes=HTTP)
        settings.OUTBOUND_NETWORKS = ["127.0.0.0/8"]
        answer = fetch(url, schemes=HTTP)
    assert (answer.status, answer.body, answer.address) == (200, b"ok", "127.0.0.1")


def test_the_name_is_asked_for_once_and_the_connection_goes_to_that_answer(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.OUTBOUND_NETWORKS = ["127.0.0.0/8"]
    asked: list[str] = []

    def rebinding(host: str, port: int, *_: object, **__: object) -> list[object]:
        """The first answer is harmless, every later one is the metadata service."""
        if host != "rebind.example":
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))]
        asked.append(host)
        address = "127.0.0.1" if len(asked) == 1 else "169.254.169.254"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    heard: list[bytes] = []

    def serve(sock: socket.socket) -> None:
        heard.append(sock.recv(65536))
        sock.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    with server(serve) as port:
        assert fetch(f"http://rebind.example:{port}/x?y", schemes=HTTP).address == "127.0.0.1"
        with pytest.raises(Refused, match=r"169\.254\.169\.254"):
            fetch(f"http://rebind.example:{port}/", schemes=HTTP)
    assert len(asked) == 2
    assert len(heard) == 1
    assert f"Host: rebind.example:{port}".encode() in heard[0]
    assert heard[0].startswith(b"GET /x?y HTTP/1.1")


def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    with server(
        answering("HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n")
    ) as port:
        answer = fetch(f"http://127.0.0.1:{port}/", schemes=HTTP)
    assert (answer.status, answer.headers["location"]) == (302, "http://169.254.169.254/")


def test_proxies_of_the_environment_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with server(answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) as port:
        assert fetch(f"http://127.0.0.1:{port}/", schemes=HTTP).status == 200


def test_only_the_beginning_of_a_long_body_is_read() -> None:
    with server(answering("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + "x" * 100_000)) as port:
        assert len(fetch(f"http://127.0.0.1:{port}/", schemes=HTTP, limit=1000).body) == 1000


def test_a_server_that_drips_headers_is_cut_off_at_the_deadline() -> None:
    with server(dripping) as port:
        began = time.monotonic()
        with pytest.raises(Unreachable, match="within"):
            fetch(f"http://127.0.0.1:{port}/", schemes=HTTP, timeout=0.4)
    assert 0.3 < time.monotonic() - began < PATIENCE_S


def test_a_server_that_drips_the_handshake_is_cut_off_too() -> None:
    def serve(sock: socket.socket) -> None:
        sock.recv(65536)
        sock.sendall(b"\x16\x03\x03\x40\x00")
        while True:
            time.sleep(0.1)
            sock.sendall(b"\x02")

    with server(serve) as port:
        began = time.monotonic()
        with pytest.raises(Unreachable):
            fetch(f"https://127.0.0.1:{port}/", timeout=0.4)
    assert time.monotonic() - began < PATIENCE_S


@pytest.mark.parametrize(
    "text", ["", "nonsense\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 200 OK\r\n" + "X: y\r\n" * 200]
)
def test_what_is_not_an_answer_is_unreachable(text: str) -> None:
    with server(answering(text)) as port, pytest.raises(Unreachable):
        fetch(f"http://127.0.0.1:{port}/", schemes=HTTP, timeout=2)


def test_a_closed_port_is_unreachable() -> None:
    with server(answering("")) as port:
        pass
    with pytest.raises(Unreachable, match="refused"):
        fetch(f"http://127.0.0.1:{port}/", schemes=HTTP, timeout=2)


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context with a certificate for localhost, and a client's that trusts it."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    moment = now()
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(moment)
        .not_valid_after(moment.replace(year=moment.year + 1, day=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=True)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path: Path = tmp_path_factory.mktemp("tls") / "both.pem"
    path.write_bytes(pem + secret)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(path)
    return serving, ssl.create_default_context(cadata=pem.decode())


def test_tls_proves_the_name_that_was_asked_for(certified: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    serving, trusting = certified
    with server(answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), serving) as port:
        assert fetch(f"https://localhost:{port}/", context=trusting).status == 200
        with pytest.raises(Unreachable, match="certificate is not accepted"):
            fetch(f"https://127.0.0.1:{port}/", context=trusting)
        with pytest.raises(Unreachable, match="certificate is not accepted"):
            fetch(f"https://localhost:{port}/")

"""An agent tells a console nothing before the console has shown the certificate whose digest the token carries."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from apps.agent.identity import console as agents_console
from apps.agent.identity.console import Console, Failed, Pin, read_token
from apps.fleet import pki

pytestmark = pytest.mark.e2e

NOW = dt.datetime.now(dt.UTC)
AUTHORITY, STRANGER = pki.make_authority(NOW, "ours"), pki.make_authority(NOW, "a stranger's")


def token_of(certificate: bytes) -> str:
    """A token that is pinned to a certificate (PEM)."""
    digest = x509.load_pem_x509_certificate(certificate).fingerprint(hashes.SHA256())
    return f"sne_{base64.urlsafe_b64encode(digest).decode().rstrip('=')}_{'s' * 43}"


class _Answer(BaseHTTPRequestHandler):
    server: Any

    def do_GET(self) -> None:
        """The authority that this console says it has."""
        self._send(self.server.offers)

    def do_POST(self) -> None:
        """Whatever is told is kept."""
        self.server.told.append(self.rfile.read(int(self.headers["content-length"])).decode())
        self._send(b"{}")

    def _send(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as in the base class
        """Quiet."""


@contextmanager
def a_console(folder: Path, authority: pki.Pair, offers: bytes, name: str = "localhost") -> Iterator[Any]:
    """Somebody who answers at https://localhost: with a certificate of `authority` for `name`, offering `offers`."""
    pair = pki.issue(authority, name, client=False, now=NOW)
    (folder / "chain.pem").write_bytes(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "chain.pem")
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Answer)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.told, server.offers, server.leaf = [], offers or pair.certificate, pair.certificate
    server.handle_error = lambda *_: None
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def ask(server: Any, token: str) -> dict[str, Any]:
    """What an agent with this token does first."""
    return Console(f"https://localhost:{server.server_port}", read_token(token)).ask({"token": token})


def test_a_console_is_told_the_token_when_its_authority_is_the_pinned_one(tmp_path: Path) -> None:
    token = token_of(AUTHORITY.certificate)
    with a_console(tmp_path, AUTHORITY, AUTHORITY.certificate) as server:
        ask(server, token)
        assert token in server.told[0]


def test_a_console_is_told_the_token_when_its_own_certificate_is_the_pinned_one(tmp_path: Path) -> None:
    with a_console(tmp_path, AUTHORITY, b"") as server:
        ask(server, token_of(server.leaf))
        assert len(server.told) == 1


@pytest.mark.parametrize("offers", [STRANGER.certificate, AUTHORITY.certificate, STRANGER.certificate + b"x" * 100])
def test_a_foreign_console_is_told_nothing_whatever_it_offers(tmp_path: Path, offers: bytes) -> None:
    with a_console(tmp_path, STRANGER, offers) as server:
        with pytest.raises(Failed, match=r"Nothing was sent to it"):
            ask(server, token_of(AUTHORITY.certificate))
        assert server.told == []


def test_another_machine_with_a_certificate_of_the_same_authority_is_told_nothing(tmp_path: Path) -> None:
    with a_console(tmp_path, AUTHORITY, AUTHORITY.certificate, name="elsewhere") as server:
        with pytest.raises(Failed, match=r"does not fit"):
            ask(server, token_of(AUTHORITY.certificate))
        assert server.told == []


def test_without_the_pin_a_foreign_console_is_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pin, "chosen", lambda _self, offered: agents_console.PEM.findall(offered)[0])
    with a_console(tmp_path, STRANGER, STRANGER.certificate) as server:
        ask(server, token_of(AUTHORITY.certificate))
        assert len(server.told) == 1


def test_a_token_that_is_cut_off_and_an_address_without_tls_are_refused() -> None:
    token = token_of(AUTHORITY.certificate)
    assert read_token(token) == Pin(hashlib.sha256(ssl.PEM_cert_to_DER_cert(AUTHORITY.certificate.decode())).digest())
    for wrong in (token[:-1], "sw_0123", ""):
        with pytest.raises(Failed, match="91 characters"):
            read_token(wrong)
    for url in ("http://localhost", "localhost", "https://", "https://console.example/pages"):
        with pytest.raises(Failed, match=r"https://console\.example"):
            Console(url, read_token(token))

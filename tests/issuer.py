"""An issuer of tokens on loopback: it publishes a key set over https, as it is told, and signs tokens."""

from __future__ import annotations

import base64
import hmac
import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

ISSUER, AUDIENCE = "https://login.example.com", "api"
Jwk = dict[str, Any]


def encoded(value: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def of_number(number: int) -> str:
    """A number as JWKs have it."""
    return encoded(number.to_bytes((number.bit_length() + 7) // 8, "big"))


@cache
def private(name: str) -> rsa.RSAPrivateKey:
    """A key of 2048 bits by name; making one takes tenths of a second."""
    return rsa.generate_private_key(65537, 2048)


def jwk(name: str, **fields: Any) -> Jwk:
    """The public key as an entry of a set, whose key id is its name."""
    numbers = private(name).public_key().public_numbers()
    return {"kty": "RSA", "n": of_number(numbers.n), "e": of_number(numbers.e), "kid": name} | fields


def token(name: str, **claims: Any) -> str:
    """A token that this key signed, valid for an hour."""
    body = {"iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + 3600, "sub": "anna"} | claims
    parts = ({"alg": "RS256", "typ": "JWT", "kid": name}, body)
    signed = ".".join(encoded(json.dumps(part).encode()) for part in parts)
    return f"{signed}.{encoded(private(name).sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def confused(name: str) -> str:
    """A token whose shared secret (HS256) is the public key, which everybody knows."""
    public = private(name).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    head, body, _ = token(name).split(".")
    head = encoded(json.dumps({"alg": "HS256", "typ": "JWT", "kid": name}).encode())
    return f"{head}.{body}.{encoded(hmac.digest(public, f'{head}.{body}'.encode(), 'sha256'))}"


@dataclass(slots=True)
class Issuer:
    """Answers with `status`, `headers` and `body`, `delay_s` later; `asked` counts requests."""

    port: int = 0
    status: int = 200
    body: bytes = b'{"keys": []}'
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    asked: int = 0

    @property
    def url(self) -> str:
        """Where the key set is."""
        return f"https://localhost:{self.port}/jwks.json"

    def publish(self, *keys: Jwk | str) -> None:
        """The key set from now on; texts are names of keys."""
        self.body = json.dumps({"keys": [jwk(each) if isinstance(each, str) else each for each in keys]}).encode()


@cache
def _contexts() -> tuple[ssl.SSLContext, ssl.SSLContext, bytes]:
    """A server's context with a certificate for localhost, a client's that trusts it, and the certificate."""
    key, name, moment = ec.generate_private_key(ec.SECP256R1()), x509.Name([]), datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(moment).not_valid_after(moment.replace(year=moment.year + 1, day=1))
    made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=True)
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    pem = made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with TemporaryDirectory() as directory:
        path = Path(directory) / "both.pem"
        path.write_bytes(pem + key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        serving.load_cert_chain(path)
    return serving, ssl.create_default_context(cadata=pem.decode()), pem


def trusting() -> ssl.SSLContext:
    """What a client needs to believe the issuer."""
    return _contexts()[1]


def serving() -> tuple[ssl.SSLContext, bytes]:
    """What another server on localhost needs, and the certificate (PEM) that its clients trust."""
    return _contexts()[0], _contexts()[2]


@contextmanager
def issuing() -> Iterator[Issuer]:
    """An issuer that runs."""
    issuer = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.asked += 1
            time.sleep(issuer.delay_s)
            self.send_response(issuer.status)
            for name, value in issuer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(issuer.body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as in the base class
            """Quiet."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Callers that went away are nothing to report."""

    server = Server(("127.0.0.1", 0), Handler)
    server.socket = _contexts()[0].wrap_socket(server.socket, server_side=True)
    issuer.port = server.server_port
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()  # looks so often whether to end
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()

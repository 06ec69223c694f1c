"""Servers that speak TLS, with certificates of an authority that the tests make."""

from __future__ import annotations

import datetime as dt
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.e2e.rendered_proxy import EchoServers

_DAY = dt.timedelta(days=1)


class Authority:
    """Signs certificates; `pem` is its own."""

    def __init__(self, name: str = "Authority of a test") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        builder = self._builder(self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self.pem = _pem(builder.sign(self._key, hashes.SHA256()))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key)
        builder = builder.serial_number(x509.random_serial_number())
        return builder.not_valid_before(now - _DAY).not_valid_after(now + _DAY)

    def signed(self, name: str) -> str:
        """A certificate for a host name, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        names = x509.SubjectAlternativeName([x509.DNSName(name)])
        signed = self._builder(subject, key.public_key()).add_extension(names, critical=False)
        form, nothing = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        private = key.private_bytes(serialization.Encoding.PEM, form, nothing).decode()
        return _pem(signed.sign(self._key, hashes.SHA256())) + private


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def context_of(
    authority: Authority, name: str, directory: Path, *, asks_clients: bool = False, alpn: tuple[str, ...] = ()
) -> ssl.SSLContext:
    """What a server of that name shows, and whether it wants a certificate of the same authority from clients."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    path = directory / f"{name}.pem"
    path.write_text(authority.signed(name))
    context.load_cert_chain(path)
    if asks_clients:
        context.load_verify_locations(cadata=authority.pem)
        context.verify_mode = ssl.CERT_REQUIRED
    if alpn:
        context.set_alpn_protocols(list(alpn))
    return context


@contextmanager
def tls_server(context: ssl.SSLContext) -> Iterator[int]:
    """An echo server behind TLS on 127.0.0.1; yields its port."""
    server = EchoServers(("127.0.0.1", 0))
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()

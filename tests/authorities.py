"""Authorities that tests make, with certificates and revocation lists."""

from __future__ import annotations

import datetime as dt
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_DAY = dt.timedelta(days=1)


class Authority:
    """Signs certificates; `pem` is its own."""

    def __init__(self, name: str = "Authority of a test") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        builder = self._builder(self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self.pem = _pem(builder.sign(self._key, hashes.SHA256()))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey, days: int = 1) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key)
        builder = builder.serial_number(x509.random_serial_number())
        return builder.not_valid_before(now - 9 * _DAY).not_valid_after(now + days * _DAY)

    def signed(self, name: str, *, days: int = 1, subject: str = "") -> str:
        """A certificate for a host (name or address) that is valid for so many days, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        common = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, subject or name)])
        names = x509.SubjectAlternativeName([_host(name)])
        signed = self._builder(common, key.public_key(), days).add_extension(names, critical=False)
        form, nothing = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        private = key.private_bytes(serialization.Encoding.PEM, form, nothing).decode()
        return _pem(signed.sign(self._key, hashes.SHA256())) + private

    def revoked(self, *certificates: str, days: int = 1) -> str:
        """The revocation list that names these certificates."""
        now = dt.datetime.now(dt.UTC)
        builder = x509.CertificateRevocationListBuilder().issuer_name(self._name)
        builder = builder.last_update(now - 9 * _DAY).next_update(now + days * _DAY)
        for each in certificates:
            number = x509.load_pem_x509_certificate(each.encode()).serial_number
            entry = x509.RevokedCertificateBuilder().serial_number(number).revocation_date(now - _DAY)
            builder = builder.add_revoked_certificate(entry.build())
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()

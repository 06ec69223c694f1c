"""The keys: an authority, certificates for agents and one for the control plane, as pure functions."""

from __future__ import annotations

import datetime as dt
import hashlib
from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_DAYS = 3650
ENROLLED_DAYS = 30  # of what is renewed without anybody's help
LARGEST_REQUEST = 8192
CURVES = (ec.SECP256R1, ec.SECP384R1)


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes


def make_authority(now: dt.datetime, name: str = "Spillway agents") -> Pair:
    """A new authority for the certificates of one control plane and its agents."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = _builder(subject, subject, key.public_key(), now, AUTHORITY_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(authority=True), critical=True)
    return _pair(builder.sign(key, hashes.SHA256()), key)


def issue(authority: Pair, name: str, *, client: bool, now: dt.datetime, days: int = 365) -> Pair:
    """A certificate for `name` (its DNS name).

    An agent's is good for serving only and the control plane's for asking only, so that one node's
    key cannot push to another node. Raises ValueError when the authority's PEM cannot be read.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    return _pair(_certificate(authority, name, key.public_key(), client=client, now=now, days=days), key)


def sign_request(authority: Pair, request: bytes, name: str, *, now: dt.datetime) -> x509.Certificate:
    """An agent's certificate for the key of a request (PEM); of the request nothing but its key counts.

    Raises ValueError with a sentence where it cannot be read, is not signed by its own key, or has another kind of key.
    """
    return _certificate(authority, name, requested_key(request), client=False, now=now, days=ENROLLED_DAYS)


def requested_key(request: bytes) -> ec.EllipticCurvePublicKey:
    """The key for which a certificate is asked. Raises ValueError as above."""
    if len(request) > LARGEST_REQUEST:
        raise ValueError(f"A certificate request has at most {LARGEST_REQUEST} bytes.")
    try:
        found = x509.load_pem_x509_csr(request)
        key, signed = found.public_key(), found.is_signature_valid
    except (ValueError, TypeError, UnsupportedAlgorithm, InvalidSignature):
        raise ValueError("The certificate request is not PEM of a PKCS #10 request.") from None
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, CURVES):
        raise ValueError("The key of the certificate request must be an elliptic curve key, P-256 or P-384.")
    if not signed:
        raise ValueError("The certificate request is not signed with its own key.")
    return key


def digest_of_key(key: ec.EllipticCurvePublicKey) -> str:
    """SHA-256 (hex) of a public key."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return hashlib.sha256(key.public_bytes(serialization.Encoding.DER, form)).hexdigest()


def fingerprint(certificate: x509.Certificate) -> str:
    """SHA-256 (hex) of a certificate as it goes over the wire."""
    return certificate.fingerprint(hashes.SHA256()).hex()


def pem(certificate: x509.Certificate) -> str:
    """The certificate as text."""
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _certificate(
    authority: Pair, name: str, key: ec.EllipticCurvePublicKey, *, client: bool, now: dt.datetime, days: int
) -> x509.Certificate:
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    issuer_key = serialization.load_pem_private_key(authority.key, password=None)
    if not isinstance(issuer_key, ec.EllipticCurvePrivateKey):
        raise ValueError("The authority's key is not an elliptic curve key.")
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    purpose = ExtendedKeyUsageOID.CLIENT_AUTH if client else ExtendedKeyUsageOID.SERVER_AUTH
    builder = _builder(subject, issuer.subject, key, now, days)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(authority=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=True)
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
    )
    return builder.sign(issuer_key, hashes.SHA256())


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: dt.datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    return Pair(
        pem(certificate).encode(),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )

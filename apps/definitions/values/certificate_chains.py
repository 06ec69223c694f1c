"""Whether every node takes a chain, asked of each of its certificates and then of OpenSSL, before it is stored.

A node that cannot load one certificate refuses the whole configuration, so the list here is shorter than what any
OpenSSL of a node takes; tests/conformance/test_certificates.py holds it against HAProxy.
"""

from __future__ import annotations

import itertools
import os
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

MOST_CERTIFICATES = 10
RSA_BITS = (2048, 4096)  # a signature with 8 192 bits costs a node 25 ms of processor time at each handshake
AUTHORITY_BITS = (2048, 8192)  # nodes only send these
CURVES = {"secp256r1": "P-256", "secp384r1": "P-384", "secp521r1": "P-521"}
DIGESTS = ("sha256", "sha384", "sha512")
SECURITY_LEVEL = "DEFAULT:@SECLEVEL=2"  # of OpenSSL on Debian, Ubuntu and Fedora
KEYS = "an RSA key of {} to {} bits, or an elliptic curve key on P-256, P-384 or P-521"
Complaint = tuple[str, str]
# Nodes staple nothing: authorities stop answering for it (Let's Encrypt did in 2025), and revocation is told by lists.
STAPLED = (
    "must_staple",
    "Nodes send no OCSP responses, which the certificate demands (must-staple); request one without that extension.",
)


def complaints_about(chain: Sequence[x509.Certificate], moment: datetime) -> list[Complaint]:
    """Code and sentence of everything for which a node or its clients would refuse the chain; empty when it is good."""
    if len(chain) > MOST_CERTIFICATES:
        return [("too_many", f"Give at most {MOST_CERTIFICATES} certificates; these are {len(chain)}.")]
    found = [
        complaint
        for index, certificate in enumerate(chain)
        for complaint in (_key(certificate, index), _signature(certificate, index), _time(certificate, index, moment))
        if complaint is not None
    ]
    found += [STAPLED] if chain and _must_be_stapled(chain[0]) else []
    return found or list(_order(chain))


def complaint_of_openssl(pem: str) -> Complaint | None:
    """What OpenSSL says when it loads chain and key as a node does; None when it takes them."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers(SECURITY_LEVEL)
    with _in_memory(pem) as path:
        try:
            context.load_cert_chain(path, password="")
        except ssl.SSLError as error:
            said = (error.reason or "no reason given").replace("_", " ").lower()
            return "openssl", f"OpenSSL cannot load the chain with its key ({said}); ask the authority for a new one."
    return None


def _must_be_stapled(certificate: x509.Certificate) -> bool:
    try:
        features = certificate.extensions.get_extension_for_class(x509.TLSFeature).value
    except x509.ExtensionNotFound:
        return False
    return x509.TLSFeatureType.status_request in features


def _name(index: int) -> str:
    return f"Certificate {index + 1} of the chain"


def _key(certificate: x509.Certificate, index: int) -> Complaint | None:
    """The kind and size of the key, and that it is written down as usual: OpenSSL reads fewer forms than there are."""
    least, most = AUTHORITY_BITS if index else RSA_BITS
    wanted = f"get one with {KEYS.format(least, most)}."
    try:
        key = certificate.public_key()
    except (ValueError, UnsupportedAlgorithm):
        return "key_kind", f"{_name(index)} has a key that nodes do not support; {wanted}"
    if isinstance(key, rsa.RSAPublicKey):
        if not least <= key.key_size <= most:
            return "key_size", f"{_name(index)} has an RSA key of {key.key_size} bits; {wanted}"
    elif isinstance(key, ec.EllipticCurvePublicKey):
        if key.curve.name not in CURVES:
            return "key_curve", f"{_name(index)} has a key on the curve {key.curve.name}; {wanted}"
    elif not isinstance(key, ed25519.Ed25519PublicKey):
        return "key_kind", f"{_name(index)} has a key that nodes do not support; {wanted}"
    if key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) not in certificate.tbs_certificate_bytes:
        return "key_form", f"{_name(index)} writes its key in an unusual form; {wanted}"
    return None


def _signature(certificate: x509.Certificate, index: int) -> Complaint | None:
    """The digest that was signed; nobody looks at the signature of an authority over itself."""
    if index and certificate.issuer == certificate.subject:
        return None
    try:
        digest = certificate.signature_hash_algorithm
        said = digest.name if digest else ""  # Ed25519 needs none
    except UnsupportedAlgorithm:
        said = "an unknown digest"
    if said in ("", *DIGESTS):
        return None
    message = f"{_name(index)} is signed with {said}; get one that is signed with SHA-256, SHA-384 or SHA-512."
    return "signature_digest", message


def _time(certificate: x509.Certificate, index: int, moment: datetime) -> Complaint | None:
    if moment < certificate.not_valid_after_utc:
        return None
    return "expired", f"{_name(index)} expired at {certificate.not_valid_after_utc:%Y-%m-%d}; get a new one."


def _order(chain: Sequence[x509.Certificate]) -> Iterator[Complaint]:
    for index, (certificate, issuer) in enumerate(itertools.pairwise(chain)):
        try:
            if certificate.issuer == certificate.subject:
                raise ValueError("the chain goes on after its root")
            certificate.verify_directly_issued_by(issuer)
        except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
            message = (
                f"{_name(index + 1)} did not issue the one before it; give the certificate itself first, then who "
                "issued it, and so on."
            )
            yield "chain_order", message


@contextmanager
def _in_memory(text: str) -> Iterator[str]:
    """A path from which OpenSSL reads a private key that never lies on a disk."""
    with os.fdopen(os.memfd_create("chain"), "wb") as file:
        file.write(text.encode("ascii"))
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"

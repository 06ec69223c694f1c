"""Reads a certificate chain with its key: do they belong together, for which names, how long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from apps.compiler import grammar
from apps.definitions.values.certificate_chains import complaint_of_openssl, complaints_about

# A key of RSA with 4 096 bits has 3 300 characters; to look at one of 16 384 bits takes half a minute.
MAX_KEY = 4096
Report = Callable[[str, str, str], None]


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """What the first certificate of a chain says."""

    hostnames: tuple[str, ...]
    not_before: datetime
    not_after: datetime
    fingerprint: str


def canonical_pem(text: str) -> str:
    """The text as nodes read it: without byte order mark and carriage returns, with one line feed at the end."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").strip(" \t\n")
    return f"{lines}\n" if lines else ""


def read_certificate(chain: str, key: str | None, moment: datetime, report: Report) -> CertificateFacts | None:
    """The facts of a chain that nodes take and whose key fits; None after blaming one of the two fields.

    A key that is wrong is never quoted in a message.
    """
    if key is None:
        report("/spec/key", "missing", "Paste the private key that belongs to the chain.")
        return None
    if "PRIVATE KEY" in chain:
        report("/spec/chain", "pem_blocks", "Paste the private key into key, not into chain.")
        return None
    try:
        grammar.pem(chain + key)
    except grammar.GrammarError as error:
        report("/spec/chain", error.code, error.message)
        return None
    return _facts(chain, key, moment, report)


def _facts(chain: str, key: str, moment: datetime, report: Report) -> CertificateFacts | None:
    try:
        certificates = x509.load_pem_x509_certificates(chain.encode())
        first, names = certificates[0], _names(certificates[0])
        complaints = complaints_about(certificates, moment)
    except (ValueError, UnsupportedAlgorithm):
        report("/spec/chain", "certificate", "The chain cannot be read; paste it exactly as the authority issued it.")
        return None
    if not names:
        complaints.append(
            (
                "no_names",
                "The certificate has no DNS name (subjectAltName is empty); use one that names your hostnames.",
            )
        )
    for code, message in complaints:
        report("/spec/chain", code, message)
    if complaints or not _fits(key, first, report):
        return None
    if refused := complaint_of_openssl(chain + key):
        report("/spec/chain", *refused)
        return None
    fingerprint = first.fingerprint(SHA256()).hex()
    return CertificateFacts(names, first.not_valid_before_utc, first.not_valid_after_utc, fingerprint)


def _fits(key: str, certificate: x509.Certificate, report: Report) -> bool:
    if len(key) > MAX_KEY:
        report("/spec/key", "too_long", f"Paste a single private key of at most {MAX_KEY} characters.")
        return False
    try:
        private = load_pem_private_key(key.encode(), None).public_key()
        found = private.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        report("/spec/key", "key", "The key cannot be read; paste an unencrypted PEM private key.")
        return False
    fits = found == certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if not fits:
        report("/spec/key", "key_mismatch", "The key does not belong to the first certificate of the chain.")
    return fits


def _names(certificate: x509.Certificate) -> tuple[str, ...]:
    """DNS names of subjectAltName, lower case; names outside of the grammar are of no use to a route."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    names = sorted({name.lower() for name in found.get_values_for_type(x509.DNSName)})
    return tuple(name for name in names if _is_hostname(name))


def _is_hostname(name: str) -> bool:
    try:
        grammar.hostname(name)
    except grammar.GrammarError:
        return False
    return True

"""Whether every node takes a list of authorities: one that cannot be loaded would keep its whole bundle out.

Of authorities of clients also whether any certificate could be valid: OpenSSL wants the root of each chain, and with
revocation lists one of each authority.
"""

from __future__ import annotations

import re
import ssl
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

MOST_AUTHORITIES = 50
Complaint = tuple[str, str]
_BLOCK = re.compile(r"-----BEGIN X509 CRL-----\n[^-]+-----END X509 CRL-----\n")


def complaint_about_authorities(pem: str) -> Complaint | None:
    """Code and sentence of what OpenSSL says against it; None when it takes them."""
    if pem.count("-----BEGIN") > MOST_AUTHORITIES:
        return "too_many", f"Give at most {MOST_AUTHORITIES} certificates of authorities."
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError):
        return "openssl", "Paste certificates as the authority gave them: OpenSSL does not read these."
    if not context.get_ca_certs():
        return "no_authority", "Paste certificates of authorities: none of these may sign others."
    return None


def complaint_about_roots(pem: str) -> Complaint | None:
    """Code and sentence where the issuer of an authority is not there itself."""
    authorities = x509.load_pem_x509_certificates(pem.encode())
    names = {each.subject for each in authorities}
    if all(each.issuer in names for each in authorities):
        return None
    return "no_root", "Paste the roots as well: nodes verify certificates up to an authority that issued itself."


def complaint_about_revocation_lists(pem: str, authorities: str) -> Complaint | None:
    """Code and sentence where a list cannot be read or is of nobody, or where an authority has none."""
    missing = x509.load_pem_x509_certificates(authorities.encode())
    for block in _BLOCK.findall(pem):
        try:
            found = x509.load_pem_x509_crl(block.encode())
            of_it = [each for each in missing if each.subject == found.issuer and _has_signed(each, found)]
        except (ValueError, TypeError, UnsupportedAlgorithm):
            return "unreadable", "Paste revocation lists as the authority gave them: these cannot be read."
        if not of_it:
            return "issuer", "Paste revocation lists of these authorities, one of each; one here is of none of them."
        missing = [each for each in missing if each not in of_it]
    if missing:
        return "missing", "Paste a revocation list of each authority: without it no certificate of it is valid."
    return None


def _has_signed(authority: x509.Certificate, found: x509.CertificateRevocationList) -> bool:
    key = authority.public_key()
    kinds = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey
    return isinstance(key, kinds) and found.is_signature_valid(key)


def terms_of_revocation_lists(pem: str) -> list[tuple[str, datetime, datetime]]:
    """Issuer, beginning and end of each list; one that names no end holds for ever and is left out."""
    found = map(x509.load_pem_x509_crl, (block.encode() for block in _BLOCK.findall(pem)))
    return [
        (each.issuer.rfc4514_string(), each.last_update_utc, each.next_update_utc)
        for each in found
        if each.next_update_utc is not None
    ]

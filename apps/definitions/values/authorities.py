"""Whether every node takes a list of authorities: one that cannot be loaded would keep its whole bundle out."""

from __future__ import annotations

import ssl

MOST_AUTHORITIES = 50
Complaint = tuple[str, str]


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

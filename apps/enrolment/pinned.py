"""The certificate by which nodes know the console before they say anything: a file that the operator names."""

from __future__ import annotations

import base64
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from django.conf import settings

from apps.core.errors import Conflict
from apps.fleet import pki

NOT_SAID = (
    "Nodes cannot know this console yet. Set SPILLWAY_CONSOLE_CA to the PEM file of the certificate of its https, "
    "or of the authority that signed it, and restart the console."
)


def certificate() -> x509.Certificate:
    """The first certificate of SPILLWAY_CONSOLE_CA. Raises Conflict with what the operator has to do."""
    if not settings.CONSOLE_CA_FILE:
        raise Conflict(NOT_SAID)
    try:
        return x509.load_pem_x509_certificates(Path(settings.CONSOLE_CA_FILE).read_bytes())[0]
    except (OSError, ValueError) as error:
        raise Conflict(f"SPILLWAY_CONSOLE_CA cannot be read: {error}. {NOT_SAID}") from None


def text() -> str:
    """The same as PEM."""
    return pki.pem(certificate())


def pin() -> str:
    """Its SHA-256 as it stands in tokens: 43 characters."""
    return base64.urlsafe_b64encode(certificate().fingerprint(hashes.SHA256())).decode().rstrip("=")

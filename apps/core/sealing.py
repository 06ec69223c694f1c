"""Kernel: encryption at rest for what must be read back, such as private keys and the bundles that hold them."""

from __future__ import annotations

import base64
import functools
import hashlib

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings

from apps.core.errors import SpillwayError


class Unsealable(SpillwayError):
    """The bytes were sealed under another secret, or changed since."""

    status = 500
    title = "Cannot be decrypted"


@functools.cache
def _box(secret: str) -> Fernet:
    return Fernet(base64.urlsafe_b64encode(hashlib.sha256(b"spillway sealing\0" + secret.encode()).digest()))


def seal(content: bytes) -> bytes:
    """Encrypt and authenticate under a key derived from SPILLWAY_SECRET_KEY."""
    return _box(settings.SECRET_KEY).encrypt(content)


def unseal(sealed: bytes) -> bytes:
    """The content that was sealed; raises Unsealable when the secret changed or the bytes did."""
    try:
        return _box(settings.SECRET_KEY).decrypt(bytes(sealed))
    except InvalidToken:
        raise Unsealable("Stored bytes cannot be decrypted: was SPILLWAY_SECRET_KEY changed?") from None

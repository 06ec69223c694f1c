"""Keys made from SECRET_KEY: one that seals secrets at rest (private keys, bundles), others by label."""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class Unsealable(Exception):
    """The bytes were sealed with another SECRET_KEY, or somebody changed them."""


@functools.lru_cache(maxsize=8)
def _fernet(secrets: tuple[str, ...]) -> MultiFernet:
    def key(secret: str) -> bytes:
        derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"spillway sealing 1").derive(secret.encode())
        return base64.urlsafe_b64encode(derived)

    return MultiFernet([Fernet(key(secret)) for secret in secrets])


def _box() -> MultiFernet:
    # Fallbacks let a SECRET_KEY be rotated: new seals use the first, old ones still open.
    return _fernet((settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))


def is_newest(sealed: bytes | memoryview) -> bool:
    """Whether it was sealed with the first of the keys, so that no fallback is needed to open it."""
    try:
        _fernet((settings.SECRET_KEY,)).decrypt(bytes(sealed))
    except InvalidToken:
        return False
    return True


def derived_key(label: str) -> str:
    """A secret of this installation for one purpose, hex: HMAC-SHA256 of the label under SECRET_KEY.

    The same label gives the same key on every process that knows SECRET_KEY, and says nothing about other labels.
    """
    return hmac.new(settings.SECRET_KEY.encode(), label.encode(), hashlib.sha256).hexdigest()


def seal(data: bytes) -> bytes:
    """Encrypt and authenticate; the result may be stored."""
    return _box().encrypt(data)


def unseal(sealed: bytes | memoryview) -> bytes:
    """The bytes that were sealed (databases hand out memoryviews). Raises Unsealable."""
    try:
        return _box().decrypt(bytes(sealed))
    except InvalidToken:
        raise Unsealable("Sealed with another SECRET_KEY, or changed since.") from None

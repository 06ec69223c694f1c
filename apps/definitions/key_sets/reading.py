"""Reads a JSON Web Key Set (RFC 7517) into public keys that may verify tokens; what may not is left out and named.

The set comes from a server that we do not know. A key counts only if it is a public RSA or EC key for signatures, with
an algorithm that fits it; everything else (shared secrets above all) is ignored, and so verifies nothing.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from apps.core.errors import FieldError
from apps.definitions.shapes.base.reading import read
from apps.definitions.shapes.traffic.authentication import JwtKey

MAX_BYTES = 256 * 1024
MOST_KEYS, MOST_ENTRIES = 16, 100
CURVES: dict[str, tuple[type[ec.EllipticCurve], str]] = {
    "P-256": (ec.SECP256R1, "ES256"),
    "P-384": (ec.SECP384R1, "ES384"),
    "P-521": (ec.SECP521R1, "ES512"),
}
USUAL_OF_RSA = "RS256"
# Numbers of 8192 bits take 1366 letters.
_NUMBER = re.compile(r"[A-Za-z0-9_-]{1,1400}={0,2}")


class BadKeySet(Exception):
    """The answer is no key set that we take; the text is a sentence for the owner of the policy."""


class _Ignored(Exception):
    """One key does not count; the text says which kind of key it is."""


@dataclass(frozen=True, slots=True)
class KeySetRead:
    """The keys that count, and what else there is: `shared secret (2)`, empty for nothing."""

    keys: tuple[JwtKey, ...]
    ignored: str


def read_key_set(body: bytes) -> KeySetRead:
    """The keys of an answer. Raises BadKeySet where it is none, has too many keys, or none that counts."""
    if len(body) > MAX_BYTES:
        raise BadKeySet("The answer is longer than 256 kB.")
    found, ignored = dict[JwtKey, None](), Counter[str]()
    for entry in _entries(body):
        try:
            found[_key(entry)] = None
        except _Ignored as reason:
            ignored[str(reason)] += 1
    if len(found) > MOST_KEYS:
        raise BadKeySet(f"The key set has {len(found)} keys; at most {MOST_KEYS} are taken.")
    said = ", ".join(f"{what} ({count})" for what, count in sorted(ignored.items()))
    if not found:
        raise BadKeySet(f"The key set has no key that verifies tokens{f': {said}' if said else ''}.")
    keys = sorted(found, key=lambda key: (key.kid, key.algorithm, key.pem))
    return KeySetRead(tuple(keys), said)


def _entries(body: bytes) -> list[Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise BadKeySet("The answer is not JSON.") from None
    entries = document.get("keys") if isinstance(document, Mapping) else None
    if not isinstance(entries, list):
        raise BadKeySet("The answer has no list named keys.")
    if len(entries) > MOST_ENTRIES:
        raise BadKeySet(f"The key set has {len(entries)} entries; at most {MOST_ENTRIES} are read.")
    return entries


def _key(entry: Any) -> JwtKey:
    """One entry as a key, checked as one that somebody types. Raises _Ignored."""
    if not isinstance(entry, Mapping):
        raise _Ignored("without fields")
    if entry.get("kty") == "oct" or "k" in entry:
        raise _Ignored("shared secret")
    if "d" in entry:
        raise _Ignored("private key")
    _expect_signatures(entry)
    public, usual = _public(entry)
    pem: bytes = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    said = {"algorithm": entry.get("alg", usual), "pem": pem.decode(), "kid": entry.get("kid", "")}
    errors: list[FieldError] = []
    key = read(JwtKey, said, "", errors)
    if key is None:
        raise _Ignored(_WORDS.get(errors[0].code) or _WORDS.get(errors[0].pointer, "unusable"))
    return key


# What is said of a key by the first error of its shape, by its code or its field.
_WORDS = {
    "short_key": "shorter than 2048 bits",
    "slow_key": "too long",
    "/algorithm": "of another algorithm",
    "algorithm": "whose algorithm does not fit",
    "/kid": "with an unusable key id",
}


def _expect_signatures(entry: Mapping[str, Any]) -> None:
    operations = entry.get("key_ops", ["verify"])
    if entry.get("use", "sig") != "sig" or not isinstance(operations, list) or "verify" not in operations:
        raise _Ignored("not for signatures")


def _public(entry: Mapping[str, Any]) -> tuple[rsa.RSAPublicKey | ec.EllipticCurvePublicKey, str]:
    """The key, and its algorithm where the entry names none."""
    kind, curve = entry.get("kty"), entry.get("crv")
    try:
        if kind == "RSA":
            return rsa.RSAPublicNumbers(_number(entry, "e"), _number(entry, "n")).public_key(), USUAL_OF_RSA
        if kind == "EC" and isinstance(curve, str) and curve in CURVES:
            of_curve, usual = CURVES[curve]
            numbers = ec.EllipticCurvePublicNumbers(_number(entry, "x"), _number(entry, "y"), of_curve())
            return numbers.public_key(), usual
    except ValueError:
        raise _Ignored("unreadable") from None
    raise _Ignored("of another kind")


def _number(entry: Mapping[str, Any], field: str) -> int:
    """base64url, as RFC 7518 writes numbers. Raises ValueError."""
    text = entry.get(field)
    if not isinstance(text, str) or not _NUMBER.fullmatch(text):
        raise ValueError(field)
    text = text.rstrip("=")
    return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), "big")

"""SHA-512 crypt (`$6$`), the hash of passwords that crypt(3) and so HAProxy verify.

Written after its public specification ("Unix crypt using SHA-256 and SHA-512", U. Drepper): Python's own module is gone
in 3.13.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

_DIGITS = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
SALT_LENGTH = 16


def new_hash(password: str, rounds: int) -> str:
    """The hash of a password under a new salt."""
    salt = "".join(secrets.choice(_DIGITS) for _ in range(SALT_LENGTH))
    return sha512_crypt(password, salt, rounds)


def fits(password: str, known: str) -> bool:
    """Whether the hash is that of the password."""
    parts = known.split("$")
    if len(parts) != 5 or parts[1] != "6" or not parts[2].startswith("rounds="):
        return False
    made = sha512_crypt(password, parts[3], int(parts[2].removeprefix("rounds=")))
    return hmac.compare_digest(made.encode(), known.encode())


def sha512_crypt(password: str, salt: str, rounds: int) -> str:
    """`$6$rounds=…$salt$hash`."""
    key, salted = password.encode(), salt.encode()
    digest = _first(key, salted)
    p = _repeated(hashlib.sha512(key * len(key)).digest(), len(key))
    s = _repeated(hashlib.sha512(salted * (16 + digest[0])).digest(), len(salted))
    for number in range(rounds):
        odd = number % 2
        parts = (p if odd else digest, s if number % 3 else b"", p if number % 7 else b"", digest if odd else p)
        digest = hashlib.sha512(b"".join(parts)).digest()
    return f"$6$rounds={rounds}${salt}${_written(digest)}"


def _first(key: bytes, salt: bytes) -> bytes:
    other = hashlib.sha512(key + salt + key).digest()
    parts = [key, salt, _repeated(other, len(key))]
    left = len(key)
    while left:
        parts.append(other if left & 1 else key)
        left >>= 1
    return hashlib.sha512(b"".join(parts)).digest()


def _repeated(digest: bytes, length: int) -> bytes:
    return (digest * (length // len(digest) + 1))[:length]


def _written(digest: bytes) -> str:
    found = []
    for number in range(21):
        order = [number, number + 21, number + 42]
        shift = number % 3
        a, b, c = order[shift:] + order[:shift]
        found.append(_base64((digest[a] << 16) | (digest[b] << 8) | digest[c], 4))
    return "".join(found) + _base64(digest[63], 2)


def _base64(value: int, count: int) -> str:
    return "".join(_DIGITS[value >> (6 * position) & 63] for position in range(count))

"""Who somebody is: blocks of a policy that ask for a name and password, an API key or a signed token."""

from __future__ import annotations

from dataclasses import dataclass

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class BasicAuth:
    """Names and the hashes of their passwords; servers see the header only where it is kept."""

    users: Pairs | None = None
    realm: str | None = None
    keep_header: bool | None = None


@dataclass(frozen=True, slots=True)
class ApiKeys:
    """Names and the SHA-256 of their keys; `id` (`keys-7`) is that of whoever says `keys`, and names their map."""

    keys: Pairs | None = None
    header: str | None = None
    name_header: str | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class JwtKey:
    """A public key, and the one algorithm that it verifies; `kid` is empty where tokens name none."""

    algorithm: str
    pem: str
    kid: str = ""


@dataclass(frozen=True, slots=True)
class Jwt:
    """Tokens of one issuer for one audience; claims become headers."""

    issuer: str | None = None
    audience: str | None = None
    keys: tuple[JwtKey, ...] | None = None
    claims: Pairs | None = None
    leeway_s: int | None = None
    keep_header: bool | None = None

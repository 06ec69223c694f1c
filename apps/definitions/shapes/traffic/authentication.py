"""The shapes of the blocks that ask who somebody is; passwords and keys are never shown again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

from apps.compiler import header_text
from apps.compiler.grammar import GrammarError
from apps.compiler.grammars import authentication as grammar
from apps.compiler.model import authentication as model
from apps.core.called_urls import Refused, read_url
from apps.core.errors import FieldError
from apps.definitions.shapes.base.shape import About, Distinct, Grammar, Shape
from apps.definitions.shapes.base.words import Boolean, Pairs, at_most, one_of, read_pairs, text, whole

SHORTEST_PASSWORD, LONGEST_SECRET = 8, 128
SHORTEST_KEY = 24
MOST_USERS, MOST_API_KEYS, MOST_CLAIMS, MOST_JWT_KEYS = 50, 1000, 10, 8
LEAST_RSA_BITS, MOST_RSA_BITS = 2048, 8192
MOST_EXPONENT_BITS = 33  # a longer one makes nodes pay for each token
MOST_JWKS_URL, MOST_GRACE_S = 512, 86_400
_JWKS_URL = re.compile(r"https://[A-Za-z0-9._~:/?@!$&+,;=%\[\]-]{1,504}")
# Blocks and fields of names with a secret each.
SECRETS = (("basic_auth", "users"), ("api_keys", "keys"))
CURVES = {"ES256": "secp256r1", "ES384": "secp384r1", "ES512": "secp521r1"}


def _password(value: object) -> str:
    """A password, the stored hash of one, or nothing, which keeps the stored one."""
    if value == "":
        return ""
    if not isinstance(value, str) or not value.isprintable() or not SHORTEST_PASSWORD <= len(value) <= LONGEST_SECRET:
        raise GrammarError("password", f"Use {SHORTEST_PASSWORD} to {LONGEST_SECRET} printable characters.")
    return value


def _api_key(value: object) -> str:
    """A key, the stored digest of one, or nothing, which keeps the stored one."""
    if value == "":
        return ""
    if not isinstance(value, str) or not SHORTEST_KEY <= len(value) <= LONGEST_SECRET or not _is_plain(value):
        raise GrammarError("key", f"Use a random key of {SHORTEST_KEY} to {LONGEST_SECRET} letters, digits, - and _.")
    return value


def _is_plain(value: str) -> bool:
    return value.isascii() and value.replace("-", "").replace("_", "").isalnum()


def _secrets(name: Callable[[Any], str], secret: Callable[[Any], str], most: int, what: str) -> Grammar:
    """Names with a secret each; written without the secrets."""

    def read(value: object) -> Pairs:
        if isinstance(value, Mapping) and len(value) > most:
            raise GrammarError("too_many", f"Use at most {most} {what}.")
        return read_pairs(value, name, secret)

    def write(pairs: Any) -> dict[str, str]:
        return dict.fromkeys(sorted(dict(pairs)), "")

    schema = {
        "type": "object",
        "title": f"at most {most} names with a secret each, which is never shown; empty keeps the stored one",
        "additionalProperties": {"type": "string", "maxLength": LONGEST_SECRET},
    }
    return Grammar(read, schema, write)


def without_secrets(rules: Mapping[str, Any]) -> dict[str, Any]:
    """Stored rules as documents show them: names, and nothing of what proves them."""
    found = dict(rules)
    for block, field in SECRETS:
        if (found.get(block) or {}).get(field) is not None:
            found[block] = {**found[block], field: dict.fromkeys(sorted(found[block][field]), "")}
    return found


def _claims() -> Grammar:
    def read(value: object) -> Pairs:
        if isinstance(value, Mapping) and len(value) > MOST_CLAIMS:
            raise GrammarError("too_many", f"Use at most {MOST_CLAIMS} claims.")
        return read_pairs(value, grammar.claim, header_text.request_header)

    schema = {"type": "object", "title": "claims with a header each", "additionalProperties": {"type": "string"}}
    return Grammar(read, schema, lambda pairs: dict(sorted(dict(pairs).items())))


def _jwks_url(value: object) -> str:
    """An https URL; whether it may be called is asked by the service, and again at each call."""
    if not isinstance(value, str) or not _JWKS_URL.fullmatch(value):
        raise GrammarError("url", f"Write a plain https:// URL of at most {MOST_JWKS_URL} characters.")
    try:
        read_url(value)
    except Refused as refusal:
        raise GrammarError("url", str(refusal)) from refusal
    return value


@dataclass(frozen=True, slots=True)
class BasicAuth(model.BasicAuth, Shape):
    """Names and passwords of users."""

    sparse: ClassVar = True

    users: Annotated[
        Annotated[Pairs, _secrets(grammar.user_name, _password, MOST_USERS, "users")] | None,
        About(
            "Names with a password each, which is hashed when saved and never shown; empty keeps the stored one.",
            "Users",
        ),
    ] = None
    realm: Annotated[
        Annotated[str, text(grammar.realm, "text", 64)] | None,
        About("What browsers show when they ask for the password.", "Realm"),
    ] = None
    keep_header: Annotated[
        Boolean | None, About("Whether servers get the Authorization header.", "Keep the header")
    ] = None


@dataclass(frozen=True, slots=True)
class ApiKeys(Shape):
    """A key for each client program."""

    sparse: ClassVar = True

    keys: Annotated[
        Annotated[Pairs, _secrets(grammar.key_name, _api_key, MOST_API_KEYS, "keys")] | None,
        About(
            "Names with a random key each. Only a digest is stored, and the key is never shown; empty keeps the "
            "stored key.",
            "Keys",
        ),
    ] = None
    header: Annotated[
        Annotated[str, text(header_text.request_header, "the name of a header", 64)] | None,
        About("The header that carries the key. Default: X-Api-Key. Servers never get it.", "Header"),
    ] = None
    name_header: Annotated[
        Annotated[str, text(header_text.request_header, "the name of a header", 64)] | None,
        About("The header that gives servers the name of the key.", "Header with the name"),
    ] = None


@dataclass(frozen=True, slots=True)
class JwtKey(model.JwtKey, Shape):
    """A public key that verifies tokens, with the one algorithm that it is for."""

    algorithm: Annotated[
        Annotated[str, one_of(*grammar.ALGORITHMS)],
        About(
            "The algorithm; tokens signed with another one are rejected.",
            "Algorithm",
            missing="Write the algorithm of the key.",
        ),
    ]
    pem: Annotated[
        Annotated[str, text(grammar.public_key, "PEM text", grammar.MAX_KEY_PEM)],
        About("The public key.", "Public key", missing="Add the public key in PEM (BEGIN PUBLIC KEY)."),
    ]
    kid: Annotated[
        Annotated[str, text(grammar.kid, "text", 128, blank=True)],
        About("The key id of the tokens that it verifies. Default: any.", "Key id", absent_when_empty=True),
    ] = ""

    def contradictions(self) -> Iterable[FieldError]:
        """An algorithm that the key is not for, or a key that is too short."""
        try:
            key = load_pem_public_key(self.pem.encode())
        except ValueError:
            key = None
        of_rsa = isinstance(key, rsa.RSAPublicKey) and self.algorithm.startswith("RS")
        of_curve = isinstance(key, ec.EllipticCurvePublicKey) and CURVES.get(self.algorithm) == key.curve.name
        if not of_rsa and not of_curve:
            yield FieldError("/pem", "algorithm", f"Use a key for {self.algorithm}.")
        elif isinstance(key, rsa.RSAPublicKey) and key.key_size < LEAST_RSA_BITS:
            yield FieldError("/pem", "short_key", f"Use an RSA key of {LEAST_RSA_BITS} bits or more.")
        elif isinstance(key, rsa.RSAPublicKey) and _is_slow(key):
            yield FieldError("/pem", "slow_key", f"Use an RSA key of at most {MOST_RSA_BITS} bits with exponent 65537.")
        elif key is not None and key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode() != self.pem:
            yield FieldError("/pem", "public_key", "Write the key as OpenSSL writes it, without any text around it.")


def _is_slow(key: rsa.RSAPublicKey) -> bool:
    return key.key_size > MOST_RSA_BITS or key.public_numbers().e.bit_length() > MOST_EXPONENT_BITS


@dataclass(frozen=True, slots=True)
class Jwt(Shape):
    """Signed tokens (JWT) in the Authorization header."""

    sparse: ClassVar = True

    issuer: Annotated[
        Annotated[str, text(grammar.issuer, "text", 256)] | None,
        About("The issuer of the tokens (iss).", "Issuer"),
    ] = None
    audience: Annotated[
        Annotated[str, text(grammar.issuer, "text", 256)] | None,
        About("The audience of the tokens (aud): the only one, or one of the first five of a list.", "Audience"),
    ] = None
    keys: Annotated[
        tuple[JwtKey, ...] | None,
        at_most(MOST_JWT_KEYS, "keys"),
        Distinct(("pem",)),
        About(
            "Public keys, any of which may verify a token. To replace a key, add the new one first.",
            "Public keys",
            most=MOST_JWT_KEYS,
        ),
    ] = None
    jwks_url: Annotated[
        Annotated[str, text(_jwks_url, "a URL", MOST_JWKS_URL)] | None,
        About(
            "Where the issuer publishes its keys (JWKS, https). Fetched every five minutes; used in addition to "
            "`keys`.",
            "Key set URL",
            "Such as https://login.example.com/jwks.json. Fetched every five minutes, added to the keys above.",
        ),
    ] = None
    jwks_grace_s: Annotated[
        Annotated[int, whole(0, MOST_GRACE_S)] | None,
        About(
            "How long a key stays valid after it leaves the key set, in seconds. Default: 3600.",
            "Grace period of old keys, seconds",
        ),
    ] = None
    claims: Annotated[
        Annotated[Pairs, _claims()] | None,
        About("Claims, each with the header that passes it to servers.", "Claims for servers"),
    ] = None
    leeway_s: Annotated[
        Annotated[int, whole(0, 300)] | None,
        About("How many seconds clocks may differ. Default: 30.", "Leeway, seconds"),
    ] = None
    keep_header: Annotated[
        Boolean | None,
        About("Whether servers get the token. Default: yes.", "Keep the header"),
    ] = None

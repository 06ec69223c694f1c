"""Blocks that ask who somebody is, once more: what is missing there must never let anybody in."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from apps.compiler import header_text
from apps.compiler.grammar import GrammarError, integer
from apps.compiler.grammars import authentication as grammar
from apps.compiler.model.authentication import ApiKeys, Jwt
from apps.compiler.model.policy import Rules

Asked = tuple[str, Callable[[object], object], object]


def asked_of_authentication(rules: Rules) -> Iterator[Asked]:
    """Field, grammar and value of everything that these blocks say."""
    if rules.basic_auth:
        yield "basic_auth.realm", grammar.realm, rules.basic_auth.realm
        for name, password in rules.basic_auth.users or ():
            yield "basic_auth.users", grammar.user_name, name
            yield "basic_auth.users", grammar.password_hash, password
    if rules.api_keys:
        yield from _of_keys(rules.api_keys)
    if rules.jwt:
        yield from _of_jwt(rules.jwt)
    if rules.jwt and rules.basic_auth:
        yield "basic_auth", _never_with_tokens, True


def _of_keys(said: ApiKeys) -> Iterator[Asked]:
    yield "api_keys.header", header_text.request_header, said.header
    yield "api_keys.name_header", header_text.request_header, said.name_header
    if said.keys is not None:
        yield "api_keys.keys", grammar.keys_id, said.id or ""
    for name, digest in said.keys or ():
        yield "api_keys.keys", grammar.key_name, name
        yield "api_keys.keys", grammar.key_digest, digest


def _of_jwt(said: Jwt) -> Iterator[Asked]:
    yield "jwt.issuer", grammar.issuer, said.issuer or ""
    yield "jwt.audience", grammar.issuer, said.audience or ""
    yield "jwt.leeway_s", lambda value: integer(value, 0, 300), said.leeway_s
    for key in said.keys or ():
        yield "jwt.keys", grammar.algorithm, key.algorithm
        yield "jwt.keys", grammar.public_key, key.pem
        yield "jwt.keys", grammar.kid, key.kid or None
    for claim, header in said.claims or ():
        yield "jwt.claims", grammar.claim, claim
        yield "jwt.claims", header_text.request_header, header


def _never_with_tokens(_value: object) -> object:
    raise GrammarError("two_headers", "Ask for a password or for a token: both are sent in the same header.")

"""Signed tokens: which key verifies one is decided here, by the key's own algorithm, never by what the token says.

A token passes when a key has verified its signature, its issuer and audience are the wanted ones, and it holds now. A
claim becomes a header only if it is plain text: what would break a line of the request is left out.
"""

from __future__ import annotations

import hashlib

from apps.compiler.grammars.authentication import LEEWAY_S
from apps.compiler.model.authentication import Jwt, JwtKey
from apps.compiler.model.shared import LoadBalancer
from apps.compiler.policies import rules_followed
from apps.compiler.targets.haproxy.writer import Argument, Call, Section, Value

REFUSED = "Send a valid token.\n"
TEXT = "text/plain; charset=utf-8"
# HAProxy 2.6 reads no list as a whole.
AUDIENCES = ("$.aud", "$.aud[0]", "$.aud[1]", "$.aud[2]", "$.aud[3]", "$.aud[4]")
_JWT = "var(txn.jwt)"


def key_path(key: JwtKey) -> str:
    """`certs/jwt-3f….pem`, by what the key is."""
    return f"certs/jwt-{hashlib.sha256(key.pem.encode()).hexdigest()[:20]}.pem"


def key_files(front: LoadBalancer) -> dict[str, bytes]:
    """The keys that some route needs, by path."""
    blocks = (rules.jwt for rules in rules_followed(front))
    return {key_path(key): key.pem.encode("ascii") for each in blocks if each for key in each.keys or ()}


def add(section: Section, when: tuple[str, ...], said: Jwt) -> None:
    """Verify, compare, look at the clock, then refuse whoever has not passed all of it."""
    section.add("http-request", "set-var(txn.jwt)", "http_auth_bearer", "if", *when)
    for key in said.keys or ():
        _add_key(section, when, key)
    for query in AUDIENCES if said.audience else ():
        holds = ("{", f"{_JWT},jwt_payload_query({query})", "-m", "str", "--", Value(said.audience or ""), "}")
        section.add("http-request", "set-var(txn.jwt_for)", "bool(true)", "if", *when, *holds)
    _add_clock(section, when, LEEWAY_S if said.leeway_s is None else said.leeway_s)
    refuse = ("return", "status", "401", "content-type", TEXT, "hdr", "www-authenticate", "Bearer")
    issued = ("{", f"{_JWT},jwt_payload_query($.iss)", "-m", "str", "--", Value(said.issuer or ""), "}")
    for passes in _conditions(issued):
        section.add("http-request", *refuse, "string", Value(REFUSED), "if", *when, "!", *passes)
    early = ("{", "var(txn.jwt_early)", "-m", "int", "gt", "0", "}")
    section.add("http-request", *refuse, "string", Value(REFUSED), "if", *when, *early)
    said_since = ("{", f"{_JWT},jwt_payload_query($.nbf)", "-m", "found", "}")
    number = ("{", f"{_JWT},jwt_payload_query($.nbf)", "-m", "reg", "^[0-9.e+]{1,24}$", "}")
    section.add("http-request", *refuse, "string", Value(REFUSED), "if", *when, *said_since, "!", *number)
    _add_claims(section, when, said)
    if said.keep_header is False:
        section.add("http-request", "del-header", "Authorization", "if", *when)


def _conditions(issued: tuple[Argument, ...]) -> tuple[tuple[Argument, ...], ...]:
    """All that must hold of every token; what is not there does not hold."""
    return (
        ("{", "var(txn.jwt_ok)", "-m", "bool", "}"),
        issued,
        ("{", "var(txn.jwt_for)", "-m", "bool", "}"),
        ("{", "var(txn.jwt_left)", "-m", "int", "gt", "0", "}"),
    )


def _add_key(section: Section, when: tuple[str, ...], key: JwtKey) -> None:
    is_algorithm = ("{", f"{_JWT},jwt_header_query($.alg)", "-m", "str", key.algorithm, "}")
    is_key: tuple[Argument, ...] = ()
    if key.kid:
        is_key = ("{", f"{_JWT},jwt_header_query($.kid)", "-m", "str", "--", Value(key.kid), "}")
    verified = ("{", f"{_JWT},jwt_verify({key.algorithm},{key_path(key)})", "-m", "int", "1", "}")
    passed = ("set-var(txn.jwt_ok)", "bool(true)")
    section.add("http-request", *passed, "if", *when, *is_algorithm, *is_key, *verified)


def _add_clock(section: Section, when: tuple[str, ...], leeway_s: int) -> None:
    """`txn.jwt_left` is how long it still holds, `txn.jwt_early` how long until it does, where it says so."""
    until = f"{_JWT},jwt_payload_query($.exp,int)"
    since = f"{_JWT},jwt_payload_query($.nbf,int)"
    section.add("http-request", "set-var(txn.jwt_exp)", until, "if", *when)
    section.add("http-request", "set-var(txn.jwt_nbf)", since, "if", *when)
    ends, begins = ("{", "var(txn.jwt_exp)", "-m", "found", "}"), ("{", "var(txn.jwt_nbf)", "-m", "found", "}")
    left = f"date,neg,add(txn.jwt_exp),add({leeway_s})"
    section.add("http-request", "set-var(txn.jwt_left)", left, "if", *when, *ends)
    early = f"date,add({leeway_s}),neg,add(txn.jwt_nbf)"  # `sub` of a negative number saturates in 2.6
    section.add("http-request", "set-var(txn.jwt_early)", early, "if", *when, *begins)


def _add_claims(section: Section, when: tuple[str, ...], said: Jwt) -> None:
    for claim, header in said.claims or ():
        query = Call((f"{_JWT},jwt_payload_query($.", Value(claim), ")"))
        section.add("http-request", "set-var(txn.jwt_claim)", query, "if", *when)
        section.add("http-request", "del-header", Value(header), "if", *when)
        plain = ("{", "var(txn.jwt_claim)", "-m", "reg", "^[!-~]([ -~]{0,510}[!-~])?$", "}")
        section.add("http-request", "set-header", Value(header), "%[var(txn.jwt_claim)]", "if", *when, *plain)
        section.add("http-request", "unset-var(txn.jwt_claim)", "if", *when)

"""Who asks, in a real HAProxy: passwords, API keys and tokens, with everything that must not get through."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from apps.compiler.bundle import Bundle, for_people
from apps.compiler.compile import compile_snapshot
from apps.compiler.grammars.authentication import ROUNDS
from apps.compiler.model.authentication import ApiKeys, BasicAuth, Jwt, JwtKey
from apps.compiler.model.policy import Rules
from apps.compiler.plan import Runtime, plan
from apps.compiler.policies import rule_set
from apps.core.secrets.password_hashes import new_hash
from tests.e2e.rendered_proxy import Answer, RenderedProxy, echo_servers, running
from tests.pure.compiler_fixtures import front, pool, route, server, snapshot

pytestmark = pytest.mark.e2e

PASSWORD = "correct horse: battery %[src] $HOME"
KEY = "k" * 32
ISSUER, AUDIENCE = "https://login.example.com", "api"


@cache
def keys() -> dict[str, Any]:
    """Private keys by name."""
    return {
        "old": rsa.generate_private_key(65537, 2048),
        "new": rsa.generate_private_key(65537, 2048),
        "other": rsa.generate_private_key(65537, 2048),
        "curve": ec.generate_private_key(ec.SECP256R1()),
    }


def pem(name: str) -> str:
    """The public key."""
    public: bytes = keys()[name].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return public.decode()


def jwt(*wanted: JwtKey, **fields: Any) -> Rules:
    """Rules that ask for a token."""
    return Rules(jwt=replace(Jwt(ISSUER, AUDIENCE, wanted, leeway_s=5), **fields))


def api(*pairs: tuple[str, str], name: str = "keys-7") -> Rules:
    """Rules that ask for an API key."""
    digests = tuple((each, hashlib.sha256(key.encode()).hexdigest()) for each, key in pairs)
    return Rules(api_keys=ApiKeys(digests, None, "X-Client", name))


def cases() -> dict[str, Rules]:
    """Rules by the name of their host."""
    old, new, curve = JwtKey("RS256", pem("old"), "k1"), JwtKey("RS256", pem("new")), JwtKey("ES256", pem("curve"))
    return {
        "basic": Rules(basic_auth=BasicAuth((("anna", new_hash(PASSWORD, ROUNDS)),), "The realm")),
        "kept": Rules(basic_auth=BasicAuth((("anna", new_hash(PASSWORD, ROUNDS)),), keep_header=True)),
        "nobody": Rules(basic_auth=BasicAuth(())),
        "api": api(("shop", KEY)),
        "empty": api(name="keys-8"),
        "keyless": Rules(api_keys=ApiKeys(None)),
        "jwt": jwt(old, curve, claims=(("sub", "X-User"), ("a.b", "X-Deep"))),
        "both": jwt(new, old, keep_header=False),
    }


def bundle_of(port: int, wanted: Mapping[str, Rules]) -> Bundle:
    """The bundle of these cases, and of `plain.example` without rules."""
    sets = {name: rule_set(rules) for name, rules in wanted.items()}
    routes = [route(number, hostname=f"{name}.example", rule_set=sets[name].id) for number, name in enumerate(sets, 2)]
    served = replace(front(route(1, hostname="plain.example"), *routes), rule_sets=tuple(sets.values()))
    pools = (pool(1, servers=(server(1, address="127.0.0.1", port=port),)),)
    compilation = compile_snapshot(snapshot(served, pools=pools, local_development=True))
    assert compilation.left_out == ()
    return compilation.output


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RenderedProxy]:
    """One route for each case."""
    directory: Path = tmp_path_factory.mktemp("who")
    with echo_servers(1) as ports, running(bundle_of(ports[0], cases()), directory) as found:
        yield found


def ask(proxy: RenderedProxy, name: str, **headers: str) -> Answer:
    """One request to the route of a case."""
    return proxy.ask("lst-1", f"{name}.example", "/a", headers={k.replace("_", "-"): v for k, v in headers.items()})


def got(answer: Answer, name: str) -> object:
    """The values of a header that the server got."""
    headers = answer.json["headers"]
    assert isinstance(headers, dict)
    return headers.get(name)


def basic(name: str, password: str) -> str:
    """What a browser sends."""
    return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"


def test_the_right_password_passes_and_servers_do_not_see_it(proxy: RenderedProxy) -> None:
    answer = ask(proxy, "basic", Authorization=basic("anna", PASSWORD))
    assert (answer.status, got(answer, "authorization")) == (200, None)
    assert got(ask(proxy, "kept", Authorization=basic("anna", PASSWORD)), "authorization")


@pytest.mark.parametrize(
    "header",
    ["", basic("anna", "wrong"), basic("anna", ""), basic("", ""), basic("Anna", PASSWORD), "Basic", "x" * 900],
)
def test_any_other_is_asked_again(proxy: RenderedProxy, header: str) -> None:
    answer = ask(proxy, "basic", Authorization=header)
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == 'Basic realm="The realm"'
    assert ask(proxy, "nobody", Authorization=header).status == 401


def test_an_api_key_passes_by_its_digest_and_servers_get_its_name(proxy: RenderedProxy) -> None:
    answer = ask(proxy, "api", X_Api_Key=KEY, X_Client="forged")
    assert answer.status == 200
    assert (got(answer, "x-client"), got(answer, "x-api-key")) == (["shop"], None)


@pytest.mark.parametrize("key", ["", "x", KEY[:-1], KEY + "k", f"{KEY},x", hashlib.sha256(KEY.encode()).hexdigest()])
def test_any_other_key_is_refused(proxy: RenderedProxy, key: str) -> None:
    assert ask(proxy, "api", X_Api_Key=key).status == 401
    assert ask(proxy, "empty", X_Api_Key=key).status == 401
    assert ask(proxy, "keyless", X_Api_Key=key).status == 401


def test_a_route_without_rules_asks_nobody(proxy: RenderedProxy) -> None:
    answer = ask(proxy, "plain", Authorization="Bearer x", X_Api_Key="y")
    assert (answer.status, got(answer, "authorization"), got(answer, "x-api-key")) == (200, ["Bearer x"], ["y"])


def test_a_change_of_keys_is_a_change_of_their_map() -> None:
    found = plan(bundle_of(9, {"api": api(("shop", KEY))}), bundle_of(9, {"api": api(("new", "n" * 32))}))
    assert isinstance(found, Runtime)
    ways = {getattr(each, "path", "") for each in found.operations}
    assert "maps/keys-7.map" in ways
    assert all(each.startswith("maps/") for each in ways)


def test_people_are_not_shown_hashes() -> None:
    text = bundle_of(9, cases()).files["haproxy.cfg"]
    assert b"$6$" in text
    assert "$6$" not in for_people(text)
    assert "user anna password (not shown)" in for_people(text)


def encoded(value: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def token(key: str, alg: str = "RS256", kid: str | None = "k1", **claims: Any) -> str:
    """A token; claims that are None are left out."""
    now = int(time.time())
    body = {"iss": ISSUER, "aud": AUDIENCE, "exp": now + 60, "sub": "anna"} | claims
    head = {"alg": alg, "typ": "JWT"} | ({"kid": kid} if kid else {})
    parts = [head, {name: value for name, value in body.items() if value is not None}]
    signed = ".".join(encoded(json.dumps(part).encode()) for part in parts)
    return f"{signed}.{encoded(_signature(keys()[key], alg, signed.encode()))}"


def _signature(key: Any, alg: str, signed: bytes) -> bytes:
    if alg == "HS256":  # with the public key as the secret: the classic confusion
        mac = hmac.HMAC(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), hashes.SHA256())
        mac.update(signed)
        return mac.finalize()
    if alg.startswith("RS"):
        found: bytes = key.sign(signed, padding.PKCS1v15(), hashes.SHA256() if alg == "RS256" else hashes.SHA512())
        return found
    if alg == "ES256":
        r, s = utils.decode_dss_signature(key.sign(signed, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")
    return b""


def bearer(proxy: RenderedProxy, text: str, case: str = "jwt", **headers: str) -> Answer:
    """One request with a token."""
    return ask(proxy, case, Authorization=f"Bearer {text}", **headers)


def test_a_token_passes_and_its_claims_become_headers(proxy: RenderedProxy) -> None:
    answer = bearer(proxy, token("old", a={"b": "deep"}), X_User="forged")
    assert (answer.status, got(answer, "x-user"), got(answer, "x-deep")) == (200, ["anna"], ["deep"])
    assert bearer(proxy, token("curve", "ES256", None)).status == 200
    assert bearer(proxy, token("old", aud=["web", "api"])).status == 200
    assert bearer(proxy, token("old", nbf=int(time.time()) - 1)).status == 200
    assert bearer(proxy, token("old", exp=int(time.time()) - 1)).status == 200  # within the leeway


NOW = int(time.time())
FORGED: dict[str, tuple[str, dict[str, Any]]] = {
    "another key": ("other", {}),
    "another key id": ("old", {"kid": "k2"}),
    "no key id": ("old", {"kid": None}),
    "no algorithm": ("old", {"alg": "none"}),
    "the public key as a secret": ("old", {"alg": "HS256"}),
    "another algorithm of the same key": ("old", {"alg": "RS512"}),
    "another algorithm": ("curve", {"alg": "ES256", "kid": "k1", "iss": "x"}),
    "expired": ("old", {"exp": NOW - 3600}),
    "no end": ("old", {"exp": None}),
    "an end that is no number": ("old", {"exp": "tomorrow"}),
    "not yet": ("old", {"nbf": NOW + 3600}),
    "a beginning that is no number": ("old", {"nbf": "tomorrow"}),
    "another issuer": ("old", {"iss": "https://login.example.com.evil.example"}),
    "no issuer": ("old", {"iss": None}),
    "another audience": ("old", {"aud": "web"}),
    "other audiences": ("old", {"aud": ["web", "api2"]}),
    "no audience": ("old", {"aud": None}),
}


@pytest.mark.parametrize("case", FORGED)
def test_no_other_token_passes(proxy: RenderedProxy, case: str) -> None:
    key, fields = FORGED[case]
    answer = bearer(proxy, token(key, **fields))
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")


@pytest.mark.parametrize("text", ["", "x", "..", "a.b.c", "." * 200, "x" * 4000])
def test_what_is_no_token_does_not_pass(proxy: RenderedProxy, text: str) -> None:
    assert bearer(proxy, text).status == 401


def test_a_token_that_somebody_changed_does_not_pass(proxy: RenderedProxy) -> None:
    head, _, signature = token("old").split(".")
    body = {"iss": ISSUER, "aud": AUDIENCE, "exp": NOW + 3600, "sub": "admin"}
    assert bearer(proxy, f"{head}.{encoded(json.dumps(body).encode())}.{signature}").status == 401


@pytest.mark.parametrize("claim", ["a\r\nX-Admin: 1", "a\nb", " a", "ü", "x" * 600, "", {"b": "c"}, ["x"]])
def test_a_claim_that_is_no_plain_text_is_no_header(proxy: RenderedProxy, claim: Any) -> None:
    answer = bearer(proxy, token("old", sub=claim), X_User="forged")
    assert (answer.status, got(answer, "x-user"), got(answer, "x-admin")) == (200, None, None)


def test_while_a_key_is_changed_both_count(proxy: RenderedProxy) -> None:
    for each in ("old", "new"):
        answer = bearer(proxy, token(each), "both")
        assert (answer.status, got(answer, "authorization")) == (200, None)
    assert bearer(proxy, token("other"), "both").status == 401


def test_a_route_whose_tokens_nobody_can_judge_is_left_out() -> None:
    key = JwtKey("RS256", pem("old"))
    for broken in (jwt(key, issuer=None), jwt(key, audience=None), jwt(replace(key, algorithm="none"))):
        made = rule_set(broken)
        served = replace(front(route(1, rule_set=made.id)), rule_sets=(made,))
        assert [each.object_id for each in compile_snapshot(snapshot(served, pools=(pool(1),))).left_out] == ["route-1"]

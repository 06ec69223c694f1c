"""Key sets (JWKS): which keys count, what a failing server changes, how long old keys last, who is told and asked."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.accounts.models import Membership
from apps.audit.models import Entry
from apps.compiler.policies import rules_of
from apps.core import outbound
from apps.core.clock import now
from apps.core.errors import Conflict, Forbidden, Invalid, NotFound
from apps.definitions import selectors
from apps.definitions.freezing.frozen_keys import GRACE_S
from apps.definitions.freezing.snapshot import freeze
from apps.definitions.key_sets import fetching
from apps.definitions.key_sets.following import key_set_of
from apps.definitions.key_sets.reading import BadKeySet, read_key_set
from apps.definitions.models import KeySet, Policy
from apps.definitions.previewing.effective_rules import settings_of_policy, settings_of_route
from apps.definitions.reading.describing import describe
from apps.definitions.services import (
    delete_object,
    fetch_key_set_of_policy,
    fetch_key_set_of_route,
    save_object,
)
from apps.definitions.shapes.base.words import instant_text, read_instant
from apps.fleet.models import Fleet
from apps.observe import metrics
from apps.observe.collect import lease
from apps.observe.evaluate import identity
from apps.observe.selectors import problems
from apps.observe.services import store_verdicts
from tests.issuer import AUDIENCE, ISSUER, Issuer, issuing, jwk, of_number, private, trusting

SAID = {"issuer": ISSUER, "audience": AUDIENCE}
REDIRECT = {"Location": "https://169.254.169.254/"}


@pytest.fixture
def issuer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Issuer]:
    """An issuer whose certificate is trusted."""
    monkeypatch.setattr(outbound, "_trusted", trusting)
    with issuing() as running:
        yield running


def follow(actor: Actor, url: str, name: str = "who", **fields: Any) -> Policy:
    """A policy of the whole account that follows the key set."""
    spec = {"rules": {"jwt": SAID | {"jwks_url": url} | fields}, "default_for": {"account": True}}
    row: Policy = save_object(actor=actor, kind="Policy", name=name, spec=spec)
    return Policy.objects.get(pk=row.pk)


def fetched() -> KeySet:
    """The one key set after it was fetched again."""
    KeySet.objects.update(next_at=now())
    fetching.fetch_in_turns()
    return KeySet.objects.get()


def held() -> list[str]:
    """The ids of the keys with which nodes judge the route of the tutorial."""
    snapshot, _ = freeze(Fleet.objects.get(name="us-central1").pk)
    front = snapshot.load_balancers[0]
    said = rules_of(front, next(each for each in front.routes if each.label == "acme/shop")).jwt
    assert said is not None
    return [key.kid for key in said.keys or ()]


def generation() -> int:
    """How often the fleet was asked to change."""
    return Fleet.objects.get(name="us-central1").desired_generation


def pass_by(**time: float) -> None:
    """As if the keys had left and the last look had been so much earlier."""
    for row in KeySet.objects.all():
        moved = [_moved(key, timedelta(**time)) for key in row.keys]
        tried = row.tried_at and row.tried_at - timedelta(**time)
        KeySet.objects.filter(pk=row.pk).update(keys=moved, tried_at=tried)


def _moved(key: dict[str, str], by: timedelta) -> dict[str, str]:
    if "gone_at" not in key:
        return key
    return key | {"gone_at": instant_text(read_instant(key["gone_at"]) - by) or ""}


def read(*keys: Any) -> list[str]:
    """Algorithms and ids of the keys that count."""
    return [f"{key.algorithm} {key.kid}" for key in read_key_set(json.dumps({"keys": keys}).encode()).keys]


def of_curve(curve: ec.EllipticCurve, name: str, **fields: Any) -> dict[str, Any]:
    """An entry with a key of a curve."""
    numbers = ec.generate_private_key(curve).public_key().public_numbers()
    return {"kty": "EC", "crv": name, "x": of_number(numbers.x), "y": of_number(numbers.y), "kid": name} | fields


def test_a_key_has_the_algorithm_that_it_names_or_that_of_its_kind() -> None:
    curves = [
        of_curve(ec.SECP256R1(), "P-256"),
        of_curve(ec.SECP384R1(), "P-384", alg="ES384"),
        of_curve(ec.SECP521R1(), "P-521", use="sig", key_ops=["verify"]),
    ]
    assert read(*curves) == ["ES256 P-256", "ES384 P-384", "ES512 P-521"]
    assert read(jwk("a"), jwk("b", alg="RS512"), jwk("c", alg="RS384")) == ["RS256 a", "RS512 b", "RS384 c"]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"kty": "oct", "k": "c2VjcmV0", "alg": "HS256", "kid": "x"}, "shared secret"),
        (jwk("a", k="c2VjcmV0"), "shared secret"),
        (jwk("a", d="AQAB"), "private key"),
        (jwk("a", alg="HS256"), "of another algorithm"),
        (jwk("a", alg="none"), "of another algorithm"),
        (jwk("a", alg=["RS256"]), "of another algorithm"),
        (jwk("a", alg="PS256"), "of another algorithm"),
        (jwk("a", alg="ES256"), "algorithm does not fit"),
        (of_curve(ec.SECP256R1(), "P-256", alg="ES384"), "algorithm does not fit"),
        (of_curve(ec.SECP256R1(), "P-384"), "unreadable"),
        (of_curve(ec.SECP256K1(), "secp256k1"), "of another kind"),
        (jwk("a", use="enc"), "not for signatures"),
        (jwk("a", key_ops=["encrypt"]), "not for signatures"),
        (jwk("a", key_ops="verify"), "not for signatures"),
        (jwk("a", n=of_number((1 << 1023) | 1)), "shorter than 2048 bits"),
        (jwk("a", n=of_number((1 << 8200) | 1)), "too long"),
        (jwk("a", e=of_number((1 << 64) | 1)), "too long"),
        (jwk("a", n="A" * 100_000), "unreadable"),
        (jwk("a", n="é"), "unreadable"),
        (jwk("a", e=None), "unreadable"),
        (jwk("a", kid='k"\n'), "unusable key id"),
        (jwk("a", kid="\x00"), "unusable key id"),
        (jwk("a", kid="k" * 129), "unusable key id"),
        (jwk("a", kid=5), "unusable key id"),
        ({"kty": "OKP", "crv": "Ed25519", "x": "AA"}, "of another kind"),
        ("text", "without fields"),
    ],
)
def test_what_is_no_public_key_for_signatures_is_ignored_and_named(entry: Any, why: str) -> None:
    found = read_key_set(json.dumps({"keys": [entry, jwk("good")]}).encode())
    assert [key.kid for key in found.keys] == ["good"]
    assert why in found.ignored
    with pytest.raises(BadKeySet, match=why):
        read(entry)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"<html>", b"\xff", b"[]", b"null", b'{"keys": {}}', b'{"keys": []}', b"[" * 100_000,
        b'{"keys": [' + b"1" * 5000 + b"]}", b"x" * 300_000, json.dumps({"keys": [{}] * 101}).encode(),
        json.dumps({"keys": [jwk("a", kid=f"k{number}") for number in range(17)]}).encode(),
    ],
)  # fmt: skip
def test_what_is_no_key_set_is_refused_with_a_sentence(body: bytes) -> None:
    with pytest.raises(BadKeySet) as refusal:
        read_key_set(body)
    assert str(refusal.value).endswith(".")


def test_nodes_get_the_keys_as_soon_as_they_are_fetched(tutorial_env: Actor, acme: Actor, issuer: Issuer) -> None:
    issuer.publish("old")
    row = follow(acme, issuer.url)
    assert held() == [], "until then every token is refused"
    before = generation()
    found = fetched()
    assert (held(), generation(), found.error, found.failures) == (["old"], before + 1, "", 0)
    assert fetched().keys == found.keys
    assert generation() == before + 1, "the same keys are no change"
    known = key_set_of(row)
    assert known is not None
    assert known["keys"] == [{"algorithm": "RS256", "kid": "old", "gone_at": None}]
    assert "BEGIN" not in str(known)
    entry = Entry.objects.get(object_kind="KeySet")
    assert (entry.account, entry.after) == (acme.account, {"keys": ["RS256 old"]})


def test_a_key_that_left_counts_for_its_grace(tutorial_env: Actor, acme: Actor, issuer: Issuer) -> None:
    issuer.publish("old")
    follow(acme, issuer.url)
    fetched()
    issuer.publish("new")
    before = generation()
    fetched()
    assert (held(), generation()) == (["new", "old"], before + 1)
    pass_by(minutes=59)
    fetched()
    assert (held(), generation()) == (["new", "old"], before + 1)
    pass_by(minutes=2)
    fetched()
    assert (held(), generation()) == (["new"], before + 2)
    pass_by(days=1)
    assert [key["kid"] for key in fetched().keys] == ["new"]


def test_the_grace_is_the_policys_own(tutorial_env: Actor, acme: Actor, issuer: Issuer) -> None:
    issuer.publish("old")
    follow(acme, issuer.url, jwks_grace_s=0)
    fetched()
    issuer.publish("new")
    fetched()
    assert held() == ["new"]
    follow(acme, issuer.url, jwks_grace_s=7200)
    assert held() == ["new", "old"]


def test_saving_a_policy_fetches_at_once_but_not_again_and_again(
    tutorial_env: Actor, acme: Actor, issuer: Issuer
) -> None:
    issuer.publish("old")
    follow(acme, issuer.url)
    fetching.fetch_in_turns()
    follow(acme, issuer.url, jwks_grace_s=1)
    fetching.fetch_in_turns()
    assert issuer.asked == 1
    pass_by(seconds=6)
    issuer.publish("new")
    follow(acme, issuer.url, jwks_grace_s=0)
    fetching.fetch_in_turns()
    assert (issuer.asked, held()) == (2, ["new"])


def test_a_key_that_comes_back_has_not_left(tutorial_env: Actor, acme: Actor, issuer: Issuer) -> None:
    for keys in (["a", "b"], ["b"], ["a", "b"]):
        issuer.publish(*keys)
        follow(acme, issuer.url)
        row = fetched()
    assert [(key["kid"], "gone_at" in key) for key in row.keys] == [("a", False), ("b", False)]


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ({"status": 500}, "The response is 500."),
        ({"status": 302, "headers": REDIRECT}, "The response is 302."),
        ({"body": b"<html>"}, "not JSON"),
        ({"body": b'{"keys": []}'}, "no key that verifies"),
        ({"body": json.dumps({"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}).encode()}, "tokens: shared secret (1)."),
        ({"body": b" " * 300_000}, "longer than 256 kB"),
        ({"delay_s": 0.6}, "No answer within"),
    ],
)
def test_a_failing_server_leaves_the_last_good_keys_and_is_shown(
    tutorial_env: Actor, acme: Actor, issuer: Issuer, monkeypatch: pytest.MonkeyPatch, broken: Any, words: str
) -> None:
    issuer.publish("old")
    row = follow(acme, issuer.url)
    good, before = fetched(), generation()
    monkeypatch.setattr(fetching, "TIMEOUT_S", 0.5 if "delay_s" in broken else 5.0)
    for name, value in broken.items():
        setattr(issuer, name, value)
    bad = fetched()
    assert words in bad.error
    assert (bad.keys, bad.fetched_at, bad.failures, held(), generation()) == (
        good.keys,
        good.fetched_at,
        1,
        ["old"],
        before,
    )
    assert (key_set_of(row) or {})["error"] == bad.error


def test_a_failing_server_is_asked_ever_less_often(tutorial_env: Actor, acme: Actor, issuer: Issuer) -> None:
    issuer.status = 500
    follow(acme, issuer.url)
    pauses = []
    for _ in range(6):
        row = fetched()
        assert row.tried_at is not None
        pauses.append((row.next_at - row.tried_at).total_seconds() / 60)
    for pause, wanted in zip(pauses, (1, 2, 4, 8, 15, 15), strict=True):
        assert 0.9 * wanted <= pause <= 1.1 * wanted


@pytest.mark.parametrize(
    "url",
    [
        *("http://login.example.com/jwks", "https://127.0.0.1/", "https://10.0.0.1/x", "https://169.254.169.254/"),
        *("https://[::1]/", "https://localhost/", "https://user@login.example.com/", "ftp://a.example/", "https://"),
        *("https://a.example/ b", "https://a.example/\n", "https://a.example/\x00", "https://a.example/é", "text"),
        *('https://a.example/"', "https://a.example/'", "https://a.example/#x", "https://127.1/", "https://0x7f.1/"),
        "https://a.example/" + "x" * 512,
    ],
)
def test_a_url_that_we_would_not_call_is_refused_at_its_field(
    tutorial_env: Actor, acme: Actor, settings: Settings, url: str
) -> None:
    settings.OUTBOUND_NETWORKS = []
    with pytest.raises(Invalid) as caught:
        follow(acme, url)
    assert [error.pointer for error in caught.value.field_errors] == ["/spec/rules/jwt/jwks_url"]
    assert not KeySet.objects.exists()


def test_a_name_that_turns_private_is_not_called(
    tutorial_env: Actor, acme: Actor, issuer: Issuer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer.publish("old")
    settings.OUTBOUND_NETWORKS = []
    real = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda _, *args, **more: real("127.0.0.1", *args, **more))
    follow(acme, f"https://login.example.com:{issuer.port}/")
    assert "is loopback" in fetched().error
    assert (issuer.asked, held()) == (0, [])


def test_many_policies_of_an_account_ask_a_url_once(tutorial_env: Actor, acme: Actor, issuer: Issuer) -> None:
    issuer.publish("old")
    for number in range(20):
        follow(acme, issuer.url, f"who-{number}")
    fetching.fetch_in_turns()
    assert issuer.asked == 1
    fetching.fetch_in_turns()
    assert issuer.asked == 1


def test_an_account_has_few_key_sets(tutorial_env: Actor, acme: Actor) -> None:
    for number in range(10):
        follow(acme, f"https://login-{number}.example.com/", f"who-{number}")
    with pytest.raises(Invalid) as caught:
        follow(acme, "https://more.example.com/", "more")
    assert [error.code for error in caught.value.field_errors] == ["quota"]
    follow(acme, "https://more.example.com/", "who-0")
    assert KeySet.objects.count() == 10


def test_a_set_that_nobody_names_is_forgotten_and_not_asked(tutorial_env: Actor, acme: Actor, issuer: Issuer) -> None:
    follow(acme, issuer.url)
    delete_object(actor=acme, kind="Policy", name="who")
    KeySet.objects.update(next_at=now())
    fetching.fetch_in_turns()
    assert (issuer.asked, KeySet.objects.count()) == (0, 0)


def test_a_worker_that_died_is_missed_and_two_do_not_ask_at_once(
    tutorial_env: Actor, acme: Actor, issuer: Issuer
) -> None:
    issuer.publish("old")
    follow(acme, issuer.url)
    KeySet.objects.update(next_at=now() + fetching.CLAIM)  # as one that claimed it leaves it
    fetching.fetch_in_turns()
    assert issuer.asked == 0
    KeySet.objects.update(next_at=now())
    fetching.fetch_in_turns()
    assert (issuer.asked, held()) == (1, ["old"])


def test_a_route_may_say_it_by_itself_and_written_keys_count_beside(
    tutorial_env: Actor, acme: Actor, issuer: Issuer
) -> None:
    issuer.publish("old")
    pem = read_key_set(json.dumps({"keys": [jwk("own")]}).encode()).keys[0].pem
    keys = [{"algorithm": "RS256", "pem": pem, "kid": "own"}]
    route = selectors.routes(acme).get(name="shop")
    rules = {"jwt": SAID | {"jwks_url": issuer.url, "keys": keys}}
    save_object(actor=acme, kind="Route", name="shop", spec=describe(route) | {"rules": rules})
    before = generation()
    fetched()
    assert (held(), generation()) == (["own", "old"], before + 1)
    shown = {each.name: each.value for each in settings_of_route(selectors.routes(acme).get(name="shop"))}
    assert shown["Public keys"] == "RS256 own, RS256 old"


def test_who_says_keys_decides_all_of_them(tutorial_env: Actor, acme: Actor, issuer: Issuer) -> None:
    issuer.publish("far")
    row = follow(acme, issuer.url)
    fetched()
    assert {each.name: each.value for each in settings_of_policy(row)}["Key set URL"] == issuer.url
    pem = read_key_set(json.dumps({"keys": [jwk("near")]}).encode()).keys[0].pem
    route = selectors.routes(acme).get(name="shop")
    rules = {"jwt": {"keys": [{"algorithm": "RS256", "pem": pem, "kid": "near"}]}}
    save_object(actor=acme, kind="Route", name="shop", spec=describe(route) | {"rules": rules})
    assert held() == ["near"]


def test_accounts_do_not_share_a_set(tutorial_env: Actor, acme: Actor, globex: Actor, issuer: Issuer) -> None:
    issuer.publish("old")
    follow(acme, issuer.url)
    fetched()
    row = follow(globex, issuer.url)
    known = key_set_of(row)
    assert known is not None
    assert (known["fetched_at"], known["keys"]) == (None, [])


def test_a_server_with_other_keys_at_each_look_does_not_fill_nodes(
    tutorial_env: Actor, acme: Actor, issuer: Issuer
) -> None:
    follow(acme, issuer.url)
    for number in range(12):
        issuer.publish(jwk("a", kid=f"k{number}"))
        row = fetched()
    assert len(row.keys) == 1 + fetching.MOST_GONE


def test_a_long_typed_key_is_refused_as_a_fetched_one(tutorial_env: Actor, acme: Actor) -> None:
    numbers = rsa.RSAPublicNumbers((1 << 64) | 1, private("a").public_key().public_numbers().n)
    pem: bytes = numbers.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    spec = {"rules": {"jwt": SAID | {"keys": [{"algorithm": "RS256", "pem": pem.decode()}]}}}
    with pytest.raises(Invalid) as caught:
        save_object(actor=acme, kind="Policy", name="who", spec=spec)
    assert [error.code for error in caught.value.field_errors] == ["slow_key"]


def test_a_set_is_fetched_now_when_somebody_asks_but_not_again_and_again(
    tutorial_env: Actor, acme: Actor, globex: Actor, issuer: Issuer
) -> None:
    issuer.publish("old")
    row = follow(acme, issuer.url)
    fetching.fetch_in_turns()
    issuer.publish("new")
    fetch_key_set_of_policy(actor=acme, policy_id=row.pk)
    fetching.fetch_in_turns()
    assert (issuer.asked, held()) == (1, ["old"])  # it was asked less than five seconds ago
    pass_by(seconds=6)
    fetch_key_set_of_policy(actor=acme, policy_id=row.pk)
    fetching.fetch_in_turns()
    assert issuer.asked == 2
    assert "new" in held()
    with pytest.raises(NotFound):
        fetch_key_set_of_policy(actor=globex, policy_id=row.pk)
    with pytest.raises(Conflict, match="names no key set"):
        fetch_key_set_of_route(actor=acme, route_id=selectors.routes(acme).get(name="shop").pk)
    with pytest.raises(Forbidden, match="viewer"):
        fetch_key_set_of_policy(actor=replace(acme, role=Membership.Role.VIEWER), policy_id=row.pk)


def test_a_set_that_keeps_failing_is_a_problem_of_its_owner_and_of_operators_until_it_is_fetched(
    tutorial_env: Actor, acme: Actor, globex: Actor, issuer: Issuer
) -> None:
    lease.share("collector")
    issuer.publish("old")
    follow(acme, issuer.url)
    fetched()
    issuer.status = 500

    def told(actor: Actor) -> list[str]:
        store_verdicts(identity.evaluate_all(now()), now())
        return [each.sentence for each in problems(actor) if each.kind == "key_set"]

    for _ in range(identity.FAILURES - 1):
        fetched()
        assert told(acme) == []
    failing = fetched()
    assert failing.fetched_at is not None
    assert failing.next_at - failing.fetched_at < timedelta(seconds=GRACE_S)  # there is time to act
    (said,) = told(acme)
    assert said.startswith(f"Key set {issuer.url} cannot be fetched. The response is 500.")
    assert "tokens signed with newer keys are rejected" in said
    assert told(tutorial_env) == [said]
    assert told(globex) == []
    text = metrics.text().decode()
    assert f'spillway_key_set_failures{{account="acme",url="{issuer.url}"}} 3.0' in text
    assert f'spillway_key_set_age_seconds{{account="acme",url="{issuer.url}"}} ' in text
    assert 'spillway_problem{account="acme",kind="key_set"' in text
    issuer.status = 200
    fetched()
    assert told(acme) == []
    assert 'spillway_key_set_failures{account="acme"' in metrics.text().decode()


def test_a_set_that_never_came_says_so_and_one_that_is_gone_nothing(
    tutorial_env: Actor, acme: Actor, issuer: Issuer
) -> None:
    issuer.status = 500
    follow(acme, issuer.url)
    for _ in range(identity.FAILURES):
        fetched()
    (verdict,) = identity.evaluate_all(now())
    assert "It was never fetched" in verdict.message
    assert identity.existing()["key_set"] == [KeySet.objects.get().pk]
    assert "spillway_key_set_age_seconds{" not in metrics.text().decode()
    delete_object(actor=acme, kind="Policy", name="who")
    KeySet.objects.update(next_at=now())
    fetching.fetch_in_turns()
    assert (list(identity.evaluate_all(now())), identity.existing()["key_set"]) == ([], [])

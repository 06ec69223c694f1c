"""Passwords and keys of policies: stored as hashes, kept where they are not sent again, shown to nobody."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from apps.accounts.actors import Actor
from apps.audit.models import Entry
from apps.compiler.model.policy import Rules
from apps.compiler.policies import rules_of
from apps.core.errors import Invalid
from apps.core.secrets.password_hashes import fits, sha512_crypt
from apps.definitions import selectors
from apps.definitions.freezing.snapshot import freeze
from apps.definitions.models import Policy, Route
from apps.definitions.previewing.effective_rules import settings_of_policy
from apps.definitions.reading.describing import describe
from apps.definitions.services import save_object
from apps.fleet.models import Fleet

PASSWORD, KEY = "a long password", "k" * 32
SECRETS = ("a long password", "another password", KEY, "n" * 32)


def keep(actor: Actor, **rules: Any) -> Policy:
    """A policy of the whole account."""
    spec = {"rules": rules, "default_for": {"account": True}}
    row: Policy = save_object(actor=actor, kind="Policy", name="who", spec=spec)
    return Policy.objects.get(pk=row.pk)


def users(**pairs: str) -> dict[str, Any]:
    """A block of passwords."""
    return {"users": pairs}


def held() -> Rules:
    """The rules that hold for the route of the tutorial."""
    snapshot, _ = freeze(Fleet.objects.get(name="us-central1").pk)
    front = snapshot.load_balancers[0]
    return rules_of(front, next(each for each in front.routes if each.label == "acme/shop"))


def stored() -> str:
    """The hash of anna's password in the rules of the tutorial's route."""
    found: dict[str, Any] = Route.objects.get(name="shop", account__name="acme").rules or {}
    return str(found["basic_auth"]["users"]["anna"])


def public(key: Any) -> str:
    """PEM."""
    found: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return found.decode()


def test_the_hash_is_the_one_of_the_specification() -> None:
    expected = (
        "$6$rounds=10000$saltstringsaltst$OW1/O6BYHV6BcXZu8QVeXbDWra3Oeqh0sbHbbMCVNSnCM/UrjmM0Dp8vOuZeHBy/YTBmSK6H9qs/"
        "y3RnOaw5v."
    )
    assert sha512_crypt("Hello world!", "saltstringsaltst", 10_000) == expected
    assert fits("Hello world!", expected)
    assert not fits("Hello world?", expected)
    assert not fits("Hello world!", "x")


def test_a_password_is_stored_as_a_hash_and_stays_until_another_is_sent(tutorial_env: Actor, acme: Actor) -> None:
    row = keep(acme, basic_auth=users(anna=PASSWORD))
    first = row.rules["basic_auth"]["users"]["anna"]
    assert fits(PASSWORD, first)
    assert keep(acme, basic_auth=users(anna="")).version == row.version
    assert keep(acme, basic_auth=users(anna=PASSWORD)).version == row.version
    row = keep(acme, basic_auth=users(anna="", berta="another password"))
    assert row.rules["basic_auth"]["users"]["anna"] == first
    before = Fleet.objects.get(name="us-central1").desired_generation
    changed = keep(acme, basic_auth=users(anna="another password", berta=""))
    assert changed.version == row.version + 1
    assert fits("another password", changed.rules["basic_auth"]["users"]["anna"])
    assert Fleet.objects.get(name="us-central1").desired_generation == before + 1
    assert held().basic_auth is not None


def test_a_route_keeps_its_passwords_too(tutorial_env: Actor, acme: Actor) -> None:
    route = selectors.routes(acme).get(name="shop")
    spec = describe(route) | {"rules": {"basic_auth": users(anna=PASSWORD)}}
    save_object(actor=acme, kind="Route", name="shop", spec=spec)
    assert fits(PASSWORD, stored())
    spec = describe(selectors.routes(acme).get(name="shop")) | {"path": "/other"}
    save_object(actor=acme, kind="Route", name="shop", spec=spec)
    assert fits(PASSWORD, stored())


def test_a_new_name_needs_a_secret(tutorial_env: Actor, acme: Actor) -> None:
    for block, field in (("basic_auth", "users"), ("api_keys", "keys")):
        with pytest.raises(Invalid) as caught:
            keep(acme, **{block: {field: {"anna": ""}}})
        assert [error.pointer for error in caught.value.field_errors] == [f"/spec/rules/{block}/{field}/anna"]


def test_keys_are_digests_under_the_id_of_who_says_them(tutorial_env: Actor, acme: Actor) -> None:
    row = keep(acme, api_keys={"keys": {"shop": KEY}, "name_header": "X-Client"})
    said = held().api_keys
    assert said is not None
    assert (said.id, said.keys) == (f"keys-{row.pk}", (("shop", hashlib.sha256(KEY.encode()).hexdigest()),))
    changed = keep(acme, api_keys={"keys": {"shop": "n" * 32}, "name_header": "X-Client"})
    assert changed.version == row.version + 1
    after = held().api_keys
    assert after is not None
    assert after.id == said.id


def test_nobody_is_shown_a_password_or_its_hash(tutorial_env: Actor, acme: Actor) -> None:
    keep(acme, basic_auth=users(anna=PASSWORD), api_keys={"keys": {"shop": KEY}})
    row = keep(acme, basic_auth=users(anna="another password"), api_keys={"keys": {"shop": "n" * 32}})
    told = [json.dumps([each.before, each.after, each.object_label]) for each in Entry.objects.all()]
    told += [json.dumps(describe(row)), str(settings_of_policy(row))]
    hidden = (*SECRETS, "$6$", *row.rules["api_keys"]["keys"].values())
    assert [secret for secret in hidden for text in told if secret in text] == []
    assert describe(row)["rules"]["basic_auth"]["users"] == {"anna": ""}
    stored = json.dumps(row.rules)
    assert [secret for secret in SECRETS if secret in stored] == []


def test_a_key_verifies_the_algorithm_that_it_is_for(tutorial_env: Actor, acme: Actor) -> None:
    long, short = rsa.generate_private_key(65537, 2048), rsa.generate_private_key(65537, 1024)  # noqa: S505 - it is refused
    curve = ec.generate_private_key(ec.SECP256R1())
    wrong = [
        ("ES256", public(long)), ("RS256", public(curve)), ("ES384", public(curve)), ("RS256", public(short)),
        ("none", public(long)), ("HS256", public(long)), ("RS256", "-----BEGIN PUBLIC KEY-----\nx\n"),
    ]  # fmt: skip
    said = {"issuer": "https://a.example", "audience": "api"}
    for algorithm, pem in wrong:
        with pytest.raises(Invalid):
            keep(acme, jwt=said | {"keys": [{"algorithm": algorithm, "pem": pem}]})
    keep(acme, jwt=said | {"keys": [{"algorithm": "ES256", "pem": public(curve)}]})
    assert held().jwt is not None

"""What the API says of key sets: with the policy and the route that name one, and to nobody else."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.definitions import selectors
from apps.definitions.key_sets.reading import read_key_set
from apps.definitions.models import KeySet, Policy
from apps.definitions.reading.describing import describe
from apps.definitions.services import save_object
from tests.interfaces.api.test_api_objects import Api
from tests.issuer import jwk

URL = "https://login.example.com/jwks"
TOKENS = {"rules": {"jwt": {"issuer": "https://login.example.com", "audience": "api", "jwks_url": URL}}}


@pytest.fixture
def policy(tutorial_env: Actor, acme: Actor) -> Policy:
    """A policy of acme with a key set that was fetched once, and failed since."""
    row: Policy = save_object(actor=acme, kind="Policy", name="who", spec=TOKENS)
    pem = read_key_set(json.dumps({"keys": [jwk("one")]}).encode()).keys[0].pem
    keys = [
        {"algorithm": "RS256", "pem": pem, "kid": "one"},
        {"algorithm": "RS256", "pem": pem, "kid": "two", "gone_at": "2026-01-01T00:00:00Z"},
    ]
    KeySet.objects.update(keys=keys, fetched_at=now(), tried_at=now(), error="The response is 500.")
    return row


def test_a_policy_says_what_is_known_of_its_key_set(policy: Policy, acme: Actor) -> None:
    shown = Api(acme)("GET", f"policies/{policy.pk}").json()
    known = shown["key_set"]
    assert shown["spec"]["rules"]["jwt"]["jwks_url"] == known["url"] == URL
    assert (known["error"], known["ignored"]) == ("The response is 500.", "")
    assert [(key["algorithm"], key["kid"], key["gone_at"]) for key in known["keys"]] == [
        ("RS256", "one", None),
        ("RS256", "two", "2026-01-01T00:00:00Z"),
    ]
    assert "BEGIN" not in json.dumps(known)


def test_what_is_fetched_is_read_anew_though_the_version_stays(policy: Policy, acme: Actor) -> None:
    api = Api(acme)
    first = api("GET", f"policies/{policy.pk}")
    assert api("GET", f"policies/{policy.pk}", If_None_Match=first["ETag"]).status_code == 200
    plain = save_object(actor=acme, kind="Policy", name="plain", spec={"rules": {"rewrite": {"path": "/x"}}})
    answer = api("GET", f"policies/{plain.pk}")
    assert answer.json()["key_set"] is None
    assert api("GET", f"policies/{plain.pk}", If_None_Match=answer["ETag"]).status_code == 304


def test_a_route_says_it_of_its_own_rules_alone(policy: Policy, acme: Actor) -> None:
    api, route = Api(acme), selectors.routes(acme).get(name="shop")
    assert api("GET", f"routes/{route.pk}").json()["key_set"] is None
    save_object(actor=acme, kind="Route", name="shop", spec=describe(route) | TOKENS)
    assert api("GET", f"routes/{route.pk}").json()["key_set"]["url"] == URL


def test_a_list_asks_once_for_all_of_them(policy: Policy, acme: Actor) -> None:
    api = Api(acme)

    def asked() -> tuple[int, list[Any]]:
        with CaptureQueriesContext(connection) as queries:
            items = api("GET", "policies").json()["items"]
        return len(queries), items

    asked()
    before, _ = asked()
    for number in range(5):
        save_object(actor=acme, kind="Policy", name=f"more-{number}", spec=TOKENS)
    after, items = asked()
    assert (after, [each["key_set"]["url"] for each in items]) == (before, [URL] * 6)


def test_others_see_neither_policy_nor_key_set(policy: Policy, globex: Actor) -> None:
    save_object(actor=globex, kind="Policy", name="mine", spec=TOKENS)
    api = Api(globex)
    assert api("GET", f"policies/{policy.pk}").status_code == 404
    (mine,) = api("GET", "policies").json()["items"]
    assert (mine["key_set"]["keys"], mine["key_set"]["fetched_at"]) == ([], None)


def test_it_is_fetched_now_where_somebody_asks_for_it(policy: Policy, acme: Actor) -> None:
    api = Api(acme)
    before = now()
    KeySet.objects.update(tried_at=before - timedelta(minutes=1), next_at=before + timedelta(minutes=4))
    answer = api("POST", f"policies/{policy.pk}/fetch-key-set")
    assert (answer.status_code, answer.json()["url"]) == (200, URL)
    assert KeySet.objects.get().next_at < now()
    route = selectors.routes(acme).get(name="shop")
    refused = api("POST", f"routes/{route.pk}/fetch-key-set")
    assert refused.status_code == 409
    assert "names no key set" in refused.json()["detail"]
    save_object(actor=acme, kind="Route", name="shop", spec=describe(route) | TOKENS)
    assert api("POST", f"routes/{route.pk}/fetch-key-set").json()["url"] == URL

"""A form that is saved as it stands changes nothing: it shows all that it would write."""

from __future__ import annotations

from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.definitions.reading.describing import describe
from apps.definitions.services import KINDS, apply_document
from tests.apps.clouds_env import NETWORK
from tests.conftest import actor_of
from tests.fixture_cache import CachedFixture
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db

SECURE: dict[str, Any] = {
    "domain": "secure.example",
    "driver": "rfc2136",
    "server": "192.0.2.53:53",
    "key_name": "spillway",
    "key_algorithm": "hmac-sha512",
    "credentials": "env:EXAMPLE",
    "resolvers": ["192.0.2.53:53"],
    "tags": {"customer": "acme", "team": "web"},
}
WIDE = NETWORK | {"client_networks": ["198.51.100.0/24"], "vpc_networks": ["10.0.0.0/16"], "log_bucket": "logs"}
STACK = {"cloud_account": "prod", "cloud_region": "eu-central-1", "region": "frankfurt", "approval": "automatic_safe"}
GIVEN = {"kind": "vip", "region": "frankfurt", "pool": "front", "owner": "acme", "protected": True}
NAMED = {"label": "www", "type": "A", "ttl": 60, "tags": {"team": "web", "stage": "live"}}
OBJECTS: tuple[dict[str, Any], ...] = (
    {"kind": "Region", "name": "frankfurt", "spec": {"title": "Frankfurt"}},
    {"kind": "CloudAccount", "name": "prod", "spec": {"cloud": "aws", "credentials": "env:PROD"}},
    {"kind": "Stack", "name": "aws", "spec": STACK | {"network": WIDE}},
    {"kind": "AddressPool", "name": "front", "spec": {"blocks": ["203.0.113.0/29"], "region": "frankfurt"}},
    {"kind": "StaticIP", "name": "front", "spec": GIVEN},
    {"kind": "Zone", "name": "secure", "spec": SECURE},
    {"kind": "Grant", "name": "zone-of-acme", "spec": {"account": "acme", "tag": "customer=acme"}},
    {"kind": "Record", "name": "www", "spec": NAMED | {"zone": "secure", "values": ["192.0.2.1", "192.0.2.2"]}},
    {"kind": "Record", "name": "front", "spec": NAMED | {"label": "front", "zone": "secure", "static_ip": "front"}},
    {
        "kind": "Record",
        "name": "shop",
        "account": "acme",
        "spec": NAMED | {"zone": "operator/secure", "label": "shop", "values": ["192.0.2.3"], "tags": {}},
    },
)
FORMS = {
    "CloudAccount": "cloud-accounts",
    "Stack": "stacks",
    "AddressPool": "address-pools",
    "StaticIP": "static-ips",
    "Zone": "zones",
    "Record": "records",
}


def _build() -> None:
    actor_of("acme", Account.Kind.CUSTOMER)
    apply_document(actor=actor_of("operator", Account.Kind.OPERATOR), objects=list(OBJECTS))


_BUILT = CachedFixture(_build)


@pytest.fixture
def env(db: None) -> Actor:
    _BUILT.put()
    return actor_of("operator", Account.Kind.OPERATOR)


@pytest.mark.parametrize("kind", FORMS)
def test_a_form_that_is_saved_as_it_stands_changes_nothing(env: Actor, kind: str) -> None:
    client = client_of(env)
    for row in KINDS[kind].rows(env):
        page, before = f"/{FORMS[kind]}/{row.pk}/edit", describe(row)
        form = client.get(page).context["form"]
        shown = {field.html_name: field.value() for field in form}
        sent = {name: value for name, value in shown.items() if value not in (None, False)}
        answer = client.post(page, sent | {"version": str(row.version)})
        assert answer.status_code == 302, answer.context["form"].errors
        after = KINDS[kind].rows(env).get(pk=row.pk)
        assert (describe(after), after.version) == (before, row.version)


def test_tags_of_a_record_are_written_and_shown(env: Actor) -> None:
    client, row = client_of(env), KINDS["Record"].rows(env).get(name="www")
    form = client.get(f"/records/{row.pk}/edit").context["form"]
    typed = {field.html_name: field.value() for field in form} | {"version": "1"}
    refused = client.post(f"/records/{row.pk}/edit", typed | {"/spec/tags": "Team=web"})
    assert refused.status_code == 422
    assert "lower-case letters" in refused.content.decode()
    assert client.post(f"/records/{row.pk}/edit", typed | {"/spec/tags": "team=shop"}).status_code == 302
    row.refresh_from_db()
    assert row.tags == {"team": "shop"}
    text = client.get(f"/zones/{row.zone_id}").content.decode()
    assert "team=shop" in text
    assert f"{row.zone.account.title}’s" in text


def test_a_record_in_a_zone_that_is_only_shared_has_no_tags(env: Actor) -> None:
    acme = actor_of("acme", Account.Kind.CUSTOMER)
    row = KINDS["Record"].rows(env).get(name="shop")
    for person in (env, acme):
        assert "/spec/tags" not in client_of(person).get(f"/records/{row.pk}/edit").context["form"].fields
    assert "/spec/tags" not in client_of(acme).get(f"/zones/{row.zone_id}/records/new").context["form"].fields


def test_an_operator_sees_whose_each_zone_is(env: Actor) -> None:
    assert f'data-label="Owner">{env.account.title}<' in client_of(env).get("/zones").content.decode()

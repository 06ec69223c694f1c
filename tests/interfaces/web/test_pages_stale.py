"""A form that was opened before somebody else saved is refused, however often it is sent again."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import F
from django.test import Client

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.definitions.models import Backend, Pool
from apps.definitions.services import save_object
from apps.webhooks.services import make_webhook
from tests.apps.test_definitions_services import pem_pair
from tests.breadth import first_of
from tests.conftest import actor_of, apply_tutorial
from tests.fixture_cache import CachedFixture
from tests.interfaces.capacity_env import make_test
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db

CLOUD: dict[str, Any] = {"cloud": "aws", "credentials": "env:PROD"}
STACK: dict[str, Any] = {"cloud_account": "dev", "cloud_region": "eu-central-1", "region": "us-central1"}
ZONE: dict[str, Any] = {
    "domain": "example.test",
    "driver": "rfc2136",
    "server": "192.0.2.53:53",
    "key_name": "spillway",
    "credentials": "env:EXAMPLE",
}
RECORD: dict[str, Any] = {"zone": "sample", "label": "www", "type": "A", "values": ["192.0.2.1"]}


def stored(actor: Actor, kind: str, name: str, spec: dict[str, Any]) -> Any:
    return save_object(actor=actor, kind=kind, name=name, spec=spec)


def a_stack(actor: Actor) -> Any:
    stored(actor, "CloudAccount", "dev", CLOUD)
    return stored(actor, "Stack", "frankfurt", STACK)


def a_record(actor: Actor) -> Any:
    stored(actor, "Zone", "sample", ZONE | {"domain": "sample.test"})
    return stored(actor, "Record", "www", RECORD)


def a_certificate(actor: Actor) -> Any:
    chain, key = pem_pair("shop.acme.example", days=30)
    return stored(actor, "Certificate", "shop", {"chain": chain, "key": key})


def a_webhook(actor: Actor) -> Any:
    spec = {"url": "https://hooks.example/x", "event_types": ["route.*"]}
    return make_webhook(actor=actor, name="ours", account=None, spec=spec)[0]


FORMS: dict[str, Callable[[Actor], Any]] = {
    "/accounts/acme/edit": lambda _: Account.objects.get(name="acme"),
    "/capacity-tests/{}/edit": lambda _: make_test(Pool.objects.get(name="shop")),
    "/certificates/{}/renew": a_certificate,
    "/stacks/{}/edit": a_stack,
    "/webhooks/{}/edit": a_webhook,
    "/address-pools/{}/edit": lambda actor: stored(actor, "AddressPool", "ours", {"blocks": ["192.0.2.0/28"]}),
    "/cloud-accounts/{}/edit": lambda actor: stored(actor, "CloudAccount", "prod", CLOUD),
    "/records/{}/edit": a_record,
    "/static-ips/{}/edit": lambda actor: stored(actor, "StaticIP", "front", {"address": "192.0.2.10"}),
    "/zones/{}/edit": lambda actor: stored(actor, "Zone", "example", ZONE),
}


def as_sent(answer: Any) -> dict[str, Any]:
    """What a browser sends of the form that it was shown, without a change."""
    form = answer.context["form"]
    values = {field.html_name: field.value() for field in form}
    found = {name: value for name, value in values.items() if value not in (None, False)}
    return found | {"version": version_in(answer)}


def version_in(answer: Any) -> str:
    found = re.search(r'name="version" value="(\d+)"', answer.content.decode())
    assert found, "the form carries no version"
    return found[1]


def somebody_saves(row: Any) -> None:
    type(row).objects.filter(pk=row.pk).update(version=F("version") + 1)


ROWS: dict[str, Any] = {}  # what stands in each form; its keys are the same whenever it is put back


def _build() -> None:
    apply_tutorial()
    operator = actor_of("operator", Account.Kind.OPERATOR)
    ROWS.update({path: make(operator) for path, make in FORMS.items()})


_BUILT = CachedFixture(_build)


@pytest.mark.parametrize("path", first_of(5, FORMS))
def test_a_stale_form_is_refused_again_until_it_is_loaded_anew(db: None, path: str) -> None:
    _BUILT.put()
    row, client = ROWS[path], client_of(actor_of("operator", Account.Kind.OPERATOR))
    path = path.format(row.pk)
    form = as_sent(client.get(path))
    if path.endswith("/renew"):
        chain, key = pem_pair("shop.acme.example", days=90)
        form |= {"/spec/chain": chain, "/spec/key": key}
    somebody_saves(row)
    for _ in range(2):
        refused = client.post(path, form)
        text = refused.content.decode()
        assert (refused.status_code, "has changed since you read it" in text) == (422, True), text
        assert f'href="{path}">Open the stored version</a>' in text
        form["version"] = version_in(refused)
    assert client.post(path, form | {"version": ""}).status_code == 422, "no version is no way round"
    assert client.post(path, form | {"version": version_in(client.get(path))}).status_code == 302


@pytest.fixture
def shop(tutorial_env: Actor) -> Pool:
    return Pool.objects.get(name="shop")


def limit_sent(client: Client, shop: Pool, version: str) -> str:
    sent = {"region": "us-central1", "kind": "rate", "value": "25", "scope": "backend", "version": version}
    return client.post(f"/pools/{shop.pk}/limit", sent, follow=True).content.decode()


def test_a_limit_that_was_read_before_the_pool_changed_is_refused(shop: Pool, tutorial_env: Actor) -> None:
    client = client_of(tutorial_env)
    began = version_in(client.get(f"/pools/{shop.pk}"))
    somebody_saves(shop)
    for version in (began, ""):
        assert "Pool shop has changed since you read it" in limit_sent(client, shop, version)
    assert Backend.objects.get(pool=shop, region__name="us-central1").limit_value == 10
    assert "is changed" in limit_sent(client, shop, version_in(client.get(f"/pools/{shop.pk}")))

"""Copies: the page of an object leads to a new form that says what the object says, but for its name and secrets."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.accounts.models import Account, ApiToken, Grant
from apps.accounts.tokens import create_token
from apps.definitions.models import (
    AlertChannel,
    AlertRule,
    CapacityTest,
    LoadBalancer,
    NetworkList,
    Policy,
    Record,
    Schedule,
    StatusPage,
    Zone,
)
from apps.definitions.services import save_object
from apps.logs.models import LogForward
from apps.logs.saved import save_search
from apps.webhooks.models import Webhook
from tests.breadth import first_of
from tests.conftest import actor_of
from tests.interfaces.people import client_of

SECRET = "whsec_" + "QUJD" * 10
SAID: dict[str, tuple[str, dict[str, Any], dict[str, str]]] = {
    "network-list": ("NetworkList", {"entries": [{"network": "192.0.2.0/24"}]}, {"/spec/entries": "192.0.2.0/24"}),
    "policy": (
        "Policy",
        {"rules": {"cors": {"origins": ["https://app.example.com"]}}},
        {"/spec/rules/cors/origins": "https://app.example.com"},
    ),
    "alert-rule": ("AlertRule", {"watches": "pool_slow", "threshold": 300}, {"/spec/threshold": "300"}),
    "alert-channel": (
        "AlertChannel",
        {"type": "webhook", "url": "https://hooks.example/in", "secret": SECRET},
        {"/spec/url": "https://hooks.example/in", "/spec/secret": ""},
    ),
    "status-page": ("StatusPage", {"title": "Front", "rules": ["pool-down"]}, {"/spec/title": "Front"}),
    "zone": ("Zone", {"domain": "example.net", "driver": "memory"}, {"/spec/domain": "example.net"}),
    "schedule": (
        "Schedule",
        {"when": {"cron": "15 4 * * *"}, "target": {"webhook": {"url": "https://hooks.example/nightly"}}},
        {"cron": "15 4 * * *", "url": "https://hooks.example/nightly"},
    ),
}
OPERATED = ("zone", "acme")  # customers have records, and no zones
ROWS: dict[str, Any] = {
    "NetworkList": NetworkList,
    "Policy": Policy,
    "AlertRule": AlertRule,
    "AlertChannel": AlertChannel,
    "StatusPage": StatusPage,
    "Zone": Zone,
    "Schedule": Schedule,
}


def values(client: Client, url: str) -> dict[str, str]:
    """What stands in the fields of a form."""
    answer = client.get(url)
    assert answer.status_code == 200, url
    return {field.html_name: str(field.value() or "") for field in answer.context["form"]}


def copy_from(client: Client, url: str, noun: str) -> str:
    """Where the page leads to a copy."""
    found = re.search(rf'href="([^"]*\?copy=\d+)">[^C]*Copy {noun}', client.get(url).content.decode())
    assert found, f"{url} offers no copy"
    return found[1]


@pytest.mark.parametrize(
    ("noun", "owner"),
    first_of(
        len(SAID), [(noun, owner) for owner in ("operator", "acme") for noun in SAID if (noun, owner) != OPERATED]
    ),
)
def test_a_copy_says_what_the_other_says_but_not_its_name(noun: str, owner: str, tutorial_env: Actor) -> None:
    kind, spec, said = SAID[noun]
    actor = actor_of(owner, Account.objects.get(name=owner).kind)
    save_object(actor=actor, kind=kind, name="first", spec=spec)
    row, client = ROWS[kind].objects.get(name="first"), client_of(actor)
    page = "edit" if noun in ("alert-rule", "alert-channel", "status-page") else ""
    words = {"network-list": "list"}.get(noun, noun.replace("-", " "))
    url = reverse(f"web:{noun}-edit" if page else f"web:{noun}", args=[row.pk])
    begun = values(client, copy_from(client, url, words))
    assert {name: begun[name] for name in said} == said
    assert begun.get("/name", begun.get("name")) == ""


def test_a_copied_capacity_test_loads_the_same_pool_for_the_same_account(tutorial_env: Actor) -> None:
    test, client = CapacityTest.objects.get(name="shop-us"), client_of(tutorial_env)
    begun = values(client, copy_from(client, reverse("web:capacity-test", args=[test.pk]), "test"))
    assert (begun["/account"], begun["/name"]) == ("acme", "")
    assert (begun["/spec/target/pool"], begun["/spec/target/region"]) == ("acme/shop", "us-central1")
    assert begun["/spec/target/hostname"] == "shop.acme.example"


def test_a_copied_listener_has_all_but_the_name_and_the_port_of_the_other(tutorial_env: Actor) -> None:
    client = client_of(actor_of("operator", Account.Kind.OPERATOR))
    balancer = LoadBalancer.objects.get(name="front")
    row = balancer.listeners.get()
    page, pointer = reverse("web:load-balancer", args=[balancer.pk]), "/spec/listeners/1"
    client.post(
        reverse("web:listener-edit", args=[balancer.pk, row.pk]),
        values(client, reverse("web:listener-edit", args=[balancer.pk, row.pk]))
        | {"version": str(balancer.version), "/spec/listeners/0/monitor_path": "/up"},
    )
    found = re.search(r'href="([^"]*\?copy=\d+)">Copy<span class="sr"> listener', client.get(page).content.decode())
    assert found
    begun = values(client, found[1])
    assert (begun[f"{pointer}/name"], begun[f"{pointer}/port"]) == ("", "")
    assert begun[f"{pointer}/monitor_path"] == "/up"
    client.post(
        found[1],
        begun | {f"{pointer}/name": "twin", f"{pointer}/port": "18099", "version": str(balancer.version + 1)},
    )
    assert set(balancer.listeners.values_list("name", "monitor_path")) == {(row.name, "/up"), ("twin", "/up")}


def test_a_copied_customer_has_the_quotas_of_the_other(operator: Actor, acme: Actor) -> None:
    client = client_of(operator)
    save_object(
        actor=operator, kind="Account", name="acme", spec={"title": "Acme", "kind": "customer", "quotas": {"routes": 7}}
    )
    begun = values(client, copy_from(client, reverse("web:account", args=["acme"]), "customer"))
    assert (begun["/name"], begun["/spec/quotas/routes"]) == ("", "7")


def test_a_copied_token_may_do_what_the_other_may_and_is_another_one(acme: Actor, globex: Actor) -> None:
    create_token(account=acme.account, name="ci", role="editor", scopes=("routes:write",), networks=("192.0.2.0/24",))
    row, client = ApiToken.objects.get(), client_of(acme)
    begun = client.get(f"/tokens/new?copy={row.pk}").context["form"]
    said = [begun[name].value() for name in ("/role", "/scopes", "/networks")]
    assert said == ["editor", ["routes:write"], "192.0.2.0/24"]
    assert begun["/name"].value() is None
    assert client_of(globex).get(f"/tokens/new?copy={row.pk}").status_code == 404


def test_a_copied_search_measures_the_same(acme: Actor) -> None:
    spec = {"filter": "status>=500", "metric": {"measure": "percentile", "of": "queue_ms", "percentile": 99}}
    row, client = save_search(actor=acme, name="slow", spec=spec), client_of(acme)
    begun = values(client, copy_from(client, reverse("web:saved-search", args=[row.pk]), "search"))
    assert begun["/spec/filter"] == "status>=500"
    assert [begun[f"/spec/metric/{name}"] for name in ("measure", "of", "percentile")] == [
        "percentile",
        "queue_ms",
        "99",
    ]


def test_what_others_keep_cannot_be_copied(tutorial_env: Actor) -> None:
    save_object(actor=tutorial_env, kind="Policy", name="first", spec={"rules": {"access": {"deny": []}}})
    row = Policy.objects.get(name="first")
    client = client_of(actor_of("globex", Account.Kind.CUSTOMER))
    assert client.get(f"{reverse('web:policy-new')}?copy={row.pk}").status_code == 404


def test_records_webhooks_forwards_and_grants_are_copied_too(tutorial_env: Actor) -> None:
    operator = actor_of("operator", Account.Kind.OPERATOR)
    client = client_of(operator)
    save_object(actor=operator, kind="Zone", name="net", spec={"domain": "example.net", "driver": "memory"})
    spec = {"zone": "net", "label": "www", "type": "A", "values": ["192.0.2.80"]}
    save_object(actor=operator, kind="Record", name="www", spec=spec)
    account = operator.account
    hook = Webhook.objects.create(account=account, name="a", url="https://hooks.example/a", event_types=["route.*"])
    forward = LogForward.objects.create(account=account, name="b", url="https://logs.example/v1/logs")
    save_object(actor=operator, kind="Grant", name="c", spec={"account": "acme", "hostname": "*.shared.example"})
    record = Record.objects.get(name="www")
    pages = {
        "record": (reverse("web:record-edit", args=[record.pk]), "/spec/label", "www"),
        "webhook": (reverse("web:webhook", args=[hook.pk]), "/spec/url", hook.url),
        "log forward": (reverse("web:log-forward-edit", args=[forward.pk]), "/spec/url", forward.url),
        "grant": (reverse("web:grant", args=[Grant.objects.get(name="c").name]), "/spec/hostname", "*.shared.example"),
    }
    for noun, (url, field, text) in pages.items():
        assert values(client, copy_from(client, url, noun))[field] == text, noun

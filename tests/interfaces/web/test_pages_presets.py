"""Presets: a link fills in a form as it is used most, keeps what was typed, and stores nothing."""

from __future__ import annotations

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Account, ApiToken
from apps.web.accounts import tokens, views, webhooks
from apps.webhooks.models import Webhook
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db
PART = {"HX-Request": "true"}


def test_a_preset_of_a_token_ticks_its_scopes_and_keeps_the_name(acme: Actor) -> None:
    answer = client_of(acme).post(
        "/tokens/new?preset=deploy&partial=fields", {"/name": "ci", "/role": "viewer"}, headers=PART
    )
    page = answer.content.decode()
    assert (answer.status_code, "<html" in page) == (200, False)
    assert 'value="ci"' in page
    assert 'value="routes:write" checked' in page
    assert 'value="routes:read" checked' not in page
    assert "Deploy pipeline is filled in" in page
    assert not ApiToken.objects.exists()


def test_a_preset_without_scripts_is_a_page_whose_form_is_sent_as_any_other(acme: Actor) -> None:
    client, url = client_of(acme), "/tokens/new?preset=servers"
    assert 'value="servers:write" checked' in client.get(url).content.decode()
    sent = {"/name": "vm", "/role": "editor", "/expires_in_days": "30", "/networks": "", "/scopes": "servers:write"}
    client.post(url, sent)
    assert ApiToken.objects.get().scopes == ["servers:write"]


def test_a_preset_of_a_webhook_replaces_the_events_and_keeps_the_url(acme: Actor) -> None:
    typed = {"/name": "hook", "/spec/url": "https://hooks.example/in", "single": "pool.deleted"}
    sent = typed | {"/spec/event_types": ["route.*"]}
    page = client_of(acme).post("/webhooks/new?preset=access&partial=fields", sent, headers=PART).content.decode()
    assert 'value="https://hooks.example/in"' in page
    assert "pool.deleted" not in page.replace('placeholder="route.deleted limit.changed"', "")
    boxes = [line for line in page.split("<input") if 'name="/spec/event_types"' in line]
    ticked = [line.split('value="')[1].split('"')[0] for line in boxes if "checked" in line]
    assert ticked == ["token.*", "invitation.*", "membership.*", "person.*", "webhook.*"]
    assert not Webhook.objects.exists()


def test_a_preset_of_quotas_may_add_to_what_was_typed(operator: Actor) -> None:
    client, typed = client_of(operator), {"/name": "new", "/spec/title": "New", "/spec/quotas/routes": "7"}
    page = client.post("/new-account?preset=load-tests&partial=fields", typed, headers=PART).content.decode()
    assert 'name="/spec/quotas/routes" value="7"' in page
    assert 'name="/spec/quotas/test_rate" value="500"' in page
    assert Account.objects.filter(name="new").count() == 0


@pytest.mark.slow(reason="It sends each preset of each form.")
def test_every_preset_is_accepted_as_it_is(acme: Actor, operator: Actor) -> None:
    for actor in (acme, operator):
        client = client_of(actor)
        for name in tokens.presets_of(actor.account):
            form = client.get(f"/tokens/new?preset={name}").context["form"]
            sent = {"/name": name, "/expires_in_days": "30", "/networks": ""}
            sent |= {field: form[field].value() for field in ("/role", "/scopes")}
            assert client.post("/tokens/new", sent).status_code == 200, name
        for name in webhooks.presets_of(client.get("/webhooks/new").context["form"]):
            form = client.get(f"/webhooks/new?preset={name}").context["form"]
            sent = {"/name": name, "/spec/url": "https://192.0.2.7/in", "single": ""}
            sent["/spec/event_types"] = form["/spec/event_types"].value()
            assert sent["/spec/event_types"], name
            refused = client.post("/webhooks/new", sent).context["form"]
            assert refused is None or "/spec/event_types" not in refused.errors, name
    for name in views.PRESETS:
        client = client_of(operator)
        form = client.get(f"/new-account?preset={name}").context["form"]
        sent = {field: form[field].value() or "" for field in form.fields}
        answer = client.post("/new-account", sent | {"/name": f"new-{name}", "/spec/title": "New"})
        assert answer.status_code == 302, (name, answer.context["form"].errors)

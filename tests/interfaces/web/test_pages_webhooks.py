"""On pages: made with a secret shown once, watched, tested, rotated, sent again, deleted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from standardwebhooks import Webhook as Standard

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.webhooks import delivering, services
from apps.webhooks.models import Delivery, Webhook
from tests.interfaces.people import client_of
from tests.receiver import Receiver, receiving

URL = "https://hooks.example.com/x"


@pytest.fixture
def client(acme: Actor) -> Client:
    """The browser of an owner of acme."""
    return client_of(acme)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Somebody who listens."""
    with receiving() as found:
        yield found


def make(actor: Actor, url: str = URL, name: str = "hook", **spec: Any) -> Webhook:
    """An endpoint."""
    return services.make_webhook(actor=actor, name=name, spec={"url": url, **spec})[0]


def deliver() -> None:
    """What the workers would do now."""
    for webhook_id in delivering.due_webhooks():
        delivering.deliver(webhook_id=webhook_id)


def test_an_endpoint_is_made_and_its_secret_shown_once(client: Client, receiver: Receiver) -> None:
    assert "No webhooks yet" in client.get("/webhooks").content.decode()
    form = {"/name": "hook", "/spec/url": receiver.url, "/spec/event_types": ["route.*"], "single": "limit.changed"}
    answer = client.post("/webhooks/new", form)
    (secret,) = set(re.findall(r"whsec_[A-Za-z0-9+/=]+", answer.content.decode()))
    assert "no-store" in answer["Cache-Control"]
    hook = Webhook.objects.get()
    assert hook.event_types == ["route.*", "limit.changed"]
    for url in ("/webhooks", f"/webhooks/{hook.pk}", f"/webhooks/{hook.pk}/edit", "/audit"):
        assert "whsec_" not in client.get(url).content.decode()
    assert client.post(f"/webhooks/{hook.pk}/test", follow=True).status_code == 200
    deliver()
    Standard(secret).verify(receiver.heard[0].body, dict(receiver.heard[0].headers))
    page = client.get(f"/webhooks/{hook.pk}").content.decode()
    assert "webhook.test" in page
    assert "Delivered" in page


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"/name": "A b"}, "lower"),
        ({"/spec/url": "https://10.0.0.1/"}, "is private or reserved"),
        ({"/spec/url": "nonsense"}, "Begin the URL with"),
        ({"/spec/event_types": [], "single": ""}, "Write a list of 1 to"),
        ({"single": "route.create"}, "Use *, a noun with a star"),
        ({"/name": "taken"}, "A webhook named taken already exists"),
    ],
)
def test_a_form_that_is_refused_keeps_what_was_typed_and_says_why(
    client: Client, acme: Actor, change: dict[str, Any], sentence: str
) -> None:
    make(acme, name="taken")
    form = {"/name": "hook", "/spec/url": URL, "/spec/event_types": ["pool.*"], "single": "route.deleted"} | change
    answer = client.post("/webhooks/new", form)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert sentence.lower() in page.lower()
    assert f'value="{form["/spec/url"]}"' in page
    assert f'value="{form["/name"]}"' in page
    assert Webhook.objects.count() == 1


def test_an_edit_shows_what_is_there_and_refuses_a_stale_one(client: Client, acme: Actor) -> None:
    hook = make(acme, event_types=["route.*", "limit.changed"])
    page = client.get(f"/webhooks/{hook.pk}/edit").content.decode()
    assert 'value="limit.changed"' in page
    assert re.search(r'value="route.\*"[^>]* checked', page)
    form = {"/spec/url": URL + "y", "/spec/event_types": ["*"], "single": "", "/spec/enabled": "on", "version": "1"}
    assert client.post(f"/webhooks/{hook.pk}/edit", form).status_code == 302
    answer = client.post(f"/webhooks/{hook.pk}/edit", form | {"/spec/url": URL + "z"})
    assert (answer.status_code, b"has changed since you read it" in answer.content) == (422, True)
    hook.refresh_from_db()
    assert (hook.url, hook.event_types) == (URL + "y", ["*"])
    off = {name: value for name, value in form.items() if name != "/spec/enabled"} | {"version": "2"}
    client.post(f"/webhooks/{hook.pk}/edit", off)
    assert "is disabled" in client.post(f"/webhooks/{hook.pk}/test", follow=True).content.decode()


def test_a_rotation_shows_the_new_secret_and_says_until_when_there_are_two(client: Client, acme: Actor) -> None:
    hook = make(acme)
    answer = client.post(f"/webhooks/{hook.pk}/rotate")
    assert "whsec_" in answer.content.decode()
    assert "two, the previous one until" in client.get(f"/webhooks/{hook.pk}").content.decode()


def test_the_log_shows_failures_and_sends_again(client: Client, acme: Actor, receiver: Receiver) -> None:
    hook = make(acme, receiver.url)
    receiver.answers[:] = [(500, {}, b"<b>not today</b>"), (204, {}, b"")]
    client.post(f"/webhooks/{hook.pk}/test")
    deliver()
    page = client.get(f"/webhooks/{hook.pk}").content.decode()
    assert "&lt;b&gt;not today&lt;/b&gt;" in page
    assert "Failing" in page
    assert "No matching deliveries" in client.get(f"/webhooks/{hook.pk}?state=delivered").content.decode()
    delivery = Delivery.objects.get()
    client.post(f"/webhooks/{hook.pk}/deliveries/{delivery.pk}/redeliver")
    deliver()
    delivery.refresh_from_db()
    assert delivery.state == "delivered"


def test_the_log_goes_on_where_the_page_before_ended(client: Client, acme: Actor) -> None:
    hook = make(acme)
    for number in range(60):
        Delivery.objects.create(webhook=hook, message_id=f"msg_{number}", type="route.updated", next_at=now())
    seen, url = [], f"/webhooks/{hook.pk}"
    for _ in range(3):
        answer = client.get(url)
        seen += [each["delivery"].message_id for each in answer.context["log"]]
        url = f"/webhooks/{hook.pk}?before={answer.context['next_before']}"
    assert seen == [f"msg_{number}" for number in range(59, -1, -1)]


def test_an_endpoint_is_deleted_once_its_name_was_typed(client: Client, acme: Actor) -> None:
    hook = make(acme)
    assert "Type hook" in client.post(f"/webhooks/{hook.pk}/delete", follow=True).content.decode()
    client.post(f"/webhooks/{hook.pk}/delete", {"confirm": "hook"})
    assert not Webhook.objects.exists()


def test_an_endpoint_that_was_switched_off_says_why_on_the_list_and_on_its_page(client: Client, acme: Actor) -> None:
    hook = make(acme)
    Webhook.objects.update(enabled=False, disabled_reason="Every attempt failed for five days.")
    for url in ("/webhooks", f"/webhooks/{hook.pk}"):
        assert "Every attempt failed for five days." in client.get(url).content.decode()


def test_others_find_nothing_and_viewers_change_nothing(client: Client, acme: Actor, globex: Actor) -> None:
    hook = make(globex, "https://hooks.globex.example/secret")
    delivery = Delivery.objects.create(webhook=hook, message_id="msg", type="route.updated", next_at=now()).pk
    assert "globex" not in client.get("/webhooks").content.decode()
    pages = [("get", ""), ("get", "/edit"), ("post", "/rotate"), ("post", "/test"), ("post", "/delete")]
    for method, end in [*pages, ("post", f"/deliveries/{delivery}/redeliver")]:
        assert getattr(client, method)(f"/webhooks/{hook.pk}{end}").status_code == 404
    own = make(acme)
    assert client.post(f"/webhooks/{own.pk}/deliveries/{delivery}/redeliver").status_code == 404
    viewer = client_of(acme, "viewer")
    assert viewer.get(f"/webhooks/{own.pk}").status_code == 200
    assert "Rotate" not in viewer.get(f"/webhooks/{own.pk}").content.decode()
    for method, end in (("get", "/edit"), ("post", "/rotate"), ("post", "/test")):
        assert getattr(viewer, method)(f"/webhooks/{own.pk}{end}").status_code == 403
    assert viewer.get("/webhooks/new").status_code == 403


def test_an_operator_makes_one_for_a_customer_and_sees_all(operator: Actor, acme: Actor) -> None:
    browser = client_of(operator)
    form = {"/name": "hook", "/account": "acme", "/spec/url": URL, "/spec/event_types": ["*"]}
    assert browser.post("/webhooks/new", form).status_code == 200
    assert Webhook.objects.get().account == acme.account
    assert "Acme" in browser.get("/webhooks").content.decode()
    answer = browser.post("/webhooks/new", form | {"/account": "nobody"})
    assert "There is no such account" in answer.content.decode()

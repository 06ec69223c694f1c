"""The page of a pool, limits: who set them, changing one in place, and the overflow policy in the form."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.accounts.models import Membership
from apps.audit.models import Entry
from apps.definitions.models import Backend, Pool
from apps.definitions.services import drain_region, set_limit
from tests.breadth import first_of
from tests.interfaces.people import client_of
from tests.interfaces.web.test_pages_pools import form_data, said_by


@pytest.fixture
def shop(tutorial_env: Actor) -> Pool:
    return Pool.objects.get(name="shop")


def backend(pool: Pool) -> Backend:
    return Backend.objects.get(pool=pool, region__name="us-central1")


SENT = {
    "region": "us-central1",
    "kind": "rate",
    "value": "25",
    "scope": "backend",
    "capacity_scaler": "0.5",
    "version": "1",
}


def test_a_limit_is_changed_in_place_and_says_who_set_it(shop: Pool, acme: Actor) -> None:
    client = client_of(acme)
    answer = client.post(reverse("web:pool-limit", args=[shop.pk]), SENT | {"reason": "sale"}, follow=True)
    row, page = backend(shop), answer.content.decode()
    assert (row.limit_value, row.capacity_scaler, row.limit_set_by) == (25, 0.5, "admin-of-acme")
    for text in ("25 requests/s for all servers together", "set by admin-of-acme", "traffic share 50 %", "is changed"):
        assert text in page
    assert Entry.objects.filter(reason="sale").count() == 1


def test_a_limit_that_a_run_measured_and_a_drained_region_are_said(shop: Pool, tutorial_env: Actor) -> None:
    set_limit(actor=tutorial_env, pool_id=shop.pk, region="us-central1", value=14, measured_by="run-7")
    drain_region(actor=tutorial_env, region="us-central1", drained=True)
    page = client_of(tutorial_env).get(reverse("web:pool", args=[shop.pk])).content.decode()
    assert "measured by run-7" in page
    assert "region drained" in page


def test_a_limit_that_cannot_be_is_refused_with_a_sentence(shop: Pool, acme: Actor) -> None:
    client, url = client_of(acme), reverse("web:pool-limit", args=[shop.pk])
    for wrong in ("value=", "value=many", "value=0", "capacity_scaler=2", "kind=x", "scope=x"):
        name, _, value = wrong.partition("=")
        said = said_by(client.post(url, SENT | {name: value}))
        assert said.startswith(("Fill in", "Use ", "Write ")), (wrong, said)
    assert (backend(shop).limit_value, backend(shop).capacity_scaler) == (10, 1.0)


@pytest.mark.parametrize("scaler", first_of(2, [1 / 3, 0.00001, 0.1234567, 0.0]))
def test_no_digit_of_a_capacity_scaler_is_lost_where_something_else_is_changed(
    shop: Pool, acme: Actor, scaler: float
) -> None:
    Backend.objects.filter(pk=backend(shop).pk).update(capacity_scaler=scaler)
    client, url = client_of(acme), reverse("web:pool-edit", args=[shop.pk])
    answer = client.post(url, form_data(client, url) | {"/spec/queue_timeout_ms": "777"})
    assert answer.status_code == 302, answer.context["form"].errors
    assert backend(shop).capacity_scaler == scaler
    page = client.get(reverse("web:pool", args=[shop.pk])).content.decode()
    shown = re.findall(r'name="capacity_scaler"[^>]* value="([^"]*)"', page)
    shop.refresh_from_db()
    changed = {"capacity_scaler": next(each for each in shown if each != "1"), "version": str(shop.version)}
    client.post(reverse("web:pool-limit", args=[shop.pk]), SENT | changed)
    assert (backend(shop).limit_value, backend(shop).capacity_scaler) == (25, scaler)


def test_the_limit_is_taken_away(shop: Pool, acme: Actor) -> None:
    client_of(acme).post(reverse("web:pool-limit", args=[shop.pk]), SENT | {"kind": "none"})
    assert backend(shop).limit_kind == "none"


def test_limits_of_others_do_not_exist_and_viewers_change_none(shop: Pool, acme: Actor, globex: Actor) -> None:
    url = reverse("web:pool-limit", args=[shop.pk])
    assert client_of(globex).post(url, SENT).status_code == 404
    assert client_of(acme).post(url, SENT | {"region": "moon"}).status_code == 404
    assert client_of(acme).get(url).status_code == 405
    viewer = client_of(globex, Membership.Role.VIEWER)
    assert viewer.post(url, SENT).status_code in (403, 404)
    assert backend(shop).limit_value == 10


def test_a_viewer_sees_the_limit_and_no_form(shop: Pool, acme: Actor) -> None:
    client = client_of(acme, Membership.Role.VIEWER)
    page = client.get(reverse("web:pool", args=[shop.pk])).content.decode()
    assert "10 requests/s" in page
    assert reverse("web:pool-limit", args=[shop.pk]) not in page
    assert client.post(reverse("web:pool-limit", args=[shop.pk]), SENT).status_code == 403


def test_the_form_stores_the_overflow_policy_and_its_order(shop: Pool, tutorial_env: Actor) -> None:
    client, url = client_of(tutorial_env), reverse("web:pool-edit", args=[shop.pk])
    data = form_data(client, url)
    data |= {"/spec/overflow/when_full": "refuse", "/spec/overflow/order": "europe-west1,  us-central1"}
    assert client.post(url, data).status_code == 302
    stored = Pool.objects.get(pk=shop.pk)
    assert (stored.when_full, stored.overflow_order) == ("refuse", ["europe-west1", "us-central1"])
    assert form_data(client, url)["/spec/overflow/order"] == "europe-west1, us-central1"


def test_errors_of_the_policy_stand_beside_their_fields(shop: Pool, tutorial_env: Actor) -> None:
    client, url = client_of(tutorial_env), reverse("web:pool-edit", args=[shop.pk])
    for changed, field in (
        ({"/spec/overflow/order": "us-central1, moon"}, "/spec/overflow/order"),
        ({"/spec/overflow/when_full": "queue"}, "/spec/overflow/when_full"),
    ):
        answer = client.post(url, form_data(client, url) | changed)
        assert (answer.status_code, set(answer.context["form"].errors)) == (422, {field})


def test_saving_the_form_keeps_who_measured_a_limit(shop: Pool, tutorial_env: Actor) -> None:
    set_limit(actor=tutorial_env, pool_id=shop.pk, region="us-central1", value=14, measured_by="run-7")
    client, url = client_of(tutorial_env), reverse("web:pool-edit", args=[shop.pk])
    page = client.get(url).content.decode()
    assert f"14 requests/s for all servers together, set by {tutorial_env.name} on " in page
    assert client.post(url, form_data(client, url) | {"/spec/balance": "random"}).status_code == 302
    assert backend(shop).limit_measured_by == "run-7"


def test_the_form_stores_what_a_pool_says_of_its_servers_and_takes_it_away(shop: Pool, tutorial_env: Actor) -> None:
    client, url = client_of(tutorial_env), reverse("web:pool-edit", args=[shop.pk])
    data = form_data(client, url) | {
        "/spec/server_tls": "on",
        "/spec/server_tls/server_name": "shop.internal.example",
        "/spec/persistence": "on",
        "/spec/persistence/cookie": "SRV",
        "/spec/persistence/secure": "on",
        "/spec/host_header": "shop.internal.example",
        "/spec/request_headers": "X-Side=blue\nX-Of=shop",
    }
    assert client.post(url, data).status_code == 302
    stored = Pool.objects.get(pk=shop.pk)
    assert stored.server_tls is not None
    assert stored.server_tls["server_name"] == "shop.internal.example"
    assert stored.persistence is not None
    assert stored.request_headers == {"X-Of": "shop", "X-Side": "blue"}
    assert (stored.persistence["cookie"], stored.persistence["secure"]) == (
        "SRV",
        True,
    )
    shown = form_data(client, url)
    assert (shown["/spec/persistence/cookie"], shown["/spec/server_tls"]) == ("SRV", "on")
    page = client.get(reverse("web:pool", args=[shop.pk])).content.decode()
    assert "TLS to servers" in page
    assert "server name: shop.internal.example" in page
    assert "X-Of=shop, X-Side=blue" in page
    del shown["/spec/persistence"]
    assert client.post(url, shown).status_code == 302
    assert Pool.objects.get(pk=shop.pk).persistence is None

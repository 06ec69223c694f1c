"""The pages of pools: what shows, what is refused and where, who may, and how many queries that takes."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.accounts.models import Membership
from apps.audit.models import Entry
from apps.core.clock import now
from apps.definitions.models import Pool, Server
from apps.definitions.services import save_object, set_server
from tests.interfaces.capacity_env import make_work
from tests.interfaces.people import client_of


def form_data(client: Client, url: str) -> dict[str, str]:
    """What a browser would send if nobody changed anything."""
    form = client.get(url).context["form"]
    fields = [field for field in form if "__prefix__" not in field.name]
    data = {field.html_name: str(field.value() if field.value() is not None else "") for field in fields}
    return {name: value for name, value in data.items() if name != "/spec/health_check" or value}


@pytest.fixture
def shop(tutorial_env: Actor) -> Pool:
    return Pool.objects.get(name="shop")


def states(pool: Pool, region: str) -> dict[str, str]:
    servers = Server.objects.filter(backend__pool=pool, backend__region__name=region)
    return dict(servers.values_list("name", "state"))


def ids(pool: Pool, region: str) -> list[int]:
    return list(Server.objects.filter(backend__pool=pool, backend__region__name=region).values_list("pk", flat=True))


def said_by(answer: Any) -> str:
    """What the next page will say of this request."""
    return [str(message) for message in get_messages(answer.wsgi_request)][-1]


def test_the_list_names_every_pool_with_its_limits_and_says_what_was_not_measured(
    tutorial_env: Actor, client: Client
) -> None:
    page = client_of(tutorial_env).get(reverse("web:pools")).content.decode()
    assert "shop-next" in page
    assert "10/s" in page
    assert "Unknown" in page
    assert "–" in page


def test_customers_see_their_own_pools_and_no_others(shop: Pool, acme: Actor, globex: Actor) -> None:
    own, foreign = client_of(acme), client_of(globex)
    assert "shop" in own.get(reverse("web:pools")).content.decode()
    assert "shop-next" not in foreign.get(reverse("web:pools")).content.decode()
    for name in ("pool", "pool-edit"):
        assert own.get(reverse(f"web:{name}", args=[shop.pk])).status_code == 200
        assert foreign.get(reverse(f"web:{name}", args=[shop.pk])).status_code == 404
    for name in ("pool-servers", "pool-delete"):
        assert foreign.post(reverse(f"web:{name}", args=[shop.pk])).status_code == 404


def test_a_pool_shows_its_servers_by_region_who_uses_it_and_its_yaml(shop: Pool, tutorial_env: Actor) -> None:
    page = client_of(tutorial_env).get(reverse("web:pool", args=[shop.pk])).content.decode()
    for text in ("us-vm-1", "127.0.0.1:9203", "10 requests/s for all servers together", "shop.acme.example/checkout"):
        assert text in page
    assert "90 %" in page
    assert "kind: Pool" in page


@pytest.mark.parametrize("partial", ["numbers", "servers", "timeline"])
def test_each_live_region_of_a_pool_answers_alone(shop: Pool, tutorial_env: Actor, partial: str) -> None:
    answer = client_of(tutorial_env).get(reverse("web:pool", args=[shop.pk]), {"partial": partial})
    page = answer.content.decode()
    assert f'id="{partial}"' in page
    assert "<html" not in page
    assert "HX-Request" in answer["Vary"]


def test_checked_servers_are_drained_together_with_the_reason(shop: Pool, tutorial_env: Actor) -> None:
    chosen = ids(shop, "us-central1")[:2]
    client = client_of(tutorial_env)
    answer = client.post(
        reverse("web:pool-servers", args=[shop.pk]), {"server": chosen, "do": "drain", "reason": "kernel"}
    )
    assert answer.status_code == 302
    assert list(states(shop, "us-central1").values()) == ["drain", "drain", "ready"]
    assert Entry.objects.filter(reason="kernel").count() == 2


def test_a_weight_is_set_and_a_wrong_one_is_refused(shop: Pool, tutorial_env: Actor) -> None:
    client, url = client_of(tutorial_env), reverse("web:pool-servers", args=[shop.pk])
    chosen = ids(shop, "us-central1")[:1]
    client.post(url, {"server": chosen, "do": "weight", "weight": "17"})
    for wrong in ("257", "-1", "", "1e3", "٣"):
        answer = client.post(url, {"server": chosen, "do": "weight", "weight": wrong})
        assert said_by(answer) == "Enter a weight from 0 to 256.", wrong
    assert Server.objects.get(pk=chosen[0]).weight == 17


def test_beside_servers_that_their_source_takes_away_the_last_one_goes_only_after_a_second_yes(
    shop: Pool, tutorial_env: Actor
) -> None:
    first, *others = ids(shop, "us-central1")
    assert others
    Server.objects.filter(pk__in=others).update(leaving=True)
    sent = {"server": [first], "do": "drain"}
    asked = client_of(tutorial_env).post(reverse("web:pool-servers", args=[shop.pk]), sent)
    assert "no ready server in <strong>us-central1" in asked.content.decode()


@pytest.mark.parametrize("do", [{"do": "drain"}, {"do": "maintenance"}, {"do": "weight", "weight": "0"}])
def test_the_last_ready_server_of_a_region_goes_only_after_a_second_yes(
    shop: Pool, tutorial_env: Actor, do: dict[str, str]
) -> None:
    client, url = client_of(tutorial_env), reverse("web:pool-servers", args=[shop.pk])
    sent = {"server": ids(shop, "europe-west1"), **do}
    asked = client.post(url, sent)
    assert "no ready server in <strong>europe-west1" in asked.content.decode()
    assert set(states(shop, "europe-west1").values()) == {"ready"}
    assert client.post(url, {**sent, "confirmed": "yes"}).status_code == 302
    taking = Server.objects.filter(
        backend__pool=shop, backend__region__name="europe-west1", state="ready", weight__gt=0
    )
    assert not taking.exists()


def test_servers_of_another_pool_are_not_touched_through_this_one(shop: Pool, tutorial_env: Actor) -> None:
    foreign = Server.objects.exclude(backend__pool=shop).values_list("pk", flat=True)[:1]
    page = client_of(tutorial_env).post(
        reverse("web:pool-servers", args=[shop.pk]), {"server": list(foreign), "do": "drain"}, follow=True
    )
    assert "Choose at least one server first." in page.content.decode()
    assert not Server.objects.filter(state="drain").exists()


def test_saving_the_form_as_it_stands_changes_nothing(shop: Pool, tutorial_env: Actor) -> None:
    client, url = client_of(tutorial_env), reverse("web:pool-edit", args=[shop.pk])
    page = client.post(url, form_data(client, url), follow=True).content.decode()
    assert "Nothing to save. There are no changes." in page
    assert Pool.objects.get(pk=shop.pk).version == shop.version


@pytest.mark.both_engines  # a number that fits in no column
def test_a_form_that_lost_its_version_overwrites_nothing(shop: Pool, tutorial_env: Actor) -> None:
    client, url = client_of(tutorial_env), reverse("web:pool-edit", args=[shop.pk])
    sent = form_data(client, url) | {"/spec/queue_timeout_ms": "777"}
    for version in ("", "x", "٣", "1" * 30):
        assert client.post(url, sent | {"version": version}).status_code == 409, version
    assert Pool.objects.get(pk=shop.pk).queue_timeout_ms != 777


def test_the_form_stores_what_was_typed_and_drops_removed_servers(shop: Pool, tutorial_env: Actor) -> None:
    client, url = client_of(tutorial_env), reverse("web:pool-edit", args=[shop.pk])
    data = form_data(client, url) | {"/spec/balance": "roundrobin", "/spec/server_keepalive_ms": "5000"}
    prefix = next(name for name in data if data[name] == "us-vm-2").removesuffix("name")
    data = {name: value for name, value in data.items() if not name.startswith(prefix)}
    assert client.post(url, data).status_code == 302
    stored = Pool.objects.get(pk=shop.pk)
    assert (stored.balance, stored.server_keepalive_ms) == ("roundrobin", 5000)
    assert list(states(shop, "us-central1")) == ["us-vm-1", "us-vm-3"]


def test_every_error_stands_beside_its_field_and_nothing_typed_is_lost(shop: Pool, tutorial_env: Actor) -> None:
    client, url = client_of(tutorial_env), reverse("web:pool-edit", args=[shop.pk])
    data = form_data(client, url)
    prefix = next(name for name in data if data[name] == "us-vm-2").removesuffix("name")
    first = next(name for name in data if data[name] == "us-vm-1").removesuffix("name")
    # The first row is emptied: the errors of the second must not move to its place.
    data |= {f"{first}name": "", f"{first}address": "", f"{first}port": ""}
    data |= {f"{prefix}port": "abc", "/spec/connect_timeout_ms": "soon", "/spec/health_check/path": "no-slash"}
    answer = client.post(url, data)
    assert answer.status_code == 422
    form = answer.context["form"]
    assert set(form.errors) == {f"{prefix}port", "/spec/connect_timeout_ms", "/spec/health_check/path"}
    page = answer.content.decode()
    assert 'value="abc"' in page
    assert 'value="soon"' in page


def test_an_error_without_a_field_stands_at_the_top_of_the_form(shop: Pool, tutorial_env: Actor) -> None:
    client, url = client_of(tutorial_env), reverse("web:pool-edit", args=[shop.pk])
    answer = client.post(url, form_data(client, url) | {"/spec/protocol": "tcp"})
    assert answer.status_code == 422
    assert "protocol of a pool in use cannot change" in answer.content.decode()


def test_an_edit_of_an_older_version_shows_all_three_sides_and_holds_both_changes(
    shop: Pool, tutorial_env: Actor
) -> None:
    client, url = client_of(tutorial_env), reverse("web:pool-edit", args=[shop.pk])
    data = form_data(client, url) | {"/spec/queue_timeout_ms": "777"}
    server = Server.objects.filter(backend__pool=shop).order_by("pk")[0]
    set_server(actor=tutorial_env, server_id=server.pk, weight=7, reason="Warm it up")
    answer = client.post(url, data)
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "The form below has both changes" in page
    assert [part in page for part in ('value="777"', 'value="7"', "Warm it up")] == [True, True, True]
    assert Pool.objects.get(pk=shop.pk).queue_timeout_ms != 777
    both = {name: value for name, value in answer.context["form"].initial.items() if value != ""}
    assert client.post(url, both).status_code == 302
    server.refresh_from_db()
    assert (Pool.objects.get(pk=shop.pk).queue_timeout_ms, server.weight) == (777, 7)


def test_a_customer_makes_a_pool_of_its_own_and_a_taken_name_is_said_at_the_name(shop: Pool, acme: Actor) -> None:
    client, url = client_of(acme), reverse("web:pool-new")
    data = form_data(client, url) | {"/name": "search"}
    assert client.post(url, data).status_code == 302
    assert Pool.objects.get(name="search").account == acme.account
    again = client.post(url, data)
    assert "A Pool named search already exists." in again.context["form"].errors["/name"][0]


def test_viewers_see_no_buttons_and_may_not_write(shop: Pool, acme: Actor) -> None:
    client = client_of(acme, Membership.Role.VIEWER)
    page = client.get(reverse("web:pool", args=[shop.pk])).content.decode()
    for text in ("Drain</button>", "Delete", reverse("web:pool-edit", args=[shop.pk]), 'type="checkbox"'):
        assert text not in page
    assert client.get(reverse("web:pool-edit", args=[shop.pk])).status_code == 403
    assert client.post(reverse("web:pool-servers", args=[shop.pk]), {"do": "drain"}).status_code == 403


def test_a_pool_in_use_is_not_deleted_and_says_who_uses_it(shop: Pool, tutorial_env: Actor) -> None:
    client = client_of(tutorial_env)
    url = reverse("web:pool-delete", args=[shop.pk])
    assert "Type shop to delete it." in client.post(url, follow=True).content.decode()
    page = client.post(url, {"confirm": "shop"}, follow=True).content.decode()
    assert "is in use by route" in page
    save_object(actor=tutorial_env, kind="Pool", name="spare", spec={})
    spare = Pool.objects.get(name="spare")
    client.post(reverse("web:pool-delete", args=[spare.pk]), {"confirm": "spare"})
    assert not Pool.objects.filter(name="spare").exists()


def test_a_pool_shows_who_does_the_work_and_says_when_that_is_uneven(shop: Pool, acme: Actor) -> None:
    client, url = client_of(acme), reverse("web:pool", args=[shop.pk])
    page = client.get(url).content.decode()
    assert "Load distribution" in page
    assert "0 requests are too few to compare." in page
    make_work(shop, now() - timedelta(minutes=2), 900, 60, 40)
    for part in ("", "?partial=balance"):
        shown = client.get(url + part).content.decode()
        assert "for its weight the busiest got 22.5 times as much" in shown
        assert "90 % of 33 % due" in shown


def test_of_many_servers_the_busiest_and_the_idlest_are_drawn(shop: Pool, acme: Actor) -> None:
    backend = shop.backends.get(region__name="us-central1")
    for number in range(20):
        fields = {"name": f"more-{number}", "address": "192.0.2.1", "port": 8000 + number}
        Server.objects.create(account=shop.account, backend=backend, **fields)
    make_work(shop, now() - timedelta(minutes=2), *range(122, 99, -1))
    shown = client_of(acme).get(reverse("web:pool", args=[shop.pk]), {"partial": "balance"}).content.decode()
    assert "11 more between them" in shown
    for name, drawn in (("more-0", True), ("us-vm-3", True), ("more-15", False)):
        assert (f">{name}<" in shown) is drawn, name


def test_a_page_is_of_one_section_of_the_navigation(shop: Pool, tutorial_env: Actor) -> None:
    client = client_of(tutorial_env)
    for path in (f"/pools/{shop.pk}", "/pools", "/address-pools/new"):
        shown = client.get(path).content.decode()
        current = re.findall(r'<a href="([^"]+)"[^>]* aria-current="page"', shown)
        assert current == ["/static-ips" if "address" in path else "/pools"], path


def test_an_objective_is_set_by_the_form_with_numbers_that_have_a_decimal_point(shop: Pool, acme: Actor) -> None:
    client, url = client_of(acme), reverse("web:pool-edit", args=[shop.pk])
    typed = {"availability": "99.95", "latency_ms": "200", "latency_share": "99"}
    sent = form_data(client, url) | {"/spec/objective": "on"}
    answer = client.post(url, sent | {f"/spec/objective/{name}": value for name, value in typed.items()})
    assert answer.status_code == 302, answer.context["form"].errors
    shop.refresh_from_db()
    assert shop.objective == {"availability": 99.95, "latency_ms": 200, "latency_share": 99}
    refused = client.post(url, form_data(client, url) | {"/spec/objective/availability": "most"})
    assert "Write this value as a number" in refused.content.decode()

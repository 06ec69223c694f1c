"""A write that would empty what carries traffic is refused until the loss is confirmed by name; nothing is stored."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from apps.accounts.actors import Actor
from apps.definitions.models import Listener, LoadBalancer, Pool, Route, Server
from apps.definitions.writing.rules import emptying
from tests.interfaces.api.test_api_objects import Api, assert_problem
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def house(tutorial_env: Actor) -> Api:
    """The operator's program."""
    return Api(tutorial_env)


@pytest.fixture
def shop(tutorial_env: Actor) -> Pool:
    """A pool that carries a live route."""
    return Pool.objects.select_related("account").get(name="shop")


def partial(shop: Pool) -> dict[str, Any]:
    """A document that only means to change how the pool balances."""
    return {"kind": "Pool", "name": shop.name, "account": shop.account.name, "spec": {"balance": "source"}}


def servers(shop: Pool) -> int:
    """How many it has now."""
    return Server.objects.filter(backend__pool=shop).count()


def refused(answer: Any) -> str:
    """The detail of the one error."""
    (error,) = assert_problem(answer, 422)["errors"]
    assert error["code"] == "would_empty"
    return str(error["detail"])


def test_a_partial_document_does_not_take_the_servers_of_a_pool_in_use(house: Api, shop: Pool) -> None:
    before = servers(shop)
    detail = refused(house("PUT", "apply", {"objects": [partial(shop)]}))
    assert "is in use by route acme/checkout" in detail
    assert "us-vm-1" in detail or "eu-vm-1" in detail
    assert "confirm=acme/shop" in detail
    assert servers(shop) == before > 0
    assert Pool.objects.get(pk=shop.pk).balance == shop.balance
    refused(house("PUT", "apply?confirm=acme/other", {"objects": [partial(shop)]}))
    assert house("PUT", "apply?confirm=acme/shop", {"objects": [partial(shop)]}).status_code == 200
    assert servers(shop) == 0


def test_put_patch_and_batch_ask_as_well(house: Api, shop: Pool) -> None:
    url, any_version = f"pools/{shop.pk}", {"If_Match": "*"}
    refused(house("PUT", url, {"spec": {"balance": "source"}}, **any_version))
    refused(house("PATCH", url, {"spec": {"backends": []}}, **any_version))
    item = {"action": "update", "name": "shop", "account": "acme", "spec": {"balance": "source"}}
    refused(house("POST", "pools:batch", {"items": [item]}))
    assert servers(shop) > 0
    assert house("PUT", f"{url}?confirm=acme/shop", {"spec": {"balance": "source"}}, **any_version).status_code == 200


def test_a_plan_says_what_would_be_lost_and_who_applies_it_confirms(house: Api, shop: Pool) -> None:
    plan = house("PUT", "apply?dry_run=plan", {"objects": [partial(shop)]}).json()
    assert any("would have no servers" in warning and "confirm=acme/shop" in warning for warning in plan["warnings"])
    refused(house("POST", f"plans/{plan['plan_id']}/apply"))
    assert servers(shop) > 0
    assert house("POST", f"plans/{plan['plan_id']}/apply?confirm=acme/shop").status_code == 200


def test_a_load_balancer_does_not_lose_its_listeners_by_a_document_that_leaves_them_out(house: Api) -> None:
    front = LoadBalancer.objects.get(name="front")
    fleets = [fleet.name for fleet in front.fleets.all()]
    entry = {"kind": "LoadBalancer", "name": "front", "spec": {"fleets": fleets}}
    detail = refused(house("PUT", "apply", {"objects": [entry]}))
    assert "would have no listeners" in detail
    assert Listener.objects.filter(load_balancer=front).exists()


def test_pruning_does_not_leave_listeners_without_routes(house: Api) -> None:
    Route.objects.update(manager="ci")
    detail = refused(house("PUT", "apply?prune=true&manager=ci", {"objects": []}))
    assert "would have no routes" in detail
    assert Route.objects.exists()


def test_a_pool_that_nothing_leads_to_may_be_emptied(house: Api, shop: Pool) -> None:
    Route.objects.all().delete()
    Listener.objects.filter(default_pool=shop).update(default_pool=None)
    assert house("PUT", "apply", {"objects": [partial(shop)]}).status_code == 200


def test_control_without_the_safeguard_a_live_pool_is_emptied(
    house: Api, shop: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emptying, "_of_objects", lambda _: iter(()))
    assert house("PUT", "apply", {"objects": [partial(shop)]}).status_code == 200
    assert servers(shop) == 0


def test_the_form_of_a_pool_asks_for_a_tick(shop: Pool, tutorial_env: Actor) -> None:
    client = client_of(tutorial_env)
    page = client.get(f"/pools/{shop.pk}/edit")
    form = page.context["form"]
    sent = {field.html_name: field.value() or "" for field in form if "/servers/" not in field.html_name}
    sent |= {"version": str(shop.version)}
    answer = client.post(f"/pools/{shop.pk}/edit", sent)
    text = answer.content.decode()
    assert answer.status_code == 422
    assert 'name="confirm_loss"' in text
    assert "would have no servers" in text
    assert servers(shop) > 0
    assert client.post(f"/pools/{shop.pk}/edit", sent | {"confirm_loss": "true"}).status_code == 302
    assert servers(shop) == 0


def test_the_operators_command_asks_too(shop: Pool, tmp_path: Any) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text("objects: [{kind: Pool, name: shop, account: acme, spec: {balance: source}}]")
    with pytest.raises(CommandError, match="confirm=acme/shop"):
        call_command("apply", str(file))
    call_command("apply", str(file), "--confirm", "acme/shop")
    assert servers(shop) == 0

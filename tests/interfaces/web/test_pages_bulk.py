"""What is done to selected routes and pools: each by itself, each refusal by name, and back again."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.audit.models import Entry
from apps.definitions.models import Pool, Route, Server
from apps.definitions.selectors import describe
from apps.definitions.services import save_object
from apps.web.bulk import pools
from apps.web.bulk.selecting import MOST_AT_ONCE
from tests.interfaces.people import client_of

UNDO = re.compile(r'action="(/change[^"]+)"')


@pytest.fixture
def client(tutorial_env: Actor, acme: Actor) -> Client:
    """An admin of acme."""
    return client_of(acme)


def routes(*names: str) -> list[Route]:
    """Stored routes by name."""
    return [Route.objects.get(name=name) for name in names]


def to_routes(client: Client, names: tuple[str, ...], **sent: Any) -> Any:
    """Select routes and press a button."""
    chosen = [row.pk for row in routes(*names)]
    return client.post(reverse("web:routes-bulk"), {"route": chosen, **sent}, follow=True)


def to_pools(client: Client, *names: str, **sent: Any) -> Any:
    """Select pools and press a button."""
    chosen = [Pool.objects.get(name=name).pk for name in names]
    return client.post(reverse("web:pools-bulk"), {"pool": chosen, **sent}, follow=True)


def rules(*names: str) -> list[Any]:
    """What routes say themselves."""
    return [describe(row).get("rules") for row in routes(*names)]


def states(pool: str, region: str) -> set[str]:
    """In which states the servers of a pool are."""
    rows = Server.objects.filter(backend__pool__name=pool, backend__region__name=region)
    return set(rows.values_list("state", flat=True))


def undo(client: Client, done: Any) -> None:
    """Press the button beside what was done."""
    button = UNDO.search(done.content.decode())
    assert button
    client.post(button[1], {"back": "/routes"})


def test_selected_routes_show_a_maintenance_page_and_serve_again(client: Client) -> None:
    kept = {"maintenance": {"body": "Back at noon.\n"}}
    save_object(actor=_owner("shop"), kind="Route", name="shop", spec=describe(routes("shop")[0]) | {"rules": kept})
    done = to_routes(client, ("shop", "checkout"), do="maintenance", reason="move").content.decode()
    assert "2 routes put into maintenance." in done
    assert done.count(">maintenance page</span>") == 2
    on = {"enabled": True}
    assert rules("shop", "checkout") == [{"maintenance": kept["maintenance"] | on}, {"maintenance": on}]
    assert set(Entry.objects.order_by("-pk").values_list("reason", flat=True)[:2]) == {"move"}
    to_routes(client, ("shop", "checkout"), do="serve")
    assert rules("shop", "checkout") == [kept, None]


def _owner(name: str) -> Actor:
    account = Route.objects.get(name=name).account
    return Actor(name="somebody", account=account, role="admin")


def test_a_page_that_a_policy_shows_is_not_ended_at_the_route(client: Client, acme: Actor) -> None:
    save_object(actor=acme, kind="Policy", name="closed", spec={"rules": {"maintenance": {"enabled": True}}})
    to_routes(client, ("shop", "checkout"), do="attach", policy="closed")
    assert [describe(row)["policies"] for row in routes("shop", "checkout")] == [["closed"], ["closed"]]
    refused = to_routes(client, ("shop",), do="serve")
    assert (refused.status_code, "Policy closed shows its maintenance page." in refused.content.decode()) == (409, True)
    to_routes(client, ("shop", "checkout"), do="detach", policy="acme/closed")
    assert [describe(row)["policies"] for row in routes("shop", "checkout")] == [[], []]


def test_each_route_that_is_refused_is_named_with_its_reason_and_all_others_are_done(client: Client) -> None:
    Route.objects.filter(name="shop").update(manager="pipeline")
    answer = to_routes(client, ("shop", "checkout"), do="maintenance")
    said = answer.content.decode()
    assert answer.status_code == 409
    assert "1 of 2 routes not changed" in said
    assert "shop is managed by pipeline, which reverts other changes." in said
    assert "1 route put into maintenance." in said
    assert rules("shop", "checkout") == [None, {"maintenance": {"enabled": True}}]
    assert (
        "2 routes put into maintenance."
        in to_routes(client, ("shop", "checkout"), do="maintenance", break_glass="true").content.decode()
    )


def test_selected_routes_are_deleted_once_somebody_typed_how_many_and_come_back_with_undo(client: Client) -> None:
    asked = to_routes(client, ("shop", "checkout"), do="delete")
    assert "Delete 2 routes?" in asked.content.decode()
    assert to_routes(client, ("shop", "checkout"), do="delete", confirm="2").status_code == 422
    assert Route.objects.filter(name__in=("shop", "checkout")).count() == 2
    done = to_routes(client, ("shop", "checkout"), do="delete", confirm="2 routes")
    assert "2 routes deleted." in done.content.decode()
    assert not Route.objects.filter(name__in=("shop", "checkout")).exists()
    undo(client, done)
    assert Route.objects.filter(name__in=("shop", "checkout")).count() == 2


def test_a_route_that_changed_since_it_was_shown_is_not_deleted(client: Client) -> None:
    shop, checkout = routes("shop", "checkout")
    seen = {f"seen-{shop.pk}": shop.version, f"seen-{checkout.pk}": checkout.version}
    Route.objects.filter(pk=shop.pk).update(version=shop.version + 1)
    answer = to_routes(client, ("shop", "checkout"), do="delete", confirm="2 routes", **seen)
    assert "Route shop has changed since you read it" in answer.content.decode()
    assert [row.name for row in Route.objects.filter(pk__in=(shop.pk, checkout.pk))] == ["shop"]


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"do": "maintenance"}, "Select at least one route first."),
        ({"do": "maintenance", "route": [*range(MOST_AT_ONCE + 1)]}, "Select at most 200 routes at a time."),
        ({"do": "attach", "route": 1}, "Enter the name of a policy."),
        ({"do": "explode", "route": 1}, "Choose an action."),
    ],
)
def test_what_cannot_be_done_is_said_on_the_list_that_one_came_from(
    client: Client, sent: dict[str, Any], said: str
) -> None:
    answer = client.post(reverse("web:routes-bulk"), sent | {"back": "/routes?q=shop"}, follow=True)
    assert answer.redirect_chain == [("/routes?q=shop", 302)]
    assert said in answer.content.decode()


def test_servers_of_selected_pools_leave_one_region_after_a_look_and_return(client: Client) -> None:
    asked = to_pools(client, "shop", "shop-next", do="drain", region="us-central1")
    assert "Drain all servers of these pools in us-central1?" in asked.content.decode()
    assert states("shop", "us-central1") == {"ready"}
    sent = {"do": "drain", "region": "us-central1", "confirmed": "yes", "reason": "rack 7"}
    done = to_pools(client, "shop", "shop-next", **sent)
    assert "2 pools draining in us-central1." in done.content.decode()
    assert states("shop", "us-central1") == states("shop-next", "us-central1") == {"drain"}
    assert states("shop", "europe-west1") == {"ready"}
    undo(client, done)
    assert states("shop", "us-central1") == {"ready"}


def test_pools_that_are_in_use_stay_and_are_named(client: Client, acme: Actor) -> None:
    save_object(actor=acme, kind="Pool", name="idle", spec={"protocol": "http", "backends": []})
    answer = to_pools(client, "shop", "idle", do="delete", confirm="2 pools")
    assert "Pool shop is in use by" in answer.content.decode()
    assert not Pool.objects.filter(name="idle").exists()


def test_a_pool_of_another_account_is_answered_like_one_that_is_gone(client: Client) -> None:
    said = to_pools(client, "api", do="delete", confirm="api")
    assert "It is gone, or you may not see it." in said.content.decode()
    assert Pool.objects.filter(name="api").exists()


def test_more_servers_than_one_answer_can_take_are_refused_with_what_to_do(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "MOST_SERVERS", 3)
    said = to_pools(client, "shop", "shop-next", do="drain", region="us-central1", confirmed="yes").content.decode()
    assert "These pools have 4 servers in us-central1; at most 3 change at a time. Select fewer pools." in said
    assert states("shop", "us-central1") == {"ready"}

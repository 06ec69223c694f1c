"""A canary on the page of its route: both sides next to each other, and the buttons that end it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from django.urls import reverse
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.definitions.models import Route
from apps.definitions.selectors import describe
from apps.definitions.services import save_object
from apps.drivers.logs.contract import Record, Unavailable
from apps.drivers.logs.memory import MemoryStore
from apps.drivers.logs.registry import open_logs
from apps.web.routes.rows import canary_at
from tests.breadth import first_of
from tests.interfaces.people import client_of

POOL = {"protocol": "http", "backends": []}


@pytest.fixture
def canary(tutorial_env: Actor, acme: Actor) -> Route:
    for name in ("stable", "next"):
        save_object(actor=acme, kind="Pool", name=name, spec=POOL)
    pools = [{"pool": "stable", "weight": 90}, {"pool": "next", "weight": 10}]
    spec = {"load_balancer": "front", "hostname": "shop.acme.example", "path": "/canary", "action": {"pools": pools}}
    row: Route = save_object(actor=acme, kind="Route", name="canary", spec=spec)
    return row


@pytest.fixture
def lines(canary: Route, acme: Actor, globex: Actor, settings: Settings) -> None:
    """Of the canary's 50 requests 10 failed, and each took longer; another route, and another account, had others."""
    usual = Record(
        now(), "", "n1", "fleet", acme.account.pk, "front", "http", route="canary", pool="stable", status=200
    )
    found = [replace(usual, id=f"s{number}", total_ms=20, status=200) for number in range(150)]
    found += [
        replace(usual, id=f"n{number}", pool="next", total_ms=300, status=502 if number < 10 else 200)
        for number in range(50)
    ]
    found += [replace(usual, id="other", route="shop"), replace(usual, id="theirs", account=globex.account.pk)]
    open_logs(settings.LOGS_URL).store("one", found)


def cells(answer: Any) -> dict[str, list[str]]:
    """What stands beside each pool."""
    rows = re.findall(r"<tr><th scope=\"row\">(.*?)</th>(.*?)</tr>", answer.content.decode())
    return {pool: [re.sub("<.*?>", "", cell) for cell in re.findall("<td.*?>(.*?)</td>", row)] for pool, row in rows}


@pytest.mark.usefixtures("lines")
def test_both_sides_are_judged_by_the_requests_of_this_route_alone(canary: Route, acme: Actor) -> None:
    found = cells(client_of(acme).get(reverse("web:route-sides", args=[canary.pk])))
    assert found == {
        "stable": ["90", "150", "75.0 %", "0", "20"],
        "next": ["10", "50", "25.0 %", "10 (20.00 %)", "300"],
    }


def test_a_side_without_requests_has_no_share_and_no_time(canary: Route, acme: Actor) -> None:
    found = cells(client_of(acme).get(reverse("web:route-sides", args=[canary.pk])))
    assert found == {"stable": ["90", "0", "–", "–", "–"], "next": ["10", "0", "–", "–", "–"]}


@pytest.mark.usefixtures("lines")
@pytest.mark.parametrize("kept", ["errors", "none"])
def test_sides_are_unknown_where_not_every_request_is_logged(canary: Route, acme: Actor, kept: str) -> None:
    spec = describe(canary) | {"rules": {"log": {"requests": kept}}}
    save_object(actor=acme, kind="Route", name="canary", spec=spec)
    answer = client_of(acme).get(reverse("web:route-sides", args=[canary.pk]))
    assert cells(answer) == {}
    assert "Unknown. " in answer.content.decode()


def test_sides_say_what_is_missing_of_their_lines(canary: Route, acme: Actor) -> None:
    found = client_of(acme).get(reverse("web:route-sides", args=[canary.pk])).content.decode()
    assert "Nobody collects request lines now." in found


@pytest.mark.usefixtures("lines")
def test_sides_are_unknown_where_no_node_writes_lines(canary: Route, acme: Actor) -> None:
    canary.load_balancer.fleets.clear()
    answer = client_of(acme).get(reverse("web:route-sides", args=[canary.pk]))
    assert cells(answer) == {}
    assert "Unknown. No node serves this route, and clouds write no request lines." in answer.content.decode()


def test_sides_are_unknown_while_the_store_does_not_answer(
    canary: Route, acme: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> Any:
        raise Unavailable("The request log cannot be reached.")

    monkeypatch.setattr(MemoryStore, "groups", away)
    answer = client_of(acme).get(reverse("web:route-sides", args=[canary.pk]))
    assert answer.status_code == 200
    assert "Unknown. The request log cannot be reached." in answer.content.decode()


def weights(row: Route) -> dict[str, int]:
    """The stored weight of each pool."""
    shares: list[dict[str, Any]] = describe(Route.objects.get(pk=row.pk))["action"]["pools"]
    return {share["pool"]: share["weight"] for share in shares}


def test_both_sides_stand_next_to_each_other(canary: Route, acme: Actor) -> None:
    shown = client_of(acme).get(reverse("web:route", args=[canary.pk])).content.decode()
    for words in ("p95, ms", "Promote: all requests to next", "Abort: all requests to stable"):
        assert words in shown


@pytest.mark.parametrize(
    ("pool", "found"), [("next", {"stable": 0, "next": 100}), ("stable", {"stable": 100, "next": 0})]
)
def test_a_button_sends_everything_to_one_side(canary: Route, acme: Actor, pool: str, found: dict[str, int]) -> None:
    url = reverse("web:route-weights", args=[canary.pk])
    client_of(acme).post(url, {"pool": pool, "version": canary.version})
    assert weights(canary) == found


def test_one_button_gives_the_canary_a_share_and_undo_takes_it_back(canary: Route, acme: Actor) -> None:
    client, url = client_of(acme), reverse("web:route-weights", args=[canary.pk])
    assert (
        'name="percent" value="10" aria-current="true"'
        in client.get(reverse("web:route", args=[canary.pk])).content.decode()
    )
    said = client.post(url, {"pool": "next", "percent": "25", "version": canary.version}, follow=True).content.decode()
    assert weights(canary) == {"stable": 75, "next": 25}
    assert "Pool next gets 25 % of the requests of route canary moments later." in said
    undo = re.search(r'action="(/changes/\d+/revert)"', said)
    assert undo
    client.post(undo[1])
    assert weights(canary) == {"stable": 90, "next": 10}


def test_shares_are_offered_for_the_smallest_pool_where_another_one_serves() -> None:
    assert canary_at([90, 10]) == 1
    assert canary_at([0, 100]) == 0
    assert canary_at([50, 50]) == 1
    assert canary_at([0, 0]) is None
    assert canary_at([100]) is None


def test_a_pool_alone_keeps_all_requests(canary: Route, acme: Actor) -> None:
    client, url = client_of(acme), reverse("web:route-weights", args=[canary.pk])
    client.post(url, {"pool": "next", "version": canary.version})
    alone = {"pool": "next", "percent": "10", "version": Route.objects.get(pk=canary.pk).version}
    assert "Only next gets requests." in client.post(url, alone, follow=True).content.decode()
    assert weights(canary) == {"stable": 0, "next": 100}


@pytest.mark.parametrize("percent", first_of(2, ["101", "", "0", "-5", "1.5", "²"]))
def test_a_share_that_is_none_changes_nothing(canary: Route, acme: Actor, percent: str) -> None:
    sent = {"pool": "next", "percent": percent, "version": canary.version}
    answer = client_of(acme).post(reverse("web:route-weights", args=[canary.pk]), sent, follow=True)
    assert "a share of 1 to 100 %" in answer.content.decode()
    assert weights(canary) == {"stable": 90, "next": 10}


@pytest.mark.parametrize("sent", [{"pool": "next", "version": 9}, {"pool": "next"}, {"pool": "shop", "version": 1}])
def test_an_old_page_or_another_pool_changes_nothing(canary: Route, acme: Actor, sent: dict[str, Any]) -> None:
    answer = client_of(acme).post(reverse("web:route-weights", args=[canary.pk]), sent, follow=True)
    assert weights(canary) == {"stable": 90, "next": 10}
    assert answer.context["messages"]

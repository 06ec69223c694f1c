"""The traffic of an object over the range that one chooses, and what happened to it meanwhile."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.alerts.models import Alert, Finding
from apps.core import events
from apps.core.clock import now
from apps.definitions.models import LoadBalancer, Pool, Route, Server
from apps.definitions.services import set_server
from apps.fleet.models import Fleet, Node
from apps.observe.collect.deltas import Counts
from apps.observe.services import store_buckets, store_contact_errors
from apps.rollouts.models import Revision, Rollout
from apps.web.timeline.events import Event, events_of
from apps.web.timeline.ranges import RANGES
from tests.interfaces.capacity_env import make_run, make_test
from tests.interfaces.people import client_of


@pytest.fixture
def shop(tutorial_env: Actor) -> Pool:
    return Pool.objects.get(name="shop")


def hour_ago() -> datetime:
    return now() - timedelta(hours=1)


def kinds(events: list[Event]) -> list[str]:
    return [event.kind for event in events]


def alert_on(kind: str, pk: int, owner: Actor, since: datetime, **ended: datetime) -> Finding:
    """An alert of that account which found this object wrong."""
    same = {"title": f"{kind} {pk} is down", "severity": "critical", "since": since}
    alert = Alert.objects.create(account=owner.account, opened_at=since, weight=3, **same)
    return Finding.objects.create(
        account=owner.account, alert=alert, rule="r", watches="pool_down", object_kind=kind, object_id=pk,
        name="x", due_at=since, **same, **ended,
    )  # fmt: skip


def rollout_on(fleet: Fleet, state: str = "done") -> Rollout:
    revision = Revision.objects.create(
        fleet=fleet, number=900, summary="one limit", digest="9" * 64, snapshot=b"", bundle=b""
    )
    return Rollout.objects.create(fleet=fleet, revision=revision, generation=900, actor="ada", state=state)


def drawn(page: str, chart: str) -> dict[str, Any]:
    """The data of a chart as it stands in the page."""
    found = re.search(rf'<script id="{chart}" type="application/json">(.*?)</script>', page)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def serve(pool: Pool, minutes: int) -> None:
    """Two requests per second on one node, for some minutes until now."""
    node, moment = Node.objects.earliest("pk"), int(now().timestamp()) // 10 * 10
    for at in range(moment - 60 * minutes, moment, 10):
        counts = Counts(seconds=10, requests=20, latency={100: 20})
        keys = (("backend", f"pool-{pool.pk}"), ("node", f"node-{node.pk}"))
        store_buckets(10, [(at, node.pk, key, counts) for key in keys])


def test_changes_alerts_and_tests_of_a_pool_are_its_events_newest_first(shop: Pool, acme: Actor) -> None:
    server = shop.backends.get(region__name="us-central1").servers.earliest("name")
    alert_on("pool", shop.pk, acme, now() - timedelta(minutes=20), ended_at=now() - timedelta(minutes=10))
    make_run(make_test(shop))
    set_server(actor=acme, server_id=server.pk, state="drain", reason="kernel")
    found = events_of(acme, shop, now() - timedelta(minutes=30))
    assert kinds(found)[0] == "change"
    assert {"change", "alert", "test"} == set(kinds(found))
    assert [event.at for event in found] == sorted((event.at for event in found), reverse=True)
    drained = found[0]
    assert server.name in drained.title
    assert "drain" in drained.title


def test_what_was_over_before_is_no_event(shop: Pool, acme: Actor) -> None:
    alert_on("pool", shop.pk, acme, now() - timedelta(hours=3), ended_at=now() - timedelta(hours=2))
    assert "alert" not in kinds(events_of(acme, shop, hour_ago()))
    assert "alert" in kinds(events_of(acme, shop, now() - timedelta(hours=4)))


def test_an_alert_that_goes_on_spans_until_the_end_of_the_chart(shop: Pool, acme: Actor) -> None:
    alert_on("pool", shop.pk, acme, now() - timedelta(hours=30))
    (event,) = [event for event in events_of(acme, shop, hour_ago()) if event.kind == "alert"]
    assert event.mark()["until"] is None
    assert event.tone == "bad"


def test_alerts_of_other_accounts_and_rollouts_are_nothing_to_a_customer(
    shop: Pool, acme: Actor, globex: Actor, operator: Actor
) -> None:
    alert_on("pool", shop.pk, globex, now())
    rollout_on(Fleet.objects.earliest("pk"))
    assert not {"alert", "rollout"} & set(kinds(events_of(acme, shop, hour_ago())))
    assert "alert" not in kinds(events_of(operator, shop, hour_ago()))
    assert "rollout" in kinds(events_of(operator, shop, hour_ago()))


def test_a_failed_rollout_of_its_fleets_is_marked_and_others_are_left_out(shop: Pool, operator: Actor) -> None:
    node = Node.objects.earliest("pk")
    own = rollout_on(node.fleet, "failed")
    stranger = Fleet.objects.create(account=operator.account, name="far", region=node.fleet.region)
    rollout_on(stranger)
    (event,) = [event for event in events_of(operator, node, hour_ago()) if event.kind == "rollout"]
    assert (event.tone, event.url) == ("bad", reverse("web:rollout", args=[own.pk]))


def test_a_route_shows_the_alerts_of_its_pools(shop: Pool, acme: Actor) -> None:
    route = Route.objects.get(name="shop")
    alert_on("pool", route.shares[0].pool_id, acme, now())
    assert "alert" in kinds(events_of(acme, route, hour_ago()))


def test_the_chart_has_the_range_that_was_chosen_and_the_marks_of_its_time(shop: Pool, acme: Actor) -> None:
    serve(shop, 20)
    alert_on("pool", shop.pk, acme, now() - timedelta(minutes=25), ended_at=now() - timedelta(minutes=20))
    url, client = reverse("web:pool", args=[shop.pk]), client_of(acme)
    for key, span, alerts in (("15m", 15, 0), ("30m", 30, 1)):
        data = drawn(client.get(url, {"range": key, "partial": "timeline"}).content.decode(), "chart-requests")
        assert data["x"][-1] - data["x"][0] == pytest.approx(60 * span, abs=20)
        assert [mark["kind"] for mark in data["marks"]].count("alert") == alerts
        assert data["series"][0]["values"][-2] == 2.0
    page = client.get(url, {"range": "nonsense"}).content.decode()
    assert 'aria-current="true">30 min</a>' in page


def test_every_range_says_when_it_has_no_data(shop: Pool, acme: Actor) -> None:
    for each in RANGES:
        page = client_of(acme).get(reverse("web:pool", args=[shop.pk]), {"range": each.key, "partial": "timeline"})
        assert f"No data for the last {each.words}." in page.content.decode()


def test_pages_of_routes_nodes_and_load_balancers_have_a_timeline(tutorial_env: Actor) -> None:
    client = client_of(tutorial_env)
    for name, row in (
        ("route", Route.objects.earliest("pk")),
        ("node", Node.objects.earliest("pk")),
        ("load-balancer", LoadBalancer.objects.earliest("pk")),
    ):
        page = client.get(reverse(f"web:{name}", args=[row.pk]), {"partial": "timeline"}).content.decode()
        assert page.startswith('<section class="card" id="timeline"'), name


def test_what_a_customer_may_not_measure_has_no_timeline(tutorial_env: Actor, acme: Actor) -> None:
    balancer = LoadBalancer.objects.filter(routes__account=acme.account).first()
    assert balancer is not None
    page = client_of(acme).get(reverse("web:load-balancer", args=[balancer.pk])).content.decode()
    assert 'id="timeline"' not in page


def test_the_history_of_overflow_of_a_pool_has_the_same_marks_and_what_was_served_locally(
    shop: Pool, acme: Actor
) -> None:
    serve(shop, 10)
    alert_on("pool", shop.pk, acme, now())
    page = client_of(acme).get(reverse("web:overflow"), {"pool": str(shop.pk), "partial": "history"}).content.decode()
    charts = [drawn(page, name) for name in re.findall(r'data-chart="(chart-rgn-\d+)"', page)]
    assert charts
    for chart in charts:
        assert "alert" in [mark["kind"] for mark in chart["marks"]]
        series = {each["label"]: each["values"] for each in chart["series"]}
        assert set(series.pop("Limit now")) == {10.0}
        assert list(series) == ["Local", "Overflow", "Rejected"]
    assert any(any(chart["series"][0]["values"]) for chart in charts)
    whole = client_of(acme).get(reverse("web:overflow"), {"partial": "history"}).content.decode()
    assert "marks" not in drawn(whole, "chart-overflow")


def test_a_region_and_its_fleet_draw_what_was_asked_of_their_nodes(shop: Pool, operator: Actor) -> None:
    serve(shop, 20)
    node, client = Node.objects.earliest("pk"), client_of(operator)
    alert_on("node", node.pk, operator, now())
    rollout_on(node.fleet)
    for url in (f"/regions/{node.fleet.region.name}", f"/fleets/{node.fleet_id}"):
        page = client.get(url, {"range": "15m"}).content.decode()
        rates = [value for value in drawn(page, "chart-requests")["series"][0]["values"] if value is not None]
        assert max(rates) == pytest.approx(2)
        assert f"node {node.pk} is down" in page
        assert "Rollout" in page
        assert 'data-requests="/requests?q=' in page


def test_of_nodes_that_nobody_looked_at_nothing_is_known(shop: Pool, operator: Actor) -> None:
    serve(shop, 20)
    node, client = Node.objects.earliest("pk"), client_of(operator)
    other = Node.objects.exclude(fleet__region=node.fleet.region).earliest("pk")
    for url in (f"/regions/{other.fleet.region.name}", f"/fleets/{other.fleet_id}", f"/nodes/{other.pk}"):
        assert "No data for the last 30 minutes." in client.get(url).content.decode()


def test_titles_of_a_region_a_fleet_and_a_node_tell_trouble_on_the_page_and_in_its_live_part(
    shop: Pool, operator: Actor
) -> None:
    client, node = client_of(operator), Node.objects.earliest("pk")
    region, fleet = f"Region {node.fleet.region.name}", f"Fleet {node.fleet.name}"
    names = {
        f"/regions/{node.fleet.region.name}?partial=now": region,
        f"/fleets/{node.fleet_id}?partial=nodes": fleet,
        f"/nodes/{node.pk}?partial=state": f"Node {node.name}",
    }

    def titles() -> set[str]:
        addresses = [address for part in names for address in (part, part.partition("?")[0])]
        pages = [client.get(address).content.decode() for address in addresses]
        return {found[1] for page in pages if (found := re.search("<title>(.*?) · Spillway</title>", page))}

    assert titles() == set(names.values())
    Server.objects.filter(backend__region=node.fleet.region).update(state="maintenance")
    store_contact_errors({node.pk: "It does not answer."})
    events.publish("samples", at=1)  # until then, a part is the one of before
    assert titles() == {f"● {name}" for name in names.values()}

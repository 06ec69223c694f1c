"""The pages of overflow and regions: who is served where, why, how it was, what would be if, and draining."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.urls import reverse

from apps.accounts.models import Membership
from apps.audit.models import Entry
from apps.core.clock import now
from apps.definitions.models import Backend, Listener, Pool, Server
from apps.fleet.models import Node, Region
from apps.observe.collect.deltas import Counts
from apps.observe.live import store as live
from apps.observe.live.store import LiveNode
from apps.observe.models import NodeReport, Sample
from apps.observe.selectors import live_numbers
from apps.overflow.selectors import flow_of
from tests.apps.observe_env import Env
from tests.apps.overflow_env import make_spilling
from tests.breadth import first_of
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db
OPERATORS_PAGES = ["/regions", "/regions/us", "/regions/us/drain"]


@pytest.fixture
def env(live_redis: object, still_clock: None) -> Env:
    """us is over its limit and sends 9.9/s to eu."""
    return make_spilling()


def text(env: Env, path: str) -> str:
    """A page as the operator reads it, in one line."""
    answer = client_of(env.operator).get(path)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_the_overview_draws_what_spills_says_why_and_has_a_table_twin(env: Env) -> None:
    page = text(env, "/")
    assert re.search(r"us is at 10 of 10 requests/s of acme/acme-web since \d\d:\d\d", page)
    assert re.search(r'<text id="traffic-wide-said-lane-rgn-\d+-rgn-\d+"[^>]*>(9\.[89]|10)/s \+98 ms</text>', page)
    assert "Show as table" in page
    assert "us reached its limit</td>" in page


def test_what_lacks_a_silent_node_is_at_least_so_much_and_old_numbers_of_a_node_say_their_age(env: Env) -> None:
    silent = env.nodes[1]
    assert "≥" not in text(env, "/") + text(env, "/regions")
    NodeReport.objects.create(node=silent, digest="d" * 64)
    page = text(env, "/")
    assert ">≥ 1" in page
    assert "without silent nodes of eu" in page
    page = text(env, "/regions").partition('id="region-')[2]
    eu = next(row for row in page.split('id="region-') if "/regions/eu" in row)
    assert "≥ 2" in eu
    assert "0 of 2, 2 unknown" in eu
    us = NodeReport.objects.create(node=env.nodes[2], digest="d" * 64, seen_at=now(), serving=True)
    window = LiveNode(now().timestamp() - 40, {("node", f"node-{us.node_id}"): Counts(seconds=10, requests=10)})
    live.write({us.node_id: window}, {})
    for path in ("/fleets", f"/nodes/{us.node_id}", "/regions/us"):
        assert "40 s old" in text(env, path), path


def test_servers_are_up_as_far_as_nodes_know_on_each_part_of_their_page(env: Env) -> None:
    pool, (eu_1, eu_2, *_) = env.pools["acme"], env.nodes
    servers = Server.objects.filter(backend__pool=pool, backend__region=env.regions[0])
    rows = {
        ("server", f"srv-{each.pk}"): Counts(seconds=10, requests=10, status="UP", check="L7OK") for each in servers
    }
    Node.objects.create(account=eu_1.account, fleet=eu_1.fleet, name="never", url="https://10.0.0.9")
    NodeReport.objects.create(node=Node.objects.get(name="never"), last_contact_error="It does not answer.")
    live.write({eu_1.pk: LiveNode(now().timestamp(), rows), eu_2.pk: LiveNode(now().timestamp() - 40, rows)}, {})
    page = text(env, f"/pools/{pool.pk}")
    row = page.partition(f'id="server-{servers[0].pk}"')[2].partition("</tr>")[0]
    assert "Unknown on 1 of 2 nodes" in row
    assert "eu-2: Unknown" in row
    assert "never" not in row
    assert "≥ 1" in row
    assert " s old" not in row
    assert "2 of 2" in page.partition('id="backend-')[2].partition("</tr>")[0]


def test_connections_are_called_so_and_are_in_no_sum_of_requests(env: Env) -> None:
    pool = env.pools["acme"]
    assert (live_numbers(env.acme).requests_rps or 0.0) > 0
    Pool.objects.filter(pk=pool.pk).update(protocol="tcp")
    assert live_numbers(env.acme).requests_rps is None
    whole = flow_of(env.operator, None)
    assert {(use.demand_rps, use.served_rps) for use in whole.regions} == {(0.0, 0.0)}
    assert whole.lanes == ()
    assert "is at 10 of 10 connections/s of acme/acme-web" in text(env, "/")
    assert "Overflowing" in text(env, "/regions/us")
    page = text(env, f"/pools/{pool.pk}")
    assert "connections/s: " in page
    assert "<small>conn.</small>" in text(env, "/pools")
    for word in ("Requests/s", ">5xx<", "p95", "requests/s: "):
        assert word not in page, word
    Listener.objects.update(protocol="tcp")
    page = text(env, f"/load-balancers/{Listener.objects.get().load_balancer_id}")
    assert page.partition('data-label="Requests/s"')[2].partition("</td>")[0].strip().endswith("–")


def test_the_bar_of_a_region_has_the_colour_of_the_pool_that_it_measures(env: Env) -> None:
    Server.objects.filter(backend__pool=env.pools["globex"]).delete()
    Backend.objects.filter(pool=env.pools["acme"]).update(limit_value=100)
    row = next(row for row in client_of(env.operator).get("/regions").context["rows"] if row["region"].name == "us")
    assert (row["state"][2], row["percent"], row["kind"]) == ("1 of 2 pools down", 10, "good")


def test_a_region_of_which_nothing_is_known_has_no_capacity(env: Env) -> None:
    Sample.objects.all().delete()
    live.client().flushdb()
    assert "Has capacity" not in text(env, "/regions/eu")


def test_nothing_measured_is_said_and_nothing_is_drawn(
    tutorial_env: object, operator: object, live_redis: object
) -> None:
    page = client_of(operator).get("/overflow").content.decode()  # type: ignore[arg-type]  # an Actor
    assert "No data yet" in page
    assert '<svg class="wide"' not in page
    assert "There is no traffic to base a prediction on." in page


def test_predicted_and_actual_stand_side_by_side_with_the_error(env: Env) -> None:
    assert re.search(r"\d[\d.]* % off the prediction", text(env, f"/overflow?pool={env.pools['acme'].pk}"))


def history_at(env: Env) -> int:
    """A second at which traffic was stored."""
    at = Sample.objects.filter(kind="flow").earliest("at").at
    return int(at.timestamp())


def test_history_is_shown_at_its_time_and_marked_as_history(env: Env) -> None:
    at = history_at(env)
    page = text(env, f"/overflow?at={at}")
    assert ">History</span>" in page
    assert f"{datetime.fromtimestamp(at, UTC):%H:%M:%S} UTC" in page
    assert 'class="flow is-past"' in page
    flow = page[page.index('<div id="flow"') :][:60]
    assert "data-live" not in flow  # it does not move on by itself
    assert "No data for that time." in text(env, f"/overflow?at={at - 600}")


def test_the_slider_answers_with_its_part_and_puts_the_time_into_the_address(env: Env) -> None:
    at = history_at(env)
    answer = client_of(env.operator).get(f"/overflow?window=hour&at={at}&partial=past")
    assert answer.headers["HX-Replace-Url"] == f"/overflow?window=hour&at={at}"
    assert b"<html" not in answer.content


def test_one_can_step_through_history_without_scripts(env: Env) -> None:
    at = history_at(env) // 10 * 10
    page = text(env, f"/overflow?at={at}")
    assert f"at={at - 10}" in page
    assert f"at={at + 10}" in page
    assert "<noscript><button" in page


def test_a_time_that_nobody_knows_is_now(env: Env) -> None:
    for at in ("-1", "later", "99999999999999", "999999999999", "1", ""):
        assert ">History</span>" not in text(env, f"/overflow?at={at}"), at


def test_what_if_answers_with_a_second_flow_and_the_differences(env: Env) -> None:
    us = env.regions[1]
    page = text(env, f"/overflow?pool={env.pools['acme'].pk}&factor=2&limit-rgn-{us.pk}=30")
    assert 'id="if-predicted-wide"' in page
    assert "us serves" in page
    us.refresh_from_db()
    assert not Entry.objects.exists()  # nothing was saved


def test_each_region_of_a_pool_has_a_chart_with_its_limit_and_what_would_have_been(env: Env) -> None:
    us, pool = env.regions[1], env.pools["acme"].pk
    page = text(env, f"/overflow?pool={pool}")
    assert f'"field": "if-limit-rgn-{us.pk}"' in page
    assert re.search(r"\d+ requests, \d+ overflowed \(\d\d % ?\)", page)
    assert ">Simulated</span>" not in page
    page = text(env, f"/overflow?pool={pool}&limit-rgn-{us.pk}=30&partial=seen")
    assert re.search(r"Simulated: \d+ requests, all served locally", page)


@pytest.mark.parametrize(
    ("stored", "set_to"),
    first_of(
        3,
        [
            ({"limit_value": 20, "capacity_scaler": 0.5}, 60),
            ({"limit_value": 5, "limit_scope": "server"}, 15),
            ({"limit_kind": "none", "limit_value": 0}, None),
            ({"limit_value": 10}, 30),
            ({"capacity_scaler": 0.0}, None),
        ],
    ),
)
def test_a_limit_that_was_asked_for_is_a_link_to_its_form(env: Env, stored: dict[str, Any], set_to: int | None) -> None:
    us, pool = env.regions[1], env.pools["acme"]
    backend = Backend.objects.get(pool=pool, region=us)
    Server.objects.filter(backend=backend).exclude(pk=backend.servers.earliest("pk").pk).delete()
    server = backend.servers.get()
    server.pk, server.name, server.address = None, "second", "192.0.2.200"
    server.save()
    Backend.objects.filter(pk=backend.pk).update(**stored)
    page = html.unescape(text(env, f"/overflow?pool={pool.pk}&limit-rgn-{us.pk}=30&partial=seen"))
    link = f"/pools/{pool.pk}?in=us&limit={set_to}#limit-{backend.pk}"
    assert (link in page) is (set_to is not None)
    assert ("Set this limit" in page) is (set_to is not None)
    form = text(env, f"/pools/{pool.pk}?in=us&limit=30")
    assert re.search(rf'id="limit-{backend.pk}-value"[^>]* value="30"', form)
    assert "<script>" not in text(env, f"/pools/{pool.pk}?in=us&limit=%22%3E%3Cscript%3E")


def test_pools_at_their_limits_are_listed_worst_first(env: Env) -> None:
    page = text(env, "/overflow")
    rows = re.findall(r'id="tight-(\d+)-rgn-(\d+)"', page)
    assert {int(pool) for pool, _ in rows} == {env.pools["acme"].pk}
    assert "/s come from other regions." in page
    assert 'id="tight"' not in text(env, f"/overflow?pool={env.pools['acme'].pk}")


def test_what_if_keeps_what_was_typed_and_says_what_is_wrong_beside_it(env: Env) -> None:
    pool = env.pools["acme"].pk
    page = text(env, f"/overflow?pool={pool}&factor=-3&limit-rgn-{env.regions[0].pk}=many")
    assert "Ensure this value is greater than or equal to 0" in page
    assert "Enter a whole number" in page
    assert 'value="many"' in page
    assert 'id="if-predicted-wide"' not in page


def test_customers_see_the_overflow_of_their_own_pools_alone(env: Env) -> None:
    own, foreign = env.pools["acme"], env.pools["globex"]
    acme = client_of(env.acme)
    page = acme.get("/overflow").content.decode()
    assert own.name in page
    assert foreign.name not in page
    assert "us is at 10 of 10" in " ".join(acme.get(reverse("web:pool", args=[own.pk])).content.decode().split())
    assert acme.get(f"/overflow?pool={foreign.pk}").status_code == 404
    assert {path: acme.get(path).status_code for path in OPERATORS_PAGES} == dict.fromkeys(OPERATORS_PAGES, 404)
    globex = client_of(env.globex).get("/overflow").content.decode()
    assert "is at 10 of 10" not in globex


def test_a_pool_page_shows_its_flow_policy_and_where_limits_come_from(env: Env) -> None:
    pool = env.pools["acme"]
    pool.when_full, pool.overflow_order = "refuse", ["eu"]
    pool.save()
    page = text(env, reverse("web:pool", args=[pool.pk]))
    assert "eu, then the nearest" in page
    assert "rejected with 503 and Retry-After" in page
    assert "10 requests/s for all servers together" in page
    assert "not measured yet" in page


def test_regions_say_what_leaves_and_what_comes(env: Env) -> None:
    page = text(env, "/regions")
    assert "Overflowing" in page
    assert re.search(r'data-label="Overflow out"><span class="nowrap"><a [^>]*>(9\.[89]|10)/s eu', page)
    assert re.search(r'data-label="Overflow in"><span class="nowrap"><a [^>]*>(9\.[89]|10)/s us', page)
    assert "not measured yet" in page


def test_a_region_says_where_its_overflow_goes_first_and_from_where_the_distance_is_known(env: Env) -> None:
    page = text(env, "/regions/us")
    assert "98 ms" in page
    assert "set manually" in page
    assert client_of(env.operator).get("/regions/mars").status_code == 404


def test_a_region_shows_which_peers_its_nodes_have_lost(env: Env) -> None:
    first, second, *_ = [node for node in env.nodes if node.fleet.region.name == "us"]
    assert "unknown" in text(env, "/regions/us")
    peers = {f"node-{second.pk}": False, "node-999": True}
    NodeReport.objects.update_or_create(node=first, defaults={"peers": peers, "counted_at": now()})
    page = text(env, "/regions/us")
    assert "1 of 2 connected" in page
    assert f"disconnected: {second.name}" in page
    NodeReport.objects.update(counted_at=now() - timedelta(minutes=5))
    assert "1 of 2 connected" not in text(env, "/regions/us")


def test_draining_shows_first_where_the_traffic_would_go(env: Env) -> None:
    page = text(env, "/regions/us/drain")
    assert "Nothing has changed yet" in page
    assert 'id="drain-predicted-wide"' in page
    assert re.search(r"eu would be at [\d.,]+ of 10 requests/s of acme/acme-web\.", page)


def test_a_region_is_drained_and_takes_traffic_again_with_a_reason_in_the_audit(env: Env) -> None:
    client = client_of(env.operator)
    refused = client.post("/regions/us/drain", {"do": "drain", "reason": " "})
    assert refused.status_code == 422
    assert "Enter a reason" in refused.content.decode()
    assert not Region.objects.get(name="us").drained
    page = client.post("/regions/us/drain", {"do": "drain", "reason": "new switches"}, follow=True).content.decode()
    assert "This region is drained." in page
    assert Region.objects.get(name="us").drained
    assert Entry.objects.get(action="drain").reason == "new switches"
    client.post("/regions/us/drain", {"do": "undrain", "reason": "switches work"})
    assert not Region.objects.get(name="us").drained


def test_a_reason_that_postgresql_takes_in_no_text_is_refused_and_nothing_is_drained(env: Env) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("NOT CHECKED: SQLite takes a NUL")
    answer = client_of(env.operator).post("/regions/us/drain", {"do": "drain", "reason": "a\0b"})
    assert answer.status_code == 400
    assert not Region.objects.get(name="us").drained


def test_viewers_see_no_button_to_drain_and_are_refused_when_they_post(env: Env) -> None:
    viewer = client_of(env.operator, Membership.Role.VIEWER)
    assert "/regions/us/drain" not in viewer.get("/regions/us").content.decode()
    assert viewer.post("/regions/us/drain", {"do": "drain", "reason": "x"}).status_code == 403

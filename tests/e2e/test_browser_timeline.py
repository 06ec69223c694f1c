"""A chart in a real Chromium says what its marks are; a dragged stretch of it leads to the requests of that time."""

from __future__ import annotations

from datetime import datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.alerts.models import Alert, Finding
from apps.core.clock import now
from apps.definitions.models import Pool
from apps.fleet.models import Node
from apps.observe.collect.deltas import Counts
from apps.observe.services import store_buckets
from tests.browser import listen, needs_browser, wrong_in
from tests.conftest import actor_of
from tests.e2e.console_in_memory import put_env, signed_in

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    needs_browser,
]


@pytest.fixture
def operator(live_server: LiveServer, live_redis: str) -> Actor:
    """Whose pages they are."""
    put_env()
    return actor_of("operator", Account.Kind.OPERATOR)


@pytest.fixture
def page(operator: Actor, chromium: Browser, live_server: LiveServer) -> Page:
    """The page of a pool that served 20 requests in each ten seconds of the last ten minutes, and was down once."""
    pool, node = Pool.objects.get(name="shop"), Node.objects.earliest("pk")
    end = int(now().timestamp()) // 10 * 10
    for at in range(end - 600, end, 10):
        counts = Counts(seconds=10, requests=20, latency={100: 20})
        keys = (("backend", f"pool-{pool.pk}"), ("node", f"node-{node.pk}"))
        store_buckets(10, [(at, node.pk, key, counts) for key in keys])
    since = now() - timedelta(minutes=5)
    same = {"account": operator.account, "title": "Pool shop was down", "severity": "critical", "since": since}
    alert = Alert.objects.create(opened_at=since, **same)
    Finding.objects.create(
        alert=alert, rule="r", watches="pool_down", object_kind="pool", object_id=pool.pk, name="shop", due_at=since,
        ended_at=since + timedelta(minutes=1), **same,
    )  # fmt: skip
    found = signed_in(chromium, live_server.url, operator).new_page()
    found.goto(f"/pools/{pool.pk}")
    found.get_by_role("navigation", name="Time range").get_by_role("link", name="15 min").click()
    expect(found).to_have_url(f"{live_server.url}/pools/{pool.pk}?range=15m#timeline")
    return found


def test_a_dragged_stretch_of_a_chart_leads_to_the_requests_of_its_time(page: Page) -> None:
    complaints = listen(page)
    over = page.locator("[data-chart=chart-requests] .u-over")
    expect(over).to_be_visible()
    box = over.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.5 * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.8 * box["width"], middle, steps=5)
    page.mouse.up()
    page.get_by_role("link", name="Show requests from").click()
    page.wait_for_url("**/requests?**")
    asked = parse_qs(urlsplit(page.url).query)
    begin, end = (datetime.fromisoformat(asked[name][0]) for name in ("from", "to"))
    assert end - begin == pytest.approx(timedelta(minutes=0.3 * 15), abs=timedelta(seconds=20))
    assert asked["q"] == ["pool:shop"]
    assert wrong_in(page, 0) == complaints == []


def test_a_mark_under_the_pointer_says_what_it_is(page: Page) -> None:
    """The world of a worker is as old as it is: its own marks may stand before, or beside it."""
    said = page.locator("[data-chart=chart-requests] + .chart-says")
    over = page.locator("[data-chart=chart-requests] .u-over")
    box = over.bounding_box()
    assert box is not None
    over.hover(position={"x": 5, "y": 20})
    expect(said).to_be_empty()
    for x in range(int(box["width"] / 2), int(box["width"]), 4):
        over.hover(position={"x": x, "y": 20})
        if "Pool shop was down" in (said.text_content() or ""):
            break
    expect(said).to_contain_text("Pool shop was down")

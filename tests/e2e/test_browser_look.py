"""What a tab says of itself, and how dense its pages are, in a real Chromium."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, expect
from pytest_django.live_server_helper import LiveServer

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.core.clock import now
from apps.definitions.models import Backend, Pool, Route
from apps.fleet.models import Region
from apps.observe.evaluate.conditions import Reason, Type, Verdict
from apps.observe.services import store_verdicts
from tests.browser import NARROW, listen, needs_browser, wrong_in
from tests.conftest import actor_of
from tests.e2e.console_in_memory import put_env, put_request, signed_in

pytestmark = [
    pytest.mark.long,
    pytest.mark.e2e,
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    needs_browser,
]
ROW_PX = 24
# Of the usual row; a route with several pools needs a third.
TWO_LINES_PX = 72
PHONE_PX = 844  # high


@pytest.fixture
def operator(live_server: LiveServer, live_redis: str) -> Actor:
    """Whose pages they are."""
    put_env()
    return actor_of("operator", Account.Kind.OPERATOR)


def test_the_tab_of_a_pool_says_by_title_and_icon_that_it_is_down_and_that_it_is_well(
    operator: Actor, chromium: Browser, live_server: LiveServer
) -> None:
    pool = Pool.objects.get(name="shop")
    page = signed_in(chromium, live_server.url, operator).new_page()
    icon = page.locator("link[rel=icon]")
    said = {"down": (False, Reason.NO_SERVER_UP), "well": (True, Reason.ALL_SERVERS_UP)}
    for status, reason in said.values():
        verdict = Verdict("pool", pool.pk, Type.HEALTHY, status, reason, "No server is up: a (L7STS/503).")
        store_verdicts([verdict], now())
        page.goto(f"/pools/{pool.pk}")
        expect(page).to_have_title(re.compile(r"^Pool shop" if status else r"^● Pool shop"))
        expect(icon).to_have_attribute("href", re.compile(r"/mark\." if status else r"/mark-trouble\."))
        expect(page.get_by_text("a (answered 503)")).to_have_count(0 if status else 1)
    # A page that is brought anew changes its title, and the icon follows.
    page.evaluate("document.title = '● 3 | Wall'")
    expect(icon).to_have_attribute("href", re.compile(r"/mark-trouble\."))


def test_the_tab_of_a_route_tells_while_it_is_open_that_its_pool_went_down(
    operator: Actor, chromium: Browser, live_server: LiveServer
) -> None:
    page = signed_in(chromium, live_server.url, operator).new_page()
    page.goto(f"/routes/{Route.objects.get(name='shop').pk}")
    expect(page).to_have_title(re.compile(r"^shop\.acme\.example"))
    pool, message = Pool.objects.get(name="shop"), "No server is up."
    store_verdicts([Verdict("pool", pool.pk, Type.HEALTHY, False, Reason.NO_SERVER_UP, message)], now())
    page.evaluate("htmx.trigger('body', 'spillway:samples')")
    expect(page).to_have_title(re.compile(r"^● shop\.acme\.example"))
    expect(page.locator("link[rel=icon]")).to_have_attribute("href", re.compile(r"/mark-trouble\."))


def test_the_wall_fits_its_screen_with_many_regions_and_pools(
    operator: Actor, chromium: Browser, live_server: LiveServer
) -> None:
    account = Pool.objects.get(name="shop").account
    Pool.objects.bulk_create(Pool(account=account, name=f"more-{at:03}") for at in range(60))
    for at in range(8):
        region = Region.objects.create(account=operator.account, name=f"region-{at}", title=f"Region {at}")
        Backend.objects.create(account=account, pool=Pool.objects.get(name="shop"), region=region)
    page = signed_in(chromium, live_server.url, operator).new_page()
    for width, height in ((1440, 900), (1920, 1080), (1280, 720)):
        page.set_viewport_size({"width": width, "height": height})
        page.goto("/wall")
        expect(page.locator(".wall-last")).to_be_in_viewport(ratio=1)
        assert page.evaluate("document.documentElement.scrollHeight") == height


def test_fifty_requests_stay_under_three_screens_of_a_phone(
    operator: Actor, chromium: Browser, live_server: LiveServer
) -> None:
    for number in range(50):
        put_request(number)
    page = signed_in(chromium, live_server.url, operator).new_page()
    page.set_viewport_size({"width": NARROW, "height": PHONE_PX})
    page.goto("/requests?account=acme")
    rows = page.locator("#lines tbody tr")
    expect(rows).to_have_count(50)
    assert rows.first.evaluate("row => row.offsetHeight") < TWO_LINES_PX
    expect(page.locator(".folded")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollHeight") < 3 * PHONE_PX
    assert wrong_in(page, 0) == []


def test_the_compact_view_is_kept_has_lower_rows_and_can_be_left(
    operator: Actor, chromium: Browser, live_server: LiveServer
) -> None:
    page = signed_in(chromium, live_server.url, operator).new_page()
    complaints = listen(page)
    page.goto("/load-balancers")
    row = page.locator("main tbody tr").first

    def height() -> float:
        expect(row).to_be_visible()
        box = row.bounding_box()
        assert box
        return box["height"]

    def switch() -> None:
        page.get_by_role("button", name="Your account").click()
        page.get_by_role("button", name="Compact view").click()
        page.reload()

    switch()
    dense = height()
    assert wrong_in(page, 0) == complaints == []
    switch()
    assert ROW_PX <= dense < height()


def test_of_a_provider_only_its_own_fields_show(operator: Actor, chromium: Browser, live_server: LiveServer) -> None:
    page = signed_in(chromium, live_server.url, operator).new_page()
    page.goto("/zones/new")
    key, stack = page.get_by_label("TSIG key"), page.get_by_label("Stack")
    for driver, shown, hidden in (("rfc2136", key, stack), ("route53", stack, key)):
        page.get_by_label("Written by").select_option(driver)
        expect(shown).to_be_visible()
        expect(hidden).to_be_hidden()


@pytest.mark.parametrize("page_of", ["/routes", "/pools"])
def test_on_a_phone_a_row_has_two_lines(
    operator: Actor, chromium: Browser, live_server: LiveServer, page_of: str
) -> None:
    page = signed_in(chromium, live_server.url, operator).new_page()
    page.set_viewport_size({"width": NARROW, "height": 800})
    page.goto(page_of)
    rows = page.locator("main tbody tr:is([id^=route-], [id^=pool-])")
    expect(rows.first).to_be_visible()
    heights = rows.evaluate_all("rows => rows.map(row => row.offsetHeight)")
    assert sorted(heights)[len(heights) // 2] <= TWO_LINES_PX, heights

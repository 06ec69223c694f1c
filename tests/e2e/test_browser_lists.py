"""How people find an object among many in a real Chromium: what fields offer, by mouse and by keyboard."""

from __future__ import annotations

import re
from threading import Event
from typing import Any, cast

import pytest
from playwright.sync_api import Browser, expect
from pytest_django.live_server_helper import LiveServer

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.definitions.models import Policy, Pool, Route
from apps.web.capacity import form as capacity_form
from apps.web.overview import options
from tests.browser import NARROW, WIDE, listen, look, needs_browser, wrong_in, wrong_when_narrow
from tests.conftest import actor_of
from tests.e2e.console_in_memory import put_env, signed_in

pytestmark = [
    pytest.mark.long,
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


def test_a_capacity_test_finds_its_pool_and_the_names_that_lead_there_while_one_types(
    operator: Actor, chromium: Browser, live_server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capacity_form, "CHOICES_SHOWN", 0)  # as with thousands
    page = signed_in(chromium, live_server.url, operator).new_page()
    complaints = listen(page)
    page.goto("/capacity-tests/new")
    pool, region, hostname = (page.get_by_label(label, exact=False) for label in ("Pool", "Region", "Hostname"))
    expect(region).to_contain_text("Choose the pool first")
    pool.fill("acme/sh")
    offered = page.get_by_role("listbox", name="Suggestions").get_by_role("option")
    expect(offered.first).to_contain_text("acme/shop")
    expect(offered.first).to_contain_text("Acme")
    pool.press("ArrowDown")
    expect(pool).to_have_attribute("aria-activedescendant", "offer-1")
    pool.press("Enter")
    expect(pool).to_have_value("acme/shop")
    expect(offered.first).to_be_hidden()
    pool.press("Tab")
    expect(region).to_contain_text("us-central1")
    hostname.press_sequentially("shop")
    expect(offered).to_have_text(["shop.acme.example"])
    expect(hostname).to_have_value("shop")  # what comes back from the server takes nothing that was typed
    assert wrong_in(page, 0) == []
    hostname.press("Escape")
    expect(offered).to_be_hidden()
    assert complaints == []


@pytest.mark.parametrize("answers", [True, False])
def test_suggestions_that_cannot_be_read_say_so_instead_of_offering_those_of_before(
    operator: Actor, chromium: Browser, live_server: LiveServer, monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    monkeypatch.setattr(capacity_form, "CHOICES_SHOWN", 0)
    page = signed_in(chromium, live_server.url, operator).new_page()
    page.goto("/capacity-tests/new")
    pool, offered = page.get_by_label("Pool", exact=False), page.get_by_role("listbox", name="Suggestions")
    pool.fill("acme/sh")
    expect(offered).to_contain_text("acme/shop")
    page.route("**/options/**", lambda route: route.fulfill(status=503) if answers else route.abort())
    pool.fill("acme/other")
    expect(offered).to_have_text("Suggestions could not be read. Type the whole name, or try again.")
    pool.press("ArrowDown")
    pool.press("Enter")
    expect(pool).to_have_value("acme/other")
    expect(page.locator(".toast")).to_have_count(0)
    page.unroute("**/options/**")
    pool.fill("acme/sho")
    expect(offered).to_contain_text("acme/shop")


def test_names_that_come_late_are_not_offered_below_another_field(
    operator: Actor, chromium: Browser, live_server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capacity_form, "CHOICES_SHOWN", 0)  # as with thousands
    page = signed_in(chromium, live_server.url, operator).new_page()
    asked, answered, at_once = Event(), Event(), options.KINDS["pools"]

    def late(*of: Any) -> Any:
        asked.set()
        answered.wait(10)
        return at_once(*of)

    monkeypatch.setitem(cast("Any", options.KINDS), "pools", late)
    page.goto("/capacity-tests/new")
    page.get_by_label("Pool", exact=False).fill("acme/sh")
    page.wait_for_timeout(300)  # what is typed is asked for after 150 ms
    assert asked.is_set()
    page.get_by_label("Hostname", exact=False).press_sequentially("shop")
    offered = page.get_by_role("listbox", name="Suggestions").get_by_role("option")
    expect(offered).to_have_text(["shop.acme.example"])
    answered.set()
    page.wait_for_timeout(300)
    expect(offered).to_have_text(["shop.acme.example"])


def test_the_last_crumb_opens_what_else_there_is_by_keyboard_and_finds_it_on_the_server(
    operator: Actor, chromium: Browser, live_server: LiveServer
) -> None:
    pool = Pool.objects.get(name="shop")
    Pool.objects.bulk_create(Pool(account=pool.account, name=f"more-{at:03}") for at in range(30))
    page = signed_in(chromium, live_server.url, operator).new_page()
    complaints = listen(page)
    page.goto(f"/pools/{pool.pk}")
    page.get_by_role("button", name="shop: show another pool").focus()
    page.keyboard.press("Enter")
    field = page.get_by_label("Find a pool")
    expect(field).to_be_visible()
    expect(page.locator("#siblings li")).to_have_count(20)
    page.keyboard.press("Tab")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(field).to_be_hidden()
    page.keyboard.press("Enter")  # the button has the focus again
    page.keyboard.press("Tab")
    page.keyboard.type("more-029")
    expect(page.locator("#siblings li")).to_have_count(1)
    expect(field).to_have_value("more-029")
    assert wrong_in(page, 0) == complaints == []
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("more-029")


def test_who_uses_a_pool_leads_to_the_user_and_to_the_table_of_all(
    operator: Actor, chromium: Browser, live_server: LiveServer
) -> None:
    pool, route = Pool.objects.get(name="shop"), Route.objects.get(name="checkout")
    for at in range(25):
        made = Route.objects.create(
            account=route.account,
            name=f"more-{at:02}",
            load_balancer=route.load_balancer,
            hostname=route.hostname,
            path=f"/more/{at}",
        )
        made.pools.create(pool=pool)
    page = signed_in(chromium, live_server.url, operator).new_page()
    complaints = listen(page)
    page.goto(f"/pools/{pool.pk}")
    expect(page.locator("#used-by tbody tr")).to_have_count(20)
    page.get_by_role("link", name="All 28 in the table").click()
    expect(page.locator("main tbody tr")).to_have_count(28)
    assert wrong_when_narrow(page) == complaints == []
    page.get_by_role("button", name="Show all 28 rows").click()  # it is as narrow as a phone by now
    page.get_by_role("link", name="more-24", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("/more/24")


def test_a_long_list_is_sorted_on_the_server_and_a_chip_removes_its_filter_by_keyboard(
    operator: Actor, chromium: Browser, live_server: LiveServer
) -> None:
    pool = Pool.objects.get(name="shop")
    Pool.objects.bulk_create(Pool(account=pool.account, name=f"more-{at:03}") for at in range(120))
    page = signed_in(chromium, live_server.url, operator).new_page()
    complaints = listen(page)
    page.goto("/pools?q=acme")
    names = page.get_by_role("region", name="Pools", exact=True).locator("tbody th a")
    page.get_by_role("link", name="Pool", exact=True).click()
    expect(names.first).to_have_text("more-000")
    page.get_by_role("link", name="Pool", exact=True).click()
    expect(page.locator("thead th[aria-sort=descending]")).to_contain_text("Pool")
    expect(names.first).to_have_text("shop-next")
    page.get_by_role("link", name="Next", exact=True).click()
    expect(names.first).to_have_text("more-071")
    assert wrong_in(page, 0) == complaints == []
    page.get_by_role("link", name="Remove the filter Search: acme").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{live_server.url}/pools?sort=-Pool")
    expect(page.locator("[aria-label='Active filters']")).to_have_count(0)


def test_on_a_phone_filters_are_a_line_that_opens_them_and_apply_themselves_only_together(
    operator: Actor, chromium: Browser, live_server: LiveServer
) -> None:
    page = signed_in(chromium, live_server.url, operator).new_page()
    complaints = listen(page)
    page.goto("/routes")
    expect(page.get_by_label("Action", exact=True)).to_be_visible()  # a wide screen has room
    expect(page.get_by_text("Filters", exact=True)).to_be_hidden()
    page.get_by_label("Account", exact=True).press_sequentially("glo")
    expect(page.get_by_role("listbox").get_by_role("option")).to_have_count(1)
    page.goto("/routes")
    page.set_viewport_size({"width": NARROW, "height": 800})
    expect(page.get_by_label("Action", exact=True)).to_be_hidden()
    page.keyboard.press("/")
    expect(page.get_by_label("Hostname, path or name")).to_be_focused()
    page.keyboard.type("shop")
    page.get_by_label("Action", exact=True).select_option("pools")
    expect(page).to_have_url(f"{live_server.url}/routes")
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(page).to_have_url(f"{live_server.url}/routes?q=shop&action=pools")
    expect(page.get_by_label("Action", exact=True)).to_be_hidden()
    expect(page.get_by_text("Filters (2)")).to_be_visible()
    page.get_by_role("link", name="Remove the filter Action: Pools").click()
    expect(page).to_have_url(f"{live_server.url}/routes?q=shop")
    assert wrong_when_narrow(page) == complaints == []
    page.goto("/requests?q=statu:503")  # what is wrong is in sight
    expect(page.get_by_label("Filter", exact=True)).to_be_visible()


def test_the_address_bar_follows_the_tabs_of_a_definition(
    operator: Actor, chromium: Browser, live_server: LiveServer
) -> None:
    pool = Pool.objects.get(name="shop")
    page = signed_in(chromium, live_server.url, operator).new_page()
    complaints = listen(page)
    page.goto(f"/pools/{pool.pk}")
    tabs = page.get_by_role("navigation", name="Definition")
    tabs.get_by_role("link", name="API call").click()
    expect(page).to_have_url(f"{live_server.url}/pools/{pool.pk}?tab=api#definition")
    page.reload()
    expect(tabs.locator("[aria-current]")).to_have_text("API call")
    tabs.get_by_role("link", name="Generated").click()
    expect(page).to_have_url(f"{live_server.url}/pools/{pool.pk}?tab=generated#definition")
    page.go_back()
    expect(tabs.locator("[aria-current]")).to_have_text("API call")
    assert complaints == []


def test_a_long_list_begins_short_on_a_phone_and_stays_open_for_who_asked(
    operator: Actor, chromium: Browser, live_server: LiveServer
) -> None:
    page = signed_in(chromium, live_server.url, operator).new_page()
    complaints = listen(page)
    rows = page.locator("main tbody tr")
    page.goto("/alerts/rules")
    all_rows = rows.count()
    expect(rows.locator("visible=true")).to_have_count(all_rows)  # a wide screen has room
    page.set_viewport_size({"width": NARROW, "height": 800})
    expect(rows.locator("visible=true")).to_have_count(12)
    assert page.evaluate("document.documentElement.scrollHeight") < 3 * 800
    page.get_by_role("button", name=f"Show all {all_rows} rows").click()
    expect(rows.locator("visible=true")).to_have_count(all_rows)
    page.set_viewport_size({"width": NARROW - 4, "height": 800})  # dresses tables anew, as a swap does
    expect(rows.locator("visible=true")).to_have_count(all_rows)
    page.goto("/alerts/rules#rule-worker-silent")  # a link to a row shows it
    expect(page.locator("#rule-worker-silent")).to_be_visible()
    assert wrong_when_narrow(page) == complaints == []


# Pages that were longest, and what each has in a card further down.
LONG = {
    "/pools/{pool}": "Definition",
    "/pools/{pool}/edit": "Health check",
    "/pools/new": "Reason",
    "/routes/{route}": "Definition",
    "/routes/new": "Objective",
    "/capacity-tests/new": "Result handling",
    "/tokens/new": "",
    "/policies/{policy}/edit": "",
    "/regions/us-central1": "",
    "/": "",
    "/overflow": "",
}


# A form; pages that the server makes of many parts, and all others, in `make test-all`.
OFTEN = ("/pools/{pool}/edit",)


@pytest.mark.parametrize(
    "address", [pytest.param(each, marks=() if each in OFTEN else pytest.mark.exhaustive) for each in LONG]
)
def test_on_a_phone_no_page_is_longer_than_three_screens_before_it_folds(
    operator: Actor, chromium: Browser, live_server: LiveServer, address: str
) -> None:
    page = signed_in(chromium, live_server.url, operator).new_page()
    complaints = listen(page)
    page.set_viewport_size({"width": NARROW, "height": 800})
    ids = {"pool": Pool.objects.get(name="shop").pk, "route": Route.objects.get(name="shop").pk}
    page.goto(address.format(**ids, policy=Policy.objects.get(name="web").pk))
    page.wait_for_function("() => document.documentElement.scrollHeight <= 3 * innerHeight")
    if title := LONG[address]:
        card = page.locator(".folded").filter(has_text=title).last
        button = card.get_by_role("button", name=f"Show {title}")
        button.click()
        expect(button).to_be_hidden()
        found = wrong_when_narrow(page) if address in OFTEN else wrong_in(page, 0)
        assert found == complaints == []


def test_a_card_that_was_opened_stays_open_when_it_is_brought_anew(
    operator: Actor, chromium: Browser, live_server: LiveServer
) -> None:
    page = signed_in(chromium, live_server.url, operator).new_page()
    page.set_viewport_size({"width": NARROW, "height": 800})
    page.goto(f"/pools/{Pool.objects.get(name='shop').pk}")
    card = page.locator("#overflow")
    shown = card.get_by_text("Overflow order")
    expect(shown).to_be_hidden()

    def brought_anew() -> None:
        page.evaluate("document.querySelector('#overflow').dataset.old = 'yes'")
        page.evaluate("htmx.trigger('body', 'spillway:samples')")
        expect(page.locator("#overflow[data-old]")).to_have_count(0)

    brought_anew()
    expect(shown).to_be_hidden()
    card.get_by_role("button", name="Show Traffic and overflow").click()
    expect(shown).to_be_visible()
    page.wait_for_timeout(2100)  # a part is asked for each two seconds at most
    brought_anew()
    expect(shown).to_be_visible()


def test_what_is_wrong_in_a_form_is_never_folded(operator: Actor, chromium: Browser, live_server: LiveServer) -> None:
    page = signed_in(chromium, live_server.url, operator).new_page()
    page.set_viewport_size({"width": NARROW, "height": 800})
    page.goto("/capacity-tests/new")
    page.get_by_role("button", name="Show Safety limits").click()
    page.get_by_label("Maximum, requests/s").fill("-1")
    page.get_by_role("button", name="Create test").click()
    expect(page.get_by_label("Maximum, requests/s")).to_be_visible()
    expect(page.get_by_role("button", name="Show Safety limits")).to_have_count(0)


def test_rows_are_selected_by_keyboard_with_shift_and_all_at_once_and_stay_selected_while_numbers_move(
    operator: Actor, chromium: Browser, live_server: LiveServer
) -> None:
    page = signed_in(chromium, live_server.url, operator).new_page()
    complaints = listen(page)
    page.goto("/routes")
    bar, said = page.get_by_role("form", name="Selected routes"), page.locator("p[role=status].sr")
    expect(bar).to_be_hidden()
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(bar).to_be_visible()
    expect(said).to_have_text(re.compile(r"^1 of \d+ selected$"))
    assert wrong_in(page, 0) == complaints == []
    look(page, "light", WIDE)
    boxes = page.locator("main tbody [type=checkbox]")
    boxes.nth(2).click(modifiers=["Shift"])  # the first was ticked by the keyboard
    expect(said).to_have_text(re.compile("^3 of"))
    page.evaluate("document.querySelector('#rows').dataset.old = 'yes'")
    page.evaluate("htmx.trigger('body', 'spillway:samples')")
    expect(page.locator("#rows[data-old]")).to_have_count(0)
    expect(page.locator("main tbody :checked")).to_have_count(3)
    every = page.get_by_label("Choose all rows of this page")
    every.check()
    expect(page.locator("main tbody :checked")).to_have_count(boxes.count())
    every.uncheck()
    expect(bar).to_be_hidden()


def test_servers_of_all_regions_are_one_table_that_the_keyboard_walks_and_a_wide_page_folds_nothing(
    operator: Actor, chromium: Browser, live_server: LiveServer
) -> None:
    pool = Pool.objects.get(name="shop")
    page = signed_in(chromium, live_server.url, operator).new_page()
    complaints = listen(page)
    page.goto(f"/pools/{pool.pk}")
    servers = page.get_by_role("region", name="Servers", exact=True)
    expect(servers.locator("tbody tr")).to_have_count(6)
    expect(page.locator(".folded")).to_have_count(0)
    for key in "jjx":
        page.keyboard.press(key)
    second = page.get_by_label("Choose eu-vm-2")
    expect(second).to_be_focused()
    expect(second).to_be_checked()
    page.evaluate("document.querySelector('#servers').dataset.old = 'yes'")
    page.evaluate("htmx.trigger('body', 'spillway:samples')")
    expect(page.locator("#servers[data-old]")).to_have_count(0)
    expect(second).to_be_focused()
    expect(second).to_be_checked()
    assert wrong_in(page, 1) == complaints == []  # in the dark; above, chosen rows in the light
    page.get_by_role("navigation", name="Region").get_by_role("link", name="us-central1").click()
    expect(servers.locator("tbody tr")).to_have_count(3)

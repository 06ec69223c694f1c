"""The pages of the product in a real Chromium: each is clean and fits, and forms are filled by hand.

The console is in this process (tests/e2e/console_in_memory.py). The pages of a whole demo, in every look and with
pictures, are looked at in test_browser_demo.py.
"""

from __future__ import annotations

import re
import time
from functools import partial
from threading import Event
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Download, Page, expect
from pytest_django.live_server_helper import LiveServer

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.definitions.models import Route, Server
from apps.definitions.services import save_object
from apps.web.kit import saving
from apps.web.urls import urlpatterns
from tests.browser import ASK_TWICE, lasting, listen, needs_browser, patient_context, wrong_in, wrong_when_narrow
from tests.conftest import actor_of
from tests.e2e.console_in_memory import first_id, put_env, put_request, put_request_and_alert, signed_in
from tests.e2e.pages import ALIKE, FAMILIAR, PAGES, PARTS, PLAIN, paths
from tests.interfaces.people import client_of

pytestmark = [
    pytest.mark.long(60),
    pytest.mark.e2e,
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    needs_browser,
]


# The server sends the live parts of the page anew.
ASK_AGAIN = """() => new Promise(done => {
    addEventListener("htmx:after:swap", () => setTimeout(done), {once: true});
    document.body.dispatchEvent(new CustomEvent("spillway:definitions"));
})"""


@pytest.fixture
def operator(live_server: LiveServer, live_redis: str) -> Actor:
    """Whose pages they are."""
    put_env()
    return actor_of("operator", Account.Kind.OPERATOR)


def test_every_page_is_looked_at() -> None:
    names = {pattern.name for pattern in urlpatterns}
    assert names - PARTS == set(PAGES)


@pytest.mark.parametrize(
    ("names", "seen"),
    [
        pytest.param(set(PAGES) - ALIKE - PLAIN, FAMILIAR, id="pages"),
        pytest.param(ALIKE | FAMILIAR, set(), id="alike", marks=pytest.mark.exhaustive),
    ],
)
def test_every_page_is_clean_and_fits(
    operator: Actor, chromium: Browser, live_server: LiveServer, names: set[str], seen: set[str]
) -> None:
    """Two tabs take turns: while axe-core looks at a page, the next one is on its way.

    Pages all of which was seen on others come last, and are asked less.
    """
    put_request_and_alert()
    context = signed_in(chromium, live_server.url, operator)
    tabs = [context.new_page() for _ in range(2)]
    complaints = [listen(tab) for tab in tabs]
    found = dict[str, list[str]]()
    wanted = sorted((page for page in paths(first_id).items() if page[0] in names), key=lambda page: page[0] in seen)
    tabs[0].goto(wanted[0][1], wait_until="commit")
    for turn, (name, _) in enumerate(wanted):
        if turn + 1 < len(wanted):
            answer = tabs[(turn + 1) % 2].goto(wanted[turn + 1][1], wait_until="commit")
            assert answer is not None
            assert answer.status == 200, wanted[turn + 1]
        page = tabs[turn % 2]
        page.wait_for_load_state("load")
        page.wait_for_selector("#live.good")
        ask = partial(wrong_when_narrow, page) if name in seen else partial(wrong_in, page, turn)
        found[name] = lasting(page, ask) + complaints[turn % 2]
        complaints[turn % 2].clear()
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_the_first_page_for_strangers_is_clean_and_refuses_a_wrong_password_in_words(
    operator: Actor, chromium: Browser, live_server: LiveServer
) -> None:
    page = patient_context(chromium).new_page()
    complaints = listen(page)
    page.goto(f"{live_server.url}/sign-in")
    assert wrong_in(page, 0) == complaints == []
    page.get_by_label("Username").fill("nobody-in-particular")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_text("Please enter a correct username and password")).to_be_visible()


def test_the_palette_finds_a_pool_and_a_route_is_made_changed_and_deleted_by_hand(
    operator: Actor, chromium: Browser, live_server: LiveServer
) -> None:
    page = signed_in(chromium, live_server.url, operator).new_page()
    page.goto("/")
    page.keyboard.press("Control+k")
    page.get_by_label("Search", exact=True).fill("shop-ne")
    assert page.evaluate(ASK_TWICE) == []
    page.get_by_role("link", name="acme/shop-next").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("shop-next")
    route_by_hand(page)


def test_new_lines_come_by_themselves_and_a_stretch_of_the_histogram_is_chosen_by_keyboard_and_said(
    operator: Actor, chromium: Browser, live_server: LiveServer
) -> None:
    put_request_and_alert()
    page = signed_in(chromium, live_server.url, operator).new_page()
    page.goto("/requests?account=acme&last=15m", wait_until="networkidle")
    bars = page.get_by_role("group", name="Requests over time by status class").get_by_role("link")
    count = bars.count()
    expect(page.locator("#clients")).to_contain_text("192.0.2.7")
    assert page.locator("[data-brush] a[tabindex='0']").count() == 1
    bars.nth(count - 1).focus()
    page.keyboard.press("Home")
    expect(bars.first).to_be_focused()
    expect(bars.first).to_have_attribute("tabindex", "0")
    page.keyboard.press("Tab")
    expect(page.locator("[data-brush] a:focus")).to_have_count(0)  # one stop, however many bars
    bars.first.focus()
    page.keyboard.press("ArrowRight")
    expect(bars.nth(1)).to_be_focused()
    moment = r"(\d\d-\d\d )?\d\d:\d\d:\d\d"  # with its day where the window has midnight in it
    expect(bars.nth(1)).to_have_accessible_name(re.compile(rf"{moment}–{moment} UTC: 0 requests, 0 with 5xx"))
    page.keyboard.press("Shift+End")
    said = page.locator("[data-brush-says]")
    expect(said).to_contain_text("UTC: 1 request, 1 with 5xx")
    expect(page.locator("[data-brush] .chosen")).to_be_visible()
    assert wrong_in(page, 0) == []
    page.keyboard.press("Escape")
    expect(said).to_have_text("")
    expect(page.locator("[data-brush] .chosen")).to_have_count(0)
    start = bars.nth(count - 3).get_attribute("data-start")
    bars.nth(count - 1).focus()
    for _ in range(2):
        page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("from="))
    assert parse_qs(urlsplit(page.url).query)["from"] == [start]
    lines_come_by_themselves(page)


def lines_come_by_themselves(page: Page) -> None:
    """A page that ends now shows what is stored as soon as the stream of events says so; else each ten seconds."""
    page.goto("/requests?account=acme&last=15m")
    page.wait_for_selector("#live.good")
    count = page.locator("#over-time")
    expect(count).to_have_text("1 request")
    put_request(2)
    expect(count).to_have_text("1 request")
    page.evaluate("document.body.dispatchEvent(new CustomEvent('spillway:lines'))")
    expect(count).to_have_text("2 requests", timeout=5000)


def route_by_hand(page: Page) -> None:
    """What a person does with the form of a route."""

    def said() -> list[str]:
        return list(Route.objects.filter(name="by-hand").values_list("fixed_response__body", flat=True))

    page.goto("/routes/new")
    page.get_by_label("Hostname", exact=True).fill("hand.globex.example")
    page.get_by_label("Path", exact=True).fill("/")
    _mirror_follows_the_load_balancer(page)
    page.get_by_label("Return a fixed response").check()
    own_answer = page.locator("[data-choice=fixed_response]")
    own_answer.get_by_label("Status").fill("200")
    own_answer.get_by_label("Body").fill("made by hand")
    page.get_by_label("Name", exact=True).fill("by-hand")
    page.get_by_label("Account", exact=True).fill("globex")
    page.get_by_role("button", name="Save and go live").click()
    expect(page.get_by_text("Route by-hand is saved")).to_be_visible()
    assert said() == ["made by hand"]
    page.get_by_role("link", name="Edit").click()
    own_answer.get_by_label("Body").fill("changed by hand")
    page.get_by_role("button", name="Save and go live").click()
    expect(page.get_by_text("Route by-hand is saved")).to_be_visible()
    assert said() == ["changed by hand"]
    page.get_by_role("link", name="Delete").click()
    page.get_by_label("to confirm").fill("by-hand")
    page.get_by_role("button", name="Delete route").click()
    expect(page.get_by_text("Route by-hand is deleted")).to_be_visible()
    assert said() == []


def _mirror_follows_the_load_balancer(page: Page) -> None:
    """The field is greyed while a load balancer on fleets is chosen."""
    mirror, front = page.get_by_label("Mirror to"), page.get_by_label("Load balancer", exact=True)
    expect(mirror).to_be_disabled()
    front.select_option("")
    expect(mirror).to_be_enabled()
    front.select_option("front")
    expect(mirror).to_be_disabled()
    expect(page.get_by_text("HAProxy copies requests only with an agent")).to_be_visible()


def test_a_complete_table_is_sorted_loses_a_column_and_is_taken_away_as_csv(
    operator: Actor, chromium: Browser, live_server: LiveServer
) -> None:
    page = signed_in(chromium, live_server.url, operator).new_page()
    complaints, downloads = listen(page), list[Download]()

    def keep(download: Download) -> None:
        downloads.append(download)

    page.on("download", keep)
    page.goto("/pools")
    table = page.get_by_role("region", name="Pools", exact=True)
    names = table.locator("tbody th a")
    expect(table.get_by_role("button", name="Servers up")).to_be_visible()
    table.get_by_role("button", name="Pool", exact=True).click()
    expect(page).to_have_url(re.compile(r"\?sort=Pool$"))
    ascending = names.all_inner_texts()
    assert ascending == sorted(ascending)
    table.get_by_role("button", name="Pool", exact=True).click()
    assert names.all_inner_texts() == ascending[::-1]
    page.reload()
    expect(table.locator("thead th[aria-sort=descending]")).to_contain_text("Pool")
    assert names.all_inner_texts() == ascending[::-1]
    # A part that the server sends anew is sorted again, and who is at a button stays there.
    table.get_by_role("button", name="Balance").focus()
    page.evaluate(ASK_AGAIN)
    expect(table.get_by_role("button", name="Balance")).to_be_focused()
    assert names.all_inner_texts() == ascending[::-1]
    table.hover()
    table.get_by_role("button", name="Columns and CSV: Pools").click()
    page.get_by_label("Balance", exact=True).uncheck()
    expect(table.get_by_role("columnheader", name="Balance")).to_have_count(0)
    assert wrong_in(page, 0) == []
    page.get_by_role("button", name="Download CSV").click()
    until = time.monotonic() + 30
    while not downloads and time.monotonic() < until:
        page.wait_for_timeout(50)
    lines = downloads[0].path().read_text().splitlines()
    assert lines[0].startswith('"Pool","Health","Protocol","Servers up"')
    assert [line.split(" ")[0].strip('"') for line in lines[1:]] == ascending[::-1]
    page.reload()
    expect(table.get_by_role("columnheader", name="Health")).to_be_visible()
    expect(table.get_by_role("columnheader", name="Balance")).to_have_count(0)
    assert complaints == []


def test_what_was_typed_is_there_after_a_reload_and_errors_lead_to_their_fields(
    operator: Actor, chromium: Browser, live_server: LiveServer
) -> None:
    page = signed_in(chromium, live_server.url, operator).new_page()
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto("/pools/new", wait_until="networkidle")
    page.get_by_label("Name", exact=True).first.fill("half-typed")
    page.get_by_role("button", name="Add a server in us-central1").click()
    page.locator("[name$='servers/0/address']").last.fill("192.0.2.77")
    page.reload()
    expect(page.get_by_text("What you typed before is here again.")).to_be_visible()
    expect(page.locator("[name='/name']")).to_have_value("half-typed")
    expect(page.locator("[name$='servers/0/address']").last).to_have_value("192.0.2.77")
    assert wrong_in(page, 0) == []
    page.get_by_role("button", name="Save and roll out").click()
    problem = page.get_by_role("alert").get_by_role("link").first
    expect(problem).to_be_visible()
    problem.click()
    expect(page.locator("[aria-invalid=true]").first).to_be_focused()
    page.goto("/pools/new", wait_until="networkidle")
    expect(page.get_by_text("What you typed before is here again.")).to_have_count(0)


def test_what_was_typed_is_there_for_nobody_else_and_in_no_other_account(
    operator: Actor, chromium: Browser, live_server: LiveServer
) -> None:
    page = signed_in(chromium, live_server.url, operator).new_page()
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto("/pools/new", wait_until="networkidle")
    name, before = page.locator("[name='/name']"), page.get_by_text("What you typed before is here again.")
    name.fill("half-typed")
    session = client_of(actor_of("globex", Account.Kind.CUSTOMER)).cookies["sessionid"].value
    page.context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
    page.goto("/pools/new", wait_until="networkidle")
    expect(name).to_have_value("")
    expect(before).to_have_count(0)


def test_a_button_that_is_pressed_again_while_the_answer_is_on_its_way_sends_nothing_twice(
    operator: Actor, chromium: Browser, live_server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    saves, answers, at_once = list[Any](), Event(), save_object

    def late(**what: Any) -> Any:
        saves.append(at_once(**what))
        answers.wait(30)
        return saves[0]

    monkeypatch.setattr(saving, "save_object", late)
    page = signed_in(chromium, live_server.url, operator).new_page()
    page.goto("/network-lists/new", wait_until="networkidle")
    page.get_by_label("Name", exact=True).fill("branches")
    page.locator("main textarea").first.fill("192.0.2.0/24")
    # As people press it; a test would wait until the page is there.
    page.evaluate(
        """() => new Promise(done => {
        const button = [...document.querySelectorAll("main form button:not([type=button])")].pop();
        button.click();
        setTimeout(() => done(button.click()), 300);
    })"""
    )
    answers.set()
    expect(page.get_by_role("heading", level=1)).to_have_text("branches")
    assert len(saves) == 1


def test_a_drained_server_is_ready_again_by_the_button_of_the_message(
    operator: Actor, chromium: Browser, live_server: LiveServer
) -> None:
    page = signed_in(chromium, live_server.url, operator).new_page()
    page.goto(f"/pools/{first_id('pools')}")
    bar = page.get_by_role("form", name="Selected servers")
    expect(bar).to_be_hidden()
    page.locator("input[name=server]").first.check()
    expect(bar).to_contain_text("1 of 6 selected")
    bar.get_by_role("button", name="Select all").click()
    expect(bar).not_to_contain_text("1 of 6 selected")
    bar.get_by_role("button", name="Clear selection").click()
    expect(bar).to_be_hidden()
    chosen = page.locator("input[name=server]").first
    chosen.check()
    bar.get_by_role("button", name="Drain servers").click()
    server = Server.objects.get(state="drain")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Reverted:")).to_be_visible()
    server.refresh_from_db()
    assert server.state == "ready"

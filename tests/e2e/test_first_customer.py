"""CHECK, a customer's first hour in a real Chromium: from the invitation to a live route, with what the pages say.

The demo's nodes and servers are real, and so is the name server that is asked for the proof. Every station leaves a
screenshot in `var/screenshots/first-customer-<n>-<what>.png`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import Browser, Page, expect

from deploy.demo.ready import call
from tests.browser import faults, fits, listen, needs_browser, running_chromium
from tests.e2e.demo import RunningDemo, running_demo, until
from tests.e2e.name_server import NameServer, name_server

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.browser,
    pytest.mark.timeout(300),
    needs_browser,
]
SHOTS = Path(settings.BASE_DIR) / "var" / "screenshots"
HOST = "shop.initech.example"


@pytest.fixture(scope="module")
def zone() -> Iterator[NameServer]:
    with name_server() as server:
        yield server


@pytest.fixture(scope="module")
def demo(zone: NameServer) -> Iterator[RunningDemo]:
    with running_demo(SPILLWAY_RESOLVERS=zone.address) as running:
        assert until(lambda: call(f"{running.place.console_url}/readyz")[0] == 200)
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_chromium() as chromium:
        yield chromium


class Album:
    """Screenshots in order; a page that has a fault is not worth showing."""

    def __init__(self, page: Page) -> None:
        self.page, self.number, self.complaints = page, 0, listen(page)

    def take(self, what: str) -> None:
        """One picture of the whole page."""
        self.number += 1
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SHOTS / f"first-customer-{self.number}-{what}.png", full_page=True)
        assert fits(self.page)
        assert faults(self.page) == []
        assert self.complaints == []


def invited(demo: RunningDemo, browser: Browser) -> str:
    """The operator makes the customer and hands over a link."""
    page = browser.new_context().new_page()
    page.goto(f"{demo.place.console_url}/sign-in")
    page.get_by_label("Username").fill(demo.keys["username"])
    page.get_by_label("Password").fill(demo.keys["password"])
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_role("link", name="Customers").click()
    page.get_by_role("link", name="New customer").first.click()
    page.get_by_label("Name", exact=True).fill("initech")
    page.get_by_label("Title", exact=True).fill("Initech")
    page.get_by_role("button", name="Make the account").click()
    page.get_by_role("link", name="Invite").click()
    page.get_by_label("E-mail address").fill("bill@initech.example")
    page.get_by_label("Role").select_option("owner")
    page.get_by_role("button", name="Invite").click()
    link = page.get_by_role("region", name="Link of the invitation").inner_text().strip()
    page.context.close()
    return link


def come_in(page: Page, link: str, album: Album) -> None:
    """A new person chooses a name and a password and lands on the first page."""
    page.goto(link)
    album.take("invitation")
    page.get_by_label("Username").fill("bill")
    for field in page.locator("input[type=password]").all():
        field.fill("a stapler of my own, red")
    page.get_by_role("button", name="Come in").click()
    expect(page.get_by_role("heading", name="First steps")).to_be_visible()
    album.take("first-steps")


def step(page: Page, name: str) -> None:
    """Back to the first page and on with its next step."""
    page.get_by_role("link", name="Overview", exact=True).first.click()
    page.locator("#first-steps li.now").get_by_role("link", name=name).click()


def claim(page: Page, zone: NameServer, album: Album) -> None:
    """Claim the name, set in DNS exactly what the page says, and see it found."""
    step(page, "Claim a name")
    page.get_by_label("Hostname").fill(HOST)
    page.get_by_role("button", name="Claim it").click()
    name = page.get_by_role("region", name="the record's name").inner_text().strip()
    value = page.get_by_role("region", name="the record's value").inner_text().strip()
    page.get_by_role("button", name="Check now").click()
    expect(page.locator("#proof")).to_contain_text("There is no TXT record")
    album.take("what-to-set")
    zone.records[name] = [value]
    page.wait_for_timeout(5_200)  # a name is looked at once in five seconds
    page.get_by_role("button", name="Check now").click()
    expect(page.locator("#proof")).to_contain_text("Proved by DNS")
    album.take("proved")


def add_servers(page: Page, demo: RunningDemo, album: Album) -> None:
    """A pool with the demo's two servers in the first region; it turns green by itself."""
    step(page, "Add servers")
    page.get_by_label("Name", exact=True).first.fill("shop")
    page.get_by_label(re.compile("^Path")).fill("/healthz")
    group = page.locator("fieldset.group", has_text="Servers in us-central1")
    ports = [server.port for server in demo.world.servers() if server.region == "us-central1"][:2]
    for number, port in enumerate(ports):
        group.get_by_role("button", name="Add a server").click()
        row = group.locator(".rows > *:not(template)").nth(number)
        row.get_by_label("Name", exact=True).fill(f"vm-{number + 1}")
        row.get_by_label("Address").fill("127.0.0.1")
        row.get_by_label("Port").fill(str(port))
    album.take("servers")
    page.get_by_role("button", name="Save and roll out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("shop")
    expect(page.locator("#numbers")).to_contain_text("Healthy", timeout=30_000)


def make_route(page: Page, album: Album) -> None:
    """The form knows hostname and pool already; only a name is missing."""
    step(page, "Make a route")
    expect(page.get_by_label("Hostname", exact=True)).to_have_value(HOST)
    page.get_by_label("Name", exact=True).fill("shop")
    album.take("route-form")
    page.get_by_role("button", name="Save and go live").click()
    expect(page.locator("#live-on")).to_contain_text("Live on 2 of 2 fleets", timeout=30_000)
    album.take("live")


def test_a_first_time_customer_gets_from_the_invitation_to_a_live_route(
    demo: RunningDemo, browser: Browser, zone: NameServer
) -> None:
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    album = Album(page)
    come_in(page, invited(demo, browser), album)
    claim(page, zone, album)
    add_servers(page, demo, album)
    make_route(page, album)
    answers = [call(url, headers={"Host": HOST}) for url in demo.node_urls().values()]
    assert [status for status, _ in answers] == [200] * len(answers)
    page.get_by_role("link", name="Overview", exact=True).first.click()
    expect(page.get_by_role("heading", name="Traffic and overflow")).to_be_visible()
    expect(page.get_by_role("heading", name="First steps")).to_have_count(0)
    album.take("overview")
    page.set_viewport_size({"width": 380, "height": 800})
    page.wait_for_timeout(500)  # the menu slides away
    album.take("narrow")
    assert not re.search(r"acme|globex", page.content())
    page.context.close()

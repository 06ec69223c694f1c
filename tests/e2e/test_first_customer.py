"""A customer's first hour in a real Chromium: from the invitation to a live route, with what the pages say.

In each run the console is in this process and its nodes are in memory; the exhaustive run has a whole demo, whose nodes
and servers are real and answer at the end. The name server that is asked for the record is real in both. Every station
of the demo leaves a screenshot in `var/screenshots/first-customer-<n>-<what>.png`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as installed
from playwright.sync_api import Browser, Page, expect

from apps.accounts.models import Account
from apps.definitions.writing.kinds import hostnames
from deploy.demo.ready import call
from tests.browser import axe_errors, fits, listen, look, needs_browser, patient_context, wrong_in, wrong_when_narrow
from tests.conftest import actor_of
from tests.e2e import console_in_memory
from tests.e2e.demo import RunningDemo, running_demo, until
from tests.e2e.name_server import NameServer, name_server

pytestmark = [
    pytest.mark.long,
    pytest.mark.e2e,
    pytest.mark.browser,
    pytest.mark.timeout(300),
    needs_browser,
]
SHOTS = Path(installed.BASE_DIR) / "var" / "screenshots"
HOST = "shop.initech.example"


@dataclass(frozen=True)
class ConsoleEnv:
    """Where a customer comes to: the operator's page there, ports of two servers, and what happens by itself.

    `happens` waits until all that was changed is pushed and measured, and tells the page; `is_live` says whether the
    route is answered.
    """

    operator: Callable[[], Page]
    ports: list[int]
    between_checks_s: float
    happens: Callable[[Page], None]
    is_live: Callable[[], bool]
    has_pictures: bool


@pytest.fixture
def zone() -> Iterator[NameServer]:
    with name_server() as server:
        yield server


@pytest.fixture
def demo(zone: NameServer) -> Iterator[RunningDemo]:
    with running_demo(SPILLWAY_RESOLVERS=zone.address) as running:
        assert until(lambda: call(f"{running.config.console_url}/readyz")[0] == 200)
        yield running


@pytest.fixture
def in_a_demo(demo: RunningDemo, chromium: Browser) -> ConsoleEnv:
    """All of it is real."""

    def operator() -> Page:
        page = patient_context(chromium, base_url=demo.config.console_url).new_page()
        page.goto("/sign-in")
        page.get_by_label("Username").fill(demo.keys["username"])
        page.get_by_label("Password").fill(demo.keys["password"])
        page.get_by_role("button", name="Sign in", exact=True).click()
        return page

    def is_live() -> bool:
        return all(call(url, headers={"Host": HOST})[0] == 200 for url in demo.node_urls().values())

    ports = [server.port for server in demo.topology.servers() if server.region == "us-central1"][:2]
    apart = hostnames.BETWEEN_ORDERS.total_seconds() + 0.2
    return ConsoleEnv(operator, ports, apart, lambda _: None, is_live, has_pictures=True)


@pytest.fixture
def in_memory(
    request: pytest.FixtureRequest, live_redis: str, zone: NameServer, monkeypatch: pytest.MonkeyPatch
) -> ConsoleEnv:
    """The console in this process; a name may be looked at as often as somebody likes."""
    server, chromium = request.getfixturevalue("live_server"), request.getfixturevalue("chromium")
    settings: Any = request.getfixturevalue("settings")
    settings.RESOLVERS = [zone.address]
    monkeypatch.setattr(hostnames, "BETWEEN_ORDERS", timedelta(0))
    console_in_memory.put_env()

    def operator() -> Page:
        context = console_in_memory.signed_in(chromium, server.url, actor_of("operator", Account.Kind.OPERATOR))
        page = context.new_page()
        page.goto("/")
        return page

    return ConsoleEnv(
        operator,
        [8001, 8002],
        0,
        console_in_memory.go_on,
        lambda: all(HOST in text for text in console_in_memory.texts_of_nodes()),
        has_pictures=False,
    )


@pytest.fixture(
    params=[
        pytest.param("in_memory", marks=pytest.mark.django_db(transaction=True)),
        pytest.param("in_a_demo", marks=pytest.mark.exhaustive),
    ]
)
def env(request: pytest.FixtureRequest) -> ConsoleEnv:
    """Each in turn."""
    found: ConsoleEnv = request.getfixturevalue(request.param)
    return found


class Album:
    """What the page looks like, station after station; one that has an error is not worth showing."""

    def __init__(self, page: Page, *, has_pictures: bool) -> None:
        self.page, self.has_pictures, self.number, self.complaints = page, has_pictures, 0, listen(page)

    def take(self, what: str, *, familiar: bool = False) -> None:
        """The whole page; axe-core was asked elsewhere about one that is familiar."""
        self.number += 1
        if self.has_pictures:
            SHOTS.mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=SHOTS / f"first-customer-{self.number}-{what}.png", full_page=True)
            assert fits(self.page)
            assert axe_errors(self.page) == []
        else:
            wrong = wrong_when_narrow(self.page) if familiar else wrong_in(self.page, self.number)
            assert wrong == [], what
            look(self.page, "light", 1280)
        assert self.complaints == []


def invited(env: ConsoleEnv) -> str:
    """The operator makes the customer and hands over a link."""
    page = env.operator()
    page.get_by_role("link", name="Customers").click()
    page.get_by_role("link", name="New customer").first.click()
    page.get_by_label("Name", exact=True).fill("initech")
    page.get_by_label("Title", exact=True).fill("Initech")
    page.get_by_role("button", name="Create customer").click()
    page.get_by_role("link", name="Invite").click()
    page.get_by_label("Email address").fill("bill@initech.example")
    page.get_by_label("Role").select_option("owner")
    page.get_by_role("button", name="Create invitation").click()
    link = page.get_by_role("region", name="Invitation link").inner_text().strip()
    page.context.close()
    return link


def come_in(page: Page, link: str, album: Album) -> None:
    """A new person chooses a name and a password and lands on the first page."""
    page.goto(link)
    album.take("invitation")
    page.get_by_label("Username").fill("bill")
    for field in page.locator("input[type=password]").all():
        field.fill("a stapler of my own, red")
    page.get_by_role("button", name="Accept invitation").click()
    expect(page.get_by_role("heading", name="First steps")).to_be_visible()
    album.take("first-steps")


def step(page: Page, name: str) -> None:
    """Back to the first page and on with its next step."""
    page.get_by_role("link", name="Overview", exact=True).first.click()
    page.locator("#first-steps li.now").get_by_role("link", name=name).click()


def claim(page: Page, env: ConsoleEnv, zone: NameServer, album: Album) -> None:
    """Claim the name, set in DNS exactly what the page says, and see it found."""
    step(page, "Add hostname")
    page.get_by_label("Hostname").fill(HOST)
    page.get_by_role("button", name="Add hostname").click()
    name = page.get_by_role("region", name="record name").inner_text().strip()
    value = page.get_by_role("region", name="record value").inner_text().strip()
    page.get_by_role("button", name="Check now").click()
    expect(page.locator("#verification")).to_contain_text("There is no TXT record")
    album.take("what-to-set")
    zone.records[name] = [value]
    page.wait_for_timeout(1000 * env.between_checks_s)
    page.get_by_role("button", name="Check now").click()
    expect(page.locator("#verification")).to_contain_text("Verified by DNS")
    album.take("verified")


def add_servers(page: Page, env: ConsoleEnv, album: Album) -> None:
    """A pool with two servers in the first region; it turns green by itself."""
    step(page, "Add servers")
    page.get_by_label("Name", exact=True).first.fill("shop")
    page.get_by_label(re.compile("^Path")).fill("/healthz")
    group = page.locator("fieldset.group", has_text="Servers in us-central1")
    for number, port in enumerate(env.ports):
        group.get_by_role("button", name="Add a server").click()
        row = group.locator(".rows > *:not(template)").nth(number)
        row.get_by_label("Name", exact=True).fill(f"vm-{number + 1}")
        row.get_by_label("Address").fill("127.0.0.1")
        row.get_by_label("Port").fill(str(port))
    album.take("servers", familiar=True)
    page.get_by_role("button", name="Save and roll out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("shop")
    env.happens(page)
    expect(page.locator("#numbers")).to_contain_text("Healthy")


def make_route(page: Page, env: ConsoleEnv, album: Album) -> None:
    """The form knows hostname and pool already; only a name is missing."""
    step(page, "Create route")
    expect(page.get_by_label("Hostname", exact=True)).to_have_value(HOST)
    page.get_by_label("Name", exact=True).fill("shop")
    album.take("route-form", familiar=True)
    page.get_by_role("button", name="Save and go live").click()
    env.happens(page)
    expect(page.locator("#live-on")).to_contain_text("Live on 2 of 2 fleets")
    album.take("live", familiar=True)


def test_a_first_time_customer_gets_from_the_invitation_to_a_live_route(
    env: ConsoleEnv, chromium: Browser, zone: NameServer
) -> None:
    page = patient_context(chromium, viewport={"width": 1280, "height": 900}).new_page()
    if not env.has_pictures:
        page.add_init_script(console_in_memory.SILENT_EVENTS)
    album = Album(page, has_pictures=env.has_pictures)
    come_in(page, invited(env), album)
    claim(page, env, zone, album)
    add_servers(page, env, album)
    make_route(page, env, album)
    assert env.is_live()
    page.get_by_role("link", name="Overview", exact=True).first.click()
    expect(page.get_by_role("heading", name="Traffic and overflow")).to_be_visible()
    expect(page.get_by_role("heading", name="First steps")).to_have_count(0)
    album.take("overview", familiar=True)
    if env.has_pictures:
        page.set_viewport_size({"width": 380, "height": 800})
        page.wait_for_timeout(500)  # the menu slides away
        album.take("narrow")
    assert not re.search(r"acme|globex", page.content())

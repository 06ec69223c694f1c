"""An operator's first day in a real Chromium: from an empty console to the first request, without one address typed.

Everything is real: the console behind its front, the node with its HAProxy, enrolled by the command that the page
shows, the server behind it, the first request. Pictures go to `var/screenshots/first-operator-<n>-<what>.png`, and
the clicks to `var/first-operator.json`.
"""

from __future__ import annotations

import http.client
import io
import json
import shlex
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from playwright.sync_api import Browser, Page, expect

from tests.browser import axe_errors, fits, lasting, listen, needs_browser, patient_context
from tests.database_url import database_url
from tests.e2e.hands import Hands
from tests.e2e.installation import ROOT, _Answer, _Server, wait_until
from tests.e2e.whole_console import WholeConsole, whole_console
from tests.ports import spare_port

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.browser,
    pytest.mark.exhaustive,
    pytest.mark.timeout(300),
    pytest.mark.django_db(transaction=True),
    needs_browser,
]
VAR = Path(settings.BASE_DIR) / "var"
PASSWORD = "a stapler of my own, red"
HOST = "www.initech.example"
MOST_CLICKS = 19
PATIENCE_MS = 30_000


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch) -> Iterator[WholeConsole]:
    """With its first operator, and nothing else."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{PASSWORD}\n"))
    call_command("bootstrap", username="admin")
    with whole_console(database_url()) as running:
        wait_until(lambda: _ready(running), "the console is up")
        yield running


def _ready(console: WholeConsole) -> bool:
    trusting = ssl.create_default_context(cafile=console.environment["SPILLWAY_CONSOLE_CA"])
    client = http.client.HTTPSConnection("localhost", console.port, timeout=5, context=trusting)
    try:
        client.request("GET", "/readyz")
        return client.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        client.close()


@pytest.fixture
def server_port() -> Iterator[int]:
    """That of a server behind the node."""
    server = _Server(("127.0.0.1", 0), _Answer)
    server.pool_name = "hello"  # type: ignore[attr-defined]  # read by the handler
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


class FirstDay:
    """The way through the steps; what the person sees is looked at on the way."""

    def __init__(self, page: Page, console: WholeConsole) -> None:
        self.page, self.console, self.hands = page, console, Hands(page)
        self.complaints = listen(page)
        page.set_default_timeout(PATIENCE_MS)
        self.number = 0

    def look(self, what: str) -> None:
        """A picture, and nothing wrong with the page."""
        self.number += 1
        (VAR / "screenshots").mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=VAR / "screenshots" / f"first-operator-{self.number}-{what}.png", full_page=True)
        assert lasting(self.page, lambda: axe_errors(self.page)) == []
        assert fits(self.page)
        assert self.complaints == []

    def sign_in(self) -> None:
        """The one address that a person types: that of the console."""
        self.page.goto(self.console.url)
        self.hands.fill("Username", "admin")
        self.hands.fill("Password", PASSWORD)
        self.hands.button("Sign in")
        expect(self.page.get_by_role("heading", name="First steps")).to_be_visible()
        self.look("first-steps")

    def step(self, action: str) -> None:
        """On with the next step, which the page marks."""
        self.hands.link(action, inside="#first-steps li.now")

    def fleet(self) -> None:
        """A region and a fleet in it."""
        self.step("New region")
        self.hands.fill("Name", "west")
        self.hands.fill("Title", "Portland")
        self.hands.button("Create region")
        self.step("New fleet")
        self.hands.fill("Name", "edge")
        expect(self.page.get_by_label("Region", exact=True)).to_have_value("west")
        # Only since the server of this test is on 127.0.0.1.
        self.hands.click(self.page.get_by_label("Local development"))
        self.look("fleet")
        self.hands.button("Create fleet")

    def enrol(self) -> None:
        """The command of the page, on a machine; where a package has its folder and its port, this one has its own."""
        self.step("Enrol node")
        self.hands.fill("Node", "edge-1")
        self.hands.button("Create token")
        self.look("command")
        words = shlex.split(self.page.get_by_role("region", name="Command").inner_text())
        assert words[0] == "spillway-agent"
        assert words[-2:] == ["--environment", "/etc/spillway/agent"]
        folder = self.console.folder
        where = ("--state-dir", str(folder / "n"), "--listen", f"127.0.0.1:{spare_port()}")
        words = [*words[1:-1], str(folder / "environment"), *where]
        agent = (sys.executable, "-m", "apps.agent")
        done = subprocess.run([*agent, *words], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        self.console.start("agent", *agent, "--state-dir", str(folder / "n"), "--reload-gap", "0")
        self.hands.link("Next step")
        expect(self.page.locator("#first-steps li.now h3")).to_have_text("Add a load balancer")
        self.look("node-answers")

    def load_balancer(self, port: int) -> None:
        """A load balancer on the only fleet, and a port."""
        self.step("New load balancer")
        self.hands.fill("Name", "front")
        expect(self.page.get_by_label("edge", exact=True)).to_be_checked()
        self.hands.button("Create load balancer")
        self.step("New listener")
        self.hands.fill("Name", "web")
        self.hands.fill("Port", str(port))
        self.hands.button("Create listener")

    def pool(self, port: int) -> None:
        """One server in the only region."""
        self.step("Add servers")
        self.hands.fill("Name", "shop")
        self.hands.button("Add a server", exact=False)
        row = ".rows > *:not(template)"
        self.hands.fill("Name", "vm-1", inside=row)
        self.hands.fill("Address", "127.0.0.1", inside=row)
        self.hands.fill("Port", str(port), inside=row)
        self.look("servers")
        self.hands.button("Save and roll out")

    def route(self) -> None:
        """The form knows account, load balancer and pool already."""
        self.step("Create route")
        self.hands.fill("Name", "shop")
        self.hands.fill("Hostname", HOST)
        self.look("route")
        self.hands.button("Save and go live")

    def first_request(self) -> None:
        """The command that the page shows, and the request on the page."""
        expect(self.page.locator("#first-steps li.now h3")).to_have_text("Send a first request")
        self.look("command-of-the-request")
        words = shlex.split(self.page.locator("#first-steps").get_by_role("region", name="Command").inner_text())
        assert words[0] == "curl"

        def served() -> bool:
            done = subprocess.run([*words, "--silent"], capture_output=True, text=True, timeout=30, check=False)
            return done.stdout.endswith("hello")

        wait_until(served, "the node serves the route")
        expect(self.page.locator("#first-steps li.done")).to_have_count(8)
        self.look("arrived")
        self.hands.link("View requests", inside="#first-steps")
        expect(self.page.get_by_role("main")).to_contain_text(HOST)
        self.look("requests")


def test_an_operator_gets_from_an_empty_console_to_the_first_request_by_clicks_alone(
    console: WholeConsole, chromium: Browser, server_port: int
) -> None:
    context = patient_context(chromium, viewport={"width": 1280, "height": 900}, ignore_https_errors=True)
    day = FirstDay(context.new_page(), console)
    try:
        day.sign_in()
        day.fleet()
        day.enrol()
        day.load_balancer(spare_port())
        day.pool(server_port)
        day.route()
        day.first_request()
    except Exception:
        day.page.screenshot(path=VAR / "screenshots" / "first-operator-stuck.png", full_page=True)
        raise
    finally:
        stop = (sys.executable, "-m", "apps.agent", "--name", "edge-1", "--state-dir", str(console.folder / "n"))
        subprocess.run([*stop, "--stop"], cwd=ROOT, check=False, timeout=60)
    counted = {"clicks": day.hands.clicks, "fields": day.hands.fields}
    (VAR / "first-operator.json").write_text(json.dumps(counted))
    print(counted)
    assert day.hands.clicks <= MOST_CLICKS

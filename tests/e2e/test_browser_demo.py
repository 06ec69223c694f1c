"""The pages of a whole demo in a real Chromium: clean in every look, and what is done by hand is live on nodes.

Every page leaves screenshots in `var/screenshots/`: `<page>-light.png`, `-dark.png` and `-narrow.png`. In each run the
pages are looked at without a demo: test_browser_pages.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import Browser, Page, expect

from deploy.demo.ready import call
from tests.browser import NARROW, WIDE, axe_errors, fits, lasting, listen, look, needs_browser, patient_context
from tests.e2e.demo import RunningDemo, running_demo, until
from tests.e2e.pages import CLOUDS, PAGES, of_first

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.browser,
    pytest.mark.exhaustive,
    pytest.mark.timeout(300),
    needs_browser,
]
SHOTS = Path(settings.BASE_DIR) / "var" / "screenshots"
LOOKS = {"light": ("light", WIDE), "dark": ("dark", WIDE), "narrow": ("light", NARROW)}


@pytest.fixture(scope="module")
def demo() -> Iterator[RunningDemo]:
    with running_demo() as running:
        until(lambda: call(f"{running.config.console_url}/readyz")[0] == 200)
        headers = {"Authorization": f"Bearer {running.keys['operator_token']}", "Content-Type": "application/json"}
        url = f"{running.config.console_url}/api/v1/apply"
        assert call(url, "PUT", headers=headers, body=json.dumps({"objects": CLOUDS}))[0] == 200
        yield running


def sign_in(page: Page, demo: RunningDemo) -> None:
    """As the operator of the demo."""
    page.goto(f"{demo.config.console_url}/sign-in")
    page.get_by_label("Username").fill(demo.keys["username"])
    page.get_by_label("Password").fill(demo.keys["password"])
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")


@pytest.fixture(scope="module")
def sessions() -> list[Any]:
    """Cookies of the session that was opened first; one is enough for all tests."""
    return []


@pytest.fixture
def page(demo: RunningDemo, chromium: Browser, sessions: list[Any]) -> Page:
    """The operator's."""
    if not sessions:
        stranger = patient_context(chromium).new_page()
        sign_in(stranger, demo)
        sessions.append(stranger.context.storage_state())
    return patient_context(chromium, storage_state=sessions[0]).new_page()


def first_id(demo: RunningDemo, listed: str) -> str:
    """Of what the API lists there; requests and alerts come a moment after the demo."""
    headers = {"Authorization": f"Bearer {demo.keys['operator_token']}"}
    items: list[dict[str, Any]] = []

    def found() -> bool:
        items[:] = json.loads(call(demo.config.console_url + of_first(listed), headers=headers)[1])["items"]
        return bool(items)

    assert until(found), listed
    return str(items[0]["id"])


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_clean_and_fits(demo: RunningDemo, page: Page, name: str) -> None:
    complaints = listen(page)
    path, listed = PAGES[name]
    answer = page.goto(demo.config.console_url + path.format(first_id(demo, listed) if listed else ""))
    assert answer is not None
    assert answer.status == 200
    page.wait_for_selector("#live.good")
    found = {each: _looked_at(page, name, each) for each in LOOKS}
    assert found == {each: [] for each in LOOKS}
    assert complaints == []


def test_the_page_of_signing_in_is_clean_and_fits(demo: RunningDemo, chromium: Browser) -> None:
    page = patient_context(chromium).new_page()
    page.goto(f"{demo.config.console_url}/sign-in")
    assert {each: _looked_at(page, "sign-in", each) for each in LOOKS} == {each: [] for each in LOOKS}


def _looked_at(page: Page, name: str, name_of_look: str) -> list[str]:
    """What is wrong with a page in a theme and width; leaves its screenshot."""
    look(page, *LOOKS[name_of_look])
    page.screenshot(path=SHOTS / f"{name}-{name_of_look}.png", full_page=True)
    return lasting(page, lambda: axe_errors(page)) + ([] if fits(page) else ["something sticks out sideways"])


def test_a_fleet_is_rolled_back_and_resumed_by_hand(demo: RunningDemo, page: Page) -> None:
    demo.put_answer("before")
    assert demo.everywhere("before") == []
    demo.put_answer("after")
    assert demo.everywhere("after") == []
    page.goto(f"{demo.config.console_url}/rollouts?fleet=us-central1")
    page.get_by_role("table").get_by_role("link").first.click()
    revision = page.get_by_role("region", name="Revisions").get_by_role("row").nth(2)
    revision.get_by_role("button", name="Roll back").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("the answer was better before")
    page.get_by_role("dialog").get_by_role("button", name="Roll back").click()
    expect(page.get_by_text("is held at revision")).to_be_visible()
    assert until(lambda: demo.answers("us-1", "before") and demo.answers("us-2", "before"))
    assert demo.answers("eu-1", "after")
    page.get_by_role("button", name="Resume").click()
    assert until(lambda: demo.answers("us-1", "after") and demo.answers("us-2", "after"))


def test_a_route_is_made_changed_and_deleted_by_hand(demo: RunningDemo, page: Page) -> None:
    def answered(status: int, body: str) -> bool:
        """On every node."""
        host = {"Host": "hand.globex.example"}
        answers = [call(url, headers=host) for url in demo.node_urls().values()]
        return all(got == status and body in text for got, text in answers)

    assert answered(404, "")
    page.goto(f"{demo.config.console_url}/routes/new")
    page.get_by_label("Hostname", exact=True).fill("hand.globex.example")
    page.get_by_label("Path", exact=True).fill("/")
    page.get_by_label("Return a fixed response").check()
    own_answer = page.locator("[data-choice=fixed_response]")
    own_answer.get_by_label("Status").fill("200")
    own_answer.get_by_label("Body").fill("made by hand")
    page.get_by_label("Name", exact=True).fill("by-hand")
    page.get_by_label("Account", exact=True).fill("globex")
    page.get_by_role("button", name="Save and go live").click()
    expect(page.get_by_text("Route by-hand is saved")).to_be_visible()
    assert until(lambda: answered(200, "made by hand"))
    page.get_by_role("link", name="Edit").click()
    own_answer.get_by_label("Body").fill("changed by hand")
    page.get_by_role("button", name="Save and go live").click()
    expect(page.get_by_text("Route by-hand is saved")).to_be_visible()
    assert until(lambda: answered(200, "changed by hand"))
    page.get_by_role("link", name="Delete").click()
    page.get_by_label("to confirm").fill("by-hand")
    page.get_by_role("button", name="Delete route").click()
    expect(page.get_by_text("Route by-hand is deleted")).to_be_visible()
    assert until(lambda: answered(404, ""))


def test_a_server_is_drained_and_made_ready_by_hand(demo: RunningDemo, page: Page) -> None:
    page.goto(f"{demo.config.console_url}/pools/{first_id(demo, 'pools')}")
    server = page.locator("tr[id^=server-]").first
    buttons = page.get_by_role("group", name="Admin state of the selected servers")
    for button, word in (("Drain", "drain"), ("Ready", "ready")):
        server.get_by_role("checkbox").check()
        buttons.get_by_role("button", name=button).click()
        expect(server.locator("[data-label='Admin state']")).to_contain_text(word, ignore_case=True)

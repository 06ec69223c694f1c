"""CHECK, the pages of the running product in a real Chromium: clean in every theme and width, and usable by hand.

Every page leaves screenshots in `var/screenshots/`: `<page>-light.png`, `-dark.png` and `-narrow.png`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from django.conf import settings
from playwright.sync_api import Browser, Page, expect

from apps.web.urls import urlpatterns
from deploy.demo.ready import call
from tests.browser import faults, fits, listen, needs_browser, running_chromium
from tests.e2e.demo import RunningDemo, running_demo, until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.browser,
    pytest.mark.timeout(300),
    needs_browser,
]
SHOTS = Path(settings.BASE_DIR) / "var" / "screenshots"
LOOKS: dict[str, tuple[Literal["light", "dark"], int]] = {
    "light": ("light", 1440),
    "dark": ("dark", 1440),
    "narrow": ("light", 380),
}
# Pages by the name of their URL; `{}` is the id of the first object of the noun.
PAGES = {
    "overview": ("/", ""),
    "load-balancers": ("/load-balancers", ""),
    "load-balancer": ("/load-balancers/{}", "load-balancers"),
    "routes": ("/routes", ""),
    "route": ("/routes/{}", "routes"),
    "route-new": ("/routes/new", ""),
    "route-trace": ("/routes/trace?host=shop.acme.example&path=/cart", ""),
    "route-edit": ("/routes/{}/edit", "routes"),
    "pools": ("/pools", ""),
    "pool": ("/pools/{}", "pools"),
    "pool-new": ("/pools/new", ""),
    "pool-edit": ("/pools/{}/edit", "pools"),
    "hostnames": ("/hostnames", ""),
    "grants": ("/grants", ""),
    "grant-new": ("/new-grant", ""),
    "hostname": ("/hostnames/{}", "hostnames"),
    "hostname-new": ("/hostnames/new", ""),
    "overflow": ("/overflow", ""),
    "regions": ("/regions", ""),
    "region": ("/regions/us-central1", ""),
    "region-drain": ("/regions/us-central1/drain", ""),
    "fleets": ("/fleets", ""),
    "node": ("/nodes/{}", "nodes"),
    "rollouts": ("/rollouts", ""),
    "rollout": ("/rollouts/{}", "rollouts"),
    "schedules": ("/schedules", ""),
    "schedules-calendar": ("/schedules/calendar", ""),
    "schedule": ("/schedules/{}", "schedules"),
    "schedule-new": ("/schedules/new", ""),
    "schedule-edit": ("/schedules/{}/edit", "schedules"),
    "static-ips": ("/static-ips", ""),
    "static-ip": ("/static-ips/{}", "static-ips"),
    "static-ip-new": ("/static-ips/new", ""),
    "static-ip-edit": ("/static-ips/{}/edit", "static-ips"),
    "address-pool-new": ("/address-pools/new", ""),
    "cloud-accounts": ("/cloud-accounts", ""),
    "cloud-account-new": ("/cloud-accounts/new", ""),
    "adopt": ("/adopt", ""),
    "stacks": ("/stacks", ""),
    "stack": ("/stacks/{}", "stacks"),
    "stack-new": ("/stacks/new", ""),
    "stack-edit": ("/stacks/{}/edit", "stacks"),
    "portability": ("/portability/{}", "load-balancers"),
    "zones": ("/zones", ""),
    "zone": ("/zones/{}", "zones"),
    "zone-new": ("/zones/new", ""),
    "zone-edit": ("/zones/{}/edit", "zones"),
    "zone-difference": ("/zones/{}/difference", "zones"),
    "record-new": ("/zones/{}/records/new", "zones"),
    "record-edit": ("/records/{}/edit", "records"),
    "audit": ("/audit", ""),
    "capacity-tests": ("/capacity-tests", ""),
    "capacity-test": ("/capacity-tests/{}", "capacity-tests"),
    "capacity-test-new": ("/capacity-tests/new", ""),
    "capacity-test-edit": ("/capacity-tests/{}/edit", "capacity-tests"),
    "blackouts": ("/blackouts", ""),
    "sizing": ("/sizing?rate=30&margin=10&lose=1", ""),
    "webhooks": ("/webhooks", ""),
    "webhook-new": ("/webhooks/new", ""),
    "audit-entry": ("/audit/{}", "audit-entries"),
    "own-account": ("/account", ""),
    "accounts": ("/accounts", ""),
    "account": ("/accounts/acme", ""),
    "account-new": ("/new-account", ""),
    "account-edit": ("/accounts/acme/edit", ""),
    "account-suspend": ("/accounts/acme/suspend", ""),
    "account-look": ("/accounts/acme/look", ""),
    "people": ("/people", ""),
    "invite": ("/people/invite", ""),
    "tokens": ("/tokens", ""),
    "token-new": ("/tokens/new", ""),
    "certificates": ("/certificates", ""),
    "certificate-new": ("/certificates/new", ""),
}
# Doors without a page of their own: answers to forms, pieces of pages, and sign-in, which is looked at signed out.
PARTS = {
    # The demo has no grant; its form is that of grant-new.
    *("grant", "grant-edit", "grant-delete"),
    *("hostname-check", "hostname-prove", "hostname-release"),
    *("sign-in", "sign-out", "search", "route-check", "route-delete", "pool-servers", "pool-delete", "pool-limit"),
    # The form of certificate-new under another heading; the demo has no certificate to renew.
    *("certificate-renew", "certificate-delete"),
    *("audit-export", "blackout-end"),
    # The demo has no run yet; what runs look like is looked at in test_capacity_looks.py.
    *("capacity-run", "capacity-runs-compare", "capacity-comparison", "capacity-run-limit"),
    *("capacity-run-stop", "capacity-run-approve", "capacity-run-export"),
    *("capacity-test-check", "capacity-test-run", "capacity-test-delete", "capacity-test-compare"),
    # The demo has no webhook; their form is that of webhook-new.
    *("webhook", "webhook-edit", "webhook-rotate", "webhook-test", "webhook-delete", "webhook-redeliver"),
    *("schedule-preview", "schedules-bulk", "schedule-run", "schedule-pause", "schedule-resume", "schedule-delete"),
    *("schedule-sign", "trigger-new", "trigger-rotate", "trigger-delete", "fire-retry"),
    *("invitation", "switch-account", "stop-looking", "token-revoke"),
    *("person-role", "person-remove", "invitation-take-back"),
    *("fleet-push", "fleet-resume", "roll-back"),
    # The forms of those that are new under another heading, and what is done from pages.
    *("cloud-account-edit", "cloud-account-delete", "address-pool-edit", "address-pool-delete"),
    *("static-ip-move", "static-ip-release", "static-ip-delete"),
    *("zone-repair", "zone-delete", "record-delete"),
    *("stack-plan", "stack-check", "stack-destroy", "stack-delete", "stack-unlock"),
    # Runs, revisions and states come from workers; tests/doors/test_pages_clouds.py looks at them.
    *(
        "stack-run",
        "stack-revision",
        "stack-state",
        "stack-run-approve",
        "stack-run-discard",
        "stack-run-cancel",
        "stack-run-retry",
    ),
}
# What the demo does not have by itself: a cloud, and a zone on a name server in memory.
CLOUDS = [
    {"kind": "CloudAccount", "name": "prod", "spec": {"cloud": "aws", "credentials": "env:PROD"}},
    {
        "kind": "Stack",
        "name": "aws-frankfurt",
        "spec": {"cloud_account": "prod", "cloud_region": "eu-central-1", "region": "europe-west1"},
    },
    {"kind": "StaticIP", "name": "front", "spec": {"address": "192.0.2.10", "protected": True}},
    {
        "kind": "Zone",
        "name": "example",
        "spec": {"domain": "example.net", "driver": "memory", "tags": {"customer": "acme"}},
    },
    {
        "kind": "Record",
        "name": "www",
        "spec": {"zone": "example", "label": "www", "type": "A", "values": ["192.0.2.80", "192.0.2.81"]},
    },
    {"kind": "Record", "name": "shop", "spec": {"zone": "example", "label": "shop", "type": "A", "static_ip": "front"}},
]


@pytest.fixture(scope="module")
def demo() -> Iterator[RunningDemo]:
    with running_demo() as running:
        until(lambda: call(f"{running.place.console_url}/readyz")[0] == 200)
        headers = {"Authorization": f"Bearer {running.keys['operator_token']}", "Content-Type": "application/json"}
        url = f"{running.place.console_url}/api/v1/apply"
        assert call(url, "PUT", headers=headers, body=json.dumps({"objects": CLOUDS}))[0] == 200
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_chromium() as chromium:
        yield chromium


def sign_in(page: Page, demo: RunningDemo) -> None:
    """As the operator of the demo."""
    page.goto(f"{demo.place.console_url}/sign-in")
    page.get_by_label("Username").fill(demo.keys["username"])
    page.get_by_label("Password").fill(demo.keys["password"])
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")


@pytest.fixture(scope="module")
def signed_in(demo: RunningDemo, browser: Browser) -> Any:
    """Cookies of a session."""
    page = browser.new_page()
    sign_in(page, demo)
    state = page.context.storage_state()
    page.context.close()
    return state


def first_id(demo: RunningDemo, noun: str) -> int:
    headers = {"Authorization": f"Bearer {demo.keys['operator_token']}"}
    items = json.loads(call(f"{demo.place.console_url}/api/v1/{noun}?limit=1", headers=headers)[1])["items"]
    return int(items[0]["id"])


def test_every_page_is_looked_at() -> None:
    names = {pattern.name for pattern in urlpatterns}
    assert names - PARTS == set(PAGES)


@pytest.mark.parametrize("name", [*PAGES, "sign-in"])
def test_a_page_is_clean_and_fits(demo: RunningDemo, browser: Browser, signed_in: Any, name: str) -> None:
    context = browser.new_context(storage_state=None if name == "sign-in" else signed_in)
    page = context.new_page()
    complaints = listen(page)
    path, noun = PAGES.get(name, ("/sign-in", ""))
    answer = page.goto(demo.place.console_url + path.format(first_id(demo, noun) if noun else ""))
    assert answer is not None
    assert answer.status == 200
    if name != "sign-in":
        page.wait_for_selector("#live.good")
    found = {look: _looked_at(page, name, look) for look in LOOKS}
    assert found == {look: [] for look in LOOKS}
    assert complaints == []
    context.close()


def _looked_at(page: Page, name: str, look: str) -> list[str]:
    """What is wrong with a page in a theme and width; leaves its screenshot."""
    scheme, width = LOOKS[look]
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": 900})
    page.screenshot(path=SHOTS / f"{name}-{look}.png", full_page=True)
    found = faults(page)
    if found:  # live parts of the page come and go: what is wrong twice is wrong
        page.wait_for_timeout(500)
        found = [fault for fault in faults(page) if fault in found]
    return found + ([] if fits(page) else ["something sticks out sideways"])


def test_a_wrong_password_is_refused_in_words(demo: RunningDemo, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(f"{demo.place.console_url}/sign-in")
    page.get_by_label("Username").fill("nobody-in-particular")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_text("Please enter a correct username and password")).to_be_visible()
    page.context.close()


def test_the_palette_finds_a_pool(demo: RunningDemo, browser: Browser, signed_in: Any) -> None:
    page = browser.new_context(storage_state=signed_in).new_page()
    page.goto(demo.place.console_url)
    page.keyboard.press("Control+k")
    page.get_by_label("Search", exact=True).fill("shop-ne")
    page.get_by_role("link", name="acme/shop-next").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("shop-next")
    page.context.close()


def test_a_fleet_is_rolled_back_and_resumed_by_hand(demo: RunningDemo, browser: Browser, signed_in: Any) -> None:
    demo.put_answer("before")
    assert demo.everywhere("before") == []
    demo.put_answer("after")
    assert demo.everywhere("after") == []
    page = browser.new_context(storage_state=signed_in).new_page()
    page.goto(f"{demo.place.console_url}/rollouts?fleet=us-central1")
    page.get_by_role("table").get_by_role("link").first.click()
    revision = page.get_by_role("region", name="Revisions").get_by_role("row").nth(2)
    revision.get_by_role("button", name="Roll back").click()
    page.get_by_role("dialog").get_by_label("Why").fill("the answer was better before")
    page.get_by_role("dialog").get_by_role("button", name="Roll back").click()
    expect(page.get_by_text("is held at revision")).to_be_visible()
    assert until(lambda: demo.answers("us-1", "before") and demo.answers("us-2", "before"))
    assert demo.answers("eu-1", "after")
    page.get_by_role("button", name="Resume").click()
    assert until(lambda: demo.answers("us-1", "after") and demo.answers("us-2", "after"))
    page.context.close()


def test_a_route_is_made_changed_and_deleted_by_hand(demo: RunningDemo, browser: Browser, signed_in: Any) -> None:
    def answered(status: int, body: str) -> bool:
        """On every node."""
        host = {"Host": "hand.globex.example"}
        answers = [call(url, headers=host) for url in demo.node_urls().values()]
        return all(got == status and body in text for got, text in answers)

    assert answered(404, "")
    page = browser.new_context(storage_state=signed_in).new_page()
    page.goto(f"{demo.place.console_url}/routes/new")
    page.get_by_label("Hostname", exact=True).fill("hand.globex.example")
    page.get_by_label("Path", exact=True).fill("/")
    page.get_by_label("Answer by itself").check()
    own_answer = page.locator("[data-choice=fixed_response]")
    own_answer.get_by_label("Status").fill("200")
    own_answer.get_by_label("Body").fill("made by hand")
    page.get_by_label("Name", exact=True).fill("by-hand")
    page.get_by_label("Account", exact=True).select_option("globex")
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
    page.context.close()


def test_a_server_is_drained_and_made_ready_by_hand(demo: RunningDemo, browser: Browser, signed_in: Any) -> None:
    page = browser.new_context(storage_state=signed_in).new_page()
    page.goto(f"{demo.place.console_url}/pools/{first_id(demo, 'pools')}")
    server = page.locator("tr[id^=server-]").first
    buttons = page.get_by_role("group", name="State of the checked servers")
    for button, word in (("Drain", "drain"), ("Ready", "ready")):
        server.get_by_role("checkbox").check()
        buttons.get_by_role("button", name=button).click()
        expect(server.locator("[data-label=State]")).to_contain_text(word, ignore_case=True)
    page.context.close()

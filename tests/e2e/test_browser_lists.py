"""How people find an object among many in a real Chromium: what fields offer, by mouse and by keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect
from pytest_django.live_server_helper import LiveServer

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.web.capacity import form as capacity_form
from tests.browser import listen, needs_browser, wrong_in
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
    expect(page.locator("#pools option[value='acme/shop']")).to_have_count(1)
    pool.fill("acme/shop")
    pool.press("Tab")
    expect(region).to_contain_text("us-central1")
    hostname.press_sequentially("shop")
    expect(page.locator("#hostnames-to-load option")).to_have_count(1)
    expect(page.locator("#hostnames-to-load option")).to_have_attribute("value", "shop.acme.example")
    expect(hostname).to_have_value("shop")  # what comes back from the server takes nothing that was typed
    assert wrong_in(page, 0) == complaints == []

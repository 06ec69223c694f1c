"""A haproxy.cfg is imported by hand in a real Chromium: pasted, read, filtered by verdict, applied."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect
from pytest_django.live_server_helper import LiveServer

from apps.accounts.models import Account
from apps.definitions.models import Pool
from apps.fleet.models import Fleet
from tests.browser import WIDE, listen, look, needs_browser, wrong_in
from tests.conftest import actor_of
from tests.e2e.console_in_memory import put_env, signed_in
from tests.interfaces.api.test_api_importing import FILE, FLEET

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    needs_browser,
]


def test_a_configuration_is_pasted_read_filtered_and_applied(
    chromium: Browser, live_server: LiveServer, live_redis: str
) -> None:
    put_env()
    Fleet.objects.update(local_development=False)
    page = signed_in(chromium, live_server.url, actor_of("operator", Account.Kind.OPERATOR)).new_page()
    complaints = listen(page)

    def wrong(turn: int) -> list[str]:
        found = wrong_in(page, turn)
        look(page, "light", WIDE)
        return found

    page.goto("/import")
    assert wrong(0) == []
    page.get_by_label(FLEET).check()
    page.get_by_label("… or paste").fill(FILE.replace("10.50.0.1:8080", "127.0.0.1:8080"))
    page.get_by_role("button", name="Read configuration").click()
    expect(page.get_by_role("heading", name="Answer these first")).to_be_visible()
    assert wrong(1) == []
    page.get_by_label("… or paste").fill(FILE)
    page.get_by_role("button", name="Read configuration").click()
    expect(page.get_by_role("heading", name="Plan")).to_be_visible()
    assert wrong(2) == []
    page.get_by_role("radio", name="Mapped").check()
    expect(page.get_by_text("http-request lua.guard")).to_be_hidden()
    expect(page.get_by_text("default_backend moved-web")).to_be_visible()
    page.get_by_text("Create Pool").first.click()
    assert wrong(3) == []
    page.get_by_role("button", name="Apply this plan").click()
    expect(page.get_by_text("The import is applied.")).to_be_visible()
    assert Pool.objects.filter(name="moved-api").exists()
    assert complaints == []

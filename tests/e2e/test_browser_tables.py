"""Tables in a real Chromium: how they are sorted, and what their rows are as a file."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import Browser, Download, Page, Route, expect
from pytest_django.live_server_helper import LiveServer

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.definitions.models import Pool
from tests.browser import needs_browser
from tests.conftest import actor_of
from tests.e2e.console_in_memory import put_env, signed_in

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    needs_browser,
]
# Other words in a column, from above, as tables.js finds it.
FILL = """([label, words]) => document.querySelectorAll(`main td[data-label="${label}"]`).forEach(
    (cell, at) => cell.textContent = words[at % words.length])"""


@pytest.fixture
def operator(live_server: LiveServer, live_redis: str) -> Actor:
    """Whose pages they are."""
    put_env()
    return actor_of("operator", Account.Kind.OPERATOR)


@pytest.fixture
def page(operator: Actor, chromium: Browser, live_server: LiveServer) -> Page:
    """An empty one."""
    return signed_in(chromium, live_server.url, operator).new_page()


def take_away(page: Page) -> list[Download]:
    """Ask for the rows of the pools as a file; the list is what comes of it."""
    files: list[Download] = []

    def keep(file: Download) -> None:
        files.append(file)

    page.on("download", keep)
    page.get_by_role("region", name="Pools", exact=True).hover()
    page.get_by_role("button", name="Columns and CSV: Pools").click()
    page.get_by_role("button", name="Download CSV").click()
    return files


def test_amounts_of_which_only_a_bound_is_known_are_sorted_as_numbers(page: Page) -> None:
    page.goto("/pools", wait_until="networkidle")
    page.evaluate(FILL, ["Requests/s", ["90", "≥ 1,250", "<0.1", "–", "≥ 300"]])
    page.get_by_role("button", name="Requests/s").click()
    cells = page.locator("main td[data-label='Requests/s']")
    shown = cells.all_inner_texts()
    assert shown == [each for each in ("≥ 1,250", "≥ 300", "90", "<0.1", "–") if each in shown]


def test_what_only_looks_like_a_number_is_no_formula_in_a_file(page: Page) -> None:
    page.goto("/pools", wait_until="networkidle")
    page.evaluate(FILL, ["Balance", ["-1+cmd|' /C calc'!A0", "-12.5 ms", "=1"]])
    files, until = take_away(page), time.monotonic() + 30
    while not files and time.monotonic() < until:
        page.wait_for_timeout(50)
    text = files[0].path().read_text()
    assert "\"'-1+cmd" in text
    assert '"-12.5 ms"' in text
    assert '"\'=1"' in text


def test_rows_of_which_a_page_could_not_be_read_become_no_file(page: Page) -> None:
    account = Account.objects.get(name="acme")
    Pool.objects.bulk_create(Pool(account=account, name=f"more-{at:03}") for at in range(60))

    def signed_out(route: Route) -> None:
        route.fulfill(status=302, headers={"location": "/sign-in"})

    page.goto("/pools", wait_until="networkidle")
    page.route(re.compile("/pools.after="), signed_out)
    files = take_away(page)
    expect(page.locator("#toasts")).to_contain_text("The rows could not be read (you are signed out).")
    assert files == []

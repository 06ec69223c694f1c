"""A report on paper: what a browser makes of it as a PDF, sheet by sheet."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from apps.accounts.models import Account
from apps.alerts.models import Alert
from apps.core.clock import now
from apps.definitions.models import Pool
from apps.fleet.models import Node
from apps.observe.models import PoolTally, Sample
from tests.browser import needs_browser
from tests.conftest import actor_of
from tests.e2e.console_in_memory import put_env, signed_in

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.browser,
    pytest.mark.exhaustive,
    pytest.mark.django_db(transaction=True),
    needs_browser,
]
LANDSCAPE = (842, 595)  # A4 in points


def _put_month() -> None:
    """A pool with an objective, its busiest minute, and twenty alerts."""
    pool, at = Pool.objects.get(name="shop"), now() - timedelta(hours=1)
    Pool.objects.filter(pk=pool.pk).update(objective={"availability": 99.9})
    PoolTally.objects.create(pool=pool, at=at, whole_day=False, minutes=5, total=10_000, failed=3)
    for node in Node.objects.all():
        for kind, name, requests in (("node", f"node-{node.pk}", 0), ("backend", f"pool-{pool.pk}", 500)):
            Sample.objects.create(
                at=at, resolution=60, seconds=60, node=node, kind=kind, object_id=name, requests=requests
            )
    for number in range(20):
        Alert.objects.create(account=pool.account, title=f"Pool shop is down ({number})", severity="page", since=at,
                             opened_at=at, resolved_at=at + timedelta(minutes=3))  # fmt: skip


def _sheets(pdf: bytes) -> list[tuple[int, int]]:
    """Width and height of each sheet, in points."""
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    return [(round(float(width)), round(float(height))) for width, height in boxes]


def test_a_report_is_two_sheets_without_the_console_around_it(
    live_server: Any, live_redis: str, chromium: Browser
) -> None:
    put_env()
    _put_month()
    page = signed_in(chromium, live_server.url, actor_of("acme", Account.Kind.CUSTOMER)).new_page()
    page.goto("/")
    page.get_by_role("link", name="Reports", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Acme")
    page.emulate_media(media="print")
    for gone in (".side", ".topbar", ".actions", ".crumbs"):
        expect(page.locator(gone).first).to_be_hidden()
    sheets = _sheets(page.pdf(prefer_css_page_size=True, path="var/screenshots/report.pdf"))
    assert len(sheets) == 2
    assert {(abs(width - LANDSCAPE[0]) < 2, abs(height - LANDSCAPE[1]) < 2) for width, height in sheets} == {
        (True, True)
    }
    expect(page.get_by_role("region", name="Traffic, overflow and capacity")).to_contain_text("16.7/s")


def test_the_button_prints(live_server: Any, live_redis: str, chromium: Browser) -> None:
    put_env()
    page = signed_in(chromium, live_server.url, actor_of("acme", Account.Kind.CUSTOMER)).new_page()
    page.add_init_script("window.print = () => { document.title = 'printed'; }")
    page.goto("/reports")
    page.get_by_role("button", name="Print or save as PDF").click()
    expect(page).to_have_title("printed")

"""What one touches on a phone is 24 pixels large at least, on every page."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser
from pytest_django.live_server_helper import LiveServer

from apps.accounts.models import Account
from tests.browser import NARROW, needs_browser
from tests.conftest import actor_of
from tests.e2e.console_in_memory import put_env, signed_in
from tests.e2e.pages import PAGES, of_first

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.browser,
    pytest.mark.exhaustive,
    pytest.mark.django_db(transaction=True),
    needs_browser,
]
LEAST = 24
# Left out: links within a sentence, and those that are as large as their row; bars of a chart, which a table says too;
# boxes of rows, which have room around them.
SMALL = """least => {
  const found = [];
  const touched = 'main :is(a, button, summary, select, input:not([type=hidden])), header :is(a, button)';
  for (const each of document.querySelectorAll(touched)) {
    const box = (each.closest('label') ?? each).getBoundingClientRect(), style = getComputedStyle(each);
    const text = each.innerText?.trim() ?? '', around = each.parentElement.innerText?.trim() ?? '';
    if (!box.width || style.visibility === 'hidden' || each.closest('thead, svg, .visually-hidden, .sr')) continue;
    if (each.matches('a') && style.display === 'inline' && around.length > text.length) continue;
    if (each.matches('.row-link, td > input[type=checkbox]')) continue;
    if (Math.min(box.width, box.height) < least)
      found.push(`${each.tagName} ${text || each.name} ${box.width.toFixed(1)}x${box.height.toFixed(1)}`);
  }
  return found;
}"""


def test_targets_are_large_enough_on_every_page(live_server: LiveServer, live_redis: str, chromium: Browser) -> None:
    put_env()
    page = signed_in(chromium, live_server.url, actor_of("operator", Account.Kind.OPERATOR)).new_page()
    page.set_viewport_size({"width": NARROW, "height": 800})
    small = {}
    for name, (path, listed) in PAGES.items():
        items = page.request.get(live_server.url + of_first(listed)).json().get("items", []) if listed else [{"id": ""}]
        if items:
            page.goto(path.format(items[0]["id"]))
            if found := page.evaluate(SMALL, LEAST):
                small[name] = found
    assert small == {}

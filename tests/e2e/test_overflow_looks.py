"""The Overflow page in a real Chromium: a limit is dragged, and the page says what would have been."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from apps.accounts.models import Account
from apps.observe.collect.buckets import SHORT
from apps.observe.models import Sample
from tests.apps.overflow_env import make_spilling
from tests.breadth import first_of
from tests.browser import lasting, listen, needs_browser, wrong_in
from tests.conftest import actor_of
from tests.e2e.console_in_memory import signed_in

pytestmark = [pytest.mark.e2e, pytest.mark.browser, pytest.mark.django_db(transaction=True), needs_browser]
STEPS = 300


def with_history() -> str:
    """The spilling environment with fifty minutes before it, in which demand rose and fell; its pool's key."""
    env = make_spilling()
    pool, (eu, us), (eu_1, _, us_1, _) = f"pool-{env.pools['acme'].pk}", env.regions, env.nodes
    first = Sample.objects.filter(resolution=SHORT).earliest("at").at
    rows = []
    for step in range(1, STEPS):
        at = datetime.fromtimestamp(first.timestamp() - step * SHORT, UTC)
        wanted = 9 + 6 * math.sin(step / 40)
        out = max(0.0, wanted - 10)
        for node, kind, name, rate in (
            (us_1, "node", f"node-{us_1.pk}", wanted),
            (us_1, "backend", pool, wanted - out),
            (us_1, "flow", f"{pool}/to/rgn-{eu.pk}/rate", out),
            (eu_1, "backend", pool, 2 + out),
            (eu_1, "flow", f"{pool}/from/rgn-{us.pk}/-", out),
        ):
            parent = pool if kind == "flow" else ""
            counted = {"seconds": SHORT, "requests": round(rate * SHORT)}
            rows.append(
                Sample(at=at, resolution=SHORT, node=node, kind=kind, object_id=name, parent_id=parent, **counted)
            )
    Sample.objects.bulk_create(rows)
    assert timedelta(seconds=STEPS * SHORT) < timedelta(hours=1)
    return str(env.pools["acme"].pk)


def overflow_of(pool: str, server: LiveServer, chromium: Browser) -> Page:
    """The Overflow page of a pool (its key), as an operator opens it."""
    page = signed_in(chromium, server.url, actor_of("operator", Account.Kind.OPERATOR)).new_page()
    page.goto(f"/overflow?pool={pool}", wait_until="networkidle")  # a script of the page comes after it
    return page


US = '.limit-charts section:has(h3:text-is("us"))'


def take_limit(page: Page) -> tuple[float, float]:
    """The mouse where the limit of us can be taken hold of."""
    over = page.locator(f"{US} .u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box
    x = box["x"] + box["width"] / 2
    for y in range(round(box["y"]) + 5, round(box["y"] + box["height"]), 4):
        page.mouse.move(x, y)
        if over.evaluate("over => over.style.cursor") == "ns-resize":
            return x, y
    raise AssertionError("the limit cannot be taken hold of")


def overflowed(page: Page) -> list[int]:
    """How many requests of us overflowed, and would have."""
    text = page.locator(f"{US} > p").last.inner_text()
    return [int(number.replace(",", "")) for number in re.findall(r"([\d,]+) overflowed", text)] + [0]


@pytest.mark.parametrize("turn", first_of(1, (1, 0)))  # axe-core is asked in the dark, and in the light
def test_a_limit_is_dragged_and_the_page_says_what_would_have_been(
    live_server: LiveServer, live_redis: str, chromium: Browser, turn: int
) -> None:
    pool = with_history()
    page = signed_in(chromium, live_server.url, actor_of("operator", Account.Kind.OPERATOR)).new_page()
    complaints = listen(page)
    page.goto(f"/overflow?pool={pool}", wait_until="networkidle")  # a script of the page comes after it
    x, y = take_limit(page)
    page.mouse.down()
    page.mouse.move(x, y - 10)
    page.mouse.move(x, y - 40, steps=6)
    page.mouse.up()
    field = page.get_by_label("Limit of us, requests/s", exact=True)
    assert int(field.input_value()) > 10
    expect(page.locator("#history .badge")).to_have_text("Simulated")
    expect(page.locator("#simulated")).to_contain_text("us serves")
    before, after = overflowed(page)[:2]
    assert after < before / 2
    expect(page).to_have_url(re.compile(rf"pool={pool}&limit-rgn-\d+={field.input_value()}$"))
    assert lasting(page, partial(wrong_in, page, turn)) + complaints == []
    asked = field.input_value()
    page.get_by_role("link", name="Set this limit in us").click()
    dialog = page.get_by_role("dialog", name="Limit in us")
    expect(dialog.get_by_label("Value")).to_have_value(asked)
    dialog.get_by_role("button", name="Set limit").click()
    expect(page.locator(".toast")).to_contain_text("The limit in us is changed")


def test_a_click_on_the_chart_shows_the_flow_of_that_moment(
    live_server: LiveServer, live_redis: str, chromium: Browser
) -> None:
    page = overflow_of(with_history(), live_server, chromium)
    over = page.locator(f"{US} .u-over")
    box = over.bounding_box()
    assert box
    over.click(position={"x": box["width"] * 0.9, "y": box["height"] - 10})
    expect(page.locator("#past .badge")).to_have_text("History")
    expect(page).to_have_url(re.compile(r"[?&]at=\d+"))
    expect(page.locator("#history .badge")).to_have_count(0)


def test_a_slider_and_its_field_say_the_same(live_server: LiveServer, live_redis: str, chromium: Browser) -> None:
    page = overflow_of(f"{with_history()}#what-if", live_server, chromium)
    field, slider = (page.get_by_label(f"Limit of us, requests/s{end}", exact=True) for end in ("", ", slider"))
    slider.press("ArrowRight")
    expect(field).to_have_value("11")
    expect(page.locator("#history .badge")).to_have_text("Simulated")
    field.fill("14")
    expect(slider).to_have_value("14")
    expect(page).to_have_url(re.compile(r"=14$"))


def test_a_drawer_that_was_opened_stays_open_when_its_numbers_are_brought_anew(
    live_server: LiveServer, live_redis: str, chromium: Browser
) -> None:
    page = overflow_of(with_history(), live_server, chromium)
    drawer = page.locator("#predicted")
    drawer.locator("summary").click()
    drawer.evaluate("each => each.firstElementChild.setAttribute('data-earlier', '')")
    page.evaluate("document.body.dispatchEvent(new CustomEvent('spillway:samples'))")
    expect(drawer.locator("[data-earlier]")).to_have_count(0)
    assert drawer.get_attribute("open") is not None

"""Pages whose parts are read anew, in a real Chromium: what they do when nothing is said, or nothing can be read."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from pytest_django.live_server_helper import LiveServer

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.core.clock import now
from apps.definitions.models import Pool
from apps.observe.models import Sample
from tests.browser import needs_browser
from tests.conftest import actor_of
from tests.e2e.console_in_memory import put_env, signed_in

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    needs_browser,
]
# Which events the page dispatches, by topic.
NOTE = """window.fired = [];
addEventListener("DOMContentLoaded", () => { for (const topic of ["samples", "stacks", "zones", "definitions"])
    document.body.addEventListener(`spillway:${topic}`, () => fired.push(topic)); });"""
HIDE = """window.away = true; Object.defineProperty(document, "hidden", {get: () => window.away});"""
TELL = """() => document.body.dispatchEvent(new CustomEvent("spillway:samples"))"""
TELL_AND_WAIT = """() => new Promise(done => {
    addEventListener("htmx:after:swap", () => setTimeout(done), {once: true});
    document.body.dispatchEvent(new CustomEvent("spillway:samples"));
})"""
SHOW = """() => { window.away = false; dispatchEvent(new Event("visibilitychange")); }"""


@pytest.fixture
def operator(live_server: LiveServer, live_redis: str) -> Actor:
    """Whose pages they are."""
    put_env()
    return actor_of("operator", Account.Kind.OPERATOR)


@pytest.fixture
def page(operator: Actor, chromium: Browser, live_server: LiveServer) -> Page:
    """An empty one."""
    return signed_in(chromium, live_server.url, operator).new_page()


def test_a_page_that_hears_of_no_samples_asks_by_itself_and_shows_no_old_number_as_new(page: Page) -> None:
    page.clock.install()
    page.goto(f"/pools/{Pool.objects.get(name='shop').pk}", wait_until="networkidle")
    requests = page.locator("#numbers .stat", has_text=re.compile(r"^\s*Requests"))
    expect(requests).to_contain_text("/s")
    expect(requests).not_to_contain_text("–")
    Sample.objects.all().delete()  # what a collector that is away has not stored
    page.clock.run_for(9_000)
    expect(requests).not_to_contain_text("–")
    page.clock.run_for(2_000)
    expect(requests).to_contain_text("–")


def test_how_long_ago_something_was_follows_the_clock_of_the_server(page: Page) -> None:
    page.clock.install(time=now() + timedelta(hours=2))
    page.goto("/audit", wait_until="networkidle")
    young = re.compile(r"^(now|\d+ (sec|min)\. ago)$")
    expect(page.locator("main time").first).to_have_text(young)
    page.goto(f"/pools/{Pool.objects.get(name='shop').pk}", wait_until="networkidle")
    expect(page.locator("main time").first).to_have_text(young)
    page.clock.set_system_time(now() + timedelta(hours=5))  # from here on answers alone say how late it is
    page.clock.run_for(12_000)
    expect(page.locator("main time").first).to_have_text(young)


def test_what_was_over_before_the_first_stream_stood_is_asked_for(page: Page) -> None:
    page.add_init_script(NOTE)
    page.goto("/pools")
    page.wait_for_selector("#live.good")
    assert page.evaluate("fired.sort()") == ["stacks", "zones"]


def test_a_page_that_was_opened_in_the_background_is_read_anew_when_it_is_looked_at(page: Page) -> None:
    page.add_init_script(NOTE + HIDE)
    page.goto("/pools")
    expect(page.locator("#live")).to_be_hidden()
    assert page.evaluate("fired") == []
    page.evaluate(SHOW)
    page.wait_for_selector("#live.good")
    assert page.evaluate("fired.sort()") == ["definitions", "samples", "stacks", "zones"]


def test_a_part_that_cannot_be_read_is_said_to_be_old_until_it_can(page: Page) -> None:
    def fail(route: Route) -> None:
        route.fulfill(status=500, body="")

    page.goto("/pools", wait_until="networkidle")
    sign, part = page.locator("#live"), re.compile("/pools.partial=rows")
    expect(sign).to_have_text("Live")
    page.route(part, fail)
    page.evaluate(TELL)
    expect(sign).to_have_text("Not updated")
    page.unroute(part, fail)
    page.evaluate(TELL)
    expect(sign).to_have_text("Live")


@pytest.mark.parametrize(("age", "word"), [("9", "Live"), ("11", "Not updated")])
def test_a_part_that_a_busy_console_made_long_ago_is_said_to_be_old(page: Page, age: str, word: str) -> None:
    page.goto("/pools", wait_until="networkidle")
    part = page.request.get("/pools?partial=rows").text()
    heads = {"Age": age, "Content-Type": "text/html"}
    page.route(re.compile("/pools.partial=rows"), lambda route: route.fulfill(body=part, headers=heads))
    page.evaluate(TELL_AND_WAIT)
    expect(page.locator("#live")).to_have_text(word)


def test_who_asks_in_vain_is_told_once_that_nobody_answers(page: Page) -> None:
    page.goto("/routes/new", wait_until="networkidle")
    page.context.set_offline(True)
    for text in ("/cart", "/checkout"):
        page.get_by_label("Path", exact=True).press_sequentially(text)
        expect(page.locator("#toasts")).to_have_text("The console does not answer. Try again.")
        page.wait_for_timeout(400)

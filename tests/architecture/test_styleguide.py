"""The style guide in a real browser: no console error, no accessibility error, no sideways scrolling, live regions."""

from __future__ import annotations

import threading
import wsgiref.simple_server as simple
from collections.abc import Iterator
from socketserver import ThreadingMixIn
from typing import Any, cast

import pytest
from django.conf import settings
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.handlers.wsgi import WSGIHandler
from django.test import override_settings
from playwright.sync_api import Browser

from tests.browser import NARROW, WIDE, axe_errors, fits, look, needs_browser, opened

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow(reason="pages in a browser, and what axe-core finds in them"),
    needs_browser,
]


class Server(ThreadingMixIn, simple.WSGIServer):
    """A thread per request: the event stream stays open while pages are fetched."""

    daemon_threads = True


class Quiet(simple.WSGIRequestHandler):
    """Says nothing about requests."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the parent's
        pass


class Site:
    """The style guide and an event stream that says `samples` whenever the test lets it."""

    def __init__(self) -> None:
        self.moved = threading.Event()
        self.pages = StaticFilesHandler(WSGIHandler())

    def __call__(self, environ: dict[str, Any], start: Any) -> Any:
        if environ["PATH_INFO"] != "/events":
            return self.pages(environ, start)
        start("200 OK", [("Content-Type", "text/event-stream")])
        return self.events()

    def events(self) -> Iterator[bytes]:
        yield b": hello\n\n"
        while True:
            yield b"event: samples\ndata: {}\n\n" if self.moved.wait(5) else b": still here\n\n"
            self.moved.clear()


@pytest.fixture(scope="module")
def site() -> Iterator[tuple[str, Site]]:
    # The options keep their loaders: those of template_partials make "page.html#part" work.
    options: dict[str, Any] = {
        **cast("dict[str, Any]", settings.TEMPLATES[0]["OPTIONS"]),
        "context_processors": ["django.template.context_processors.request"],
    }
    templates = [{**settings.TEMPLATES[0], "OPTIONS": options}]
    middleware = ["csp.middleware.CSPMiddleware", "django.middleware.csrf.CsrfViewMiddleware"]
    urls = "tests.architecture.styleguide"
    with override_settings(ROOT_URLCONF=urls, MIDDLEWARE=middleware, TEMPLATES=templates, DEBUG=True):
        app = Site()
        server = simple.make_server("127.0.0.1", 0, app, Server, Quiet)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", app
        server.shutdown()


@pytest.mark.parametrize(
    ("path", "wide", "narrow"),
    [
        ("/routes/", "dark", "light"),
        ("/sign-in/", "dark", "light"),
        ("/missing/", "light", "dark"),
        pytest.param("/routes/", "light", "dark", marks=pytest.mark.exhaustive),
    ],
)
def test_pages_are_clean_in_both_themes_and_fit_a_phone(
    chromium: Browser, site: tuple[str, Site], path: str, wide: str, narrow: str
) -> None:
    page, complaints = opened(chromium, site[0] + path)
    if path == "/routes/":
        page.wait_for_selector("#live.good")
        page.wait_for_selector(".chart .uplot")
    for scheme, width in ((wide, WIDE), (narrow, NARROW)):
        look(page, scheme, width)
        assert fits(page)
        assert axe_errors(page) == []
    assert complaints == []


def test_the_accessibility_check_sees_a_fault(chromium: Browser, site: tuple[str, Site]) -> None:
    page, _ = opened(chromium, site[0] + "/missing/")
    page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    assert any(error.startswith("button-name") for error in axe_errors(page))


def test_a_live_region_moves_when_an_event_arrives_and_keeps_the_focus(
    chromium: Browser, site: tuple[str, Site]
) -> None:
    page, complaints = opened(chromium, site[0] + "/routes/")
    page.wait_for_selector("#live.good")
    before = page.inner_text("#numbers .figure")
    page.focus("#f-q")
    site[1].moved.set()
    page.wait_for_function("text => document.querySelector('#numbers .figure').innerText !== text", arg=before)
    assert page.evaluate("document.activeElement.id") == "f-q"
    assert complaints == []


def test_keyboard_rows_palette_theme_and_confirmation_work(chromium: Browser, site: tuple[str, Site]) -> None:
    page, complaints = opened(chromium, site[0] + "/routes/")
    page.wait_for_selector("#live.good")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.textContent") == "api.acme.example/v2/"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "f-q"
    page.keyboard.press("Control+k")
    assert page.locator("#palette [data-pages] a").count() == page.locator("nav[data-palette] a:not(.new)").count() > 9
    page.keyboard.press("Escape")
    page.click("[data-theme-switch]")
    page.click("[data-theme-switch]")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.click("[data-add-row]")
    assert page.locator("#pools [data-row]:visible").count() == 2
    page.click("[data-open=rollback]")
    assert page.is_disabled("[data-when-confirmed]")
    page.fill("#rollback-name", "eu-central")
    assert page.is_enabled("[data-when-confirmed]")
    assert complaints == []

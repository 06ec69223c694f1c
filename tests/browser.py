"""In a real Chromium: opened pages, their complaints, what axe-core finds; shared by all browser tests.

There is one Chromium for the whole session (the fixture `chromium`); a test makes its own contexts in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from playwright._impl._sync_base import SyncBase
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

PATIENCE_MS = 120_000  # of a busy machine
WIDE, NARROW = 1440, 380
AXE = Path(settings.BASE_DIR) / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
# Without windows, tabs and tool bars, which take half of the work even where nobody sees them, if it is installed.
SHELL, WHOLE = Path("/usr/lib/chromium/chromium-headless-shell"), Path("/usr/bin/chromium")
CHROMIUM = SHELL if SHELL.exists() else WHOLE
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--in-process-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Of what axe-core fetches first, style sheets are for a rule alone that it does not ask unless it is named.
ASK_AXE = """axe.run({resultTypes: ['violations'], preload: {assets: ['media']}}).then(
    found => found.violations.flatMap(each => each.nodes.map(node => each.id + ': ' + node.html.slice(0, 200)))
)"""
ASK_TWICE = """() => [...document.querySelectorAll('[id]')].map(each => each.id)
    .filter((id, at, ids) => ids.indexOf(id) < at).map(id => `the id ${id} stands there twice`)"""
ASK_WIDTH = """() => new Promise(done => {
    const { documentElement: root } = document, until = performance.now() + 2000;
    const look = () => {
        const fits = root.scrollWidth <= root.clientWidth;
        if (fits || performance.now() > until) done(fits); else requestAnimationFrame(look);
    };
    look();
})"""
expect.set_options(timeout=PATIENCE_MS)
needs_browser = pytest.mark.skipif(
    not (AXE.exists() and CHROMIUM.exists()), reason="needs Chromium and `make frontend`"
)


def _sync(self: SyncBase, work: Any) -> Any:
    """A call of Playwright, which leaves its event loop marked as running in this thread: here only while it lasts.

    Else tests with a loop of their own would find one, and Django another connection to the database.
    """
    before = asyncio._get_running_loop()
    asyncio._set_running_loop(self._loop)
    try:
        return _SYNC(self, work)
    finally:
        asyncio._set_running_loop(before)


def _on(self: SyncBase, event: Any, f: Any) -> None:
    """Playwright subscribes in the loop of the moment, which is none once a test has closed its own."""
    before = asyncio._get_running_loop()
    asyncio._set_running_loop(self._loop)
    try:
        _ON(self, event, f)
    finally:
        asyncio._set_running_loop(before)


_SYNC, _ON = SyncBase._sync, SyncBase.on
SyncBase._sync = _sync  # type: ignore[assignment, method-assign]
SyncBase.on = _on  # type: ignore[method-assign]


@contextmanager
def running_chromium() -> Iterator[Browser]:
    """A headless Chromium of the machine."""
    with sync_playwright() as playwright:
        loop = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=PATIENCE_MS)
        yield chromium
        chromium.close()
        asyncio._set_running_loop(loop)
    asyncio._set_running_loop(None)


class SharedChromium:
    """One that is started when a test first asks for it and lent to one test after the other."""

    def __init__(self) -> None:
        self._running = running_chromium()
        self._browser: Browser | None = None

    @contextmanager
    def lent(self) -> Iterator[Browser]:
        """The browser for one test; contexts that it leaves open are closed."""
        if self._browser is None:
            self._browser = self._running.__enter__()
        yield self._browser
        for context in self._browser.contexts:
            context.close()

    def end(self) -> None:
        """With the session."""
        if self._browser is not None:
            self._running.__exit__(None, None, None)


def patient_context(browser: Browser, **options: Any) -> BrowserContext:
    """One for pages that may take their time, as on a busy machine, and move nothing."""
    context = browser.new_context(reduced_motion="reduce", **options)
    context.set_default_timeout(PATIENCE_MS)
    return context


def listen(page: Page) -> list[str]:
    """The list that the page's complaints will go to: console errors and warnings, uncaught exceptions.

    From now on the page may take its time, as on a busy machine.
    """
    complaints: list[str] = []
    page.set_default_timeout(PATIENCE_MS)
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return complaints


def opened(browser: Browser, url: str) -> tuple[Page, list[str]]:
    """A wide page, and the list that its console complaints will go to."""
    page = patient_context(browser).new_page()
    complaints = listen(page)
    look(page, "light", WIDE)
    page.goto(url)
    return page, complaints


def look(page: Page, scheme: str, width: int) -> None:
    """Turn to a colour scheme and a width."""
    dark_or_light: Any = scheme
    page.emulate_media(color_scheme=dark_or_light, reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": 900})


def axe_errors(page: Page) -> list[str]:
    """What axe-core finds.

    It is long, so only a page that is asked about gets it: by the debugger, past its CSP, which lets no script in.
    """
    if not page.evaluate("'axe' in window"):
        session = page.context.new_cdp_session(page)
        session.send("Runtime.evaluate", {"expression": AXE.read_text()})
    found: list[str] = page.evaluate(ASK_AXE)
    return found


def wrong_in(page: Page, turn: int) -> list[str]:
    """What is wrong with a page, wide and narrow: ids that are no names, does it fit, and what does axe-core find.

    The width that axe-core is asked about, and the scheme of both, go round with `turn` from page to page.
    """
    found: list[str] = page.evaluate(ASK_TWICE)
    for narrow, width in enumerate((WIDE, NARROW)):
        look(page, ("light", "dark")[(turn + narrow) % 2], width)
        if not fits(page):
            found.append(f"something sticks out sideways at a width of {width}")
        if narrow == turn // 2 % 2:
            found += axe_errors(page)
    return found


def wrong_when_narrow(page: Page) -> list[str]:
    """What is wrong with a page that was loaded as it is asked about: ids that are no names, and does it fit."""
    look(page, "light", NARROW)
    found: list[str] = page.evaluate(ASK_TWICE)
    return found if fits(page) else [*found, f"something sticks out sideways at a width of {NARROW}"]


def fits(page: Page) -> bool:
    """Whether nothing sticks out sideways, once charts have followed the width, which takes them a frame or two."""
    return bool(page.evaluate(ASK_WIDTH))


def lasting(page: Page, ask: Callable[[], list[str]]) -> list[str]:
    """What is wrong and still is a moment later: live parts of a page come and go."""
    found = ask()
    if found:
        page.wait_for_timeout(500)
        found = [each for each in ask() if each in found]
    return found

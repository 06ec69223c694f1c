"""CHECK in a real Chromium: opened pages, their complaints, what axe-core finds; shared by all browser tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import Browser, Page, expect, sync_playwright

PATIENCE_MS = 120_000  # of a busy machine
AXE = Path(settings.BASE_DIR) / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
expect.set_options(timeout=PATIENCE_MS)
needs_browser = pytest.mark.skipif(
    not (AXE.exists() and CHROMIUM.exists()), reason="needs Chromium and `make frontend`"
)


@contextmanager
def running_chromium() -> Iterator[Browser]:
    """A headless Chromium of the machine."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=PATIENCE_MS)
        yield chromium
        chromium.close()


def listen(page: Page) -> list[str]:
    """The list that the page's complaints will go to: console errors and warnings, uncaught exceptions.

    From now on the page may take its time, as on a busy machine.
    """
    complaints: list[str] = []
    page.set_default_timeout(PATIENCE_MS)
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return complaints


def opened(browser: Browser, url: str, scheme: str, width: int) -> tuple[Page, list[str]]:
    """A page in the colour scheme, and the list that its console complaints will go to."""
    dark_or_light: Any = scheme
    page = browser.new_context(color_scheme=dark_or_light, viewport={"width": width, "height": 900}).new_page()
    complaints = listen(page)
    page.goto(url)
    return page, complaints


def faults(page: Page) -> list[str]:
    """What axe-core finds; brought in by the debugger because the page's CSP lets no script in."""
    if not page.evaluate("'axe' in window"):
        session = page.context.new_cdp_session(page)
        session.send("Runtime.evaluate", {"expression": AXE.read_text()})
    found: list[str] = page.evaluate(
        "axe.run().then(r => r.violations.flatMap(v => v.nodes.map(n => v.id + ': ' + n.html.slice(0, 200))))"
    )
    return found


def fits(page: Page) -> bool:
    """Whether nothing sticks out sideways."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))

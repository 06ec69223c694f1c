"""CHECK, pages of runs in a real Chromium: clean for axe, no complaint, nothing sticks out, the stop button in sight.

The demo has no run; here they are rendered from rows, and the browser gets them without a server in between.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, Page, Route

from apps.accounts.actors import Actor
from apps.capacity.models import Comparison
from apps.core.clock import now
from apps.definitions.models import CapacityTest, Pool
from tests.browser import faults, fits, listen, needs_browser, running_chromium
from tests.doors.capacity_world import make_run, make_test, make_work
from tests.doors.people import client_of

pytestmark = [
    pytest.mark.browser,
    pytest.mark.any_database,  # what a browser makes of pages
    needs_browser,
]
ORIGIN = "https://console.example"
SHOTS = Path(settings.BASE_DIR) / "var" / "screenshots"
STATIC = Path(settings.BASE_DIR) / "frontend" / "static"
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".woff2": "font/woff2"}
LOOKS = {"light": ("light", 1440), "dark": ("dark", 1440), "narrow": ("light", 380)}
Answers = dict[str, tuple[str, dict[str, str]]]


def answers_of(client: Client, paths: dict[str, str]) -> Answers:
    """Each page as the console answers it, with its headers."""
    found: Answers = {}
    for name, path in paths.items():
        answer = client.get(path)
        assert answer.status_code == 200, path
        found[name] = (answer.content.decode(), dict(answer.items()))
    return found


def opened(browser: Browser, answer: tuple[str, dict[str, str]], look: str) -> tuple[Page, list[str]]:
    """A page that is answered from here, with the style sheets and scripts of the working tree."""
    scheme, width = LOOKS[look]
    kind: Any = scheme
    page = browser.new_context(color_scheme=kind, viewport={"width": width, "height": 900}).new_page()
    complaints = listen(page)

    def fulfil(route: Route) -> None:
        path, query = urlsplit(route.request.url).path, urlsplit(route.request.url).query
        file = STATIC / path.removeprefix("/static/")
        if path == "/page" and not query:  # a live part that asks again gets nothing new
            route.fulfill(body=answer[0], headers=answer[1])
        elif path.startswith("/static/") and file.is_file():
            route.fulfill(body=file.read_bytes(), content_type=TYPES[file.suffix])
        elif path == "/events":
            route.fulfill(body=": open\n\n", content_type="text/event-stream")
        else:
            route.fulfill(status=204)

    page.route("**/*", fulfil)
    page.goto(f"{ORIGIN}/page")
    return page, complaints


def in_sight(page: Page, text: str) -> bool:
    """Whether the button is within what the window shows, after scrolling to the end."""
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    box = page.get_by_role("button", name=text).bounding_box()
    return box is not None and box["y"] >= 0 and box["y"] + box["height"] <= 900


@pytest.fixture
def answers(tutorial_world: Actor) -> Answers:
    """Every page that a run, a comparison, a sizing and a pool that works unevenly can show."""
    CapacityTest.objects.all().delete()
    pool = Pool.objects.get(name="shop")
    test, other = make_test(pool), make_test(pool, "europe-west1")
    first, second = make_run(test), make_run(test)
    going = make_run(test, steps=7, state="running", doing="Closing in.")
    refused = make_run(other, steps=0, state="refused", why="It is drained.")
    change = {"field": "p95_ms", "first": 541.0, "second": 606.0, "change": 0.12, "plus_minus": 0.03, "shown": True}
    result = {"verdict": "B is slower.", "differences": [change | {"sentence": "B is slower."}]}
    comparison = Comparison.objects.create(
        account=test.account, first=test, second=other, actor="ada", rounds=2, result=result
    )
    changed = now() - timedelta(minutes=30)
    make_work(pool, changed - timedelta(minutes=2), 300, 290, 310, slow=20)
    make_work(pool, now() - timedelta(minutes=2), 900, 60, 40, errors=20, slow=200)
    paths = {
        "capacity-test": f"/capacity-tests/{test.pk}",
        "capacity-run-going": f"/capacity-runs/{going.pk}",
        "capacity-run": f"/capacity-runs/{second.pk}",
        "capacity-run-refused": f"/capacity-runs/{refused.pk}",
        "capacity-run-limit": f"/capacity-runs/{second.pk}/limit?margin=20",
        "capacity-runs-compare": f"/capacity-runs/compare?run={first.pk}&run={second.pk}",
        "capacity-comparison": f"/capacity-comparisons/{comparison.pk}",
        "sizing": f"/sizing?pool={pool.pk}&rate=40&margin=10&lose=1&cost=50&changed={changed:%Y-%m-%dT%H:%M}",
        "pool-uneven": f"/pools/{pool.pk}",
    }
    return answers_of(client_of(tutorial_world), paths)


@pytest.mark.parametrize("look", LOOKS)
def test_pages_of_runs_are_clean_fit_and_keep_the_stop_button_in_sight(answers: Answers, look: str) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    found = {}
    with running_chromium() as browser:
        for name, answer in answers.items():
            page, complaints = opened(browser, answer, look)
            page.screenshot(path=SHOTS / f"{name}-{look}.png", full_page=True)
            wrong = [*complaints, *faults(page), *([] if fits(page) else ["it does not fit"])]
            if "going" in name and not in_sight(page, "Stop the load"):
                wrong.append("the stop button is out of sight")
            found[name] = wrong
            page.context.close()
    assert {name: wrong for name, wrong in found.items() if wrong} == {}

"""Pages of runs in a real Chromium: clean for axe, no complaint, nothing sticks out, the stop button in sight.

The demo has no run; here they are rendered from rows, and the browser gets them without a server in between.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.test import Client
from playwright.sync_api import Browser, Page, Route

from apps.accounts.actors import Actor
from apps.capacity.models import Comparison
from apps.core.clock import now
from apps.definitions.models import CapacityTest, Pool
from tests.browser import NARROW, WIDE, axe_errors, fits, listen, look, needs_browser, patient_context
from tests.interfaces.capacity_env import make_run, make_test, make_work
from tests.interfaces.people import client_of

pytestmark = [pytest.mark.browser, needs_browser]
ORIGIN = "https://console.example"
GOING = "capacity-run-going"
SHOTS = Path(settings.BASE_DIR) / "var" / "screenshots"
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".woff2": "font/woff2"}
LOOKS = {"light": ("light", WIDE), "dark": ("dark", WIDE), "narrow": ("light", NARROW)}
Answers = dict[str, tuple[str, dict[str, str]]]


def answers_of(client: Client, paths: dict[str, str]) -> Answers:
    """Each page as the console answers it, with its headers."""
    found: Answers = {}
    for name, path in paths.items():
        answer = client.get(path)
        assert answer.status_code == 200, path
        found[name] = (answer.content.decode(), dict(answer.items()))
    return found


def a_page(browser: Browser, answers: Answers) -> tuple[Page, list[str]]:
    """A page to which the answers are given, with the style sheets and scripts of the working tree; its complaints."""

    def fulfil(route: Route) -> None:
        path, query = urlsplit(route.request.url).path, urlsplit(route.request.url).query
        found = finders.find(path.removeprefix("/static/")) if path.startswith("/static/") else None
        if path[1:] in answers and not query:  # a live part that asks again gets nothing new
            body, headers = answers[path[1:]]
            route.fulfill(body=body, headers=headers)
        elif found:
            file = Path(found)
            route.fulfill(body=file.read_bytes(), content_type=TYPES[file.suffix])
        elif path == "/events":
            route.fulfill(body=": open\n\n", content_type="text/event-stream")
        else:
            route.fulfill(status=204)

    page = patient_context(browser).new_page()
    page.route("**/*", fulfil)
    return page, listen(page)


def in_sight(page: Page, text: str) -> bool:
    """Whether the button is within what the window shows, after scrolling to the end."""
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    box = page.get_by_role("button", name=text).bounding_box()
    return box is not None and box["y"] >= 0 and box["y"] + box["height"] <= 900


@pytest.fixture
def paths(tutorial_env: Actor) -> dict[str, str]:
    """Every page that a run, a comparison, a sizing and a pool that works unevenly can show."""
    CapacityTest.objects.all().delete()
    pool = Pool.objects.get(name="shop")
    test, other = make_test(pool), make_test(pool, "europe-west1")
    first, second = make_run(test), make_run(test)
    going = make_run(test, steps=7, state="running", phase="Closing in.")
    refused = make_run(other, steps=0, state="refused", message="It is drained.")
    change = {"field": "p95_ms", "first": 541.0, "second": 606.0, "change": 0.12, "plus_minus": 0.03, "shown": True}
    result = {"message": "B is slower.", "differences": [change | {"message": "B is slower."}]}
    comparison = Comparison.objects.create(
        account=test.account, first=test, second=other, actor="ada", rounds=2, result=result
    )
    changed = now() - timedelta(minutes=30)
    make_work(pool, changed - timedelta(minutes=2), 300, 290, 310, slow=20)
    make_work(pool, now() - timedelta(minutes=2), 900, 60, 40, errors=20, slow=200)
    return {
        "capacity-test": f"/capacity-tests/{test.pk}",
        GOING: f"/capacity-runs/{going.pk}",
        "capacity-run": f"/capacity-runs/{second.pk}",
        "capacity-run-refused": f"/capacity-runs/{refused.pk}",
        "capacity-run-limit": f"/capacity-runs/{second.pk}/limit?margin=20",
        "capacity-runs-compare": f"/capacity-runs/compare?run={first.pk}&run={second.pk}",
        "capacity-comparison": f"/capacity-comparisons/{comparison.pk}",
        "sizing": f"/sizing?pool={pool.pk}&rate=40&margin=10&n_minus_1=1&cost=50&changed={changed:%Y-%m-%dT%H:%M}",
        "pool-uneven": f"/pools/{pool.pk}",
    }


# Pages are rendered before a browser is lent: beside its event loop the test's own database is not seen.


@pytest.fixture
def run_page(paths: dict[str, str], tutorial_env: Actor) -> Answers:
    """The page of a run that is going on."""
    return answers_of(client_of(tutorial_env), {GOING: paths[GOING]})


@pytest.fixture
def all_pages(paths: dict[str, str], tutorial_env: Actor) -> Answers:
    """All of them."""
    return answers_of(client_of(tutorial_env), paths)


def wrong_in(page: Page, name: str) -> list[str]:
    """What sticks out of the page or out of sight."""
    wrong = [] if fits(page) else ["it does not fit"]
    if name == GOING and not in_sight(page, "Stop test"):
        wrong.append("the stop button is out of sight")
    return wrong


def test_the_page_of_a_run_is_clean_and_keeps_the_stop_button_in_sight_in_every_width(
    run_page: Answers, chromium: Browser
) -> None:
    page, complaints = a_page(chromium, run_page)
    look(page, *LOOKS["light"])
    page.goto(f"{ORIGIN}/{GOING}")
    assert axe_errors(page) == []
    for each in LOOKS.values():
        look(page, *each)
        assert wrong_in(page, GOING) == [], each
    assert complaints == []


@pytest.mark.exhaustive  # nine pages in three looks, with pictures
def test_pages_of_runs_are_clean_in_every_look(all_pages: Answers, chromium: Browser) -> None:
    page, complaints = a_page(chromium, all_pages)
    SHOTS.mkdir(parents=True, exist_ok=True)
    found = {}
    for name, each in product(all_pages, LOOKS):
        look(page, *LOOKS[each])
        page.goto(f"{ORIGIN}/{name}")
        page.screenshot(path=SHOTS / f"{name}-{each}.png", full_page=True)
        found[name, each] = [*axe_errors(page), *wrong_in(page, name), *complaints]
        complaints.clear()
    assert {each: wrong for each, wrong in found.items() if wrong} == {}

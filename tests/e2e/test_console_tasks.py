"""Eleven things that people do in the console each week, by mouse and by keyboard alone, with what they cost.

Each begins on the overview and ends when the page says that it is done. A click is a click; a key is a key, letters of
what is typed to find something included, but not what a form has to be told, which counts as fields. The review before
the first release counted the first number of TASKS; `-s` prints the table of docs/develop/console-tasks.md.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import quantiles
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from apps.accounts.models import Account
from apps.capacity.models import Run
from apps.core.clock import now
from apps.definitions.models import Pool
from apps.observe.evaluate.conditions import Reason, Type, Verdict
from apps.observe.services import store_verdicts
from tests.browser import listen, needs_browser
from tests.conftest import actor_of
from tests.e2e.console_in_memory import put_env, signed_in
from tests.e2e.hands import Hands

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.browser,
    pytest.mark.exhaustive,
    pytest.mark.timeout(600),
    pytest.mark.django_db(transaction=True),
    needs_browser,
]
NAV, MAIN = "nav.nav", "main"
# The palette asks anew a moment after the last letter; people wait for it, too.
LOOKS_AGAIN_MS = 500
PATIENCE_MS = 15_000


def find(hands: Hands, words: str) -> None:
    """By the palette: its key, words, Enter on the first that it finds."""
    hands.press("Control+k")
    hands.write(words)
    expect(hands.page.locator("#palette-results :is(a, button)").first).to_be_visible()
    hands.page.wait_for_timeout(LOOKS_AGAIN_MS)
    hands.press("Enter")


def find_by_mouse(hands: Hands, words: str, line: str) -> None:
    """The same with the mouse: the field at the top, words, a click on the line."""
    hands.click(hands.page.locator("[data-open=palette]"))
    hands.page.keyboard.type(words)
    hands.fields += 1
    hands.click(hands.page.locator("#palette-results").get_by_text(line).first)


def done(hands: Hands, text: str) -> None:
    """The page says so."""
    expect(hands.page.locator("#toasts, main").filter(has_text=text).first).to_be_visible()


def submit(hands: Hands, label: str, *, by_keys: bool) -> None:
    """Send the form: by its button, or by Enter in its last field."""
    if by_keys:
        hands.press("Enter")
    else:
        hands.button(label, inside=MAIN)


def new_by_mouse(hands: Hands, section: str, button: str) -> None:
    """The button beside a name of the navigation, which is there for whom points at it."""
    hands.page.locator(NAV).get_by_role("link", name=section, exact=True).hover()
    hands.link(button, inside=NAV)


def fill_route(hands: Hands, name: str) -> None:
    hands.choose("Account", "acme")
    hands.fill("Name", name)
    hands.page.locator("[name=pools-0-pool]").fill("acme/shop")
    hands.fields += 1
    hands.fill("Hostname", f"{name}.acme.example")


def create_route(hands: Hands, *, by_keys: bool) -> None:
    if by_keys:
        hands.press("c")
    else:
        hands.link("New route", inside=MAIN)
    expect(hands.page.get_by_role("heading", level=1)).to_contain_text("New route")
    fill_route(hands, "keys" if by_keys else "mouse")
    submit(hands, "Save and go live", by_keys=by_keys)
    done(hands, "is saved and is being rolled out")


def drain_server(hands: Hands, *, by_keys: bool) -> None:
    if by_keys:
        find(hands, "drain us-vm-2")
    else:
        find_by_mouse(hands, "drain us-vm-1", "Drain us-vm-1")
    done(hands, "draining")


def drain_region(hands: Hands, *, by_keys: bool) -> None:
    if by_keys:
        find(hands, "drain eur")
        expect(hands.page.get_by_label("Reason")).to_be_visible()
        hands.page.get_by_label("Reason").focus()
        hands.fields += 1
        hands.press("Enter")
    else:
        hands.link("Regions", inside=NAV)
        hands.link("Drain us-central1", inside=MAIN)
        hands.button("Drain us-central1", inside=MAIN)
    done(hands, "Drained" if by_keys else "rained")


def why_failing(hands: Hands, *, by_keys: bool) -> None:
    if by_keys:
        find(hands, "shop-next")
    else:
        hands.click(hands.page.locator(".strip-states .state.bad"))
    done(hands, "No server")


def revert(hands: Hands, *, by_keys: bool) -> None:
    if by_keys:
        hands.press("g", "c")
        hands.page.wait_for_url("**/changes")
        hands.press("j", "Enter")
        expect(hands.page.get_by_role("button", name="Revert change")).to_be_visible()
        hands.page.get_by_label("Reason").focus()
        hands.press("Enter")
    else:
        hands.click(hands.page.locator("#now").get_by_role("link", name="Revert").first)
        hands.button("Revert change", inside=MAIN)
    done(hands, "everted")


def run_test(hands: Hands, *, by_keys: bool) -> None:
    if by_keys:
        find(hands, "run shop-us")
        expect(hands.page.get_by_role("dialog")).to_be_visible()
        hands.press("Tab", "Enter")
    else:
        find_by_mouse(hands, "run shop-us", "Run capacity test")
        hands.button("Start test")
    hands.page.wait_for_url(lambda url: "/capacity-runs/" in url or "/capacity-tests/" in url)


def schedule(hands: Hands, *, by_keys: bool) -> None:
    if by_keys:
        find(hands, "new schedule")
    else:
        new_by_mouse(hands, "Schedules", "New schedule")
    hands.fill("Name", "by-keys" if by_keys else "by-mouse")
    for name, text in (("cron", "0 30 2 * * *"), ("url", "https://hooks.example/nightly")):
        hands.page.locator(f"#schedule-form [name={name}]").fill(text)
        hands.fields += 1
    submit(hands, "Save", by_keys=by_keys)
    done(hands, "is saved")


def invite(hands: Hands, *, by_keys: bool) -> None:
    if by_keys:
        find(hands, "new invitation")
    else:
        new_by_mouse(hands, "People", "Invite people")
    hands.fill("Email address", f"{'keys' if by_keys else 'mouse'}@initech.example")
    submit(hands, "Create invitation", by_keys=by_keys)
    expect(hands.page.get_by_role("region", name="Invitation link")).to_be_visible()


def token(hands: Hands, *, by_keys: bool) -> None:
    if by_keys:
        find(hands, "new token")
    else:
        new_by_mouse(hands, "Tokens", "New token")
    hands.fill("Name", "keys" if by_keys else "mouse")
    submit(hands, "Create token", by_keys=by_keys)
    done(hands, "Copy it now")


def plan_stack(hands: Hands, *, by_keys: bool) -> None:
    if by_keys:
        find(hands, "plan aws")
    else:
        find_by_mouse(hands, "plan aws", "Plan stack aws-frankfurt")
    hands.page.wait_for_url(lambda url: "/stack" in url)


def audit(hands: Hands, *, by_keys: bool) -> None:
    if by_keys:
        hands.press("g", "d")
        hands.page.wait_for_url("**/audit")
        hands.press("j", "Enter")
    else:
        hands.link("Audit log", inside=NAV)
        hands.click(hands.page.locator("main table a.row-link").first)
    hands.page.wait_for_url("**/audit/*")


# What is done; the clicks that the review counted; the clicks, and the keys without a mouse, that it takes at most.
TASKS: dict[str, tuple[Callable[..., None], int, int, int]] = {
    "Create a route": (create_route, 2, 2, 2),
    "Drain a server": (drain_server, 4, 2, 15),
    "Drain a region": (drain_region, 4, 3, 12),
    "See why something fails": (why_failing, 1, 1, 11),
    "Take back a change": (revert, 4, 2, 5),
    "Run a capacity test": (run_test, 4, 3, 15),
    "Create a schedule": (schedule, 2, 2, 15),
    "Invite somebody": (invite, 3, 2, 17),
    "Create a token": (token, 3, 2, 12),
    "Plan a stack": (plan_stack, 2, 2, 10),
    "Look at an entry of the audit log": (audit, 2, 2, 4),
}


# What the browser itself says of each key and click: from the input to the next picture, in steps of 8 ms.
OBSERVE = """new PerformanceObserver((list) => {
  for (const each of list.getEntries()) if (each.interactionId) interactionTook(each.name, each.duration);
}).observe({ type: "event", durationThreshold: 16 });"""


def told_of_interactions(page: Page) -> list[float]:
    """From now on how long each interaction of the page took until something was painted, in ms; 16 at least."""
    found: list[float] = []
    page.expose_function("interactionTook", lambda _name, took: found.append(took))
    page.add_init_script(OBSERVE)
    return found


def begin(page: Page) -> Hands:
    """On the overview, with one pool that is down and no run of a test."""
    Run.objects.all().delete()
    pool = Pool.objects.get(name="shop-next")
    store_verdicts([Verdict("pool", pool.pk, Type.HEALTHY, False, Reason.NO_SERVER_UP, "No server is up.")], now())
    page.goto("/", wait_until="load")
    page.wait_for_timeout(300)
    return Hands(page)


def test_what_people_do_each_week_takes_few_clicks_and_no_mouse(
    live_server: Any, live_redis: str, chromium: Browser
) -> None:
    put_env()
    page = signed_in(chromium, live_server.url, actor_of("operator", Account.Kind.OPERATOR)).new_page()
    page.set_viewport_size({"width": 1440, "height": 900})
    complaints = listen(page)
    page.set_default_timeout(PATIENCE_MS)
    measured, took = {}, told_of_interactions(page)
    for name, (task, *_) in TASKS.items():
        mouse, keyboard = begin(page), None
        task(mouse, by_keys=False)
        keyboard = begin(page)
        task(keyboard, by_keys=True)
        assert (mouse.keys, keyboard.clicks) == (0, 0), name
        measured[name] = (mouse.clicks, keyboard.keys, mouse.fields)
    print("\n| task | clicks before | clicks | fields | keys, without a mouse |\n|---|---:|---:|---:|---:|")
    for name, (clicks, keys, fields) in measured.items():
        print(f"| {name} | {TASKS[name][1]} | {clicks} | {fields} | {keys} |")
    p95, worst = quantiles(took, n=20)[-1], sorted(took)[-3:]
    print(f"\n{len(took)} keys and clicks took 16 ms or more until the next picture: p95 {p95:.0f} ms, worst {worst}.")
    assert complaints == []
    most = {name: (clicks, keys) for name, (_, _, clicks, keys) in TASKS.items()}
    assert {name: found[:2] for name, found in measured.items()} == most

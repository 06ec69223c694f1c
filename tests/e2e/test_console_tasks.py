"""Twelve things that people do in the console each week, with the mouse and without one, and what they cost.

Each begins on the overview and ends when the page says that it is done. A click is each press of the mouse; a key is a
key, letters of what is typed to find something included, but not what a form has to be told, which counts as fields.
The review before the first release counted the first number of TASKS; `-s` prints the table of
docs/develop/console-tasks.md.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import quantiles
from typing import Any

import pytest
import yaml
from django.test import Client
from playwright.sync_api import Browser, Page, expect

from apps.accounts.models import Account
from apps.accounts.tokens import create_token
from apps.capacity.models import Run
from apps.core.clock import now
from apps.definitions.models import Pool, Server
from apps.definitions.services import drain_region as drain
from apps.fleet.models import Stack
from apps.observe.evaluate.conditions import ServerFacts, evaluate_pool, evaluate_server
from apps.observe.services import store_verdicts
from apps.stacks.models import StackRun, StackSync
from tests.apps.stacks_env import a_run
from tests.browser import listen, needs_browser
from tests.conftest import TUTORIAL, actor_of
from tests.e2e.console_in_memory import put_env, signed_in
from tests.e2e.hands import Hands, Way

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.browser,
    pytest.mark.exhaustive,
    pytest.mark.timeout(600),
    pytest.mark.django_db(transaction=True),
    needs_browser,
]
OBJECTS: list[dict[str, Any]] = yaml.safe_load(TUTORIAL.read_text())["objects"]
WHOLE = [{"pool": "shop", "weight": 100}, {"pool": "shop-next", "weight": 0}]
HEAD = """| task | clicks before | clicks | clicks, Enter sends | fields | keys, without a mouse |
|---|---:|---:|---:|---:|---:|"""
NAV, MAIN, OVERVIEW = "nav.nav", "main", "#now"
PATIENCE_MS = 15_000


def done(hands: Hands, text: str) -> None:
    """The page says so."""
    expect(hands.page.locator("#toasts, main").filter(has_text=text).first).to_be_visible()


def new(hands: Hands, section: str, button: str, words: str) -> None:
    """The button beside a name of the navigation, which is there for whom points at it; or the palette."""
    if hands.way is Way.KEYS:
        hands.find(words, words.capitalize())
    else:
        hands.page.locator(NAV).get_by_role("link", name=section, exact=True).hover()
        hands.link(button, inside=NAV)


def create_route(hands: Hands) -> None:
    if hands.way is Way.KEYS:
        hands.press("c")
    else:
        hands.link("New route", inside=MAIN)
    expect(hands.page.get_by_role("heading", level=1)).to_contain_text("New route")
    for label, text in (("Account", "acme"), ("Name", hands.way), ("Hostname", f"{hands.way}.acme.example")):
        hands.fill(label, text)
    hands.page.locator("[name=pools-0-pool]").fill("acme/shop")
    hands.fields += 1
    hands.page.get_by_label("Hostname", exact=True).focus()
    hands.send("Save and go live", inside=MAIN)
    done(hands, "is saved and is being rolled out")


def drain_server(hands: Hands) -> None:
    name = {Way.MOUSE: "us-vm-1", Way.ENTER: "us-vm-2", Way.KEYS: "eu-vm-1"}[hands.way]
    hands.find(f"drain {name}", f"Drain {name}")
    done(hands, f"{name}: draining.")


def drain_region(hands: Hands) -> None:
    if hands.way is Way.KEYS:
        hands.find("drain us-c", "Drain region us-central1")
    else:
        hands.link("Drain us-central1", inside=OVERVIEW)
    expect(hands.page.get_by_role("heading", name="Predicted changes")).to_be_visible()
    hands.fill("Reason", "switches")
    hands.send("Drain us-central1", inside=MAIN)
    done(hands, "Region us-central1 is drained.")


def why_failing(hands: Hands) -> None:
    """Which servers, what their check asks and what it got, since when, and what changed before."""
    told = hands.page.locator("#attention li").first
    for words in (
        "Pool shop-next is down. No server is up: us-vm-3 (answered 404), eu-vm-3 (answered 404).",
        "Began",
        "GET /ready expects 200",
        "Pool acme/shop-next changed, health check, path: /healthz → /ready, by token ci",
    ):
        expect(told).to_contain_text(words)


def revert(hands: Hands) -> None:
    if hands.way is Way.KEYS:
        hands.press("g", "c")
        hands.page.wait_for_url("**/changes")
        hands.press("j", "Enter")
        expect(hands.page.get_by_role("button", name="Revert change")).to_be_visible()
        hands.page.get_by_label("Reason").focus()
        hands.press("Enter")
    else:
        hands.click(hands.page.locator("#changes").get_by_role("link", name="Revert").first)
        hands.button("Revert change", inside=MAIN)
    done(hands, "Reverted: ")


def run_test(hands: Hands) -> None:
    if hands.way is Way.KEYS:
        hands.find("run shop-us", "Run capacity test shop-us")
        expect(hands.page.get_by_role("dialog")).to_be_visible()
        hands.press("Tab", "Tab", "Enter")
    else:
        hands.link("Run shop-us", inside=OVERVIEW)
        hands.button("Start test")
    hands.page.wait_for_url("**/capacity-runs/*")


def schedule(hands: Hands) -> None:
    new(hands, "Schedules", "New schedule", "new schedule")
    hands.fill("Name", f"by-{hands.way}")
    for name, text in (("cron", "0 30 2 * * *"), ("url", "https://hooks.example/nightly")):
        hands.page.locator(f"#schedule-form [name={name}]").fill(text)
        hands.fields += 1
    hands.send("Save", inside=MAIN)
    done(hands, "is saved")


def invite(hands: Hands) -> None:
    address = f"{hands.way}@initech.example"
    hands.find("invite ", f"Invite {address} as viewer", told=address)
    expect(hands.page.get_by_role("region", name="Invitation link")).to_be_visible()


def token(hands: Hands) -> None:
    hands.find("token ", f"Create token {hands.way} as viewer", told=hands.way)
    done(hands, "Copy it now")


def plan_stack(hands: Hands) -> None:
    if hands.way is Way.KEYS:
        hands.find("plan aws", "Plan stack aws-frankfurt")
    else:
        hands.button("Plan now", inside=OVERVIEW, exact=False)
    done(hands, "Planning has started.")


def audit(hands: Hands) -> None:
    """Who, when, by which request, and each field before and after."""
    if hands.way is Way.KEYS:
        hands.press("g", "d")
        hands.page.wait_for_url("**/audit")
        hands.press("j", "Enter")
    else:
        hands.click(hands.page.locator("#changes li .strong").first)
    expect(hands.page.get_by_role("heading", name="Origin")).to_be_visible()
    expect(hands.page.locator("main .diff").first).to_contain_text("/ready")


def canary(hands: Hands) -> None:
    hands.find("canary checkout", "Send 10 % of checkout to shop-next")
    done(hands, "Pool shop-next gets 10 % of the requests of route checkout moments later.")


# What is done; the clicks that the review counted; at most how many it takes: clicks with the mouse alone, clicks where
# Enter sends what was typed, and keys without a mouse.
TASKS: dict[str, tuple[Callable[[Hands], None], int, int, int, int]] = {
    "Create a route": (create_route, 2, 2, 1, 2),
    "Drain a server": (drain_server, 4, 2, 1, 15),
    "Drain a region": (drain_region, 4, 2, 1, 13),
    "See why something fails": (why_failing, 1, 0, 0, 0),
    "Take back a change": (revert, 4, 2, 2, 5),
    "Run a capacity test": (run_test, 4, 2, 2, 16),
    "Create a schedule": (schedule, 2, 2, 1, 15),
    "Invite somebody": (invite, 3, 2, 1, 9),
    "Create a token": (token, 3, 2, 1, 8),
    "Plan a stack": (plan_stack, 2, 1, 1, 10),
    "Look at an entry of the audit log": (audit, 2, 1, 1, 4),
    "Begin a canary (90/10)": (canary, 4, 2, 1, 17),
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


def change(token: str, kind: str, name: str, block: str, **fields: Any) -> None:
    """A pipeline changes fields of a block of an object of the tutorial."""
    found = next(each for each in OBJECTS if (each["kind"], each["name"]) == (kind, name))
    found["spec"][block].update(fields)
    client = Client(headers={"Authorization": f"Bearer {token}"})
    answer = client.put("/api/v1/apply", {"objects": [found]}, content_type="application/json")
    assert answer.status_code == 200, answer.content


def put_back(token: str) -> None:
    """Nothing runs, is drained or is split; a stack failed, and the check of a pool asks for what no server has."""
    Run.objects.all().delete()
    operator = actor_of("operator", Account.Kind.OPERATOR)
    drain(actor=operator, region="us-central1", drained=False)
    change(token, "Route", "checkout", "action", pools=WHOLE)
    for path in ("/healthz", "/ready"):
        change(token, "Pool", "shop-next", "health_check", path=path)
    fail(Stack.objects.get())
    pool = Pool.objects.get(name="shop-next")
    servers = Server.objects.filter(backend__pool=pool).select_related("backend__region").order_by("-name")
    facts = [ServerFacts(each.pk, each.name, each.backend.region.name, ("DOWN",), "L7STS/404") for each in servers]
    store_verdicts([evaluate_pool(pool.pk, facts), *map(evaluate_server, facts)], now())


def fail(stack: Stack) -> None:
    """What is wanted of it is compiled, and its last run failed."""
    failed = {"state": StackRun.State.FAILED, "finished_at": now(), "message": "The credentials are missing."}
    if not StackRun.objects.filter(stack=stack).update(**failed):
        StackSync.objects.update_or_create(stack=stack, defaults={"wanted": a_run(stack, **failed)[0].revision})
    StackSync.objects.filter(stack=stack).update(compiled_generation=stack.desired_generation)


def begin(page: Page, way: Way, token: str) -> Hands:
    """On the overview, after a change that has put a pool down."""
    page.goto("about:blank")  # the page of before would ask for what is taken away now
    put_back(token)
    page.goto("/", wait_until="load")
    page.wait_for_timeout(300)
    return Hands(page, way)


def test_what_people_do_each_week_takes_few_clicks_and_no_mouse(
    live_server: Any, live_redis: str, chromium: Browser
) -> None:
    put_env()
    operator = actor_of("operator", Account.Kind.OPERATOR)
    page = signed_in(chromium, live_server.url, operator).new_page()
    page.set_viewport_size({"width": 1440, "height": 900})
    complaints = listen(page)
    page.set_default_timeout(PATIENCE_MS)
    token = create_token(account=operator.account, name="ci", role="admin")
    measured, took = {}, told_of_interactions(page)
    for name, (task, *_) in TASKS.items():
        found = {}
        for way in Way:
            found[way] = begin(page, way, token)
            task(found[way])
        assert (found[Way.MOUSE].keys, found[Way.KEYS].clicks) == (0, 0), name
        measured[name] = found
    print(f"\n{HEAD}")
    for name, found in measured.items():
        mouse, enter, keys = (found[way] for way in Way)
        print(f"| {name} | {TASKS[name][1]} | {mouse.clicks} | {enter.clicks} | {mouse.fields} | {keys.keys} |")
    p95, worst = quantiles(took, n=20)[-1], sorted(took)[-3:]
    print(f"\n{len(took)} keys and clicks took 16 ms or more until the next picture: p95 {p95:.0f} ms, worst {worst}.")
    assert complaints == []
    most = {name: counts for name, (_, _, *counts) in TASKS.items()}
    assert {
        name: [found[Way.MOUSE].clicks, found[Way.ENTER].clicks, found[Way.KEYS].keys]
        for name, found in measured.items()
    } == most

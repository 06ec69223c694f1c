"""The status page in a real Chromium, as visitors see it: every look, narrow, printed, without JavaScript, refreshed.

Leaves screenshots in `var/screenshots/status-*.png`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.core.clock import now
from apps.definitions.models import StatusPage
from apps.definitions.services import save_object
from apps.definitions.shapes.base.words import instant_text
from apps.observe.evaluate.conditions import Reason, Type, Verdict
from apps.observe.services import store_verdicts
from apps.status import services
from apps.status.models import Incident, PoolDay
from apps.web.status_pages import public
from tests.apps.status_env import day, pools_behind
from tests.browser import NARROW, WIDE, axe_errors, fits, listen, look, needs_browser, patient_context
from tests.conftest import actor_of
from tests.e2e.console_in_memory import put_env, signed_in

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.browser,
    pytest.mark.timeout(300),
    pytest.mark.django_db(transaction=True),
    needs_browser,
]
SHOTS = Path(settings.BASE_DIR) / "var" / "screenshots"
COMPONENTS = (("Web shop", "shop"), ("Checkout", "checkout"), ("Interface for partners", "api"))
LONG = (
    "We moved payments to another provider and watch how many succeed.\n\nOrders that were stuck go on by themselves."
)


@pytest.fixture
def acme(live_server: LiveServer, live_redis: str) -> Iterator[Actor]:
    """A customer with a public page, weeks of days with gaps, and something of everything that people write."""
    put_env()
    public.KEPT.clear()
    found = actor_of("acme", Account.Kind.CUSTOMER)
    _page_of(found)
    yield found
    public.KEPT.clear()


def _page_of(actor: Actor) -> None:
    routes = set(actor.account.route_set.values_list("name", flat=True))
    components = [{"name": name, "routes": [route]} for name, route in COMPONENTS if route in routes]
    spec = {"title": "Acme Stores", "public": True, "components": components, "rules": ["pool-down"]}
    page: StatusPage = save_object(actor=actor, kind="StatusPage", name="acme", spec=spec)
    for number, component in enumerate(components):
        for pool in pools_behind(actor, component["routes"][0]):
            if PoolDay.objects.filter(pool=pool).exists():
                continue
            for back in range(62 - 20 * number):
                if back % 17 not in (5, 6):
                    day(pool, back, down=(back == 9) * 34, failing=(back in (20, 21)) * 75)
    first = components[0]["name"]
    spoken = {"title": "Payments are slow", "text": "Some cards are refused. We look into it.", "components": [first]}
    row = services.open_incident(actor=actor, page_id=page.pk, spec=spoken)
    told = {"text": LONG, "status": "monitoring"}
    services.write_update(actor=actor, incident_id=row.pk, spec=told)
    old = spoken | {"title": "Shop was away", "status": "resolved", "impact": "major_outage"}
    services.open_incident(
        actor=actor, page_id=page.pk, spec=old | {"begins_at": instant_text(now() - timedelta(days=9))}
    )
    Incident.objects.filter(title="Shop was away").update(resolved_at=now() - timedelta(days=9))
    times = {
        "begins_at": instant_text(now() + timedelta(days=2)),
        "ends_at": instant_text(now() + timedelta(days=2, hours=2)),
    }
    work = {"title": "New database", "text": "Orders pause for some minutes.", "components": [first]}
    services.open_incident(actor=actor, page_id=page.pk, spec=work | times)


def picture(page: Page, name: str) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / f"status-{name}.png", full_page=True)


def test_visitors_read_it_in_every_look_and_on_paper(acme: Actor, chromium: Browser, live_server: LiveServer) -> None:
    page = patient_context(chromium).new_page()
    complaints = listen(page)
    page.goto(f"{live_server.url}/status/acme/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Acme Stores status")
    expect(page.get_by_text("Some systems are degraded")).to_be_visible()
    wrong = []
    for scheme in ("light", "dark"):
        for width in (WIDE, NARROW):
            look(page, scheme, width)
            wrong += axe_errors(page) + ([] if fits(page) else [f"too wide at {width}"])
            picture(page, f"{scheme}-{width}")
    assert (wrong, complaints) == ([], [])
    page.emulate_media(media="print")
    expect(page.get_by_role("link", name="Subscribe to the feed")).to_be_hidden()
    picture(page, "print")
    assert page.context.cookies() == []


def test_it_refreshes_itself_with_and_without_scripts_and_keeps_what_was_opened(
    acme: Actor, chromium: Browser, live_server: LiveServer
) -> None:
    plain = chromium.new_context(java_script_enabled=False).new_page()
    plain.goto(f"{live_server.url}/status/acme/")
    expect(plain.locator("noscript meta[http-equiv=refresh], meta[http-equiv=refresh]")).to_have_attribute(
        "content", "60"
    )
    expect(plain.get_by_text("New database")).to_be_visible()
    page = patient_context(chromium).new_page()
    complaints = listen(page)
    page.clock.install()
    # Routes switch the browser's cache off, which keeps an answer for some seconds of a clock that is not the page's.
    page.route("**/status/acme/", lambda route: route.continue_())
    page.goto(f"{live_server.url}/status/acme/")
    page.locator("details").first.locator("summary").click()
    row = Incident.objects.get(title="Payments are slow")
    services.write_update(actor=acme, incident_id=row.pk, spec={"text": "All cards work.", "status": "resolved"})
    public.KEPT.clear()
    page.clock.fast_forward(61_000)
    expect(page.get_by_text("All cards work.")).to_be_visible()
    expect(page.locator("details").first).to_have_attribute("open", "")
    expect(page.get_by_text("All systems are operational")).to_be_visible()
    assert complaints == []


def test_a_member_opens_an_incident_by_keyboard_and_visitors_read_it(
    acme: Actor, chromium: Browser, live_server: LiveServer
) -> None:
    page = signed_in(chromium, live_server.url, acme).new_page()
    complaints = listen(page)
    page.goto("/status-pages")
    page.get_by_role("link", name="Acme Stores").click()
    wrong = []
    for scheme, width in (("light", WIDE), ("dark", NARROW)):
        look(page, scheme, width)
        wrong += axe_errors(page) + ([] if fits(page) else [f"too wide at {width}"])
        picture(page, f"console-{scheme}-{width}")
    page.get_by_role("link", name="Create incident").press("Enter")
    page.get_by_label("Title").fill("Search finds nothing")
    page.get_by_label("Text").fill("We rebuild its index.")
    page.get_by_label("Impact").select_option("partial_outage")
    page.get_by_label(COMPONENTS[0][0]).check()
    wrong += axe_errors(page)
    picture(page, "incident-new")
    page.get_by_role("button", name="Create incident").press("Enter")
    expect(page.get_by_text("Visitors read it within ten seconds.")).to_be_visible()
    public.KEPT.clear()
    page.goto("/status/acme/")
    expect(page.get_by_text("We rebuild its index.")).to_be_visible()
    expect(page.get_by_text("Some systems have an outage")).to_be_visible()
    page.go_back()
    page.get_by_role("link", name="Write update about Search finds nothing").click()
    wrong += axe_errors(page)
    picture(page, "incident")
    assert (wrong, complaints) == ([], [])


def test_what_nobody_knows_is_shown_as_unknown(acme: Actor, chromium: Browser, live_server: LiveServer) -> None:
    Incident.objects.all().delete()
    pools = {pool.pk for _, route in COMPONENTS for pool in pools_behind(acme, route)}
    store_verdicts([Verdict("pool", pk, Type.HEALTHY, None, Reason.NOT_OBSERVED, "") for pk in pools], now())
    page = patient_context(chromium).new_page()
    page.goto(f"{live_server.url}/status/acme/")
    expect(page.get_by_text("The state is unknown")).to_be_visible()
    expect(page.get_by_text("Operational", exact=True)).to_have_count(0)
    picture(page, "unknown")

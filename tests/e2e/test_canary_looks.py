"""The pages of canaries in a real Chromium, in each look: clean, and their buttons do what they say."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import Browser, expect
from pytest_django.live_server_helper import LiveServer

from apps.accounts.models import Account
from apps.canaries.models import Canary
from apps.core.clock import now
from apps.definitions.models import Route
from tests.browser import NARROW, WIDE, lasting, listen, look, needs_browser, wrong_in
from tests.conftest import actor_of
from tests.e2e.console_in_memory import put_env, signed_in

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.browser,
    pytest.mark.exhaustive,
    pytest.mark.django_db(transaction=True),
    needs_browser,
]
SHOTS = Path(settings.BASE_DIR) / "var" / "screenshots"
LOOKS = {"light": ("light", WIDE), "dark": ("dark", WIDE), "narrow": ("light", NARROW)}


def test_a_canary_is_begun_shown_held_and_aborted(live_server: LiveServer, live_redis: str, chromium: Browser) -> None:
    put_env()
    operator = actor_of("operator", Account.Kind.OPERATOR)
    route = next(each for each in Route.objects.order_by("pk") if len(each.shares) > 1)
    page = signed_in(chromium, live_server.url, operator).new_page()
    complaints = listen(page)
    SHOTS.mkdir(parents=True, exist_ok=True)
    turn = 0

    def looked_at(name: str) -> None:
        nonlocal turn
        for look_name, each in LOOKS.items():
            look(page, *each)
            page.screenshot(path=SHOTS / f"{name}-{look_name}.png", full_page=True)
            assert lasting(page, partial(wrong_in, page, turn)) + complaints == []
            turn += 1

    page.goto(f"/routes/{route.pk}")
    page.get_by_role("link", name="Begin canary").click()
    looked_at("canary-form")
    page.get_by_label("Share of step 1 in %").fill("30")
    page.get_by_label("Share of step 2 in %").fill("50")
    page.get_by_label("Share of step 3 in %").fill("")
    page.get_by_label("Time of step 3 in minutes").fill("")
    page.get_by_role("button", name="Begin canary").click()
    expect(page.get_by_role("heading", name="Canary")).to_be_visible()
    row = Canary.objects.get()
    Canary.objects.update(live_at=now(), message="It has had 3 of the 20 requests that it is judged by.")
    page.reload()
    looked_at("canary-running")
    Canary.objects.update(message="")
    page.get_by_role("button", name="Hold canary").click()
    expect(page.get_by_text("Resume it to judge this step anew")).to_be_visible()
    looked_at("canary-held")
    page.goto(f"/routes/{route.pk}")
    expect(page.get_by_text(f"Canary {row.pk} to")).to_be_visible()
    looked_at("canary-route")
    page.get_by_role("link", name="View canary").click()
    page.get_by_role("button", name="Abort canary").click()
    expect(page.get_by_text("Aborted", exact=True)).to_be_visible()

"""The pages of replacements in a real Chromium, in each look: clean, and their buttons do what they say."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import Browser, expect
from pytest_django.live_server_helper import LiveServer

from apps.accounts.models import Account
from apps.core.clock import now
from apps.definitions.models import Pool
from apps.replacements.models import Replacement
from apps.replacements.services import request_replacement
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


def test_a_replacement_is_asked_for_shown_stopped_and_ended(
    live_server: LiveServer, live_redis: str, chromium: Browser
) -> None:
    put_env()
    operator = actor_of("operator", Account.Kind.OPERATOR)
    pool = Pool.objects.get(name="shop")
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

    page.goto(f"/pools/{pool.pk}/replacements")
    looked_at("replacement-form")
    page.get_by_role("button", name="Replace servers").click()
    expect(page.get_by_role("heading", name="Replacement")).to_be_visible()
    row = Replacement.objects.get()
    first = row.servers.earliest("pk")
    row.servers.filter(pk=first.pk).update(state="out", set_to="ready", batch=1, handed_over=True)
    Replacement.objects.update(step="replace", batch=1, step_since=now(), message="")
    page.reload()
    looked_at("replacement-waits")
    page.get_by_role("button", name="Stop replacement").click()
    expect(page.get_by_text("Reverse replacement")).to_be_visible()
    looked_at("replacement-stopped")
    page.get_by_role("button", name="End replacement").click()
    expect(page.get_by_text("Ended")).to_be_visible()
    assert request_replacement(actor=operator, pool_id=pool.pk, plan={}).state == "running"
    page.goto(f"/pools/{pool.pk}")
    expect(page.get_by_text("Servers are being replaced.")).to_be_visible()
    looked_at("replacement-pool")

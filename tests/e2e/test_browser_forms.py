"""Forms in a real Chromium that follow what the targets can do: fields are greyed without a reload, nothing is lost."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.definitions.services import apply_document
from tests.apps.clouds_env import STACK
from tests.browser import WIDE, listen, needs_browser, wrong_in
from tests.conftest import actor_of
from tests.e2e.console_in_memory import put_env, signed_in

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    needs_browser,
]
LISTENER = {"name": "web", "protocol": "http", "port": 80}
PATTERN = "Pattern: paths that a regular expression matches as a whole"


@pytest.fixture
def operator(live_server: LiveServer, live_redis: str) -> Actor:
    """Whose pages they are; a load balancer stands at AWS, and one on fleets."""
    put_env()
    operator = actor_of("operator", Account.Kind.OPERATOR)
    objects = [
        {"kind": "Stack", "name": "aws-eu", "spec": STACK | {"cloud_region": "eu-west-1"}},
        {"kind": "LoadBalancer", "name": "cloud", "spec": {"stacks": ["aws-eu"], "listeners": [LISTENER]}},
    ]
    apply_document(actor=operator, objects=objects)
    return operator


def test_forms_follow_the_load_balancer_and_keep_what_is_typed(
    operator: Actor, chromium: Browser, live_server: LiveServer
) -> None:
    page = signed_in(chromium, live_server.url, operator).new_page()
    complaints = listen(page)
    _of_a_route(page, live_server.url)
    _of_a_policy(page, live_server.url)
    assert complaints == []


def _of_a_route(page: Page, url: str) -> None:
    page.goto(f"{url}/routes/new")
    front = page.get_by_label("Load balancer", exact=True)
    front.select_option("front")
    rewrite, cookies = page.get_by_label("Rewrite prefix"), page.get_by_role("button", name="Add a cookie condition")
    expect(rewrite).to_be_enabled()
    front.select_option("cloud")
    expect(rewrite).to_be_disabled()
    expect(rewrite).to_have_accessible_description(re.compile("Not on this load balancer. Spillway cannot rewrite"))
    expect(cookies).to_be_disabled()
    expect(page.get_by_role("option", name=PATTERN)).to_be_disabled()
    page.get_by_role("button", name="Add a header condition").click()
    expect(page.locator("#id_headers-0-match option[value=absent]")).to_be_disabled()
    assert wrong_in(page, 0) == []
    front.select_option("front")
    expect(rewrite).to_be_enabled()
    rewrite.fill("/kept")
    page.get_by_label("Path match").select_option(label=PATTERN)
    front.select_option("cloud")
    expect(page.locator("#told-prefix-rewrite .kept")).to_be_visible()
    expect(rewrite).to_be_enabled()
    expect(rewrite).to_have_value("/kept")
    expect(page.get_by_label("Path match")).to_have_value("regex")


def _of_a_policy(page: Page, url: str) -> None:
    page.set_viewport_size({"width": WIDE, "height": 800})  # on a phone, groups are folded
    page.goto(f"{url}/policies/new")
    page.get_by_text("Password Names and passwords of users.").click()
    users, longest = page.get_by_label("Users"), page.locator("[name='/spec/rules/body/max_bytes']")
    users.fill("anna=a long password of hers")
    page.get_by_label("Load balancers").fill("cloud")
    page.get_by_label("Load balancers").blur()
    expect(longest).to_be_disabled()
    expect(users).to_be_enabled()
    expect(users).to_have_value("anna=a long password of hers")
    expect(page.locator("#told-rules-basic-auth")).to_contain_text("Not on AWS (load balancer cloud).")
    assert wrong_in(page, 1) == []

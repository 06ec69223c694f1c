"""The palette finds objects and settings, and runs actions with the rights of who asks."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.accounts.models import Account, ApiToken, Invitation, Membership
from apps.canaries.services import request_canary
from apps.compiler.model.stack import PlanApproval
from apps.core.clock import now
from apps.definitions.models import Pool, Route, Server
from apps.observe.collect import lease
from apps.observe.evaluate.conditions import Reason, Type, Verdict
from apps.observe.services import store_verdicts
from apps.web.overview.commands import APPROVALS, MAKES, commands
from apps.web.overview.fields import NOUNS, labels_of
from tests.apps.stacks_env import a_stack
from tests.conftest import actor_of
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db
FORM = re.compile(r'<form method="post" action="([^"]+)">(.*?)</form>', re.DOTALL)
HIDDEN = re.compile(r'name="([^"]+)" value="([^"]+)"')
FIELD = re.compile(r'name="(server|do)" value="([^"]+)"')


@pytest.fixture
def operator(tutorial_env: Actor) -> Client:
    return client_of(tutorial_env)


def found(client: Client, text: str) -> str:
    """What the palette shows."""
    return client.get("/search", {"q": text}).content.decode()


def test_a_server_is_drained_by_its_name(operator: Client) -> None:
    server = Server.objects.filter(name="us-vm-1").earliest("pk")
    said = found(operator, "drain us-vm-1")
    assert "Drain us-vm-1" in said
    path, inner = FORM.findall(said)[0]
    operator.post(path, dict(FIELD.findall(inner)))
    assert Server.objects.get(pk=server.pk).state == "drain"
    assert "Set us-vm-1 ready" in found(operator, "ready us-vm-1")


def send(client: Client, said: str) -> str:
    """What the first form of the palette leads to."""
    path, inner = FORM.findall(said)[0]
    return client.post(path, dict(HIDDEN.findall(inner)), follow=True).content.decode()


def test_a_canary_gets_its_share_by_the_name_of_its_route(operator: Client, acme: Actor) -> None:
    said = found(operator, "canary checkout 25")
    assert "Send 25 % of checkout to shop-next <small>shop.acme.example/checkout/*, now 10 %</small>" in said
    assert "Pool shop-next gets 25 %" in send(operator, said)
    assert "now 25 %" in found(client_of(acme), "canary checkout")
    assert "Send" not in found(operator, "canary robots")
    assert "Send" not in found(operator, "canary checkout 0")


def test_a_share_for_a_pool_that_is_down_says_so(operator: Client) -> None:
    lease.share("a test")
    pool = Pool.objects.get(name="shop-next")
    store_verdicts([Verdict("pool", pool.pk, Type.HEALTHY, False, Reason.NO_SERVER_UP, "No server is up.")], now())
    assert "now 10 %, pool is down</small>" in found(operator, "canary checkout")


def test_a_canary_that_moves_by_itself_is_left_alone(operator: Client, acme: Actor) -> None:
    plan = {"pool": "shop-next", "steps": [{"percent": 20, "for_s": 600}]}
    request_canary(actor=acme, route_id=Route.objects.get(name="checkout").pk, plan=plan)
    assert "Send" not in found(operator, "canary checkout")


def test_somebody_is_invited_by_the_address_alone_as_a_viewer(operator: Client) -> None:
    said = found(operator, "invite ann@example.com")
    assert "Invite ann@example.com as viewer" in said
    assert "It is shown only once." in send(operator, said)
    assert Invitation.objects.get().role == Membership.Role.VIEWER


def test_a_token_by_its_name_alone_only_reads_and_ends(operator: Client) -> None:
    said = found(operator, "token ci 30d")
    assert "Create token ci as viewer <small>reads, changes nothing; expires after 30 days</small>" in said
    assert "Copy it now." in send(operator, said)
    token = ApiToken.objects.get(name="ci")
    assert token.role == Membership.Role.VIEWER
    assert token.expires_at is not None
    assert (token.expires_at - now()).days in (29, 30)
    assert "<form" not in found(operator, "token ci 31d")
    assert "expires after 90 days" in found(operator, "new token backup")


def test_who_manages_no_people_is_offered_neither(operator: Client) -> None:
    editor = client_of(actor_of("acme", Account.Kind.CUSTOMER), Membership.Role.EDITOR)
    assert "<form" in found(editor, "drain us-vm-1")  # control
    assert "<form" not in found(editor, "invite ann@example.com") + found(editor, "token ci")


@pytest.mark.parametrize("approval", PlanApproval)
def test_a_plan_says_what_becomes_of_it(operator: Client, tutorial_env: Actor, approval: PlanApproval) -> None:
    a_stack(tutorial_env, approval=approval)
    assert f"Plan stack frankfurt <small>{APPROVALS[approval]}</small>" in found(operator, "plan frank")


def test_losing_a_region_is_simulated_and_changes_nothing(operator: Client) -> None:
    said = found(operator, "simulate losing us-cen")
    (link,) = re.findall(r'href="(/overflow[^"#]+)', said)
    assert "Simulate losing us-central1" in said
    assert "Predicted changes" in operator.get(link).content.decode()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("new pool", '<a href="/pools/new">New pool</a>'),
        ("new reg", '<a href="/new-region">New region</a>'),
        ("drain us-central1", "Drain region us-central1"),
        ("roll back us-central1", "Roll back fleet us-central1"),
        ("limit shop", "Change limits of pool acme/shop"),
        ("us-vm-2", "<h3>Servers</h3>"),
        ("us-central1", '<a href="/regions/us-central1">us-central1'),
        ("blackouts", "Blackouts of capacity tests"),
        ("0192f3a17c1d7e0290a100a41c00a41c", "No object, request or setting matches."),
    ],
)
def test_what_is_typed_finds_its_line(operator: Client, text: str, line: str) -> None:
    assert line in found(operator, text)


def test_who_may_not_write_is_offered_no_action(operator: Client) -> None:
    acme = actor_of("acme", Account.Kind.CUSTOMER)
    assert "New pool" in found(client_of(acme), "new pool")  # control
    viewer = client_of(acme, Membership.Role.VIEWER)
    assert "New pool" not in found(viewer, "new pool")
    assert "<form" not in found(viewer, "drain us-vm-1")


def test_every_form_that_customers_are_offered_opens_for_them(operator: Client) -> None:
    actor = actor_of("acme", Account.Kind.CUSTOMER)
    acme, offered = client_of(actor), {each.url for noun in MAKES for each in commands(actor, f"new {noun}")}
    shown = set(re.findall(r'href="([^"]+)">New ', found(acme, "new pool")))
    assert shown
    assert shown <= offered
    assert len(offered) > 10
    assert {url: acme.get(url).status_code for url in offered} == dict.fromkeys(offered, 200)


def test_customers_are_offered_nothing_of_the_platform(operator: Client) -> None:
    globex = client_of(actor_of("globex", Account.Kind.CUSTOMER))
    for text in ("new region", "drain us-central1", "roll back us", "us-1", "enrolment"):
        said = found(globex, text)
        assert "us-1" not in said
        assert "/new-region" not in said
        assert "/regions/" not in said
        assert "/enrolment" not in said
        assert "/rollouts" not in said


def test_trouble_is_counted_beside_the_page_that_shows_it(operator: Client) -> None:
    def shown() -> str:
        return operator.get("/badges").content.decode()

    assert "drained" not in shown()
    operator.post("/regions/us-central1/drain", {"do": "drain", "reason": "switches"})
    assert '1<span class="sr"> drained</span>' in shown()
    assert 'hx-target="#trouble-regions"' in shown()


def test_a_field_is_found_by_what_its_form_calls_it(operator: Client) -> None:
    assert 'href="/pools/new#id_/spec/connect_timeout_ms"' in found(operator, "connect timeout")
    assert 'href="/routes/new#id_redirect_keep_query"' in found(operator, "keep query")
    assert 'href="/schedules/new#id_cron"' in found(operator, "cron expr")
    assert "/fleets/new#" in found(operator, "peer port")


def test_customers_find_fields_of_their_own_forms_and_viewers_none(acme: Actor) -> None:
    assert "/fleets/new#" not in found(client_of(acme), "peer port")
    assert "/pools/new#" in found(client_of(acme), "connect timeout")
    assert "/pools/new#" not in found(client_of(acme, "viewer"), "connect timeout")


@pytest.mark.slow(reason="It opens each of the forms.")
def test_every_field_that_is_found_is_in_its_form(operator: Client) -> None:
    missing = {}
    for kind, noun in NOUNS.items():
        page = operator.get(reverse(f"web:{MAKES[noun][0]}")).content.decode()
        ids = set(re.findall(r' id="(id_[^"]+)"', page))
        missing[kind] = {name for _, name in labels_of(kind) if f"id_{name}" not in ids}
    # What a form has where there are stacks, and a database of countries.
    assert {kind: names for kind, names in missing.items() if names} == {
        "LoadBalancer": {"/spec/stacks"},
        "NetworkList": {"/spec/countries"},
    }

"""The palette finds objects and settings, and runs actions with the rights of who asks."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Membership
from apps.definitions.models import Server
from apps.web.overview.commands import MAKES, commands
from apps.web.overview.fields import NOUNS, labels_of
from tests.conftest import actor_of
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db
FORM = re.compile(r'<form method="post" action="([^"]+)">(.*?)</form>', re.DOTALL)
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

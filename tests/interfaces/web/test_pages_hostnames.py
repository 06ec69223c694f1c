"""Hostnames by page: claimed, verified, released; what a customer has to set in DNS stands there word for word."""

from __future__ import annotations

import pytest
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.accounts.models import Hostname
from apps.definitions.models import Route
from apps.definitions.services import save_object
from apps.definitions.writing.kinds import hostnames
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db
FIXED = {"load_balancer": "front", "path": "/", "action": {"fixed_response": {"status": 200}}}


def test_a_customer_claims_a_name_and_reads_what_to_set_in_dns(tutorial_env: Actor, acme: Actor) -> None:
    client = client_of(acme)
    answer = client.post(reverse("web:hostname-new"), {"/name": "blog.acme.example"}, follow=True)
    claim = Hostname.objects.get(name="blog.acme.example")
    page = answer.content.decode()
    assert "_spillway-challenge.blog.acme.example" in page
    assert f"spillway={claim.challenge}" in page
    assert "Waiting for verification" in page
    assert "blog.acme.example" in client.get(reverse("web:hostnames")).content.decode()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Blog.globex.example", "Write the host name in lower case"),
        ("", "This field is required"),
        ("127.0.0.1", "Write a DNS name"),
    ],
)
def test_a_name_that_cannot_be_claimed_is_refused_beside_the_field(
    tutorial_env: Actor, globex: Actor, name: str, said: str
) -> None:
    answer = client_of(globex).post(reverse("web:hostname-new"), {"/name": name})
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert not Hostname.objects.exclude(account__name="acme").filter(name=name).exists()


@pytest.mark.parametrize("name", ["shop.acme.example", "nobodys.example"])
def test_the_page_of_a_claim_does_not_tell_whether_somebody_has_the_name(
    tutorial_env: Actor, globex: Actor, name: str
) -> None:
    answer = client_of(globex).post(reverse("web:hostname-new"), {"/name": name}, follow=True)
    assert "Waiting for verification" in answer.content.decode()
    assert "acme/" not in answer.content.decode()


def test_a_foreign_hostname_does_not_exist(tutorial_env: Actor, acme: Actor, globex: Actor) -> None:
    claim, client = hostnames.claim(actor=acme, name="blog.acme.example"), client_of(globex)
    assert client.get(reverse("web:hostname", args=[claim.pk])).status_code == 404
    for name in ("hostname-check", "hostname-verify", "hostname-release"):
        assert client.post(reverse(f"web:{name}", args=[claim.pk])).status_code == 404
    claim.refresh_from_db()
    assert (claim.verification, claim.released_at) == ("", None)


def test_an_operators_word_needs_a_reason_and_makes_waiting_routes_live(tutorial_env: Actor, acme: Actor) -> None:
    route = save_object(actor=acme, kind="Route", name="blog", spec=FIXED | {"hostname": "blog.acme.example"})
    claim = Hostname.objects.get(name="blog.acme.example")
    operator = client_of(tutorial_env)
    assert "Waiting for verification" in operator.get(reverse("web:route", args=[route.pk])).content.decode()
    operator.post(reverse("web:hostname-verify", args=[claim.pk]), {"reason": " "})
    claim.refresh_from_db()
    assert claim.verification == ""
    operator.post(reverse("web:hostname-verify", args=[claim.pk]), {"reason": "Contract 4711"})
    claim.refresh_from_db()
    assert claim.verification == "operator"
    assert "Waiting for verification" not in operator.get(reverse("web:route", args=[route.pk])).content.decode()


def test_customers_cannot_give_an_operators_word(tutorial_env: Actor, acme: Actor) -> None:
    claim = hostnames.claim(actor=acme, name="blog.acme.example")
    answer = client_of(acme).post(reverse("web:hostname-verify", args=[claim.pk]), {"reason": "Believe me"})
    assert answer.status_code == 403
    claim.refresh_from_db()
    assert claim.verification == ""


def test_a_name_is_released_once_it_was_typed_and_no_route_uses_it(tutorial_env: Actor, acme: Actor) -> None:
    client, used = client_of(acme), Hostname.objects.get(name="shop.acme.example")
    claim = hostnames.claim(actor=acme, name="blog.acme.example")
    Hostname.objects.filter(pk=claim.pk).update(verification="dns")
    client.post(reverse("web:hostname-release", args=[claim.pk]), {"confirm": "blog"})
    assert Hostname.objects.get(pk=claim.pk).released_at is None
    client.post(reverse("web:hostname-release", args=[claim.pk]), {"confirm": claim.name})
    assert Hostname.objects.get(pk=claim.pk).released_at is not None
    client.post(reverse("web:hostname-release", args=[used.pk]), {"confirm": used.name})
    assert Hostname.objects.get(pk=used.pk).released_at is None
    assert Route.objects.filter(hostname=used).exists()
    assert "Released" in client.get(reverse("web:hostname", args=[claim.pk])).content.decode()


def test_a_name_that_nobody_verified_is_free_at_once(tutorial_env: Actor, acme: Actor) -> None:
    client, claim = client_of(acme), hostnames.claim(actor=acme, name="blog.acme.example")
    url = reverse("web:hostname-release", args=[claim.pk])
    assert "any account can claim it now" in client.post(url, {"confirm": claim.name}, follow=True).content.decode()
    assert not Hostname.objects.filter(pk=claim.pk).exists()

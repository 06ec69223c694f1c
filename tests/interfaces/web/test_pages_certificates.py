"""The pages of certificates and static IPs: expiry in words, keys that come in and never go out."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.files.base import ContentFile
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.accounts.models import Membership
from apps.core.clock import now
from apps.definitions.models import Certificate
from apps.definitions.services import save_object
from apps.web.load_balancers.certificates import validity
from tests.apps.test_definitions_services import pem_pair
from tests.interfaces.people import client_of

NEW = "web:certificate-new"


@pytest.fixture
def stored(acme: Actor) -> Certificate:
    chain, key = pem_pair("shop.acme.example", days=9)
    row: Certificate = save_object(actor=acme, kind="Certificate", name="shop", spec={"chain": chain, "key": key})
    return row


def test_a_pasted_chain_and_key_are_stored_and_the_list_says_when_they_expire(acme: Actor) -> None:
    client, (chain, key) = client_of(acme), pem_pair("shop.acme.example", days=9)
    sent = {"/name": "shop", "/spec/chain": chain.replace("\n", "\r\n"), "/spec/key": key.replace("\n", "\r\n")}
    page = client.post(reverse(NEW), sent, follow=True).content.decode()
    assert "shop.acme.example" in page
    assert "expires in " in page
    assert key.splitlines()[1] not in page


def test_files_work_as_well_as_pasted_text(acme: Actor) -> None:
    chain, key = pem_pair("shop.acme.example")
    files = {"chain_file": ContentFile(chain.encode(), "chain.pem"), "key_file": ContentFile(key.encode(), "key.pem")}
    assert client_of(acme).post(reverse(NEW), {"/name": "shop", **files}).status_code == 302
    assert Certificate.objects.get().hostnames == ["shop.acme.example"]


@pytest.mark.parametrize("case", ["foreign key", "no key", "key in the chain", "expired", "taken"])
def test_a_refusal_stands_beside_its_field_and_never_shows_the_key_again(
    acme: Actor, stored: Certificate, case: str
) -> None:
    chain, key = pem_pair("a.acme.example", days=-1 if case == "expired" else 9)
    other = pem_pair("b.acme.example")[1]
    sent, field = {
        "foreign key": ({"/spec/chain": chain, "/spec/key": other}, "/spec/key"),
        "no key": ({"/spec/chain": chain}, "/spec/key"),
        "key in the chain": ({"/spec/chain": chain + key, "/spec/key": key}, "/spec/chain"),
        "expired": ({"/spec/chain": chain, "/spec/key": key}, "/spec/chain"),
        "taken": ({"/name": "shop", "/spec/chain": chain, "/spec/key": key}, "/name"),
    }[case]
    answer = client_of(acme).post(reverse(NEW), {"/name": "new", **sent})
    assert answer.status_code == 422
    assert set(answer.context["form"].errors) == {field}
    page = answer.content.decode()
    assert key.splitlines()[1] not in page
    assert other.splitlines()[1] not in page
    assert (chain.splitlines()[1] in page) == (case != "key in the chain")
    assert Certificate.objects.count() == 1


def test_a_certificate_is_renewed_under_its_name(acme: Actor, stored: Certificate) -> None:
    chain, key = pem_pair("shop.acme.example", days=90)
    url = reverse("web:certificate-renew", args=[stored.pk])
    client = client_of(acme)
    assert stored.chain_pem not in client.get(url).content.decode()
    sent = {"/spec/chain": chain, "version": str(stored.version)}
    assert client.post(url, sent).status_code == 422  # the stored key does not fit
    assert client.post(url, sent | {"/spec/key": key}).status_code == 302
    assert Certificate.objects.filter(not_after__gt=stored.not_after).exists()


def test_expiry_is_said_in_words_with_a_state() -> None:
    moment = now()

    def said(days: float) -> tuple[str, str]:
        row = Certificate(not_before=moment - timedelta(days=400), not_after=moment + timedelta(days=days))
        return validity(row, moment)

    assert said(90.5) == ("healthy", "expires in 90 days")
    assert said(1.5) == ("degraded", "expires in 1 day")
    assert said(0.2) == ("down", "expires in 4 h")
    assert said(-0.2) == ("down", "expired today")
    assert said(-3.5) == ("down", "expired 3 days ago")


def test_foreign_certificates_do_not_exist_and_viewers_change_none(
    acme: Actor, globex: Actor, stored: Certificate
) -> None:
    foreign, viewer = client_of(globex), client_of(acme, Membership.Role.VIEWER)
    assert "shop.acme.example" not in foreign.get(reverse("web:certificates")).content.decode()
    for name in ("certificate-renew", "certificate-delete"):
        assert foreign.post(reverse(f"web:{name}", args=[stored.pk])).status_code == 404
    page = viewer.get(reverse("web:certificates")).content.decode()
    assert "shop.acme.example" in page
    assert "Renew" not in page
    assert "Upload" not in page
    assert viewer.get(reverse(NEW)).status_code == 403
    answer = viewer.post(reverse("web:certificate-delete", args=[stored.pk]), {"confirm": "shop"})
    assert answer.status_code == 403
    assert Certificate.objects.exists()


def test_a_certificate_in_use_is_kept_and_an_unused_one_goes_once_its_name_is_typed(
    tutorial_env: Actor, acme: Actor, stored: Certificate
) -> None:
    listeners = [{"name": "https", "protocol": "https", "port": 8443, "certificates": ["acme/shop"]}]
    spec = {"fleets": ["us-central1", "europe-west1"], "listeners": listeners}
    save_object(actor=tutorial_env, kind="LoadBalancer", name="front", spec=spec)
    client, url = client_of(acme), reverse("web:certificate-delete", args=[stored.pk])
    assert "Type shop to delete it." in client.post(url, follow=True).content.decode()
    assert "is in use by" in client.post(url, {"confirm": "shop"}, follow=True).content.decode()
    assert "port 8443" in client.get(reverse("web:certificates")).content.decode()
    spec["listeners"] = [{"name": "http", "protocol": "http", "port": 8080}]
    save_object(actor=tutorial_env, kind="LoadBalancer", name="front", spec=spec)
    client.post(url, {"confirm": "shop"})
    assert not Certificate.objects.exists()


def test_static_ips_show_who_binds_them_to_operators_only(tutorial_env: Actor, acme: Actor) -> None:
    url = reverse("web:static-ips")
    operator = client_of(tutorial_env)
    assert "No static IPs" in operator.get(url).content.decode()
    save_object(actor=tutorial_env, kind="StaticIP", name="vip-1", spec={"address": "127.0.0.9"})
    listeners = [{"name": "vip", "protocol": "http", "port": 8081, "static_ip": "vip-1"}]
    spec = {"fleets": ["us-central1"], "listeners": listeners}
    save_object(actor=tutorial_env, kind="LoadBalancer", name="front", spec=spec)
    page = operator.get(url).content.decode()
    assert "127.0.0.9" in page
    assert "http 8081" in page
    assert client_of(acme).get(url).status_code == 404

"""The pages of lists of networks: lines become entries and lines again, and who uses a list is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.definitions.countries.following import read_if_newer
from apps.definitions.models import NetworkList
from apps.definitions.services import save_object
from apps.web.policies.list_form import entry_of, written
from tests.country_databases import record, write_database
from tests.interfaces.people import client_of

LINES = {
    "192.0.2.0/24": {"network": "192.0.2.0/24"},
    "192.0.2.0/24 our offices": {"network": "192.0.2.0/24", "reason": "our offices"},
    "192.0.2.0/24 2027-01-31T00:00:00Z": {"network": "192.0.2.0/24", "expires_at": "2027-01-31T00:00:00Z"},
    "2001:db8::/48 2027-01-31T00:00:00Z scans us": {
        "network": "2001:db8::/48",
        "expires_at": "2027-01-31T00:00:00Z",
        "reason": "scans us",
    },
}


@pytest.fixture
def stored(tutorial_env: Actor, acme: Actor) -> NetworkList:
    entries = [{"network": "192.0.2.0/24", "expires_at": "2020-01-31T00:00:00Z", "reason": "scans us"}]
    row: NetworkList = save_object(actor=acme, kind="NetworkList", name="bad", spec={"entries": entries})
    return row


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_an_entry_and_a_line_again(line: str) -> None:
    assert entry_of(line) == LINES[line]
    assert written([LINES[line]]) == line


def test_lines_become_a_list(tutorial_env: Actor, acme: Actor) -> None:
    sent = {"/name": "bad", "/spec/entries": "192.0.2.0/24 scans us\r\n\r\n 198.51.100.0/24 2027-01-31T00:00:00Z \r\n"}
    client_of(acme).post(reverse("web:network-list-new"), sent)
    assert NetworkList.objects.get().entries == [
        {"network": "192.0.2.0/24", "reason": "scans us"},
        {"network": "198.51.100.0/24", "expires_at": "2027-01-31T00:00:00Z"},
    ]


@pytest.mark.parametrize(("address", "network"), [("192.0.2.1", "192.0.2.1/32"), ("2001:DB8::1", "2001:db8::1/128")])
def test_an_address_is_the_network_of_it_alone(address: str, network: str) -> None:
    assert entry_of(f"{address} scans us") == {"network": network, "reason": "scans us"}


def test_a_wrong_line_is_said_beside_the_field(tutorial_env: Actor, acme: Actor) -> None:
    sent = {"/name": "bad", "/spec/entries": "192.0.2.1/24"}
    answer = client_of(acme).post(reverse("web:network-list-new"), sent)
    assert answer.status_code == 422
    assert "canonical form: 192.0.2.0/24" in " ".join(answer.context["form"].errors["/spec/entries"])


def test_one_list_too_many_is_said_beside_its_name(stored: NetworkList, acme: Actor) -> None:
    Account.objects.filter(pk=acme.account.pk).update(quotas={"network_lists": 1})
    sent = {"/name": "more", "/spec/entries": "192.0.2.0/24"}
    answer = client_of(acme).post(reverse("web:network-list-new"), sent)
    assert answer.status_code == 422
    assert "1 network lists; this would make 2. Delete some" in " ".join(answer.context["form"].errors["/name"])


def test_the_form_saves_what_it_shows_unchanged(stored: NetworkList, acme: Actor) -> None:
    url, client = reverse("web:network-list-edit", args=[stored.pk]), client_of(acme)
    shown = client.get(url).context["form"]["/spec/entries"].value()
    client.post(url, {"/spec/entries": shown, "version": "1"})
    stored.refresh_from_db()
    assert stored.version == 1


def test_the_page_names_networks_and_users(stored: NetworkList, acme: Actor) -> None:
    spec = {"rules": {"access": {"deny": ["bad"]}}}
    save_object(actor=acme, kind="Policy", name="who", spec=spec)
    page = client_of(acme).get(reverse("web:network-list", args=[stored.pk])).content.decode()
    for words in ("192.0.2.0/24", "scans us", "expired", "who"):
        assert words in page
    client_of(acme).post(reverse("web:network-list-delete", args=[stored.pk]), {"confirm": "bad"})
    assert NetworkList.objects.exists()


def test_a_list_that_nobody_uses_is_deleted_by_its_name(stored: NetworkList, acme: Actor) -> None:
    url = reverse("web:network-list-delete", args=[stored.pk])
    client_of(acme).post(url, {"confirm": "other"})
    assert NetworkList.objects.exists()
    client_of(acme).post(url, {"confirm": "bad"})
    assert not NetworkList.objects.exists()


def test_one_network_is_banned_and_the_ban_is_lifted(stored: NetworkList, acme: Actor) -> None:
    client, url = client_of(acme), reverse("web:network-list-ban", args=[stored.pk])
    client.post(url, {"network": " 198.51.100.7 ", "lasting": "3600", "reason": "scans us"})
    stored.refresh_from_db()
    (entry,) = [each for each in stored.entries if each["network"] == "198.51.100.7/32"]
    assert entry["reason"] == "scans us"
    assert "expires_at" in entry
    assert "198.51.100.7/32" in client.get(reverse("web:network-list", args=[stored.pk])).content.decode()
    client.post(reverse("web:network-list-lift", args=[stored.pk]), {"network": "198.51.100.7/32"})
    stored.refresh_from_db()
    assert [each["network"] for each in stored.entries] == ["192.0.2.0/24"]


@pytest.mark.parametrize("network", ["", "x", "192.0.2.1/24", "198.51.100.7 2027"])
def test_what_is_no_network_is_said_and_stored_nowhere(stored: NetworkList, acme: Actor, network: str) -> None:
    client = client_of(acme)
    for name in ("ban", "lift"):
        answer = client.post(reverse(f"web:network-list-{name}", args=[stored.pk]), {"network": network}, follow=True)
        assert "network" in " ".join(str(each) for each in answer.context["messages"]).lower()
    stored.refresh_from_db()
    assert stored.version == 1


def test_a_list_of_countries_is_made_and_shown_with_what_the_database_says(
    tmp_path: Path, tutorial_env: Actor, acme: Actor
) -> None:
    client, form = client_of(acme), reverse("web:network-list-new")
    assert b"Countries" not in client.get(form).content
    read_if_newer(write_database(tmp_path / "world.mmdb", {"192.0.2.0/24": record("DE", "Germany")}))
    assert b"Countries" in client.get(form).content
    page = client.post(form, {"/name": "dach", "/spec/countries": "de, DE"}, follow=True)
    assert page.status_code == 422  # twice
    page = client.post(form, {"/name": "dach", "/spec/countries": "de"}, follow=True)
    assert NetworkList.objects.get().countries == ["DE"]
    assert b"Germany" in page.content
    assert b"Ban a client" not in page.content
    assert b"1 country" in client.get(reverse("web:network-lists")).content


def test_a_country_that_nobody_knows_is_said_beside_the_field(tmp_path: Path, tutorial_env: Actor, acme: Actor) -> None:
    read_if_newer(write_database(tmp_path / "world.mmdb", {"192.0.2.0/24": record("DE", "Germany")}))
    answer = client_of(acme).post(reverse("web:network-list-new"), {"/name": "dach", "/spec/countries": "DE ZZ"})
    assert answer.status_code == 422
    assert "has no ZZ" in " ".join(answer.context["form"].errors["/spec/countries"])

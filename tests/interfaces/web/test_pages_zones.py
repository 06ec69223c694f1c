"""The pages of DNS zones, for operators and for customers with whom a zone is shared."""

from __future__ import annotations

import uuid

import pytest
from django.core.cache import cache
from django.test import Client

from apps.accounts.actors import Actor
from apps.accounts.models import Grant
from apps.definitions.models import Record, Zone
from apps.definitions.services import save_object
from apps.dns import services
from apps.dns.models import ZoneSync
from apps.drivers.dns.contract import RecordSet
from apps.drivers.dns.memory import MemoryServer, memory_server
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db

DOMAIN = "example.test"


@pytest.fixture
def server() -> MemoryServer:
    return memory_server(uuid.uuid4().hex)


@pytest.fixture
def zone(operator: Actor, server: MemoryServer) -> Zone:
    spec = {
        "domain": DOMAIN,
        "driver": "memory",
        "server": f"memory://{server.name}",
        "tags": {"customer": "acme"},
    }
    found: Zone = save_object(actor=operator, kind="Zone", name="example", spec=spec)
    return found


@pytest.fixture
def shared(operator: Actor, acme: Actor, zone: Zone) -> Zone:
    Grant.objects.create(name="zones-of-acme", account=acme.account, tag="customer=acme")
    return zone


def a_record(owner: Actor, zone: Zone, label: str, address: str) -> Record:
    reference = zone.name if owner.account.pk == zone.account_id else f"{zone.account.name}/{zone.name}"
    spec = {"zone": reference, "label": label, "type": "A", "values": [address]}
    found: Record = save_object(actor=owner, kind="Record", name=f"r-{label}", spec=spec)
    return found


def text_of(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return answer.content.decode()


def test_without_zones_the_page_says_what_to_do(operator: Actor, acme: Actor) -> None:
    assert "Create zone" in text_of(client_of(operator), "/zones")
    assert "No zones are shared with you" in text_of(client_of(acme), "/zones")


def test_a_zone_is_made_and_a_bad_one_says_at_its_field_what_to_change(operator: Actor) -> None:
    client = client_of(operator)
    typed = {"/name": "example", "/spec/domain": "not a domain", "/spec/driver": "rfc2136"}
    refused = client.post("/zones/new", typed)
    assert refused.status_code == 422
    text = refused.content.decode()
    assert 'value="not a domain"' in text
    assert "A zone with driver rfc2136 needs server" in text
    typed |= {
        "/spec/domain": DOMAIN,
        "/spec/server": "192.0.2.53:53",
        "/spec/key_name": "spillway",
        "/spec/credentials": "env:EXAMPLE",
        "/spec/resolvers": "192.0.2.53\n9.9.9.9",
        "/spec/tags": "customer=acme",
    }
    assert client.post("/zones/new", typed).status_code == 302
    zone = Zone.objects.get()
    assert (zone.resolvers, zone.tags) == (["192.0.2.53", "9.9.9.9"], {"customer": "acme"})
    assert "192.0.2.53:53" in text_of(client, f"/zones/{zone.pk}/edit")


def test_a_record_is_made_changed_and_deleted(operator: Actor, zone: Zone) -> None:
    client = client_of(operator)
    typed = {
        "/spec/label": "www",
        "/spec/type": "A",
        "/spec/ttl": "300",
        "source": "values",
        "/spec/values": "nonsense",
    }
    refused = client.post(f"/zones/{zone.pk}/records/new", typed)
    assert refused.status_code == 422
    assert "nonsense" in refused.content.decode()
    assert client.post(f"/zones/{zone.pk}/records/new", typed | {"/spec/values": "192.0.2.1"}).status_code == 302
    record = Record.objects.get()
    assert record.name == "example-www-a"
    changed = typed | {"/spec/values": "192.0.2.2\n192.0.2.3", "version": str(record.version)}
    assert client.post(f"/records/{record.pk}/edit", changed).status_code == 302
    stale = client.post(f"/records/{record.pk}/edit", changed | {"/spec/values": "192.0.2.9"})
    assert stale.status_code == 422, "somebody else saved meanwhile"
    record.refresh_from_db()
    assert record.values == ["192.0.2.2", "192.0.2.3"]
    assert client.post(f"/records/{record.pk}/delete").status_code == 302
    assert not Record.objects.exists()


def test_drift_is_shown_and_repaired(operator: Actor, zone: Zone, server: MemoryServer) -> None:
    a_record(operator, zone, "www", "192.0.2.1")
    services.reconcile_zone(zone_id=zone.pk)
    server.records[f"www.{DOMAIN}", "A"] = RecordSet(f"www.{DOMAIN}", "A", 300, ("198.51.100.66",))
    services.reconcile_zone(zone_id=zone.pk)
    client = client_of(operator)
    text = text_of(client, f"/zones/{zone.pk}")
    assert "198.51.100.66" in text
    assert "Repair" in text
    assert "1 changed outside Spillway" in text_of(client, f"/zones/{zone.pk}/difference")
    assert client.post(f"/zones/{zone.pk}/repair", {"reason": "By mistake."}).status_code == 302
    assert ZoneSync.objects.get().repair is not None
    services.reconcile_zone(zone_id=zone.pk)
    assert "198.51.100.66" not in text_of(client, f"/zones/{zone.pk}?partial=records")


def test_the_difference_is_asked_of_the_server_and_says_when_it_is_away(
    operator: Actor, zone: Zone, server: MemoryServer
) -> None:
    a_record(operator, zone, "www", "192.0.2.1")
    client = client_of(operator)
    assert "1 record to write" in text_of(client, f"/zones/{zone.pk}/difference")
    server.unreachable = True
    answer = client.get(f"/zones/{zone.pk}/difference")
    assert answer.status_code == 409
    assert "does not answer" in answer.content.decode()


def test_a_customer_sees_its_own_records_in_a_shared_zone_and_nothing_else(
    operator: Actor, acme: Actor, shared: Zone, server: MemoryServer
) -> None:
    a_record(operator, shared, "ours", "192.0.2.1")
    mine = a_record(acme, shared, "shop", "192.0.2.2")
    services.reconcile_zone(zone_id=shared.pk)
    client = client_of(acme)
    text = text_of(client, f"/zones/{shared.pk}")
    assert "192.0.2.2" in text
    for secret in ("192.0.2.1", "ours", server.name, "memory://", "Difference", "Adopt existing"):
        assert secret not in text, secret
    assert client.get(f"/zones/{shared.pk}/edit").status_code == 404
    assert client.get(f"/zones/{shared.pk}/difference").status_code == 404
    assert client.get(f"/records/{mine.pk}/edit").status_code == 200
    typed = {
        "/spec/label": "app",
        "/spec/type": "A",
        "/spec/ttl": "300",
        "source": "values",
        "/spec/values": "192.0.2.3",
    }
    assert client.post(f"/zones/{shared.pk}/records/new", typed).status_code == 302
    assert Record.objects.get(label="app").account_id == acme.account.pk


def test_anothers_zone_does_not_exist(globex: Actor, shared: Zone) -> None:
    client = client_of(globex)
    assert client.get(f"/zones/{shared.pk}").status_code == 404
    assert client.get(f"/zones/{shared.pk}/records/new").status_code == 404
    assert client.post(f"/zones/{shared.pk}/repair").status_code == 404
    assert shared.domain not in text_of(client, "/zones")


def test_a_test_of_a_stored_zone_says_what_its_server_says(operator: Actor, zone: Zone, server: MemoryServer) -> None:
    client = client_of(operator)
    server.records["www", "A"] = RecordSet(f"www.{DOMAIN}", "A", 300, ("192.0.2.80",))
    page = client.post(f"/zones/{zone.pk}/test", follow=True).content.decode()
    assert f"serves 1 record set of {DOMAIN}" in page
    cache.clear()
    server.unreachable = True
    page = client.post(f"/zones/{zone.pk}/test", follow=True).content.decode()
    assert "does not answer" in page
    assert server.writes == 0


def test_who_tests_again_at_once_is_asked_to_wait(operator: Actor, zone: Zone, server: MemoryServer) -> None:
    client = client_of(operator)
    for said in ("It takes the key", "You tested a moment ago"):
        assert said in client.post(f"/zones/{zone.pk}/test", follow=True).content.decode()
    assert server.reads == 1


def test_the_form_tests_what_is_typed_and_saves_nothing(operator: Actor, server: MemoryServer) -> None:
    client = client_of(operator)
    typed = {"/name": "new", "/spec/domain": DOMAIN, "/spec/driver": "memory", "test": "1"}
    typed["/spec/server"] = f"memory://{server.name}"
    page = client.post("/zones/new", typed).content.decode()
    assert "The connection works." in page
    assert f'value="memory://{server.name}"' in page
    assert not Zone.objects.exists()


def test_the_form_tests_no_server_that_the_environment_does_not_name(
    operator: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPILLWAY_DNS_EXAMPLE", "c2VjcmV0IG9mIHNvbWVib2R5")
    monkeypatch.setenv("SPILLWAY_DNS_EXAMPLE_SERVERS", "192.0.2.53")
    typed = {"/spec/domain": DOMAIN, "/spec/driver": "rfc2136", "/spec/server": "192.0.2.99:53", "test": "1"}
    typed |= {"/spec/key_name": "spillway", "/spec/key_algorithm": "hmac-sha256", "/spec/credentials": "env:EXAMPLE"}
    answer = client_of(operator).post("/zones/new", typed)
    assert "The connection does not work." in answer.content.decode()
    assert "SPILLWAY_DNS_EXAMPLE_SERVERS" in answer.content.decode()
    assert "c2VjcmV0" not in answer.content.decode()
    incomplete = client_of(operator).post("/zones/new", typed | {"/spec/credentials": ""})
    assert (incomplete.status_code, "needs credentials" in incomplete.content.decode()) == (422, True)


def test_customers_and_viewers_test_no_server(operator: Actor, acme: Actor, shared: Zone, server: MemoryServer) -> None:
    assert client_of(acme).post(f"/zones/{shared.pk}/test").status_code == 404
    assert client_of(operator, "viewer").post(f"/zones/{shared.pk}/test").status_code == 403
    assert "Test connection" not in text_of(client_of(acme), f"/zones/{shared.pk}")
    assert server.reads == 0

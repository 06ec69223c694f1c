"""Repairs that several people ask for, and resolvers that are asked."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from dns.nameserver import Do53Nameserver
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.accounts.hostnames.resolving import resolver as hostname_resolver
from apps.core.addresses import host_and_port
from apps.core.clock import now
from apps.core.concurrency.leases import take
from apps.core.errors import Conflict
from apps.definitions.models import Record, Zone
from apps.definitions.shapes.base.outside import resolver
from apps.dns import asking, pushing, selectors, services
from apps.dns.models import ServedRecord, ZoneSync
from apps.drivers.dns.contract import RecordSet, Refused
from apps.drivers.dns.memory import MemoryServer, memory_server
from controlplane import shapes

pytestmark = pytest.mark.django_db

DOMAIN = "example.test"


@pytest.fixture(autouse=True)
def _no_wakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "enqueue_on_commit", lambda *_: None)


@pytest.fixture
def server() -> MemoryServer:
    return memory_server(uuid.uuid4().hex)


@pytest.fixture
def zone(operator: Actor, server: MemoryServer) -> Zone:
    columns: dict[str, Any] = {"driver": "memory", "server": f"memory://{server.name}", "desired_generation": 1}
    columns["resolvers"] = ["192.0.2.53"]
    return Zone.objects.create(account=operator.account, name="example", domain=DOMAIN, **columns)


def a_record(operator: Actor, zone: Zone, label: str, value: str = "192.0.2.1") -> Record:
    usual: dict[str, Any] = {"name": f"r-{label}", "label": label, "type": "A", "values": [value]}
    return Record.objects.create(account=operator.account, zone=zone, **usual)


def key(label: str) -> tuple[str, str]:
    return f"{label}.{DOMAIN}", "A"


def asked(zone: Zone) -> Any:
    return ZoneSync.objects.get(zone=zone).repair


def test_a_repair_that_waits_is_not_forgotten_because_somebody_asks_for_another(
    operator: Actor, zone: Zone, server: MemoryServer
) -> None:
    labels = ("one", "two")
    for label in labels:
        a_record(operator, zone, label)
    services.reconcile_zone(zone_id=zone.pk)
    for label in labels:
        name, kind = key(label)
        server.records[name, kind] = RecordSet(name, kind, 300, ("198.51.100.1",))
    services.repair(actor=operator, zone_id=zone.pk, keys=[key("one")], reason="First.")
    services.repair(actor=operator, zone_id=zone.pk, keys=[key("two")], reason="Second.")
    assert (asked(zone)["actor"], asked(zone)["reason"]) == (operator.name, "First., Second.")
    services.reconcile_zone(zone_id=zone.pk)
    assert {server.records[key(label)].values for label in labels} == {("192.0.2.1",)}
    assert asked(zone) is None


def test_nobody_takes_over_what_another_asked_only_to_repair(operator: Actor, zone: Zone) -> None:
    for label in ("one", "two"):
        a_record(operator, zone, label)
    services.repair(actor=operator, zone_id=zone.pk, keys=[key("one")])
    with pytest.raises(Conflict) as caught:
        services.repair(actor=operator, zone_id=zone.pk, keys=[key("two")], adopt_existing=True)
    assert caught.value.detail == "A repair of another kind is pending; try again when it is done."
    assert (asked(zone)["keys"], asked(zone)["adopt_existing"]) == ([list(key("one"))], False)


def test_a_refusal_takes_back_what_was_asked_before_and_not_what_came_meanwhile(
    operator: Actor, zone: Zone, monkeypatch: pytest.MonkeyPatch
) -> None:
    for label in ("one", "two"):
        a_record(operator, zone, label)
    services.repair(actor=operator, zone_id=zone.pk, keys=[key("one")])

    def refuse(*_: Any) -> None:
        services.repair(actor=operator, zone_id=zone.pk, keys=[key("two")])
        raise Refused("Not now.")

    monkeypatch.setattr(pushing, "driver_of", refuse)
    lease = take(ZoneSync, pushing.LEASE, zone=zone)
    assert lease is not None
    pushing.work(zone, lease)
    assert asked(zone)["keys"] == [list(key("one")), list(key("two"))]


def test_customers_read_why_a_record_is_refused_and_not_who_serves_the_zone(
    operator: Actor, acme: Actor, zone: Zone, server: MemoryServer
) -> None:
    row = a_record(acme, zone, "shop")
    why = f"The name server {zone.server} refuses the update."
    entry = {"name": key("shop")[0], "type": row.type, "message": why}
    ZoneSync.objects.create(zone=zone, refused=[entry])
    assert [each.refused for each in selectors.record_states(operator, zone)] == [why]
    assert [each.refused for each in selectors.record_states(acme, zone)] == ["The name server refuses the update."]
    assert server.name in why


def test_what_resolvers_said_before_a_record_changed_does_not_count_after(operator: Actor, zone: Zone) -> None:
    www, other = a_record(operator, zone, "www"), a_record(operator, zone, "other")
    services.reconcile_zone(zone_id=zone.pk)
    for row in (www, other):
        ServedRecord.objects.create(record=row, resolver="192.0.2.53", as_wanted=True, asked_at=now())
    assert asking._due(zone.pk) == []
    Record.objects.filter(pk=www.pk).update(values=["192.0.2.9"])
    services.reconcile_zone(zone_id=zone.pk)
    assert [each.name for each in asking._due(zone.pk)] == [f"www.{DOMAIN}"]


def test_who_waits_longest_is_asked_first(operator: Actor, zone: Zone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "IN_TURN", 2)
    for label, minutes in (("a", 1), ("b", 3), ("c", 2)):
        row = a_record(operator, zone, label)
        at = now() - timedelta(minutes=minutes)
        ServedRecord.objects.create(record=row, resolver="192.0.2.53", as_wanted=False, asked_at=at)
    a_record(operator, zone, "new")
    assert [each.name for each in asking._due(zone.pk)] == [f"new.{DOMAIN}", f"b.{DOMAIN}"]


def test_what_a_resolver_said_that_the_zone_names_no_more_is_forgotten(operator: Actor, zone: Zone) -> None:
    row, other = a_record(operator, zone, "www"), a_record(operator, zone, "other")
    for each in (row, other):
        ServedRecord.objects.create(record=each, resolver="198.51.100.1", asked_at=now() - timedelta(minutes=1))
    question = asking.Question(row.pk, "192.0.2.53", f"www.{DOMAIN}", "A", ("192.0.2.1",))
    asking._store([asking.Answer(question, ("192.0.2.1",))])
    assert [each.resolver for each in row.served.all()] == ["192.0.2.53"]
    assert [each.resolver for each in other.served.all()] == ["198.51.100.1"]


OF_A_ZONE = {
    "192.0.2.53": ("192.0.2.53", 53),
    "192.0.2.53:5353": ("192.0.2.53", 5353),
    "2001:db8::53": ("2001:db8::53", 53),
    "[2001:db8::53]:5353": ("2001:db8::53", 5353),
}


@pytest.mark.parametrize("written", OF_A_ZONE)
def test_every_resolver_that_a_zone_may_name_can_be_asked(written: str) -> None:
    assert host_and_port(resolver(written), 53) == OF_A_ZONE[written]


@pytest.mark.parametrize(("written", "address"), [*OF_A_ZONE.items(), ("[2001:db8::53]", ("2001:db8::53", 53))])
def test_every_resolver_that_the_settings_take_can_be_asked(
    written: str, address: tuple[str, int], settings: Settings
) -> None:
    assert shapes.SERVERS.fits(written)
    assert host_and_port(written, 53) == address
    settings.RESOLVERS = [written]
    (asked,) = hostname_resolver().nameservers
    assert isinstance(asked, Do53Nameserver)
    assert (asked.address, asked.port) == address

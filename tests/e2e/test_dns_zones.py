"""DNS end to end: two hundred records to a real BIND over TSIG and to a real PowerDNS, changed, drifted, repaired."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import dns.message
import dns.query
import dns.rdatatype
import dns.tsigkeyring
import dns.update
import dns.xfr
import dns.zone
import pytest

from apps.accounts.actors import Actor
from apps.definitions.models import Record, Zone
from apps.dns import asking, selectors, services
from apps.dns.models import PushedRecord, ZonePush, ZoneSync
from apps.drivers.dns.contract import Edit
from apps.drivers.dns.rfc2136 import Rfc2136Driver
from tests.e2e.name_servers import (
    API_KEY,
    KEY_NAME,
    SECRET,
    Server,
    call_powerdns,
    kill,
    running_bind,
    running_powerdns,
)

pytestmark = [pytest.mark.e2e, pytest.mark.django_db]

DOMAIN, RECORDS, CHANGED, DRIFTED = "example.test", 200, 50, 10
# So many that a push goes in several messages of RFC 2136.
MANY = 450


@pytest.fixture(params=["rfc2136", "powerdns"])
def server(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(services, "enqueue_on_commit", lambda *_: None)
    monkeypatch.setenv("SPILLWAY_DNS_EXAMPLE", SECRET if request.param == "rfc2136" else API_KEY)
    start = running_bind if request.param == "rfc2136" else running_powerdns
    with start(tmp_path, DOMAIN) as running:
        monkeypatch.setenv("SPILLWAY_DNS_EXAMPLE_SERVERS", running.server)
        yield running


@pytest.fixture
def zone(operator: Actor, server: Server) -> Zone:
    return Zone.objects.create(
        account=operator.account,
        name="example",
        domain=DOMAIN,
        driver=server.driver,
        server=server.server,
        key_name=KEY_NAME if server.driver == "rfc2136" else "",
        credentials="env:EXAMPLE",
        resolvers=[server.resolver],
        desired_generation=1,
    )


def is_served(state: selectors.RecordState) -> bool:
    """Whether every resolver that was asked answers as wanted, and one was asked."""
    return bool(state.served) and all(each.as_wanted for each in state.served)


def bump_generation(zone: Zone) -> None:
    Zone.objects.filter(pk=zone.pk).update(desired_generation=zone.desired_generation + 1)
    zone.refresh_from_db()


def push(zone: Zone) -> ZoneSync:
    services.reconcile_zone(zone_id=zone.pk)
    return ZoneSync.objects.get(zone=zone)


def answer(server: Server, label: str, rdtype: str = "A") -> list[str]:
    """What the server itself answers for a name."""
    said = dns.query.tcp(dns.message.make_query(f"{label}.{DOMAIN}", rdtype), server.address, 5, server.port)
    kind = dns.rdatatype.from_text(rdtype)
    return sorted(each.to_text() for rrset in said.answer if rrset.rdtype == kind for each in rrset)


def by_hand(server: Server, label: str, address: str) -> None:
    """What somebody does at the server with its own tools."""
    name = f"{label}.{DOMAIN}."
    if server.driver == "powerdns":
        records = [{"content": address, "disabled": False}]
        rrset = {"name": name, "type": "A", "changetype": "REPLACE", "ttl": 300, "records": records}
        call_powerdns(server.server, "PATCH", DOMAIN, {"rrsets": [rrset]})
        return
    update = dns.update.UpdateMessage(DOMAIN, keyring=dns.tsigkeyring.from_text({KEY_NAME: SECRET}))
    update.replace(f"{label}", 300, "A", address)
    assert dns.query.tcp(update, server.address, 5, server.port).rcode() == 0


def make_records(owner: Actor, zone: Zone, count: int) -> None:
    Record.objects.bulk_create(
        Record(
            account=owner.account,
            zone=zone,
            name=f"host-{number}",
            label=f"host-{number}",
            type="A",
            values=[f"192.0.2.{number % 250 + 1}"],
        )
        for number in range(count)
    )
    bump_generation(zone)


def test_two_hundred_records_are_pushed_changed_drifted_and_repaired(
    operator: Actor, zone: Zone, server: Server
) -> None:
    make_records(operator, zone, RECORDS)
    by_hand(server, "theirs", "198.51.100.200")
    began = time.monotonic()
    sync = push(zone)
    pushed = time.monotonic() - began
    assert (sync.error, sync.refused, len(ZonePush.objects.get().edits)) == ("", [], RECORDS)
    assert answer(server, "host-0") == ["192.0.2.1"]
    assert answer(server, f"host-{RECORDS - 1}") == [f"192.0.2.{(RECORDS - 1) % 250 + 1}"]

    changed = list(Record.objects.order_by("pk")[:CHANGED])
    for record in changed:
        Record.objects.filter(pk=record.pk).update(values=["203.0.113.1", "203.0.113.2"], ttl=600)
    bump_generation(zone)
    sync = push(zone)
    assert len(ZonePush.objects.first().edits) == CHANGED  # type: ignore[union-attr]  # there are two
    assert answer(server, changed[0].label) == ["203.0.113.1", "203.0.113.2"]

    drifted = [record.label for record in Record.objects.order_by("-pk")[:DRIFTED]]
    for label in drifted:
        by_hand(server, label, "198.51.100.66")
    sync = push(zone)
    assert sorted(each["name"] for each in sync.drift) == sorted(f"{label}.{DOMAIN}" for label in drifted)
    assert answer(server, drifted[0]) == ["198.51.100.66"], "found is not repaired"
    services.repair(actor=operator, zone_id=zone.pk, reason="By mistake.")
    began = time.monotonic()
    sync = push(zone)
    repaired = time.monotonic() - began
    assert sync.drift == []
    assert "198.51.100.66" not in {value for label in drifted for value in answer(server, label)}
    assert answer(server, "theirs") == ["198.51.100.200"], "what nobody defined here is never touched"
    assert {"name": f"theirs.{DOMAIN}", "type": "A"} in sync.unmanaged
    print(f"{server.driver}: {RECORDS} records pushed in {pushed:.2f} s, {DRIFTED} repaired in {repaired:.2f} s")


def before_message(number: int, happens: Callable[[], object], patch: pytest.MonkeyPatch) -> list[int]:
    """Something that happens right before a message with changes is sent; the sizes of the messages so far."""
    usual, sizes = Rfc2136Driver.write, list[int]()

    def write(self: Rfc2136Driver, edits: Sequence[Edit]) -> None:
        sizes.append(len(edits))
        if len(sizes) == number:
            happens()
        usual(self, edits)

    patch.setattr(Rfc2136Driver, "write", write)
    return sizes


def there(server: Server) -> set[str]:
    """Names of the records that the server itself gives away."""
    transferred = dns.zone.Zone(DOMAIN)
    query, _ = dns.xfr.make_query(transferred, keyring=dns.tsigkeyring.from_text({KEY_NAME: SECRET}))
    dns.query.inbound_xfr(server.address, transferred, query, port=server.port, timeout=30)
    return {name.to_text() for name in transferred.nodes if name.to_text().startswith("host-")}


only_bind = pytest.mark.parametrize("server", ["rfc2136"], indirect=True)


@only_bind
def test_a_server_that_dies_between_two_messages_of_a_push_is_told_as_it_is_and_brought_the_rest(
    operator: Actor, zone: Zone, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_records(operator, zone, MANY)
    with monkeypatch.context() as dying:
        sizes = before_message(3, lambda: kill(server.process), dying)
        sync = push(zone)
    taken = sum(sizes[:2])
    assert len(sizes) == 3
    assert f"did not answer (ConnectionRefusedError). It had taken {taken} of {MANY} changes by then." in sync.error
    assert [len(each.edits) for each in ZonePush.objects.all()] == [taken]
    assert selectors.state_of_zone(operator, zone).status == "failing"
    with running_bind(tmp_path, DOMAIN) as again:
        names = {name.removesuffix(f".{DOMAIN}") for name in PushedRecord.objects.values_list("name", flat=True)}
        assert (len(names), there(again)) == (taken, names), "what counts as pushed is what stands there"
        drifted, meant_otherwise = sorted(names)[:2]
        by_hand(again, drifted, "198.51.100.66")
        Record.objects.filter(label=meant_otherwise).update(values=["203.0.113.1"])
        monkeypatch.setenv("SPILLWAY_DNS_EXAMPLE_SERVERS", again.server)
        Zone.objects.filter(pk=zone.pk).update(server=again.server)
        sync = push(zone)
        assert (sync.error, sync.refused, sync.in_the_way, len(there(again))) == ("", [], [], MANY)
        assert [each["name"] for each in sync.drift] == [f"{drifted}.{DOMAIN}"]
        assert answer(again, meant_otherwise) == ["203.0.113.1"]
        services.repair(actor=operator, zone_id=zone.pk)
        assert push(zone).drift == []
        assert answer(again, drifted) == list(Record.objects.get(label=drifted).values)


@only_bind
def test_a_record_that_is_refused_in_the_second_message_is_the_only_one_that_is(
    operator: Actor, zone: Zone, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_records(operator, zone, MANY)
    late = sorted(f"host-{number}" for number in range(MANY))[MANY // 2 - 1]
    with monkeypatch.context() as racing:
        sizes = before_message(2, lambda: by_hand(server, late, "198.51.100.66"), racing)
        sync = push(zone)
    assert len(sizes) > 4, "the message was refused, and tried again in halves"
    assert [each["name"] for each in sync.refused] == [f"{late}.{DOMAIN}"]
    assert "has changed since it was read" in sync.refused[0]["message"]
    assert sorted(len(each.edits) for each in ZonePush.objects.all()) == [1, MANY - 1]
    assert (PushedRecord.objects.count(), len(there(server))) == (MANY - 1, MANY)
    sync = push(zone)
    assert [each["name"] for each in sync.in_the_way] == [f"{late}.{DOMAIN}"]
    services.repair(actor=operator, zone_id=zone.pk, adopt_existing=True)
    sync = push(zone)
    assert (sync.refused, sync.in_the_way, PushedRecord.objects.count()) == ([], [], MANY)


def test_a_page_tells_wanted_from_served_by_resolver(
    operator: Actor, zone: Zone, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    Record.objects.create(account=operator.account, zone=zone, name="www", label="www", type="A", values=["192.0.2.1"])
    Record.objects.create(
        account=operator.account, zone=zone, name="any", label="*.apps", type="A", values=["192.0.2.2"]
    )
    asking.ask_due()
    assert [is_served(state) for state in selectors.record_states(operator, zone)] == [False, False]
    bump_generation(zone)
    push(zone)
    for record in Record.objects.all():
        record.served.all().delete()
    asking.ask_due()
    states = selectors.record_states(operator, zone)
    assert [(state.record.label, is_served(state)) for state in states] == [("*.apps", True), ("www", True)]
    kill(server.process)
    monkeypatch.setattr(asking, "SECONDS", 0.1)
    for record in Record.objects.all():
        record.served.all().delete()
    asking.ask_due()
    (first, _) = selectors.record_states(operator, zone)
    assert not is_served(first)
    assert first.served[0].error.startswith("No answer")

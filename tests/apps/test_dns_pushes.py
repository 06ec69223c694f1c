"""Claims, failures, drift, repairs, and what each account may see of a shared zone."""

from __future__ import annotations

import functools
import uuid
from datetime import timedelta
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Grant
from apps.audit.models import Entry
from apps.core.clock import database_now
from apps.core.concurrency.leases import LeaseLost, take
from apps.core.errors import Forbidden, InProgress, Invalid, NotFound
from apps.definitions.models import Record, Zone
from apps.definitions.reading.describing import describe
from apps.definitions.services import apply_document, confirming, delete_object, save_object
from apps.dns import pushing, selectors, services
from apps.dns.models import PushedRecord, ZonePush, ZoneSync
from apps.drivers.dns.contract import Edit, RecordSet, Refused, Unreachable
from apps.drivers.dns.memory import MemoryDriver, MemoryServer, memory_server
from apps.fleet.models import StaticIP
from tests.apps.at_once import at_once

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
    return Zone.objects.create(
        account=operator.account,
        name="example",
        domain=DOMAIN,
        driver="memory",
        server=f"memory://{server.name}",
        tags={"customer": "acme"},
        desired_generation=1,
    )


def a_record(owner: Actor, zone: Zone, label: str, *values: str, **columns: Any) -> Record:
    Zone.objects.filter(pk=zone.pk).update(desired_generation=zone.desired_generation + 1)
    zone.refresh_from_db()
    usual = {"type": "A", "ttl": 300, "values": list(values)}
    return Record.objects.create(account=owner.account, zone=zone, name=f"r-{label}", label=label, **(usual | columns))


def share(operator: Actor, account: Actor) -> Grant:
    name = f"zones-of-{account.account.name}"
    return Grant.objects.create(name=name, account=account.account, tag="customer=acme")


def push(zone: Zone) -> ZoneSync:
    services.reconcile_zone(zone_id=zone.pk)
    return ZoneSync.objects.get(zone=zone)


def served(server: MemoryServer) -> dict[str, tuple[str, ...]]:
    return {f"{name.removesuffix('.' + DOMAIN)} {kind}": each.values for (name, kind), each in server.records.items()}


def by_hand(server: MemoryServer, label: str, *values: str) -> None:
    name = f"{label}.{DOMAIN}"
    server.records[name, "A"] = RecordSet(name, "A", 300, values)


def test_records_come_change_and_go(operator: Actor, zone: Zone, server: MemoryServer) -> None:
    www, api = a_record(operator, zone, "www", "192.0.2.2", "192.0.2.1"), a_record(operator, zone, "api", "192.0.2.3")
    sync = push(zone)
    assert served(server) == {"www A": ("192.0.2.1", "192.0.2.2"), "api A": ("192.0.2.3",)}
    assert (sync.pushed_generation, sync.drift, sync.refused) == (3, [], [])
    api.delete()
    Record.objects.filter(pk=www.pk).update(values=["192.0.2.9"])
    push(zone)
    assert served(server) == {"www A": ("192.0.2.9",)}
    assert [len(each.edits) for each in ZonePush.objects.all()] == [2, 2]


def test_a_zone_goes_when_its_server_has_lost_what_was_deleted_or_somebody_leaves_it_there(
    operator: Actor, zone: Zone, server: MemoryServer
) -> None:
    for label in ("www", "api"):
        a_record(operator, zone, label, "192.0.2.1")
    push(zone)
    go = functools.partial(delete_object, actor=operator, kind="Zone", name="example")
    for record in ("r-www", "r-api"):
        delete_object(actor=operator, kind="Record", name=record)
    with pytest.raises(InProgress, match="The server of zone operator/example still serves 2 records that Spillway"):
        go()
    push(zone)
    assert served(server) == {}
    go()
    assert not Zone.objects.exists()


def test_a_server_that_is_gone_keeps_no_zone(operator: Actor, zone: Zone, server: MemoryServer) -> None:
    a_record(operator, zone, "www", "192.0.2.1").delete()
    PushedRecord.objects.create(zone=zone, name=f"www.{DOMAIN}", type="A", ttl=300, values=["192.0.2.1"])
    server.unreachable = True
    push(zone)
    with pytest.raises(InProgress, match="leave them there: confirm=operator/example"):
        delete_object(actor=operator, kind="Zone", name="example")
    with confirming(["operator/example"]):
        delete_object(actor=operator, kind="Zone", name="example")
    assert not Zone.objects.exists()


def test_a_document_that_deletes_a_zone_with_its_records_is_told_to_delete_them_first(
    operator: Actor, zone: Zone
) -> None:
    spec = {"domain": DOMAIN, "driver": "memory", "server": zone.server}
    record = {"zone": "example", "label": "www", "type": "A", "values": ["192.0.2.1"]}
    objects = [{"kind": "Zone", "name": "example", "spec": spec}, {"kind": "Record", "name": "www", "spec": record}]
    apply_document(actor=operator, objects=objects, manager="git")
    push(zone)
    with pytest.raises(Invalid) as refused:
        apply_document(actor=operator, objects=[], manager="git", prune=True)
    assert "Delete the records first, and the zone when they are gone." in refused.value.detail
    assert PushedRecord.objects.exists()
    with confirming(["operator/example"]):
        apply_document(actor=operator, objects=[], manager="git", prune=True)
    assert not Zone.objects.exists()


def test_a_push_that_changes_nothing_writes_nothing(operator: Actor, zone: Zone, server: MemoryServer) -> None:
    a_record(operator, zone, "www", "192.0.2.1")
    push(zone)
    push(zone)
    assert (server.writes, ZonePush.objects.count()) == (1, 1)


def test_a_server_that_is_away_loses_nothing_and_is_tried_again(
    operator: Actor, zone: Zone, server: MemoryServer
) -> None:
    a_record(operator, zone, "www", "192.0.2.1")
    server.unreachable = True
    sync = push(zone)
    assert "does not answer" in sync.error
    assert sync.pushed_generation == 0
    assert zone.pk not in services.due_zones(database_now())
    assert zone.pk in services.due_zones(database_now() + timedelta(minutes=6))
    server.unreachable = False
    assert push(zone).error == ""
    assert served(server) == {"www A": ("192.0.2.1",)}


def test_drift_is_found_shown_and_repaired_by_whoever_may(operator: Actor, zone: Zone, server: MemoryServer) -> None:
    a_record(operator, zone, "www", "192.0.2.1")
    push(zone)
    by_hand(server, "www", "198.51.100.66")
    by_hand(server, "theirs", "198.51.100.1")
    sync = push(zone)
    assert [each["name"] for each in sync.drift] == [f"www.{DOMAIN}"]
    assert sync.unmanaged == [{"name": f"theirs.{DOMAIN}", "type": "A"}]
    assert served(server)["www A"] == ("198.51.100.66",)
    services.repair(actor=operator, zone_id=zone.pk, reason="Nobody meant that.")
    assert push(zone).drift == []
    assert served(server) == {"www A": ("192.0.2.1",), "theirs A": ("198.51.100.1",)}
    assert Entry.objects.filter(action="repair", reason="Nobody meant that.").exists()
    assert ZonePush.objects.first().kind == "repair"  # type: ignore[union-attr]  # there is one


def test_one_bad_record_keeps_no_other_back(operator: Actor, zone: Zone, server: MemoryServer) -> None:
    for number in range(9):
        a_record(operator, zone, f"host-{number}", f"192.0.2.{number + 1}")
    server.records[f"bad.{DOMAIN}", "TXT"] = RecordSet(f"bad.{DOMAIN}", "TXT", 300, ('"theirs"',))
    alias = a_record(operator, zone, "bad", "www.example.test.", type="CNAME")
    services.repair(actor=operator, zone_id=zone.pk)
    sync = push(zone)
    assert len(served(server)) == 10
    assert [each["name"] for each in sync.in_the_way] == [f"bad.{DOMAIN}"]
    alias.delete()
    a_record(operator, zone, "spoilt", "no address at all")
    sync = push(zone)
    assert [each["name"] for each in sync.refused] == [f"spoilt.{DOMAIN}"]
    assert len(served(server)) == 10


@pytest.mark.parametrize("at_once", [1000, 2])
def test_what_the_server_refuses_of_one_is_said_of_that_one(
    at_once: int, operator: Actor, zone: Zone, server: MemoryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.at_once = at_once
    usual = MemoryDriver.write

    def strict(self: MemoryDriver, edits: tuple[Edit, ...]) -> None:
        if any(edit.after is not None and edit.after.values == ("192.0.2.66",) for edit in edits):
            raise Refused("The server does not take 192.0.2.66.")
        usual(self, edits)

    monkeypatch.setattr(MemoryDriver, "write", strict)
    for number in (1, 2, 66, 3, 4):
        a_record(operator, zone, f"host-{number}", f"192.0.2.{number}")
    sync = push(zone)
    assert sorted(served(server)) == [f"host-{number} A" for number in (1, 2, 3, 4)]
    assert sync.refused == [
        {"name": f"host-66.{DOMAIN}", "type": "A", "message": "The server does not take 192.0.2.66."}
    ]
    assert PushedRecord.objects.filter(zone=zone).count() == 4
    Record.objects.filter(label="host-66").update(values=["192.0.2.5"])
    assert push(zone).refused == []


def test_what_a_server_took_before_it_fell_silent_is_ours(
    operator: Actor, zone: Zone, server: MemoryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, server.at_once = MemoryDriver.write, 2

    def last(self: MemoryDriver, edits: tuple[Edit, ...]) -> None:
        usual(self, edits)
        server.unreachable = True

    for label in "abcd":
        a_record(operator, zone, label, "192.0.2.1")
    with monkeypatch.context() as silent:
        silent.setattr(MemoryDriver, "write", last)
        sync = push(zone)
    assert "does not answer. It had taken 2 of 4 changes" in sync.error
    assert sorted(PushedRecord.objects.values_list("name", flat=True)) == [f"{label}.{DOMAIN}" for label in "ab"]
    assert [(each.state, len(each.edits)) for each in ZonePush.objects.all()] == [("done", 2)]
    server.unreachable = False
    Record.objects.filter(label="a").update(values=["192.0.2.2"])
    Record.objects.filter(label="b").delete()
    sync = push(zone)
    assert (sync.error, sync.refused, sync.in_the_way, sync.drift) == ("", [], [], [])
    assert served(server) == {"a A": ("192.0.2.2",), "c A": ("192.0.2.1",), "d A": ("192.0.2.1",)}


def test_a_record_follows_its_static_ip(operator: Actor, zone: Zone, server: MemoryServer) -> None:
    address = StaticIP.objects.create(account=operator.account, name="front", address="192.0.2.10")
    a_record(operator, zone, "www", static_ip=address, values=[])
    push(zone)
    assert served(server) == {"www A": ("192.0.2.10",)}
    StaticIP.objects.filter(pk=address.pk).update(address="192.0.2.11")
    push(zone)
    assert served(server) == {"www A": ("192.0.2.11",)}
    StaticIP.objects.filter(pk=address.pk).update(address=None)
    push(zone)
    assert served(server) == {"www A": ("192.0.2.11",)}, "an address that is not known yet takes nothing away"


@pytest.mark.both_engines
def test_a_worker_that_lost_its_claim_writes_no_row(operator: Actor, zone: Zone) -> None:
    a_record(operator, zone, "www", "192.0.2.1")
    slow = take(ZoneSync, timedelta(seconds=-1), zone=zone)
    assert slow is not None
    fast = take(ZoneSync, pushing.LEASE, zone=zone)
    assert fast is not None
    with pytest.raises(LeaseLost):
        pushing.work(zone, slow)
    assert not PushedRecord.objects.exists()
    pushing.work(zone, fast)
    assert PushedRecord.objects.count() == 1


@pytest.mark.both_engines
def test_a_claim_is_given_to_one(zone: Zone) -> None:
    first = take(ZoneSync, pushing.LEASE, zone=zone)
    assert first is not None
    assert take(ZoneSync, pushing.LEASE, zone=zone) is None
    first.release()
    assert take(ZoneSync, pushing.LEASE, zone=zone) is not None


@pytest.mark.both_engines
def test_a_worker_that_died_after_writing_is_followed_by_one_that_finds_it_done(
    operator: Actor, zone: Zone, server: MemoryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_record(operator, zone, "www", "192.0.2.1")
    with monkeypatch.context() as dying:
        dying.setattr(pushing, "_note_outcome", lambda *_: (_ for _ in ()).throw(SystemExit))
        with pytest.raises(SystemExit):
            services.reconcile_zone(zone_id=zone.pk)
    assert served(server) == {"www A": ("192.0.2.1",)}
    assert not PushedRecord.objects.exists()
    sync = push(zone)
    assert (sync.pushed_generation, server.writes) == (2, 1)
    assert PushedRecord.objects.count() == 1


@pytest.mark.both_engines
@pytest.mark.django_db(transaction=True)
def test_eight_workers_at_once_write_once(operator: Actor, zone: Zone, server: MemoryServer) -> None:
    a_record(operator, zone, "www", "192.0.2.1")
    at_once(*[lambda: services.reconcile_zone(zone_id=zone.pk)] * 8)
    assert server.writes == 1
    assert ZonePush.objects.count() == 1


def test_customers_see_and_repair_their_own_records_in_zones_shared_with_them(
    operator: Actor, acme: Actor, globex: Actor, zone: Zone, server: MemoryServer
) -> None:
    share(operator, acme)
    a_record(operator, zone, "ours", "192.0.2.1")
    a_record(acme, zone, "shop", "192.0.2.2")
    push(zone)
    by_hand(server, "ours", "198.51.100.1")
    by_hand(server, "shop", "198.51.100.2")
    push(zone)
    assert [state.record.label for state in selectors.record_states(acme, zone)] == ["shop"]
    assert selectors.state_of_zone(acme, zone).message == "1 record"
    assert selectors.state_of_zone(operator, zone).message == "2 records"
    assert selectors.pushes(acme, zone) == []
    services.repair(actor=acme, zone_id=zone.pk)
    push(zone)
    assert served(server)["shop A"] == ("192.0.2.2",)
    assert served(server)["ours A"] == ("198.51.100.1",)
    with pytest.raises(Invalid):
        services.repair(actor=acme, zone_id=zone.pk, keys=[(f"ours.{DOMAIN}", "A")])
    with pytest.raises(Forbidden):
        services.repair(actor=acme, zone_id=zone.pk, adopt_existing=True)
    for act in (services.repair, services.preview):
        with pytest.raises((NotFound, Forbidden)):
            act(actor=globex, zone_id=zone.pk)
    assert selectors.zone_states(globex) == []


def test_the_preview_says_what_a_push_would_write_and_writes_nothing(
    operator: Actor, zone: Zone, server: MemoryServer
) -> None:
    a_record(operator, zone, "www", "192.0.2.1")
    made = services.preview(actor=operator, zone_id=zone.pk)
    assert [(edit.name, edit.after and edit.after.values) for edit in made.plan.edits] == [
        (f"www.{DOMAIN}", ("192.0.2.1",))
    ]
    assert server.records == {}
    assert not ZoneSync.objects.filter(zone=zone, pushed_generation__gt=0).exists()


def test_a_reference_reaches_only_secrets_that_were_put_there_for_zones(
    operator: Actor, zone: Zone, monkeypatch: pytest.MonkeyPatch, server: MemoryServer
) -> None:
    monkeypatch.setenv("SPILLWAY_SECRET_KEY", "must never travel")
    Zone.objects.filter(pk=zone.pk).update(credentials="env:SPILLWAY_SECRET_KEY")
    sync = push(zone)
    assert "SPILLWAY_DNS_SPILLWAY_SECRET_KEY" in sync.error
    monkeypatch.setenv("SPILLWAY_DNS_EXAMPLE", "word")
    server.secret = "word"
    Zone.objects.filter(pk=zone.pk).update(credentials="env:EXAMPLE")
    assert "SPILLWAY_DNS_EXAMPLE_SERVERS" in push(zone).error
    monkeypatch.setenv("SPILLWAY_DNS_EXAMPLE_SERVERS", f"memory://{server.name}")
    assert push(zone).error == ""


def die_after_writing(zone: Zone, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker dies when the server has taken what was sent, and before that is written down; its lease has ended."""
    with monkeypatch.context() as dying:
        dying.setattr(pushing, "_note_outcome", lambda *_: (_ for _ in ()).throw(SystemExit))
        with pytest.raises(SystemExit):
            services.reconcile_zone(zone_id=zone.pk)
    ZoneSync.objects.update(claimed_until=None)


def test_what_a_worker_wrote_before_it_died_is_removed_when_nobody_wants_it_any_more(
    operator: Actor, zone: Zone, server: MemoryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = a_record(operator, zone, "www", "192.0.2.1")
    by_hand(server, "api", "192.0.2.9")
    die_after_writing(zone, monkeypatch)
    record.delete()
    push(zone)
    assert served(server) == {"api A": ("192.0.2.9",)}
    assert ZoneSync.objects.get(zone=zone).writing == []


def test_what_a_server_took_without_an_answer_is_removed_when_nobody_wants_it_any_more(
    operator: Actor, zone: Zone, server: MemoryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = MemoryDriver.write

    def lost(self: MemoryDriver, edits: tuple[Edit, ...]) -> None:
        usual(self, edits)
        raise Unreachable("The answer is lost.")

    record = a_record(operator, zone, "www", "192.0.2.1")
    with monkeypatch.context() as losing:
        losing.setattr(MemoryDriver, "write", lost)
        push(zone)
    record.delete()
    ZoneSync.objects.update(next_try_at=None)
    push(zone)
    assert served(server) == {}


def test_a_zone_stays_while_nobody_knows_what_its_server_took(
    operator: Actor, zone: Zone, server: MemoryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_record(operator, zone, "www", "192.0.2.1")
    die_after_writing(zone, monkeypatch)
    delete_object(actor=operator, kind="Record", name="r-www")
    with pytest.raises(InProgress, match="still serves 1 record that Spillway wrote"):
        delete_object(actor=operator, kind="Zone", name="example")
    push(zone)
    delete_object(actor=operator, kind="Zone", name="example")
    assert served(server) == {}


def test_a_zone_that_moves_to_another_server_is_written_there_and_nothing_of_others_is_written_over(
    operator: Actor, zone: Zone, server: MemoryServer
) -> None:
    a_record(operator, zone, "www", "192.0.2.1")
    a_record(operator, zone, "api", "192.0.2.2")
    push(zone)
    other = memory_server(uuid.uuid4().hex)
    by_hand(other, "api", "198.51.100.7")
    spec = describe(zone) | {"server": f"memory://{other.name}"}
    save_object(actor=operator, kind="Zone", name="example", spec=spec)
    sync = push(zone)
    assert served(other) == {"www A": ("192.0.2.1",), "api A": ("198.51.100.7",)}
    assert (sync.drift, [each["name"] for each in sync.in_the_way]) == ([], [f"api.{DOMAIN}"])


def test_what_is_to_be_removed_is_removed_also_where_its_server_got_another_address(
    operator: Actor, zone: Zone, server: MemoryServer
) -> None:
    record = a_record(operator, zone, "www", "192.0.2.1")
    a_record(operator, zone, "api", "192.0.2.2")
    push(zone)
    record.delete()
    other = memory_server(uuid.uuid4().hex)
    other.records = dict(server.records)
    spec = describe(zone) | {"server": f"memory://{other.name}"}
    save_object(actor=operator, kind="Zone", name="example", spec=spec)
    push(zone)
    assert served(other) == {"api A": ("192.0.2.2",)}

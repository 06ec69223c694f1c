"""Request lines are fetched, named and stored; whatever dies in between, each line is stored once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django import db
from django.core.management import CommandError, call_command
from pytest_django.fixtures import Settings

from apps.accounts.models import Account
from apps.capacity.models import Run
from apps.capacity.run import bypass_tokens
from apps.compiler.targets.haproxy.request_log import REQUEST_FIELDS
from apps.core.clock import database_now, now
from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.models import Listener, Pool, Route
from apps.definitions.selectors import describe
from apps.definitions.services import save_object
from apps.drivers.logs.contract import Query, Record, Unavailable
from apps.drivers.logs.memory import MemoryStore
from apps.drivers.logs.queues import Queues
from apps.drivers.logs.registry import open_queues
from apps.fleet.models import Node, Region
from apps.logs import services
from apps.logs.collect import leases
from apps.logs.collect.collector import LogCollector
from apps.logs.collect.masking import masked_address
from apps.logs.filters import parse
from apps.logs.metrics import families
from apps.logs.models import LogForward, LogSettings, NodeLog
from tests.apps.pushed import Env, put_env, remembered, remove_route
from tests.conformance.log_places import needs_duckdb, needs_moto, opened_at
from tests.conformance.real_agent import wait_until
from tests.ports import spare_port

NOW = datetime(2026, 11, 23, 8, 0, tzinfo=UTC)
SEGMENT = "00112233aabbccdd-{}"
pytestmark = pytest.mark.django_db


def line(number: int, **said: object) -> bytes:
    """A line as HAProxy writes it, of the listener and the route of the small environment."""
    at_ms = round(NOW.timestamp() * 1000) + number
    usual = {
        "mark": "R1",
        "id": f"{at_ms:012x}7abc8{number:015x}",
        "seconds": at_ms // 1000,
        "milliseconds": f"{at_ms % 1000:03}",
        "listener": f"lst-{Listener.objects.get().pk}",
        "route": f"route-{Route.objects.get().pk}" if Route.objects.exists() else "-",
        "status": 200,
        "client": "192.0.2.77",
        "path": f"/{number}",
        "bytes_in": 10,
        "bytes_out": 20,
    }
    return "\t".join(str({**usual, **said}.get(name, "-")) for name in REQUEST_FIELDS).encode() + b"\n"


def give(env: Env, *segments: Sequence[int]) -> None:
    for number, lines in enumerate(segments):
        env.node("n1").log[SEGMENT.format(number)] = b"".join(map(line, lines))


def stored(store: MemoryStore) -> list[str]:
    query = Query(NOW - timedelta(hours=1), NOW + timedelta(hours=1))
    accounts = store.accounts()
    return sorted(each.path for pk in accounts for each in store.search(pk, query, limit=1000).records)


def n1() -> int:
    return Node.objects.get(name="n1").pk


RUNNING = remembered(Env.reconcile)


@pytest.fixture
def pushed(db: None) -> Env:
    return put_env(RUNNING)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def queues(tmp_path: Path) -> Queues:
    return Queues(tmp_path / "queues")


@pytest.fixture
def collector(pushed: Env, store: MemoryStore, queues: Queues, monkeypatch: pytest.MonkeyPatch) -> LogCollector:
    monkeypatch.setattr("apps.logs.collect.reading.WAIT_S", 0.0)  # nothing comes while a test waits
    made = LogCollector(store, queues)
    made.renew()
    return made


def test_lines_are_stored_with_names_and_then_forgotten_by_the_node(
    pushed: Env, store: MemoryStore, collector: LogCollector
) -> None:
    give(pushed, [1, 2], [3])
    turn = collector.collect_once(n1())
    assert turn is not None
    assert (turn.segments, turn.stored, turn.error) == (2, 3, "")
    assert pushed.node("n1").log == {}
    owner = Account.objects.get(name=pushed.operator.account.name)
    (found,) = store.search(owner.pk, Query(NOW, NOW + timedelta(hours=1)), limit=1).records
    assert (found.node, found.fleet, found.load_balancer, found.listener) == ("n1", "here", "front", "http")
    assert (found.route, found.path, found.status, found.home_region) == ("home", "/3", 200, "here")
    log = NodeLog.objects.get(node__name="n1")
    assert (log.stored, log.damaged, log.error) == (3, 0, "")


def test_lines_of_an_account_that_is_gone_are_not_those_of_another_that_has_its_name(
    pushed: Env, store: MemoryStore, collector: LogCollector
) -> None:
    own = pushed.operator.account
    Account.objects.filter(pk=own.pk).update(created_at=now() + timedelta(hours=1))
    give(pushed, [1])
    turn = collector.collect_once(n1())
    assert turn is not None
    assert turn.stored == 1
    assert own.pk not in store.accounts()


def test_a_line_names_the_policy_that_decided_and_the_nearest_of_several(
    pushed: Env, store: MemoryStore, collector: LogCollector
) -> None:
    for name, burst in (("everybody", 20), ("patient", 10)):
        spec = {"rules": {"client_limit": {"requests": burst}, "maintenance": {"enabled": False}}}
        defaults = {"default_for": {"account": True}} if name == "everybody" else {}
        save_object(actor=pushed.operator, kind="Policy", name=name, spec=spec | defaults)
    route = Route.objects.get()
    spec = describe(route) | {"policies": ["patient"], "rules": {"maintenance": {"enabled": True}}}
    save_object(actor=pushed.operator, kind="Route", name=route.name, spec=spec)
    pushed.reconcile()
    over = line(1, status=429, over="1"), line(2, status=503)
    pushed.node("n1").log[SEGMENT.format(0)] = b"".join(over)
    assert collector.collect_once(n1())
    query = Query(NOW, NOW + timedelta(hours=1))
    records = store.search(route.account_id, query, limit=9).records
    assert sorted((each.why, each.decided_by) for each in records) == [
        ("limited", "patient"), ("maintenance", "this route"),
    ]  # fmt: skip


def test_a_line_names_the_capacity_run_that_it_belongs_to_also_when_it_comes_after_its_end(
    pushed: Env, store: MemoryStore, collector: LogCollector
) -> None:
    served = snapshot_of(pushed.fleet).pools[0]
    pool, region = Pool.objects.get(pk=served.id.removeprefix("pool-")), Region.objects.get(name="here")
    run = Run.objects.create(account=pool.account, pool=pool, region=region, label="t", plan={}, state="running")
    bypass_tokens.activate(run)
    pushed.reconcile()
    own, unknown = line(1, bypass=f"pool-{pool.pk}"), line(2, bypass="pool-999")
    pushed.node("n1").log[SEGMENT.format(0)] = own + unknown + line(3)
    assert collector.collect_once(n1())
    bypass_tokens.deactivate(run)
    pushed.reconcile()
    pushed.node("n1").log[SEGMENT.format(1)] = line(4, bypass=f"pool-{pool.pk}")
    assert collector.collect_once(n1())
    query = Query(NOW, NOW + timedelta(hours=1), parse(f"test_run:{run.name}"))
    records = store.search(pool.account_id, query, limit=9).records
    assert {each.path for each in records} == {"/1", "/4"}
    every = store.search(pool.account_id, Query(NOW, NOW + timedelta(hours=1)), limit=9).records
    assert sorted(each.test_run for each in every) == ["", run.name, run.name, "unknown"]


def test_a_segment_that_was_stored_and_not_acknowledged_is_stored_once(
    pushed: Env, store: MemoryStore, collector: LogCollector
) -> None:
    give(pushed, [1, 2])
    kept = dict(pushed.node("n1").log)
    collector.collect_once(n1())
    pushed.node("n1").log.update(kept)
    turn = collector.collect_once(n1())
    assert turn is not None
    assert turn.stored == 0
    assert stored(store) == ["/1", "/2"]
    assert pushed.node("n1").log == {}


def test_what_may_be_stored_already_is_looked_for_and_nothing_else(
    pushed: Env, collector: LogCollector, queues: Queues
) -> None:
    told: list[tuple[str, bool]] = []

    class Telling(MemoryStore):
        def store(self, batch_id: str, records: Sequence[Record], *, first: bool = False) -> int:
            told.append((batch_id.rpartition("-")[2], first))
            return super().store(batch_id, records, first=first)

    collector._store = Telling()
    give(pushed, [1])  # whoever had the node before may not have acknowledged it
    collector.collect_once(n1())
    pushed.node("n1").log[SEGMENT.format(7)] = line(2)
    kept = dict(pushed.node("n1").log)
    collector.collect_once(n1())
    pushed.node("n1").log.update(kept)  # a node that crashed shows it once more
    collector.collect_once(n1())
    assert told == [("0", False), ("7", True), ("7", False)]
    pushed.node("n1").log.update(kept)
    other = LogCollector(collector._store, queues)
    turn = other.collect_once(n1())
    assert turn is not None
    assert (turn.stored, told[-1]) == (0, ("7", False))


def test_a_node_without_lines_is_written_down_once_in_a_while(
    pushed: Env, collector: LogCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_at() -> datetime | None:
        return NodeLog.objects.get(node=n1()).read_at

    collector.collect_once(n1())
    first = read_at()
    collector.collect_once(n1())
    assert read_at() == first
    pushed.node("n1").log_dropped = 3  # news is told at once
    collector.collect_once(n1())
    assert NodeLog.objects.get(node=n1()).dropped == 3
    second = read_at()
    monkeypatch.setattr("apps.logs.collect.collector.SAY_READ_S", 0.0)
    collector.collect_once(n1())
    assert read_at() != second


def test_nothing_is_acknowledged_before_it_is_stored(pushed: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(MemoryStore):
        def store(self, *_: object, **__: object) -> int:
            raise Unavailable("The disk is full.")

    give(pushed, [1])
    collector = LogCollector(Broken(), open_queues("memory://queues"))
    collector.renew()
    turn = collector.collect_once(n1())
    assert turn is not None
    assert turn.error == "The disk is full."
    assert len(pushed.node("n1").log) == 1
    assert NodeLog.objects.get(node__name="n1").error == "The disk is full."


@needs_duckdb
@needs_moto
def test_nodes_keep_their_lines_while_the_bucket_is_away(
    pushed: Env, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.drivers.logs.files.bucket.ATTEMPTS", 1)
    from apps.drivers.logs.files.bucket import BucketFiles
    from apps.drivers.logs.parquet import ParquetStore

    give(pushed, [1, 2])
    with opened_at("bucket", tmp_path / "logs") as store:
        collector = LogCollector(store, open_queues("memory://queues"))
        collector.renew()
        away = BucketFiles(replace(store._files._bucket, endpoint=f"http://127.0.0.1:{spare_port()}"))
        collector._store = ParquetStore(away)
        turn = collector.collect_once(n1())
        assert turn is not None
        assert (turn.stored, len(pushed.node("n1").log)) == (0, 1)
        assert "cannot be reached" in NodeLog.objects.get(node__name="n1").error
        collector._store = store
        turn = collector.collect_once(n1())
        assert turn is not None
        assert (turn.stored, len(pushed.node("n1").log)) == (2, 0)
        assert NodeLog.objects.get(node__name="n1").error == ""


def test_the_command_says_what_is_wrong_with_the_address_of_the_store(settings: Settings) -> None:
    settings.LOGS_URL = "logs+s3://key:hunter2@bucket"
    with pytest.raises(CommandError, match="AWS_ACCESS_KEY_ID"):
        call_command("collect_logs")


def test_a_route_that_was_deleted_since_still_has_its_name(
    pushed: Env, store: MemoryStore, collector: LogCollector
) -> None:
    give(pushed, [1])
    remove_route(pushed.operator, "home")
    pushed.reconcile()
    collector.collect_once(n1())
    (pk,) = store.accounts()
    (found,) = store.search(pk, Query(NOW, NOW + timedelta(hours=1)), limit=1).records
    assert found.route == "home"


def test_damaged_and_strange_lines_are_counted_and_stop_nothing(
    pushed: Env, store: MemoryStore, collector: LogCollector
) -> None:
    pushed.node("n1").log[SEGMENT.format(1)] = (
        line(1) + b"R1\tbroken\n" + b"\0\xff\n" + line(2, listener="lst-999999") + line(3)
    )
    turn = collector.collect_once(n1())
    assert turn is not None
    assert (turn.stored, turn.damaged) == (2, 1)
    assert stored(store) == ["/1", "/3"]


def test_the_same_line_of_two_nodes_is_two_requests(pushed: Env, store: MemoryStore, collector: LogCollector) -> None:
    names = list(Node.objects.order_by("pk").values_list("name", flat=True)[:2])
    unreadable = line(1, id="-", status=400, route="-")  # HAProxy gives what it cannot read no id
    for name in names:
        pushed.node(name).log[SEGMENT.format(1)] = unreadable
        collector.collect_once(Node.objects.get(name=name).pk)
    (pk,) = store.accounts()
    found = store.search(pk, Query(NOW, NOW + timedelta(hours=1)), limit=10).records
    assert sorted(each.node for each in found) == sorted(names)
    assert len({each.id for each in found}) == 2


def test_a_node_that_is_away_says_so_and_keeps_its_lines(pushed: Env, collector: LogCollector) -> None:
    give(pushed, [1])
    pushed.node("n1").unreachable = True
    turn = collector.collect_once(n1())
    assert turn is not None
    assert "does not answer" in turn.error
    assert NodeLog.objects.get(node=n1()).read_at is None
    pushed.node("n1").unreachable = False
    pushed.node("n1").log_dropped = 12
    turn = collector.collect_once(n1())
    assert turn is not None
    assert (turn.stored, turn.dropped) == (1, 12)
    values = {
        sample.name: sample.value
        for family in families()
        for sample in family.samples
        if sample.labels == {"node": "n1"}
    }
    assert values["spillway_request_log_dropped_lines_total"] == 12
    assert values["spillway_request_log_stored_lines_total"] == 1


def test_lines_of_a_node_that_is_away_wait_longer_and_longer(pushed: Env, collector: LogCollector) -> None:
    collector.collect_once(n1())
    NodeLog.objects.update(read_at=now() - timedelta(minutes=10), waiting_s=2)
    pushed.node("n1").unreachable = True
    collector.collect_once(n1())
    row = NodeLog.objects.get(node=n1())
    assert "does not answer" in row.error
    assert row.waits_s(now()) >= 602
    shown = {sample.labels.get("node"): sample.value for family in families() for sample in family.samples
             if sample.name == "spillway_request_log_waiting_seconds"}  # fmt: skip
    assert shown["n1"] >= 602


def test_when_a_node_lost_more_lines_is_kept_and_silence_or_the_same_number_is_no_loss(
    pushed: Env, collector: LogCollector
) -> None:
    def lost_at() -> datetime | None:
        return NodeLog.objects.get(node=n1()).dropped_at

    collector.collect_once(n1())
    assert lost_at() is None
    pushed.node("n1").log_dropped = 12
    collector.collect_once(n1())
    first = lost_at()
    assert first is not None
    pushed.node("n1").unreachable = True
    collector.collect_once(n1())
    pushed.node("n1").unreachable = False
    collector.collect_once(n1())
    assert (lost_at(), NodeLog.objects.get(node=n1()).dropped) == (first, 12)
    pushed.node("n1").log_dropped = 13
    collector.collect_once(n1())
    assert lost_at() != first


def test_addresses_are_masked_for_whom_it_is_wanted(pushed: Env, store: MemoryStore, collector: LogCollector) -> None:
    services.change_settings(actor=pushed.operator, spec={"mask_addresses": True})
    give(pushed, [1])
    collector.collect_once(n1())
    (pk,) = store.accounts()
    (found,) = store.search(pk, Query(NOW, NOW + timedelta(hours=1)), limit=1).records
    assert found.client == "192.0.2.0"
    assert masked_address("2001:db8:1:2::3") == "2001:db8:1::"
    assert masked_address("unix") == ""


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [(None, "token=***&color=red"), (["color"], "token=s3cret&color=***"), ([], "token=s3cret&color=red")],
)
def test_values_of_secrets_are_neither_stored_nor_forwarded_unless_somebody_wants_them(
    pushed: Env, store: MemoryStore, queues: Queues, collector: LogCollector, wanted: list[str] | None, kept: str
) -> None:
    if wanted is not None:
        services.change_settings(actor=pushed.operator, spec={"mask_values_of": wanted})
    forward = LogForward.objects.create(
        account=pushed.operator.account, name="siem", url="https://logs.example/v1/logs"
    )
    pushed.node("n1").log[SEGMENT.format(1)] = line(1, query="token%3Ds3cret%26color%3Dred")
    collector.collect_once(n1())
    (pk,) = store.accounts()
    (found,) = store.search(pk, Query(NOW, NOW + timedelta(hours=1)), limit=1).records
    assert found.query == kept
    assert [each.query for frame in queues.read(forward.pk, {}, 9) for each in frame.records] == [kept]


def test_two_collectors_share_the_nodes_and_take_over_from_each_other(
    pushed: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = Node.objects.count()
    assert len(leases.share("one")) == count
    assert leases.share("two") == set()
    first, second = leases.share("one"), leases.share("two")
    assert len(first) == len(second) == count // 2
    assert not first & second
    assert (leases.leads("one"), leases.leads("two")) == (True, False)
    leases.release("one")
    assert len(leases.share("two")) == count
    assert leases.leads("two")
    late = database_now() + leases.LEASE * 2
    monkeypatch.setattr(leases, "database_now", lambda: late)
    assert len(leases.share("three")) == count


def test_without_the_database_a_node_is_ours_until_it_may_be_anothers(
    pushed: Env, collector: LogCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_holder: str) -> set[int]:
        raise db.OperationalError("away")

    monkeypatch.setattr(leases, "share", away)
    monkeypatch.setattr(db.connection, "close", lambda: None)  # the test's own
    collector.renew()
    assert collector._is_ours(n1())
    collector._renewed -= leases.LEASE.total_seconds()
    assert not collector._is_ours(n1())


def test_lines_go_when_they_are_old_when_there_are_too_many_and_with_their_account(pushed: Env) -> None:
    def lines(account: int, days: int) -> Record:
        at = NOW - timedelta(days=days, hours=2)
        return Record(time=at, id=f"{days}", node="", fleet="", account=account, load_balancer="", listener="")

    own = pushed.operator.account
    store = MemoryStore()
    store.store("a", [lines(own.pk, days) for days in (0, 5, 13, 15)] + [lines(own.pk + 999, 0)])
    assert services.sweep(store, NOW) == 2
    assert store.accounts() == (own.pk,)
    LogSettings.objects.create(account=own, retention_days=6)
    services.sweep(store, NOW)
    assert store.usage(own.pk).lines == 2
    customer = Account.objects.create(name="tiny", title="Tiny", kind="customer", quotas={"log_megabytes": 0})
    store.store("b", [lines(customer.pk, days) for days in (0, 1)])
    services.sweep(store, NOW)
    assert customer.pk not in store.accounts()
    assert store.usage(own.pk).lines == 2


def test_open_pages_are_told_once_of_what_was_stored_in_a_moment(
    pushed: Env, collector: LogCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr("apps.logs.collect.collector.publish", told.append)
    monkeypatch.setattr("apps.logs.collect.collector.TELL_S", 0.01)
    give(pushed, [1], [2])
    collector.collect_once(n1())
    thread = threading.Thread(target=collector._tell, daemon=True)
    thread.start()
    try:
        wait_until(lambda: told == ["lines"], "pages were not told")
        collector.collect_once(n1())
    finally:
        collector.stop()
        thread.join()
    assert told == ["lines"]

"""What only ClickHouse has: batches of two collectors at once, days that go as partitions, an engine that is killed.

Its engine is the real one, behind a front of ours (`tests/clickhouse/front.py`); a cluster was never asked.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from apps.drivers.logs.ceilings import Ceilings
from apps.drivers.logs.clickhouse import storing
from apps.drivers.logs.contract import Rejected, TooLarge, Unavailable
from apps.drivers.logs.registry import open_logs, open_queues
from tests.clickhouse.starting import Front, front, in_clickhouse, needs_clickhouse
from tests.conformance.test_log_stores import HOSTILE, START, numbers, query, record
from tests.ports import spare_port

asked_of_the_engine = [
    needs_clickhouse,
    pytest.mark.exhaustive,
    pytest.mark.slow(reason="ClickHouse's engine, asked over HTTP"),
]
DAY = timedelta(days=1)


def of_engine(test: Any) -> Any:
    """Mark a test that asks the engine."""
    for mark in asked_of_the_engine:
        test = mark(test)
    return test


@pytest.fixture
def store() -> Iterator[Any]:
    with in_clickhouse() as opened:
        yield opened


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("clickhouse://u:hunter2@127.0.0.1", "names no database"),
        ("clickhouse://u:hunter2@127.0.0.1/a/b", "names no database"),
        ("clickhouse://u:hunter2@127.0.0.1/a;b", "names no database"),
        ("clickhouse:///lines", "names no database"),
        ("clickhouse://u:hunter2@127.0.0.1/system", "ClickHouse's own"),
        ("clickhouse://u:hunter2@store.example/lines", "not encrypted"),
        ("clickhouse+https://u:hunter2@store.example:99999/lines", "port"),
        ("clickhouse+https://u:hunter2@store.example/lines?readers=x", "there is no readers"),
        ("clickhouse+https://u:hunter2@store.example/lines?reader=u", "another user"),
    ],
)
def test_a_url_that_names_no_clickhouse_is_refused_by_what_is_wrong_with_it(url: str, said: str) -> None:
    with pytest.raises(Rejected, match=said) as caught:
        open_logs(url)
    assert "hunter2" not in caught.value.message


def test_a_url_says_where_and_who(tmp_path: Path) -> None:
    open_once: Any = open_logs.__wrapped__
    endpoint = open_once(
        "clickhouse+https://u%40x:p%2Fw@[2001:db8::1]/lines?reader=r&reader_password=s"
    )._client.endpoint
    assert (endpoint.url, endpoint.database) == ("https://[2001:db8::1]:8443/", "lines")
    assert (endpoint.owner.name, endpoint.owner.password, endpoint.reader.name, endpoint.reader.password) == (
        "u@x",
        "p/w",
        "r",
        "s",
    )
    assert (
        open_once("clickhouse://store.example:1/lines?http=allowed")._client.endpoint.url == "http://store.example:1/"
    )
    assert "p/w" not in repr(endpoint)
    queues: Any = open_queues.__wrapped__
    assert queues(f"clickhouse://127.0.0.1/lines?folder={tmp_path}")._root == tmp_path / "forward"


def test_clickhouse_that_is_away_acknowledges_and_answers_nothing() -> None:
    open_once: Any = open_logs.__wrapped__
    store = open_once(f"clickhouse://u:hunter2@127.0.0.1:{spare_port()}/lines")
    with pytest.raises(Unavailable, match="cannot be reached") as caught:
        store.store("n1-aa-1", [record(1)])
    assert "hunter2" not in caught.value.message
    with pytest.raises(Unavailable, match="cannot be reached"):
        store.search(17, query(), limit=1)


def test_a_fork_speaks_on_connections_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    open_once: Any = open_logs.__wrapped__
    client = open_once("clickhouse://127.0.0.1/lines")._client
    first = client._pool()
    assert client._pool() is first
    monkeypatch.setattr("apps.drivers.logs.clickhouse.asking.os.getpid", lambda: -1)
    assert client._pool() is not first


@of_engine
def test_two_collectors_that_store_a_batch_at_once_store_it_once(store: Any) -> None:
    other = front().store()
    for number in range(10):
        both_store(number, store, other)
    assert store.usage(17).lines == 10 * 50


@of_engine
@pytest.mark.parametrize("token", [True, False], ids=["token alone", "neither"])
def test_the_token_keeps_a_batch_that_slipped_past_the_look(
    store: Any, monkeypatch: pytest.MonkeyPatch, *, token: bool
) -> None:
    """The second wall by itself, and its negative control."""
    monkeypatch.setattr(storing, "_stored", lambda *_: [])
    store.accounts()
    if not token:
        forget_tokens()
    for _ in range(2):
        store.store("n1-aa-1", [record(each) for each in range(50)])
    assert store.usage(17).lines == (50 if token else 100)


@of_engine
def test_a_batch_is_known_by_its_lines_when_its_token_is_forgotten(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that was away for days sends again what was stored: no token is as old."""
    store.accounts()
    forget_tokens()
    batch = [record(each) for each in range(50)]
    assert [store.store("n1-aa-1", batch), store.store("n1-aa-1", batch)] == [50, 0]
    assert store.usage(17).lines == 50


@of_engine
def test_columns_that_an_older_version_did_not_know_are_added(store: Any) -> None:
    """Its lines have nothing there; the view that people ask has them too."""
    store.store("n1-aa-1", [record(1)])
    front().told("CREATE OR REPLACE VIEW spillway.requests DEFINER = spillway SQL SECURITY DEFINER AS SELECT 1")
    front().told("ALTER TABLE spillway.lines DROP COLUMN trace_id, DROP COLUMN request_ms")
    newer = front().store()
    assert newer.store("n1-aa-2", [record(2, trace_id="4bf92f35", request_ms=7)]) == 1
    found = newer.search(17, query(), limit=5).records
    assert [(each.trace_id, each.request_ms) for each in found] == [("4bf92f35", 7), ("", None)]
    sql = "SELECT trace_id, request_ms FROM requests ORDER BY time"
    answer = newer.sql(17, sql, start=START, end=START + DAY)
    assert answer.rows == (("", None), ("4bf92f35", 7))


@of_engine
def test_what_a_cut_off_insert_lacks_is_stored_when_the_batch_comes_again(store: Any) -> None:
    batch = [record(1), record(2, account=18), replace(record(3), time=START + DAY)]
    assert store.store("n1-aa-1", batch[:1]) == 1
    assert store.store("n1-aa-1", batch) == 2
    assert store.store("n1-aa-1", batch) == 0
    assert (store.usage(17).lines, store.usage(18).lines) == (2, 1)


@of_engine
def test_an_engine_that_is_killed_keeps_what_it_acknowledged() -> None:
    own = Front()
    try:
        own.told("CREATE DATABASE spillway")
        done = stored_until_killed(own)
        own.start()
        store = own.store()
        assert done
        for number in range(max(done) + 3):
            lines = store.store(f"n1-aa-{number}", batch_of(number))
            assert lines == 0 or number not in done
        assert store.usage(17).lines == 50 * (max(done) + 3)
    finally:
        own.close()


@of_engine
def test_days_go_as_partitions_and_hours_count_no_more_for_the_quota(store: Any) -> None:
    for day in range(3):
        lines = [replace(each, time=each.time + day * DAY) for each in map(record, range(0, 7200, 10))]
        store.store(f"n1-aa-{day}", [*lines, *(replace(each, account=18) for each in lines)])
    whole = store.usage(17)
    assert store.delete(17, START + DAY + timedelta(hours=1)) == 720 + 360
    rest = store.usage(17)
    assert (rest.lines, rest.oldest) == (1080, START + DAY + timedelta(hours=1))
    assert rest.bytes == pytest.approx(whole.bytes / 2, rel=0.25)
    assert parts(17) == ["20261124", "20261125"]
    assert store.delete(17) == 1080
    assert (parts(17), store.usage(18).lines) == ([], 3 * 720)


@of_engine
def test_an_archive_in_parquet_has_what_was_stored(store: Any, tmp_path: Path) -> None:
    import duckdb

    store.store("n1-aa-1", [record(2, path=HOSTILE, headers={"A": HOSTILE}), record(1, status=None)])
    assert store.export(17, query(), tmp_path / "a.parquet", "parquet") == 2
    rows = duckdb.read_parquet(str(tmp_path / "a.parquet")).project("path, status, time::TIMESTAMP::VARCHAR").fetchall()
    assert rows == [("/item/1", None, "2026-11-23 08:00:01"), (HOSTILE, 200, "2026-11-23 08:00:02")]


@of_engine
def test_a_question_meets_its_ceilings(store: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store.store("n1-aa-1", [record(each) for each in range(20_000)])
    short = front().store(ceilings=Ceilings(memory_mb=1))
    with pytest.raises(TooLarge, match="memory"):
        short.groups(17, query(), ["path", "client"], limit=5)
    monkeypatch.setattr("apps.drivers.logs.ceilings.MOST_EXPORTED", {"parquet": 19_999})
    with pytest.raises(TooLarge, match="19 999"):
        store.export(17, query(), tmp_path / "a.parquet", "parquet")
    assert not (tmp_path / "a.parquet").exists()
    monkeypatch.setattr("apps.drivers.logs.clickhouse.asking.MOST_BYTES", 1000)
    with pytest.raises(TooLarge, match="longer than"):
        store.search(17, query(), limit=500)


@of_engine
def test_who_asks_for_one_account_reads_no_day_of_another(store: Any) -> None:
    for account in (17, 18, 19):
        store.store(f"n1-aa-{account}", [record(each, account=account) for each in range(50)])
    plan = front().told(
        "EXPLAIN indexes = 1 SELECT max(path) FROM spillway.requests SETTINGS log_comment = '17 0 9999999999999'"
    )
    assert b"Parts: 1/3" in plan
    assert len(numbers(store)) == 50


def forget_tokens() -> None:
    """The table knows no batch by its token any more."""
    front().told("ALTER TABLE spillway.lines MODIFY SETTING non_replicated_deduplication_window = 0")


def batch_of(number: int) -> list[Any]:
    """Fifty lines of a batch."""
    return [record(number * 50 + each) for each in range(50)]


def both_store(number: int, *stores: Any) -> None:
    """All of them store the same batch at the same moment."""
    start = threading.Barrier(len(stores))

    def go(store: Any) -> None:
        start.wait()
        store.store(f"n1-aa-{number}", batch_of(number))

    threads = [threading.Thread(target=go, args=(each,)) for each in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def stored_until_killed(own: Front) -> list[int]:
    """Batches that were acknowledged before the engine was killed amid them."""
    done: list[int] = []
    store = own.store()

    def go() -> None:
        number = 0
        while True:
            try:
                store.store(f"n1-aa-{number}", batch_of(number))
            except Unavailable:
                return
            done.append(number)
            number += 1

    thread = threading.Thread(target=go)
    thread.start()
    while len(done) < 20:
        thread.join(0.01)
    own.kill()
    thread.join()
    return done


def parts(account: int) -> list[str]:
    """Days of the account that have a partition."""
    found = front().told(
        "SELECT DISTINCT partition FROM system.parts WHERE active AND table = 'lines' AND database = 'spillway' "
        f"AND startsWith(partition, '({account},') ORDER BY partition FORMAT TSVRaw"
    )
    return [line.strip("()").split(",")[1] for line in found.decode().splitlines()]

"""One suite against every log store: files in a folder and a bucket, ClickHouse's engine, and the fake in memory."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from apps.drivers.logs.contract import Comparison, Condition, Group, LogStore, Outcome, Point, Query, Record, Rejected
from apps.drivers.logs.memory import MemoryStore
from apps.logs.filters import parse
from apps.logs.patterns import PATTERNS, Around, found
from tests.clickhouse.starting import in_clickhouse, needs_clickhouse
from tests.conformance.log_places import PLACES, opened_at

pytestmark = [
    pytest.mark.long,
    pytest.mark.slow(reason="real files, and a bucket and ClickHouse that are asked over HTTP"),
]

START = datetime(2026, 11, 23, 8, 0, tzinfo=UTC)
HOSTILE = "a\nb\r\"c'\\\0\u2028 ü🙂 %s $1 {}\t;--"


CLICKHOUSE = pytest.param("clickhouse", marks=(needs_clickhouse, pytest.mark.exhaustive))


STORES = ["memory", *PLACES, CLICKHOUSE]


@contextmanager
def opened(kind: str, folder: Path) -> Iterator[LogStore]:
    if kind == "memory":
        yield MemoryStore()
        return
    with in_clickhouse() if kind == "clickhouse" else opened_at(kind, folder / "it's logs") as found:
        yield found


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LogStore]:
    with opened(request.param, tmp_path) as found:
        yield found


@pytest.fixture(scope="module", params=STORES)
def asked_only(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogStore]:
    """A store with five lines that no test adds to."""
    batch = [
        record(1, path="/item/1?x=Secret-ÄSS", query="secret-äß"),
        record(2, route="api", headers={"X-Trace": "abc", "x~/y": "12"}),
        record(3, status=500),
        record(4, status=503, client="2001:db8:0:1::7"),
        record(5, status=None, client="", host=HOSTILE),
    ]
    with opened(request.param, tmp_path_factory.mktemp("asked")) as found:
        found.store("n1-aa-1", batch)
        yield found


def record(number: int, **values: object) -> Record:
    time = START + timedelta(seconds=number)
    made = f"{round(time.timestamp() * 1000):012x}"
    given: dict[str, object] = {
        "time": time,
        "id": f"{made[:8]}-{made[8:]}-7000-8001-{number:012x}",
        "node": "eu-1",
        "fleet": "europe",
        "account": 17,
        "load_balancer": "shop",
        "listener": "https",
        "route": "shop",
        "status": 200,
        "total_ms": number,
        "client": f"192.0.2.{number % 256}",
        "method": "GET",
        "host": "shop.example",
        "path": f"/item/{number}",
    }
    return Record(**{**given, **values})  # type: ignore[arg-type]


def query(*conditions: Condition, hours: float = 24) -> Query:
    return Query(START, START + timedelta(hours=hours), conditions)


def numbers(store: LogStore, *conditions: Condition) -> list[int]:
    found = store.search(17, query(*conditions), limit=1000).records
    return sorted(int(each.id[-12:], 16) for each in found)


def test_a_record_comes_back_as_it_went_in(store: LogStore) -> None:
    plain = record(1, status=None, kind="connection", total_ms=None, termination="SD")
    rich = record(2, headers={"X-Ä": HOSTILE, "a/b~c": "1"}, query=HOSTILE, why="spilled", bytes_out=2**40)
    assert store.store("n1-aa-1", [plain, rich]) == 2
    assert store.search(17, query(), limit=10).records == (rich, plain)
    assert store.one(17, rich.id) == rich


@pytest.mark.parametrize(
    "record_id", ["", "nothing", "0" * 32, "e677d21fdbff" + "7" * 20, "f" * 32, "'; --", "1" * 5000]
)
def test_an_id_that_nothing_has_finds_nothing(asked_only: LogStore, record_id: str) -> None:
    assert asked_only.one(17, record_id) is None


def test_a_batch_that_comes_twice_is_stored_once(store: LogStore) -> None:
    batch = [record(1), record(2), record(3700), record(1, account=18)]
    assert store.store("n1-aa-1", batch) == 4
    assert store.store("n1-aa-1", batch) == 0
    assert store.store("n1-aa-2", batch, first=True) == 4
    assert store.store("n1-aa-2", batch) == 0
    assert store.usage(17).lines == 6
    assert store.usage(17).oldest == START


def test_a_batch_id_that_is_no_name_is_refused(store: LogStore) -> None:
    for hostile in ("../../x", "", "a/b", "a.b", "a\nb", "x" * 101):
        with pytest.raises(Rejected, match="letters, digits"):
            store.store(hostile, [record(1)])


def test_pages_have_each_record_once_newest_first(store: LogStore) -> None:
    # Several in the same millisecond, in several hours and batches.
    records = [replace(record(number), time=START + timedelta(minutes=number // 4 * 20)) for number in range(60)]
    random.Random(1).shuffle(records)
    for part in range(6):
        store.store(f"n1-aa-{part}", records[part::6])
    pages: list[Record] = []
    cursor = ""
    for _ in range(10):
        page = store.search(17, query(), limit=7, cursor=cursor)
        pages += page.records
        cursor = page.cursor
        if not cursor:
            break
    assert pages == sorted(records, key=lambda each: (each.time, each.id), reverse=True)


def test_lines_are_put_together_by_fields(store: LogStore) -> None:
    made = [
        *(record(number, pool="p", server=HOSTILE, response_ms=number, bytes_out=10) for number in range(1, 5)),
        record(5, pool="p", server="vm-2", status=503, response_ms=None, total_ms=None, path="/item/1"),
        record(6, pool="p", server="vm-2", status=None, path="/item/1"),
        record(7, account=18, pool="p", server="vm-3"),
    ]
    store.store("n1-aa-1", made)
    first, second = store.groups(17, query(), ["pool", "server"], limit=5)
    assert first == Group(("p", HOSTILE), 4, 0, 4, 40, 2.5, pytest.approx(3.85))  # type: ignore[arg-type]
    assert second == Group(("p", "vm-2"), 2, 1, 1, 0, None, 6.0)
    assert [each.values for each in store.groups(17, query(), ["status"], limit=1)] == [("200",)]
    (whole,) = store.groups(17, query(), [], limit=5)
    assert (whole.values, whole.lines) == ((), 6)
    assert store.groups(19, query(), ["pool"], limit=5) == ()
    for hostile in ("headers", "pool, (SELECT 1)", "", "total_ms"):
        with pytest.raises(Rejected, match="cannot be counted"):
            store.groups(17, query(), [hostile], limit=5)


def test_lines_are_counted_and_measured_by_steps(store: LogStore) -> None:
    made = [record(number, total_ms=number) for number in (0, 30, 59, 60, 200)]
    store.store("n1-aa-1", [*made, record(201, total_ms=None), record(61, account=18)])
    minute = timedelta(minutes=1)
    found = store.series(17, query(), step_seconds=60, of="total_ms", percentile=50)
    assert found == (Point(START, 3, 30.0), Point(START + minute, 1, 60.0), Point(START + 3 * minute, 2, 200.0))
    counted = store.series(17, query(Condition("id", Comparison.STARTS, ("x",))), step_seconds=60)
    assert counted == store.series(19, query(), step_seconds=60) == ()
    for wrong in ({"of": "path"}, {"of": "status"}, {"of": "total_ms", "percentile": 101}, {"step_seconds": 0}):
        with pytest.raises(Rejected):
            store.series(17, query(), **{"step_seconds": 60, **wrong})  # type: ignore[arg-type]


def test_outcomes_are_counted_by_route_and_step_up_to_each_bound(store: LogStore) -> None:
    waits = {"queue_ms": 10, "connect_ms": None, "response_ms": 90, "total_ms": 9000}
    lines = [
        record(1, **waits), record(2, **{**waits, "response_ms": 91}), record(3, status=503, response_ms=None),
        record(4, status=499, response_ms=0), record(5, status=None), record(300, **waits),
        record(6, route="api", status=500, response_ms=2000), record(7, account=18, **waits), record(8, route=""),
    ]  # fmt: skip
    assert store.outcomes(17, query(), step_seconds=300, bounds_ms=[100]) == ()
    store.store("n1-aa-1", lines)
    routes = Condition("route", Comparison.IS, ("shop", "api"))
    first, later = START, START + timedelta(minutes=5)
    assert store.outcomes(17, query(routes), step_seconds=300, bounds_ms=[100, 1000]) == (
        Outcome(first, "api", 1, 1, 1, (1, 1)),
        Outcome(first, "shop", 5, 1, 3, (1, 0)),
        Outcome(later, "shop", 1, 0, 1, (0, 0)),
    )
    assert store.outcomes(17, query(), step_seconds=300, bounds_ms=[])[0] == Outcome(first, "", 1, 0, 0, ())
    with pytest.raises(Rejected):
        store.outcomes(17, query(), step_seconds=0, bounds_ms=[])


def test_three_uneven_processes_and_a_race_among_their_lines_are_found_and_named(store: LogStore) -> None:
    counts = {"vm-1": 269, "vm-2": 563, "vm-3": 772}
    shop = {"pool": "shop", "region": "eu", "total_ms": 25, "response_ms": 20}
    names = [name for name, count in counts.items() for _ in range(count)]
    lost = {"status": 502, "termination": "SH", "connect_ms": 0, "response_ms": None, "method": "POST"}
    lines = [record(number, **shop, server=name) for number, name in enumerate(names)]
    # Who was refused, is somebody else's, or got 502 otherwise, counts for nobody.
    others = [record(5, **shop, server="", status=503), record(5, **{**shop, "account": 18}, server="vm-1")]
    others += [record(6, **{**shop, **lost, "connect_ms": None}, server="")]
    store.store("n1-aa-1", [*lines[:-1], *others, record(1_700, **{**shop, **lost}, server="vm-3")])
    (uneven,) = _sentences(store, "uneven-servers")
    assert "pool shop in eu are uneven: of 1,604 requests vm-1 answered 269 and vm-3 772" in uneven
    assert uneven.endswith("vm-3 has 2.9 times the share (vm-1 269, vm-2 563, vm-3 772).")
    (race,) = _sentences(store, "keep-alive-races")
    assert race.startswith("vm-3 of pool shop closed a kept connection once while a request was on its way")


def _sentences(store: LogStore, name: str) -> tuple[str, ...]:
    pattern = PATTERNS[name]
    groups = store.groups(17, query(*parse(pattern.words)), pattern.fields, limit=100)
    return found(pattern, groups, Around(3600)).sentences


def test_a_cursor_that_nobody_gave_is_refused(store: LogStore) -> None:
    store.store("n1-aa-1", [record(1)])
    for cursor in ("x", "12a.b", ".", "99999999999999999999999999.x"):
        with pytest.raises(Rejected, match="cursor"):
            store.search(17, query(), limit=1, cursor=cursor)


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (Condition("status", Comparison.AT_LEAST, (500,)), [3, 4]),
        (Condition("status", Comparison.BELOW, (500,)), [1, 2]),
        (Condition("status", Comparison.BELOW, (500,), negated=True), [3, 4, 5]),
        (Condition("status", Comparison.IS, (200, 503)), [1, 2, 4]),
        (*parse('status:""'), [5]),
        (Condition("total_ms", Comparison.ABOVE, (3,)), [4, 5]),
        (Condition("route", Comparison.IS, ("api",)), [2]),
        (Condition("route", Comparison.IS, ("api",), negated=True), [1, 3, 4, 5]),
        (Condition("path", Comparison.STARTS, ("/item/3", "/item/4")), [3, 4]),
        (Condition("path", Comparison.CONTAINS, ("%",)), []),
        (Condition("host", Comparison.IS, (HOSTILE,)), [5]),
        (Condition("", Comparison.CONTAINS, ("SECRET-äß",)), [1]),
        (Condition("", Comparison.CONTAINS, ("' OR 1=1 --",)), []),
        (Condition("header.X-Trace", Comparison.IS, ("abc",)), [2]),
        (Condition("header.x~/y", Comparison.STARTS, ("1",)), [2]),
        (Condition("header.X-Trace", Comparison.IS, ("abc",), negated=True), [1, 3, 4, 5]),
        (Condition("client", Comparison.WITHIN, ("192.0.2.0/30",)), [1, 2, 3]),
        (Condition("client", Comparison.WITHIN, ("192.0.2.2/31", "2001:db8::/32")), [2, 3, 4]),
        (Condition("client", Comparison.WITHIN, ("2001:db8:0:1::/64",)), [4]),
        (Condition("client", Comparison.WITHIN, ("::/0",)), [4]),
        (Condition("client", Comparison.WITHIN, ("0.0.0.0/0",), negated=True), [4, 5]),
    ],
    ids=str,
)
def test_conditions_find_what_they_say(asked_only: LogStore, condition: Condition, found: list[int]) -> None:
    assert numbers(asked_only, condition) == found


def test_what_cannot_be_compared_is_refused_by_name(store: LogStore) -> None:
    store.store("n1-aa-1", [record(1)])
    hostile = [
        Condition("account", Comparison.IS, (18,)),
        Condition("status); DROP TABLE x --", Comparison.IS, (1,)),
        Condition("route", Comparison.ABOVE, ("x",)),
        Condition("status", Comparison.STARTS, (5,)),
        Condition("client", Comparison.WITHIN, ("nowhere",)),
        Condition("route", Comparison.IS, ()),
    ]
    for condition in hostile:
        with pytest.raises(Rejected):
            store.search(17, query(condition), limit=1)
        with pytest.raises(Rejected):
            store.histogram(17, query(condition), bins=10)
    with pytest.raises(Rejected, match="cannot be counted"):
        store.facets(17, query(), ["headers"], limit=3)


def test_an_account_sees_its_own_lines_only(store: LogStore) -> None:
    store.store("n1-aa-1", [record(1), record(2, account=18), record(3, account=170)])
    assert [each.account for each in store.search(17, query(), limit=9).records] == [17]
    assert store.one(17, record(2).id) is None
    assert store.one(18, record(2).id) is not None
    assert sum(sum(each.counts.values()) for each in store.histogram(17, query(), bins=5).bins) == 1
    assert store.facets(17, query(), ["path"], limit=9)[0].values == (("/item/1", 1),)
    assert store.accounts() == (17, 18, 170)


def test_several_accounts_are_asked_together_and_each_line_has_its_own(store: LogStore) -> None:
    for account in (17, 18, 170):
        lines = [record(3 * number + account % 3, account=account, route=f"of-{account}") for number in range(200)]
        store.store(f"n1-aa-{account}", lines)
    whose = (17, 170)
    found: list[Record] = []
    cursor = ""
    for _ in range(9):
        page = store.search(whose, query(), limit=50, cursor=cursor)
        found += page.records
        cursor = page.cursor
        if not cursor:
            break
    assert len(found) == len({(each.account, each.id) for each in found}) == 400
    assert [each.time for each in found] == sorted((each.time for each in found), reverse=True)
    assert all(each.route == f"of-{each.account}" and each.account in whose for each in found)
    assert sum(sum(each.counts.values()) for each in store.histogram(whose, query(), bins=5).bins) == 400
    assert dict(store.facets(whose, query(), ["route"], limit=9)[0].values) == {"of-17": 200, "of-170": 200}


def test_the_histogram_has_each_line_in_its_bin(store: LogStore) -> None:
    store.store("n1-aa-1", [record(second, status=500 if second % 3 else 204) for second in range(0, 7200, 60)])
    found = store.histogram(17, query(hours=2), bins=12)
    assert found.step_seconds == 600
    assert [each.start for each in found.bins] == [START + timedelta(minutes=10 * number) for number in range(12)]
    assert all(each.counts["2xx"] == 10 for each in found.bins)
    empty = store.histogram(17, Query(START - timedelta(hours=2), START), bins=12)
    assert sum(sum(each.counts.values()) for each in empty.bins) == 0


def test_facets_count_the_most_frequent_first(store: LogStore) -> None:
    store.store("n1-aa-1", [record(number, server=f"s{number % 3}", status=None) for number in range(8)])
    server, status, client = store.facets(17, query(), ["server", "status", "client"], limit=2)
    assert server.values == (("s0", 3), ("s1", 3))
    assert status.values == (("", 8),)
    assert len(client.values) == 2


def test_an_export_has_all_lines_oldest_first(store: LogStore, tmp_path: Path) -> None:
    store.store("n1-aa-1", [record(2, headers={"A": HOSTILE}), record(1), record(3, account=18)])
    target = tmp_path / "export 'x'.jsonl.gz"
    assert store.export(17, query(), target, "jsonl.gz") == 2
    rows = [json.loads(line) for line in gzip.decompress(target.read_bytes()).splitlines()]
    assert [each["path"] for each in rows] == ["/item/1", "/item/2"]
    assert rows[0]["time"] == "2026-11-23T08:00:01.000Z"
    assert rows[1]["headers"] == {"A": HOSTILE}
    assert store.export(99, query(), tmp_path / "none.gz", "jsonl.gz") == 0


def test_deleting_takes_whole_hours_and_all_of_an_account(store: LogStore) -> None:
    store.store("n1-aa-1", [record(second) for second in (0, 3599, 3600, 7200)] + [record(1, account=18)])
    assert store.delete(17, START + timedelta(minutes=59)) == 0
    assert store.delete(17, START + timedelta(hours=1)) == 2
    assert numbers(store) == [3600, 7200]
    assert store.delete(17) == 2
    assert store.usage(17).lines == 0
    assert store.usage(17).oldest is None
    assert store.accounts() == (18,)

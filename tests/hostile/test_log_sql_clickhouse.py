"""The same for ClickHouse: SQL of a customer who wants more, asked of its engine by a user who may read one view."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from apps.drivers.logs.ceilings import Ceilings
from apps.drivers.logs.clickhouse import sql
from apps.drivers.logs.clickhouse.asking import User
from apps.drivers.logs.clickhouse.schema import asked
from apps.drivers.logs.contract import LogStoreError, Rejected, SqlAnswer, TooLarge, Unavailable
from tests.clickhouse.starting import front, in_clickhouse, needs_clickhouse
from tests.conformance.test_log_stores import START, record
from tests.hostile.test_log_sql import READS, SECRET, WRITES

pytestmark = [
    needs_clickhouse,
    pytest.mark.exhaustive,
    pytest.mark.slow(reason="hundreds of statements, asked over HTTP"),
]
STOLEN = Path("/tmp/spillway-stolen.csv")
EVER = asked(18, 0, 9_999_999_999_999)

OTHERS = [
    "SELECT * FROM lines",
    "SELECT * FROM spillway.lines",
    "SELECT account FROM requests",
    "SELECT * FROM system.processes",
    "SELECT * FROM system . processes",
    "SELECT * FROM `system`.`processes`",
    'SELECT * FROM "system"."query_log"',
    "SELECT * FROM SYSTEM.processes",
    "SELECT * FROM INFORMATION_SCHEMA.TABLES",
    "SELECT * FROM system.processes AS `identifier: requests`",
    "SELECT * FROM requests AS `a, identifier: x\nb`",
    "SELECT (SELECT any(query) FROM system.processes)",
    "SELECT 1 WHERE 1 IN system.processes",
    "SELECT * FROM requests WHERE path IN (SELECT query FROM system.processes)",
    "SELECT arrayMap(x -> (SELECT any(query) FROM system.processes), [1])",
    "WITH (SELECT any(query) FROM system.processes) AS q SELECT q",
    "WITH q AS (SELECT query FROM system.processes) SELECT * FROM q",
    "SELECT * FROM requests ORDER BY (SELECT any(query) FROM system.processes)",
    "SELECT * FROM requests LIMIT (SELECT count() FROM system.processes)",
    "SELECT 1 UNION ALL SELECT count() FROM system.processes",
    "SELECT * FROM requests AS a JOIN system.processes AS b ON 1 = 1",
    "SELECT * FROM requests, system.processes",
    "SELECT * FROM (EXPLAIN SELECT * FROM requests)",
    "SELECT * FROM viewExplain('EXPLAIN', '', (SELECT 1))",
    "SELECT * FROM view(SELECT * FROM system.processes)",
    "SELECT * FROM merge('spillway', '.*')",
    "SELECT * FROM remote('127.0.0.1', spillway.lines)",
    "SELECT * FROM cluster('default', spillway.lines)",
    "SELECT * FROM file('/etc/passwd', 'LineAsString')",
    "SELECT * FROM url('http://192.0.2.1:9/', 'LineAsString')",
    "SELECT * FROM s3('http://192.0.2.1:9/x', 'LineAsString')",
    "SELECT * FROM executable('id', 'LineAsString', 'x String')",
    "SELECT * FROM mysql('192.0.2.1:3306', 'a', 'b', 'c', 'd')",
    "SELECT * FROM sqlite('/tmp/x', 'y')",
    "SELECT * FROM dictionary('x')",
    "SELECT * FROM loop(requests)",
    "SELECT * FROM mergeTreeIndex('spillway', 'lines')",
    "SELECT * FROM mergeTreeProjection('spillway', 'lines', 'x')",
    "SELECT * FROM eval('SELECT 1')",
    "SELECT * FROM python('x')",
    "SELECT file('/etc/passwd')",
    "SELECT FILE('/etc/passwd')",
    "SELECT `file`('/etc/passwd')",
    "SELECT arrayMap(x -> file(x), ['/etc/passwd'])",
    "SELECT dictGet('x', 'y', 1)",
    "SELECT joinGet('spillway.lines', 'path', 1)",
    "SELECT hasColumnInTable('spillway', 'lines', 'path')",
    "SELECT getSetting('log_comment')",
    "SELECT getClientHTTPHeader('X-ClickHouse-Key')",
    "SELECT currentUser()",
    "SELECT version()",
    "SELECT hostName()",
    "SELECT sleep(1)",
    "SELECT aiGenerate('x')",
    f"SELECT count() FROM requests SETTINGS log_comment = '{EVER}'",
    f"SELECT path FROM (SELECT * FROM requests SETTINGS log_comment = '{EVER}')",
    "SELECT count() FROM requests SETTINGS readonly = 0",
    "SELECT count() FROM requests SETTINGS max_execution_time = 0",
    "SELECT count() FROM requests FORMAT Null",
    "SELECT 1) UNION ALL (SELECT 2",
    "SELECT 1), (SELECT 2",
    "SELECT 1 /*",
]  # fmt: skip
CHANGES = [
    f"SELECT * FROM requests INTO OUTFILE '{STOLEN}'",
    f"SET log_comment = '{EVER}'",
    "SET readonly = 0",
    "USE system",
    "SHOW TABLES",
    "SHOW PROCESSLIST",
    "SHOW CREATE TABLE requests",
    "SHOW GRANTS",
    "EXISTS lines",
    "DESCRIBE TABLE lines",
    "EXPLAIN SELECT 1",
    "INSERT INTO lines SELECT * FROM lines",
    f"INSERT INTO FUNCTION file('{STOLEN}') SELECT 1",
    "ALTER TABLE lines DELETE WHERE 1",
    "DELETE FROM lines WHERE 1",
    "TRUNCATE TABLE lines",
    "DROP TABLE lines",
    "DROP VIEW requests",
    "OPTIMIZE TABLE lines",
    "CREATE TEMPORARY TABLE x (a UInt8)",
    "CREATE VIEW x AS SELECT 1",
    "CREATE FUNCTION x AS a -> a",
    "CREATE USER x",
    "GRANT ALL ON *.* TO spillway_reader",
    "EXECUTE AS spillway SELECT * FROM lines",
    "KILL QUERY WHERE 1",
    "SYSTEM SHUTDOWN",
    "SYSTEM FLUSH LOGS",
    "BACKUP TABLE lines TO Disk('x', 'y')",
]
BOMBS = [
    "SELECT count() FROM numbers(10000000000000) WHERE sipHash64(number) = 1",
    "SELECT groupArray(number) FROM numbers(1000000000)",
    "SELECT repeat(repeat('x', 1000000), 400)",
    "SELECT length(groupConcat(repeat('x', 1000))) FROM numbers(100000000)",
    "SELECT * FROM numbers(1000000) AS a, numbers(1000000) AS b ORDER BY sipHash64(a.number, b.number)",
    "WITH RECURSIVE t AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM t) SELECT max(a) FROM t",
    "SELECT repeat('x', 900000) FROM numbers(9000)",
]


# What is a question, about a table that is not there or not theirs: ClickHouse refuses it.
BY_GRANTS = [
    "SELECT * FROM duckdb_views",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM pg_catalog.pg_tables",
    "SELECT * FROM lines",
    "SELECT * FROM spillway.lines",
    "SELECT account FROM requests",
]


@pytest.fixture(scope="module")
def store() -> Iterator[Any]:
    ceilings = Ceilings(seconds=1.5, memory_mb=128, threads=1, rows=100)
    with in_clickhouse(ceilings=ceilings) as opened:
        opened.store("n1-aa-1", [record(each) for each in range(150)])
        opened.store("n1-aa-2", [record(1, account=18, path=f"/{SECRET}")])
        yield opened


def ask(store: Any, text: str) -> SqlAnswer:
    answer = store.sql(17, text, start=START, end=START + timedelta(hours=1))
    assert isinstance(answer, SqlAnswer)
    return answer


def everything() -> list[str]:
    """All that is tried; what DuckDB would read are files of this machine."""
    named = (each.replace("{own}", "/etc/passwd").replace("{other}", "/etc/passwd") for each in (*READS, *WRITES))
    return [*(each.replace("{folder}", "/tmp") for each in named), *OTHERS, *CHANGES]


def straight(store: Any, text: str, who: User, **settings: object) -> str:
    """What ClickHouse itself answers, with nothing of ours before it; empty where it refuses."""
    given = {"log_comment": asked(17, 0, 9_999_999_999_999), "default_format": "JSONCompact", **settings}
    with suppress(LogStoreError):
        return str(store._client.ask(text, settings=given, user=who).decode("utf-8", "replace"))
    return ""


def test_questions_about_ones_own_lines_are_answered(store: Any) -> None:
    """The negative control: what is refused below is not refused for being SQL."""
    assert ask(store, "SELECT count(*), max(path) FROM requests").rows == ((150, "/item/99"),)
    assert ask(store, "WITH x AS (SELECT status FROM requests) SELECT status, count(*) FROM x GROUP BY 1").rows
    assert ask(store, "SELECT time FROM requests ORDER BY time LIMIT 1").rows == (("2026-11-23 08:00:00.000",),)
    assert ask(
        store, "SELECT x, y.number FROM (SELECT arrayJoin([0, 7]) AS x) AS a JOIN numbers(2) AS y ON x = number"
    ).rows
    assert ask(
        store, "SELECT quantile(0.95)(total_ms) OVER (), countIf(status = 200) OVER () FROM requests LIMIT 1 -- ;"
    ).rows
    odd = ask(store, "SELECT NULL, 9007199254740993, nan, [1], map('a', toDate('2026-01-01')), (1, 'SETTINGS')").rows
    assert odd == ((None, "9007199254740993", "nan", [1], {"a": "2026-01-01"}, [1, "SETTINGS"]),)
    assert ask(store, "SELECT ucase(substr(host, 1, 4)), DATE_TRUNC('hour', time) FROM requests LIMIT 1").rows
    many = ask(store, "SELECT id FROM requests")
    assert (len(many.rows), many.truncated) == (100, True)
    assert store.sql(99, "SELECT * FROM requests", start=START, end=START + timedelta(hours=1)).rows == ()
    cut = store.sql(17, "SELECT count() FROM requests", start=START, end=START + timedelta(seconds=10, microseconds=1))
    assert cut.rows == ((11,),)


def test_the_examples_of_the_page_are_answered(store: Any) -> None:
    from apps.web.requests.sql import examples

    for name, statement in examples("ClickHouse"):
        assert ask(store, statement).columns, name


def test_the_parser_names_what_is_not_a_question_about_ones_own_lines(store: Any) -> None:
    passed = []
    for statement in everything():
        with suppress(Rejected):
            sql.check(store._client, store._client.endpoint.reader, statement)
            passed.append(statement)
    assert passed == BY_GRANTS


def test_no_statement_reads_or_changes_what_is_not_ones_own(store: Any) -> None:
    for statement in everything():
        with pytest.raises(LogStoreError) as caught:
            ask(store, statement)
        assert SECRET not in caught.value.message
    assert not STOLEN.exists()
    assert front().told("SELECT count() FROM spillway.lines") == b"151\n"


def test_without_the_parser_lines_of_others_stay_closed(store: Any) -> None:
    """The second wall by itself: grants of the reader, in a question that is read-only."""
    asked_of_server = [
        each for each in everything() if "OUTFILE" not in each
    ]  # no statement of a server: of its client
    for statement in asked_of_server:
        assert SECRET not in straight(store, statement, store._client.endpoint.reader, readonly=1), statement
    assert front().told("SELECT count() FROM spillway.lines") == b"151\n"


def test_without_any_wall_the_same_statements_read_lines_of_others(store: Any) -> None:
    """The negative control of the wall above: as the owner, and with settings that the question may change."""
    found = [each for each in OTHERS if SECRET in straight(store, each, store._client.endpoint.owner)]
    assert len(found) >= 3
    changed = f"SELECT path FROM requests SETTINGS log_comment = '{EVER}'"
    assert SECRET in straight(store, changed, store._client.endpoint.reader)
    assert SECRET not in straight(store, changed, store._client.endpoint.reader, readonly=1)


def test_the_view_shows_nothing_to_who_does_not_say_whose_lines(store: Any) -> None:
    for wrong in ("", "17", "x y z", "-1 0 9", "17 0"):
        assert straight(store, "SELECT * FROM requests", store._client.endpoint.reader, log_comment=wrong) == ""


def test_bombs_end_at_a_ceiling_and_the_store_goes_on(store: Any) -> None:
    for statement in BOMBS:
        with pytest.raises(TooLarge):
            ask(store, statement)
    with pytest.raises(TooLarge, match=r"longer than 1\.5 seconds"):
        ask(store, BOMBS[0])
    assert ask(store, "SELECT count(*) FROM requests").rows == ((150,),)


def test_a_statement_of_great_depth_or_length_ends_nothing(store: Any) -> None:
    for statement in ("SELECT " + "(" * 9000 + "1" + ")" * 9000, "SELECT 1" + " + 1" * 4900, "SELECT NOT " * 1800):
        with suppress(LogStoreError):
            ask(store, statement)
    with pytest.raises(Rejected, match="20000 characters"):
        ask(store, "SELECT '" + "x" * 30_000 + "'")
    assert ask(store, "SELECT 1").rows == ((1,),)


def test_functions_that_do_more_than_compute_are_refused_whatever_they_are_called(store: Any) -> None:
    listed = (
        front().told("SELECT name, categories FROM system.functions WHERE NOT is_aggregate AND alias_to = ''").decode()
    )
    refused, passed = 0, []
    for name, kind in (line.split("\t") for line in listed.splitlines()):
        if kind in sql.KINDS or name.lower() in sql.HARMLESS:
            continue
        try:
            sql.check(store._client, store._client.endpoint.reader, f"SELECT `{name}`('x')")
            passed.append(name)
        except Rejected:
            refused += 1
    assert passed == []
    assert refused > 150


def test_who_has_no_reader_or_one_who_may_read_more_asks_no_sql(store: Any) -> None:
    window = {"start": START, "end": START + timedelta(hours=1)}
    with pytest.raises(Rejected, match="names no reader"):
        front().store(reader="").sql(17, "SELECT 1", **window)
    with pytest.raises(Unavailable, match="other grants"):
        front().store(reader="wide_reader").sql(17, "SELECT 1", **window)

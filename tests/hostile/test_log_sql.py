"""SQL of a customer who wants more: other accounts, files, settings, memory, time. Nothing of it is had."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from apps.drivers.logs.contract import LogStoreError, Query, Rejected, SqlAnswer, TooLarge
from tests.conformance.log_places import needs_duckdb, needs_moto, opened_at
from tests.conformance.test_log_stores import START, record

pytestmark = needs_duckdb
SECRET = "of-account-18"
NETWORK = "http://192.0.2.1:9/x.parquet"

READS = [
    "SELECT * FROM read_parquet('{other}')",
    "SELECT * FROM '{other}'",
    "SELECT * FROM \"{other}\"",
    "SELECT * FROM read_parquet(['{own}', '{other}'])",
    "SELECT * FROM parquet_scan('{other}')",
    "SELECT * FROM read_parquet('{folder}/../account=18/*/*/*.parquet')",
    "SELECT * FROM read_blob('{other}')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_csv('/etc/passwd', sep=':')",
    "SELECT * FROM read_csv_auto('/etc/passwd')",
    "SELECT * FROM read_json('/proc/self/environ')",
    "SELECT * FROM read_json_objects('/etc/passwd')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT * FROM parquet_metadata('{other}')",
    "SELECT * FROM parquet_schema('{other}')",
    "SELECT * FROM glob('{folder}/../*/*')",
    "SELECT * FROM query('SELECT * FROM read_text(''/etc/passwd'')')",
    "SELECT * FROM query_table('{other}')",
    "SELECT * FROM (SELECT * FROM read_text('/etc/passwd')) AS inner_one",
    "SELECT (SELECT content FROM read_text('/etc/passwd') LIMIT 1) AS x FROM requests",
    "SELECT * FROM requests WHERE path IN (SELECT content FROM read_text('/etc/passwd'))",
    "SELECT * FROM requests ORDER BY (SELECT content FROM read_text('/etc/passwd'))",
    "SELECT list_transform([1], x -> (SELECT content FROM read_text('/etc/passwd')))",
    "WITH x AS (SELECT * FROM read_text('/etc/passwd')) SELECT * FROM x",
    "WITH RECURSIVE x AS (SELECT 1 UNION ALL SELECT 1 FROM read_text('/etc/passwd')) SELECT * FROM x",
    "WITH \"{other}\" AS (SELECT 1) SELECT * FROM (WITH y AS (SELECT 1) SELECT * FROM y), \"{other}\"",
    "SELECT * FROM requests, LATERAL (SELECT * FROM read_text('/etc/passwd')) AS z",
    "SELECT 1 UNION ALL SELECT content FROM read_text('/etc/passwd')",
    "SELECT * FROM (VALUES ((SELECT content FROM read_text('/etc/passwd')))) AS t(x)",
    "SELECT count(*) FILTER (WHERE (SELECT true FROM read_text('/etc/passwd'))) FROM requests",
    "SELECT * FROM requests AS r POSITIONAL JOIN read_text('/etc/passwd')",
    "FROM read_text('/etc/passwd')",
    "TABLE \"/etc/passwd\"",
    f"SELECT * FROM '{NETWORK}'",
    f"SELECT * FROM read_parquet('{NETWORK}')",
    "SELECT * FROM read_csv('s3://bucket/key')",
    "SELECT getenv('HOME')",
    "SELECT current_setting('allowed_paths')",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_views",
    "SELECT sql FROM duckdb_views()",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM pg_catalog.pg_tables",
    "SELECT * FROM memory.main.requests",
    "SELECT * FROM system.information_schema.tables",
    "DESCRIBE requests",
    "SUMMARIZE requests",
    "SHOW ALL TABLES",
]  # fmt: skip
WRITES = [
    "COPY requests TO '{folder}/stolen.csv'",
    "COPY (SELECT 1) TO '/tmp/spillway-stolen.csv'",
    "COPY requests TO '{other}'",
    "EXPORT DATABASE '{folder}/stolen'",
    "ATTACH '{folder}/stolen.db' AS x",
    "ATTACH '{folder}/stolen.db' (READ_ONLY)",
    "INSTALL httpfs",
    "LOAD httpfs",
    "INSTALL x FROM community",
    "CREATE SECRET (TYPE s3)",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "SET allowed_paths = ['{other}']",
    "RESET allowed_paths",
    "SET temp_directory = '{folder}'",
    "SET memory_limit = '100GB'",
    "PRAGMA enable_profiling",
    "PRAGMA database_list",
    "CREATE TABLE x AS SELECT * FROM requests",
    "CREATE MACRO m() AS TABLE SELECT * FROM read_text('/etc/passwd')",
    "INSERT INTO requests VALUES (1)",
    "DROP VIEW requests",
    "CALL pragma_version()",
    "CHECKPOINT",
    "VACUUM",
    "USE memory",
    "PREPARE x AS SELECT 1",
    "EXECUTE x",
    "EXPLAIN ANALYZE SELECT 1",
    "SELECT 1; SELECT 2",
    "SELECT 1; SET lock_configuration = false",
    "SELECT 1;\0",
    "",
    ";",
    "-- nothing",
    "SELEC 1",
    "SELECT * FROM requests WHERE",
    "PIVOT requests ON route USING count(*)",
]
BOMBS = [
    "WITH RECURSIVE t AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM t) SELECT max(a) FROM t",
    "SELECT count(*) FROM range(10000000) AS a, range(10000000) AS b WHERE a.range * b.range % 7 = 3",
    "SELECT list(range) FROM range(1000000000)",
    "SELECT length(repeat(repeat('x', 1000000), 4000))",
    "SELECT string_agg(repeat('x', 1000) , '') FROM range(100000000)",
    "SELECT * FROM range(1000000) AS a, range(1000000) AS b ORDER BY hash(a.range, b.range)",
    "SELECT range(4000000000)",
    "SELECT repeat('x', 200000) FROM range(9000)",
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


# A statement meets the same parser and the same ceilings in either.
@pytest.fixture(scope="module", params=["folder", pytest.param("bucket", marks=(needs_moto, pytest.mark.exhaustive))])
def store(request: pytest.FixtureRequest, root: Path) -> Iterator[Any]:
    """Lines of two accounts; of a bucket, copies of both lie here."""
    from apps.drivers.logs.ceilings import Ceilings

    ceilings = Ceilings(seconds=1.5, memory_mb=128, threads=1, rows=100)
    with opened_at(request.param, root / request.param, ceilings=ceilings) as opened:
        opened.store("n1-aa-1", [record(each) for each in range(150)])
        opened.store("n1-aa-2", [record(1, account=18, path=f"/{SECRET}")])
        for account in (17, 18):
            assert opened.search(account, Query(START, START + timedelta(hours=1)), limit=1).records
        yield opened


def ask(store: Any, text: str) -> SqlAnswer:
    answer = store.sql(17, text, start=START, end=START + timedelta(hours=1))
    assert isinstance(answer, SqlAnswer)
    return answer


def lines_of(store: Any, account: int) -> Path:
    """The only file of the account, or the copy of it."""
    (path,) = store._files.root.rglob(f"account={account}/*/*/*.parquet")
    assert isinstance(path, Path)
    return path


def filled(store: Any, text: str) -> str:
    own, other = lines_of(store, 17), lines_of(store, 18)
    return text.replace("{own}", str(own)).replace("{other}", str(other)).replace("{folder}", str(own.parents[2]))


def everything(root: Path) -> set[str]:
    return {str(path) for path in root.rglob("*")}


@pytest.mark.slow(reason="a process for each of its questions")
def test_questions_about_ones_own_lines_are_answered(store: Any) -> None:
    """The negative control: what is refused below is not refused for being SQL."""
    assert ask(store, "SELECT count(*), max(path) FROM requests").rows == ((150, "/item/99"),)
    assert ask(store, "WITH x AS (SELECT status FROM Requests) SELECT status, count(*) FROM x GROUP BY 1").rows
    assert ask(store, "FROM requests SELECT time ORDER BY time LIMIT 1").rows == (("2026-11-23 08:00:00",),)
    assert ask(store, "SELECT * FROM unnest([1, 2]) AS t(x) JOIN range(2) AS r(y) ON x = y").rows == ((1, 1),)
    assert ask(store, "SELECT quantile_cont(total_ms, 0.95) OVER () FROM requests LIMIT 1 -- fine ;").rows
    assert ask(store, "SELECT NULL, 1e400, 2::HUGEINT ** 100, [1], {'a': DATE '2026-01-01'}, 'x'::BLOB").rows
    many = ask(store, "SELECT id FROM requests")
    assert (len(many.rows), many.truncated) == (100, True)
    assert store.sql(99, "SELECT * FROM requests", start=START, end=START + timedelta(hours=1)).rows == ()


@pytest.fixture(scope="module")
def parser() -> Any:
    """A DuckDB that only parses."""
    import duckdb

    return duckdb.connect()


@pytest.mark.parametrize("statement", READS + WRITES)
def test_the_parser_names_what_is_not_a_question_about_ones_own_lines(store: Any, parser: Any, statement: str) -> None:
    from apps.drivers.logs.asking import sql

    with pytest.raises(Rejected):
        sql.check(parser, filled(store, statement))


@pytest.mark.exhaustive
@pytest.mark.slow(reason="a process for each of ninety statements")
def test_no_statement_reads_or_changes_what_is_not_ones_own(store: Any) -> None:
    root = store._files.root
    before = everything(root)
    for statement in READS + WRITES:
        text = filled(store, statement)
        with pytest.raises(LogStoreError) as caught:
            ask(store, text)
        assert SECRET not in caught.value.message
        assert str(root) not in caught.value.message or str(root) in text
    assert everything(root) == before
    assert not Path("/tmp/spillway-stolen.csv").exists()
    assert ask(store, "SELECT count(*) FROM requests").rows == ((150,),)


def test_without_the_parser_files_of_others_stay_closed(store: Any) -> None:
    """The second wall by itself: DuckDB may open the account's files and nothing else."""
    assert _behind_the_parser(store, lock=True) == []


def test_without_any_wall_the_same_statements_read_files(store: Any) -> None:
    """The negative control of the wall above."""
    assert len(_behind_the_parser(store, lock=False)) > 5


# One each of those that memory and the size of the answer end; the clock ends one below.
@pytest.mark.slow(reason="each waits for a ceiling")
@pytest.mark.parametrize("bombs", [BOMBS[4::3], pytest.param(BOMBS, marks=pytest.mark.exhaustive)], ids=len)
def test_bombs_end_at_a_ceiling_and_the_store_goes_on(store: Any, bombs: list[str]) -> None:
    for statement in bombs:
        with pytest.raises(TooLarge):
            ask(store, statement)
    assert ask(store, "SELECT count(*) FROM requests").rows == ((150,),)


@pytest.mark.slow(reason="waits for the clock")
def test_a_question_that_never_ends_is_ended_by_the_clock(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Enough for its process to begin with it.
    monkeypatch.setattr(store._workers, "ceilings", replace(store._workers.ceilings, seconds=0.7))
    with pytest.raises(TooLarge, match=r"longer than 0\.7 seconds"):
        ask(store, BOMBS[0])
    monkeypatch.undo()
    assert ask(store, "SELECT count(*) FROM requests").rows == ((150,),)


def test_a_statement_of_great_depth_or_length_ends_nothing(store: Any) -> None:
    for statement in ("SELECT " + "(" * 9000 + "1" + ")" * 9000, "SELECT 1" + " + 1" * 4900, "SELECT NOT " * 1800):
        with suppress(LogStoreError):
            ask(store, statement)
    with pytest.raises(Rejected, match="20000 characters"):
        ask(store, "SELECT '" + "x" * 30_000 + "'")
    assert ask(store, "SELECT 1").rows == ((1,),)


def test_the_process_has_nothing_of_ours_in_its_environment(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPILLWAY_SECRET_KEY", "hunter2")
    from apps.drivers.logs.asking.workers import _Worker
    from apps.drivers.logs.ceilings import Ceilings

    worker = _Worker(store._files, Ceilings())
    try:
        names = Path(f"/proc/{worker._process.pid}/environ").read_bytes()
        while b"PATH=" not in names:  # until it is started
            names = Path(f"/proc/{worker._process.pid}/environ").read_bytes()
    finally:
        worker.kill()
    assert b"SPILLWAY" not in names


def _behind_the_parser(store: Any, *, lock: bool) -> list[str]:
    """Which statements read something when only the lock, or nothing, stands before them; in a process of its own."""
    import json
    import subprocess
    import sys

    program = """
import json, sys, duckdb
from apps.drivers.logs.asking import sql
given = json.load(sys.stdin)
connection = duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False,
                                    "python_enable_replacements": False})
if given["lock"]:
    sql.lock(connection, given["files"], ("2026-11-23T08:00:00", "2026-11-23T09:00:00"))
read = []
for statement in given["statements"]:
    try:
        text = str(connection.execute(statement).fetchall())
    except Exception:
        continue
    if "root:" in text or given["secret"] in text or ".parquet" in text.replace(given["files"][0], ""):
        read.append(statement)
print(json.dumps(read))
"""
    own = lines_of(store, 17)
    given = {
        "lock": lock,
        "files": [str(own)],
        "secret": SECRET,
        "statements": [filled(store, each) for each in READS if NETWORK not in each],
    }
    done = subprocess.run(
        [sys.executable, "-c", program], input=json.dumps(given), capture_output=True, text=True, check=True,
        env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    found: list[str] = json.loads(done.stdout)
    return found


def test_archives_leave_room_for_searches() -> None:
    from apps.drivers.logs.ceilings import Ceilings, Turns
    from apps.drivers.logs.contract import Busy

    turns = Turns(Ceilings(exports_at_once=2, at_once=3, wait_seconds=0.01))
    turns.enter(17, exports=True)
    with pytest.raises(Busy):
        turns.enter(17, exports=True)
    turns.enter(18, exports=True)
    with pytest.raises(Busy):
        turns.enter(19, exports=True)
    turns.enter(19, exports=False)
    turns.leave(17, exports=True)
    turns.enter(17, exports=True)

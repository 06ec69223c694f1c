"""Files of lines: merged, killed in the middle of it, deleted; no line is lost, none counts twice."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from apps.drivers.logs.contract import Comparison, Condition, Query, Unavailable
from tests.conformance.log_places import PLACES, files_at, needs_duckdb, needs_moto, opened_at
from tests.conformance.test_log_stores import START, query, record

if TYPE_CHECKING:
    from apps.drivers.logs.files.layout import Hour
    from apps.drivers.logs.files.port import Entry, Files

pytestmark = [
    needs_duckdb,
    pytest.mark.long,
    pytest.mark.slow(reason="real files, and a bucket that is asked over HTTP"),
]
LATER = START + timedelta(days=2)


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.drivers.logs.files.tidying.MANY", 4)


# What a bucket does otherwise than a folder is asked in test_log_bucket.py and, by these, of merges.
in_both = pytest.mark.parametrize("store", PLACES, indirect=True)


@pytest.fixture(params=["folder", pytest.param("bucket", marks=(needs_moto, pytest.mark.exhaustive))])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    with opened_at(request.param, tmp_path / "logs") as opened:
        yield opened


def fill(store: Any, batches: int = 4) -> None:
    for number in range(batches):
        store.store(f"n1-aa-{number}", [record(number * 10 + each, server=f"s{each % 3}") for each in range(5)])


def hour(files: Files, account: int = 17) -> Hour:
    """What is listed of the hour that the lines of `fill` are in."""
    from apps.drivers.logs.files import layout

    return layout.one_hour(files, account, START)


def suffixes(files: Files, account: int = 17) -> list[str]:
    return sorted("." + entry.name.rpartition(".")[2] for entry in files.entries(f"account={account}/"))


def live_lines(files: Files) -> int:
    from apps.drivers.logs.files import layout

    return sum(file.lines for hour in layout.hours_of(files, 17) for file in layout.live_files(files, hour))


def put(files: Files, name: str, content: bytes) -> None:
    waiting = files.working / "put.waiting"
    waiting.write_bytes(content)
    files.put(waiting, name)


def age(files: Files) -> None:
    """All files were written when the hour of these tests began, whatever day it is; those that come as well."""
    real, seconds = files.entries, time.time() - START.timestamp()

    def aged(*given: str) -> list[Entry]:
        return [replace(entry, written=entry.written - seconds) for entry in real(*given)]

    files.entries = aged  # type: ignore[method-assign,assignment]


@in_both
def test_many_files_become_one_and_answers_stay_the_same(store: Any) -> None:
    fill(store)
    asked = query(Condition("server", Comparison.IS, ("s1",)))
    before = (store.search(17, asked, limit=500), store.histogram(17, asked, bins=24), store.usage(17).lines)
    assert store.tidy(START) == 4
    age(store._files)
    assert store.tidy(LATER) == 1
    age(store._files)
    store.tidy(LATER + timedelta(hours=2))
    assert suffixes(store._files) == [".batches", ".minutes", ".parquet"]
    assert before == (store.search(17, asked, limit=500), store.histogram(17, asked, bins=24), store.usage(17).lines)
    assert store.facets(17, query(), ["server"], limit=3)[0].values == (("s0", 8), ("s1", 8), ("s2", 4))


@pytest.mark.slow(reason="stores and merges three hours, then asks both ways")
def test_minutes_and_lines_count_the_same(store: Any) -> None:
    """A window that cuts hours asks lines at its ends and minutes between; each line counts once."""
    for number in range(10):
        store.store(f"n1-aa-{number}", [record(number * 1000 + each * 97, server=f"s{each}") for each in range(10)])
    cut = Query(START + timedelta(minutes=7, seconds=11), START + timedelta(hours=2, minutes=31))
    fields = ["server", "status", "path"]
    before = store.histogram(17, cut, bins=30), store.facets(17, cut, fields, limit=500)
    age(store._files)
    store.tidy(LATER)
    assert suffixes(store._files).count(".minutes") == 3
    assert before == (store.histogram(17, cut, bins=30), store.facets(17, cut, fields, limit=500))
    store.store("n1-late-1", [record(3700, server="s0")])
    assert sum(dict(store.facets(17, query(), ["server"], limit=99)[0].values).values()) == 101


@pytest.mark.slow(reason="stores an hour and merges it, then asks both ways")
def test_bars_of_seconds_count_lines_also_of_an_hour_that_has_its_counts_by_minute(store: Any) -> None:
    store.store("n1-aa-1", [record(number, total_ms=None) for number in range(0, 3600, 7)])
    hour = Query(START, START + timedelta(hours=1))
    before = store.histogram(17, hour, bins=400)
    assert before.step_seconds == 10
    assert max(each.counts["2xx"] for each in before.bins) == 2
    age(store._files)
    store.tidy(LATER)
    assert ".minutes" in suffixes(store._files)
    assert store.histogram(17, hour, bins=400) == before


def test_a_batch_that_comes_again_after_the_merge_is_not_stored_again(store: Any) -> None:
    fill(store)
    store.tidy(START)
    age(store._files)
    store.tidy(LATER)
    again = [record(each, server=f"s{each % 3}") for each in range(5)]
    assert store.store("n1-aa-0", again) == 0
    assert store.usage(17).lines == 20


def test_a_batch_that_slipped_past_the_check_is_deleted_when_tidied(store: Any) -> None:
    """Another collector, stopped for minutes between its look and its write."""
    fill(store)
    name = f"{hour(store._files).folder}b-n1-aa-0.5.parquet"
    kept = store._files.read(name)
    store.tidy(START)
    age(store._files)
    store.tidy(LATER)
    store.tidy(LATER + timedelta(hours=2))
    put(store._files, name, kept)
    store.tidy(LATER + timedelta(hours=4))
    assert store.usage(17).lines == 20


class Killed(BaseException):
    """The process ends here; nothing that would clean up is worth anything."""


def die_at(monkeypatch: pytest.MonkeyPatch, files: Files, step: int) -> None:
    """End at this change of files, here or there, counted from now."""
    from apps.drivers.logs.files import folder

    steps = itertools.count(1)

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def act(*given: Any, **named: Any) -> Any:
            if next(steps) == step:
                raise Killed
            return real(*given, **named)

        return act

    for name in ("rename", "unlink", "write_bytes"):
        monkeypatch.setattr(Path, name, counted(getattr(Path, name)))
    monkeypatch.setattr(folder, "sync_folder", counted(folder.sync_folder))
    for name in ("put", "delete"):
        monkeypatch.setattr(files, name, counted(getattr(files, name)), raising=False)


def copied(files: Files, kind: str, root: Path) -> Files:
    """The same files at another one of this kind."""
    made = files_at(kind, root)
    for entry in files.entries("account=17/"):
        made.make_folder(entry.name.rpartition("/")[0])
        put(made, entry.name, files.read(entry.name))
    return made


@pytest.mark.slow(reason="tidies once for each step at which it may be killed")
@pytest.mark.parametrize("kind", ["folder", pytest.param("bucket", marks=(needs_moto, pytest.mark.exhaustive))])
def test_killed_at_any_step_nothing_is_lost_or_doubled(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apps.drivers.logs.files import tidying, writing

    with opened_at(kind, tmp_path / "full") as store:
        connection = writing.connect(store._files.working)
        fill(store)

        def tidied(here: Files, now: datetime) -> None:
            tidying.tidy(connection, here, now, None)

        for step in range(1, 400):
            here = copied(store._files, kind, tmp_path / str(step))
            with monkeypatch.context() as patched:
                die_at(patched, here, step)
                try:
                    tidied(here, START)
                    assert live_lines(here) == 20
                    patched.setattr(tidying, "GRACE_S", -1.0)
                    tidied(here, START + timedelta(seconds=1))
                    died = False
                except Killed:
                    died = True
            assert live_lines(here) == 20
            for hours in (0, 2, 4):
                age(here)
                tidied(here, LATER + timedelta(hours=hours))
                assert live_lines(here) == 20
            assert suffixes(here) == [".batches", ".minutes", ".parquet"]
            if not died:
                assert step > 15
                return
    pytest.fail("Tidying never came to its end.")


def test_without_the_list_of_what_is_replaced_lines_count_twice(store: Any) -> None:
    """The negative control of the tests above."""
    fill(store)
    store.tidy(START)
    files = store._files
    files.delete([entry.name for entry in files.entries("account=17/") if entry.name.endswith(".replaces")])
    assert live_lines(files) == 40


def merged(store: Any, batches: int) -> list[tuple[str, bytes]]:
    """Merge the first so many batches beside whoever else does; what came of it."""
    from apps.drivers.logs.files import tidying, writing

    files = store._files
    before = {entry.name for entry in files.entries("account=17/")}
    now = hour(files)
    inputs = [file for file in now.files() if file.batch][:batches]
    tidying.merge(writing.connect(files.working), files, now, inputs, 1)
    return [(each.name, files.read(each.name)) for each in files.entries("account=17/") if each.name not in before]


@in_both
def test_two_machines_that_merge_at_once_count_each_line_once(store: Any) -> None:
    fill(store)
    merged(store, 3)
    merged(store, 4)
    merged(store, 2)
    assert live_lines(store._files) == 20
    found = [each.id for each in store.search(17, query(), limit=99).records]
    assert found == sorted(set(found), reverse=True)
    age(store._files)
    for hours in (0, 2, 4):
        store.tidy(LATER + timedelta(hours=hours))
        assert live_lines(store._files) == store.usage(17).lines == 20
    assert suffixes(store._files) == [".batches", ".minutes", ".parquet"]


def test_lists_of_an_older_version_that_name_what_others_replaced_count_as_ever(tmp_path: Path) -> None:
    """It was ended when it had deleted what the second file stands for, and not yet the list."""
    from apps.drivers.logs.files import layout, tidying, writing

    with opened_at("folder", tmp_path / "logs") as store:
        fill(store)
        files, connection = store._files, writing.connect(store._files.working)
        batches = [file for file in hour(files).files() if file.batch]
        tidying.merge(connection, files, hour(files), batches[:2], 1)
        second = tidying.merge(connection, files, hour(files), batches[2:], 1)
        note = second.removesuffix(".parquet") + ".replaces"
        put(files, note, layout.as_replaces(file.name for file in batches))
        files.delete([file.name for file in batches[2:]])
        assert live_lines(files) == 20
        age(files)
        for hours in (0, 2, 4):
            store.tidy(LATER + timedelta(hours=hours))
            assert live_lines(files) == 20
        assert suffixes(files) == [".batches", ".minutes", ".parquet"]


def test_who_was_stopped_while_merging_and_goes_on_much_later_changes_nothing(store: Any) -> None:
    """What it merged is merged and deleted: its file has lines that the other one has, and one that is newer."""
    fill(store, batches=3)
    late = merged(store, 3)
    store._files.delete([name for name, _ in late])
    merged(store, 2)
    age(store._files)
    store.tidy(START)
    assert [file.batch for file in hour(store._files).files() if file.batch] == ["n1-aa-2"]
    put_all(store._files, late)
    store.tidy(START + timedelta(minutes=2))
    assert live_lines(store._files) == 15
    store.tidy(LATER)
    assert live_lines(store._files) == 15


def put_all(files: Files, contents: list[tuple[str, bytes]]) -> None:
    """A merged file with its notes, which come first."""
    for name, content in sorted(contents, key=lambda each: each[0].endswith(".parquet")):
        files.make_folder(name.rpartition("/")[0])
        put(files, name, content)


def test_a_merge_of_lines_that_are_deleted_meanwhile_brings_none_back(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apps.drivers.logs.files import tidying

    fill(store)
    real = tidying.merge

    def late(*given: Any) -> str:
        before = {entry.name for entry in store._files.entries("account=17/")}
        name = real(*given)
        made = [(each.name, store._files.read(each.name)) for each in hour(store._files).entries.values()]
        assert store.delete(17) == 20
        put_all(store._files, [each for each in made if each[0] not in before])
        return name

    monkeypatch.setattr(tidying, "merge", late)
    store.tidy(START)
    assert live_lines(store._files) == 0


def test_what_is_merged_while_it_is_deleted_goes_too(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store)
    made = merged(store, 4)
    store._files.delete([name for name, _ in made])
    real = store._files.remove

    def slow(*given: Any) -> None:
        real(*given)
        put_all(store._files, made)
        monkeypatch.setattr(store._files, "remove", real)

    monkeypatch.setattr(store._files, "remove", slow)
    assert store.delete(17) == 20
    assert store.usage(17).lines == 0


def test_an_hour_that_cannot_be_merged_keeps_no_other_waiting(store: Any) -> None:
    fill(store)
    store.store("n1-aa-99", [record(1, account=16)])
    (broken,) = store._files.entries("account=16/")
    put(store._files, broken.name, b"PAR1 broken")
    age(store._files)
    with pytest.raises(Unavailable, match="account=16"):
        store.tidy(LATER)
    assert [file.level for file in hour(store._files).files() if file.level] == [9]


def test_a_folder_that_cannot_be_written_acknowledges_nothing(tmp_path: Path) -> None:
    from apps.drivers.logs.parquet import ParquetStore

    (tmp_path / "logs").write_text("a file is in the way")
    with pytest.raises(Unavailable):
        ParquetStore(files_at("folder", tmp_path / "logs")).store("n1-aa-1", [record(1)])


@in_both
def test_a_question_outlives_a_merge_that_deletes_its_files(store: Any) -> None:
    """Names are read, then files go: the question is asked again with new names."""
    import duckdb

    from apps.drivers.logs.asking.answering import Answering
    from apps.drivers.logs.files import layout

    fill(store)
    connection = duckdb.connect()
    real = layout.live_files
    tidied: list[int] = []

    def late(files: Files, hour: Hour) -> list[layout.LogFile]:
        found = real(files, hour)
        if not tidied:
            tidied.append(store.tidy(START))
            age(files)
            store.tidy(START + timedelta(minutes=2))
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("apps.drivers.logs.asking.answering.live_files", late)
        found = Answering(connection, store._files, [17]).search(query(), 500, "")
    assert tidied == [4]
    assert len(found["rows"]) == 20


SINCE_TRACES = ("trace_id", "span_id", "parent_span_id", "sampled")
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def forget(files: Files, working: Path, *columns: str) -> None:
    """Write the files that count as a version wrote them that did not know these columns."""
    import duckdb

    from apps.drivers.logs.files import layout

    for file in layout.live_files(files, hour(files)):
        newer, older = working / "newer.parquet", working / "older.parquet"
        newer.write_bytes(files.read(file.name))
        duckdb.read_parquet(str(newer)).project(f"* EXCLUDE ({', '.join(columns)})").write_parquet(str(older))
        put(files, file.name, older.read_bytes())


@pytest.mark.slow(reason="asks seven questions before, amid and after two merges")
def test_files_from_before_a_column_was_known_are_searched_and_merged(store: Any, tmp_path: Path) -> None:
    traced = Condition("trace_id", Comparison.IS, (TRACE,))

    def check(lines: int, of_trace: int) -> None:
        found = store.search(17, query(), limit=500).records
        assert len(found) == lines
        assert {each.trace_id for each in found} == ({"", TRACE} if of_trace else {""})
        assert len(store.search(17, query(traced), limit=500).records) == of_trace
        assert len(store.search(17, query(replace(traced, negated=True)), limit=500).records) == lines - of_trace
        assert store.one(17, found[-1].id) == found[-1]
        assert sum(sum(each.counts.values()) for each in store.histogram(17, query(traced), bins=24).bins) == of_trace
        assert store.groups(17, query(), ["server"], limit=9)[0].lines
        sql = "SELECT count(*), count(*) FILTER (trace_id <> '') FROM requests"
        assert store.sql(17, sql, start=START, end=LATER).rows == ((lines, of_trace),)
        assert store.export(17, query(), tmp_path / f"{time.monotonic()}.parquet", "parquet") == lines

    fill(store)
    forget(store._files, tmp_path, *SINCE_TRACES)
    check(20, 0)
    assert store.tidy(START) == 4, "files that know no traces become one that does"
    check(20, 0)
    forget(store._files, tmp_path, *SINCE_TRACES)
    store.store("n1-bb-1", [record(100 + each, server="s1", trace_id=TRACE, sampled="yes") for each in range(3)])
    check(23, 3)
    age(store._files)
    assert store.tidy(LATER) == 2
    check(23, 3)


def kept_in_memory(connection: Any, file: Path) -> int:
    """Bytes of files that a DuckDB keeps once it has written and read one."""
    connection.sql("SELECT md5(range::VARCHAR) AS id FROM range(200000)").write_parquet(str(file))
    connection.read_parquet(str(file)).max("id").fetchall()
    asked = "SELECT memory_usage_bytes FROM duckdb_memory() WHERE tag = 'EXTERNAL_FILE_CACHE'"
    return int(connection.execute(asked).fetchone()[0])


def test_files_that_are_merged_do_not_stay_in_memory(tmp_path: Path) -> None:
    """The collector of a demo took a gigabyte after an hour."""
    import duckdb

    from apps.drivers.logs.files import writing

    assert kept_in_memory(writing.connect(tmp_path), tmp_path / "ours.parquet") == 0
    assert kept_in_memory(duckdb.connect(), tmp_path / "theirs.parquet") > 0

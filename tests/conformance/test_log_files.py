"""Files of lines: merged, killed in the middle of it, deleted; no line is lost, none counts twice."""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from apps.drivers.logs.contract import Comparison, Condition, Query, Unavailable
from tests.conformance.test_log_stores import START, needs_duckdb, query, record

pytestmark = needs_duckdb
LATER = START + timedelta(days=2)


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.drivers.logs.files.tidying.MANY", 4)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "logs"


@pytest.fixture
def store(root: Path) -> Iterator[Any]:
    from apps.drivers.logs.parquet import ParquetStore

    opened = ParquetStore(root)
    yield opened
    opened.close()


def fill(store: Any, batches: int = 4) -> None:
    for number in range(batches):
        store.store(f"n1-aa-{number}", [record(number * 10 + each, server=f"s{each % 3}") for each in range(5)])


def live_lines(root: Path) -> int:
    from apps.drivers.logs.files.layout import live_files

    return sum(file.lines for folder in root.glob("account=*/*/*") for file in live_files(folder))


def age(root: Path, seconds: float = 100_000) -> None:
    """All files were written so long ago."""
    for path in root.rglob("*.*"):
        stamp = path.stat().st_mtime - seconds
        os.utime(path, (stamp, stamp))


def test_many_files_become_one_and_answers_stay_the_same(store: Any, root: Path) -> None:
    fill(store)
    asked = query(Condition("server", Comparison.IS, ("s1",)))
    before = (store.search(17, asked, limit=500), store.histogram(17, asked, bins=24), store.usage(17).lines)
    assert store.tidy(START) == 4
    age(root)
    assert store.tidy(LATER) == 1
    age(root)
    store.tidy(LATER + timedelta(hours=2))
    (folder,) = root.glob("account=17/*/*")
    assert sorted(path.suffix for path in folder.iterdir()) == [".batches", ".minutes", ".parquet"]
    assert before == (store.search(17, asked, limit=500), store.histogram(17, asked, bins=24), store.usage(17).lines)
    assert store.facets(17, query(), ["server"], limit=3)[0].values == (("s0", 8), ("s1", 8), ("s2", 4))


@pytest.mark.slow(reason="stores and merges three hours, then asks both ways")
def test_minutes_and_lines_count_the_same(store: Any, root: Path) -> None:
    """A window that cuts hours asks lines at its ends and minutes between; each line counts once."""
    for number in range(10):
        store.store(f"n1-aa-{number}", [record(number * 1000 + each * 97, server=f"s{each}") for each in range(10)])
    cut = Query(START + timedelta(minutes=7, seconds=11), START + timedelta(hours=2, minutes=31))
    fields = ["server", "status", "path"]
    before = store.histogram(17, cut, bins=30), store.facets(17, cut, fields, limit=500)
    age(root)
    store.tidy(LATER)
    assert len(list(root.rglob("*.minutes"))) == 3
    assert before == (store.histogram(17, cut, bins=30), store.facets(17, cut, fields, limit=500))
    store.store("n1-late-1", [record(3700, server="s0")])
    assert sum(dict(store.facets(17, query(), ["server"], limit=99)[0].values).values()) == 101


def test_a_batch_that_comes_again_after_the_merge_is_not_stored_again(store: Any, root: Path) -> None:
    fill(store)
    store.tidy(START)
    age(root)
    store.tidy(LATER)
    again = [record(each, server=f"s{each % 3}") for each in range(5)]
    assert store.store("n1-aa-0", again) == 0
    assert store.usage(17).lines == 20


def test_a_batch_that_slipped_past_the_check_is_deleted_when_tidied(store: Any, root: Path) -> None:
    """Another collector, stopped for minutes between its look and its write."""
    fill(store)
    (folder,) = root.glob("account=17/*/*")
    kept = (folder / "b-n1-aa-0.5.parquet").read_bytes()
    store.tidy(START)
    age(root)
    store.tidy(LATER)
    store.tidy(LATER + timedelta(hours=2))
    (folder / "b-n1-aa-0.5.parquet").write_bytes(kept)
    store.tidy(LATER + timedelta(hours=4))
    assert store.usage(17).lines == 20


class Killed(BaseException):
    """The process ends here; nothing that would clean up is worth anything."""


def die_at(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """End at this change of a folder, counted from now."""
    from apps.drivers.logs.files import layout

    steps = itertools.count(1)

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def act(*given: Any, **named: Any) -> Any:
            if next(steps) == step:
                raise Killed
            return real(*given, **named)

        return act

    for name in ("rename", "unlink", "write_bytes"):
        monkeypatch.setattr(Path, name, counted(getattr(Path, name)))
    monkeypatch.setattr(layout, "sync_folder", counted(layout.sync_folder))


@pytest.mark.slow(reason="tidies once for each step at which it may be killed")
def test_killed_at_any_step_nothing_is_lost_or_doubled(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from apps.drivers.logs.files import layout, tidying, writing
    from apps.drivers.logs.parquet import ParquetStore

    full = root / "full"
    store, connection = ParquetStore(full), writing.connect(layout.working_folder(full))
    fill(store)

    def tidied(here: Path, now: datetime) -> None:
        tidying.tidy(connection, here, now, None)

    for step in range(1, 400):
        here = root / str(step)
        shutil.copytree(full, here)
        with monkeypatch.context() as patched:
            die_at(patched, step)
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
        assert len(list(here.rglob("*.parquet"))) == 1
        if not died:
            assert step > 25
            return
    pytest.fail("Tidying never came to its end.")


def test_without_the_list_of_what_is_replaced_lines_count_twice(store: Any, root: Path) -> None:
    """The negative control of the tests above."""
    fill(store)
    store.tidy(START)
    for path in root.rglob("*.replaces"):
        path.unlink()
    assert live_lines(root) == 40


def test_an_hour_that_cannot_be_merged_keeps_no_other_waiting(store: Any, root: Path) -> None:
    fill(store)
    store.store("n1-aa-99", [record(1, account=16)])
    (broken,) = root.glob("account=16/*/*/*.parquet")
    broken.write_bytes(b"PAR1 broken")
    age(root)
    with pytest.raises(Unavailable, match="account=16"):
        store.tidy(LATER)
    assert len(list(root.glob("account=17/*/*/m9-*.parquet"))) == 1


def test_a_folder_that_cannot_be_written_acknowledges_nothing(root: Path) -> None:
    from apps.drivers.logs.parquet import ParquetStore

    root.parent.mkdir(exist_ok=True)
    root.write_text("a file is in the way")
    with pytest.raises(Unavailable):
        ParquetStore(root).store("n1-aa-1", [record(1)])


def test_a_question_outlives_a_merge_that_deletes_its_files(store: Any, root: Path) -> None:
    """Names are read, then files go: the question is asked again with new names."""
    import duckdb

    from apps.drivers.logs.asking.answering import Answering
    from apps.drivers.logs.files import layout

    fill(store)
    connection = duckdb.connect()
    real = layout.live_files
    tidied: list[int] = []

    def late(folder: Path) -> list[layout.LogFile]:
        files = real(folder)
        if not tidied:
            tidied.append(store.tidy(START))
            age(root)
            store.tidy(START + timedelta(seconds=1))
        return files

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("apps.drivers.logs.asking.answering.live_files", late)
        found = Answering(connection, root, 17).search(query(), 500, "")
    assert tidied == [4]
    assert len(found["rows"]) == 20


SINCE_TRACES = ("trace_id", "span_id", "parent_span_id", "sampled")
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def forget(path: Path, *columns: str) -> None:
    """Write the file as a version wrote it that did not know these columns."""
    import duckdb

    older = path.with_suffix(".older")
    kept = duckdb.read_parquet(str(path)).project(f"* EXCLUDE ({', '.join(columns)})")
    kept.write_parquet(str(older))
    older.replace(path)


@pytest.mark.slow(reason="asks seven questions before, amid and after two merges")
def test_files_from_before_a_column_was_known_are_searched_and_merged(store: Any, root: Path, tmp_path: Path) -> None:
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
    for path in root.rglob("*.parquet"):
        forget(path, *SINCE_TRACES)
    check(20, 0)
    assert store.tidy(START) == 4, "files that know no traces become one that does"
    check(20, 0)
    for path in root.rglob("m*.parquet"):
        forget(path, *SINCE_TRACES)
    store.store("n1-bb-1", [record(100 + each, server="s1", trace_id=TRACE, sampled="yes") for each in range(3)])
    check(23, 3)
    age(root)
    assert store.tidy(LATER) == 2
    check(23, 3)

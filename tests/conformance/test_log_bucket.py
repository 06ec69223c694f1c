"""What only a bucket has: copies below a ceiling, a network that fails, and credentials that are not in the URL."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from apps.drivers.logs.contract import Busy, Rejected, TooLarge, Unavailable
from apps.drivers.logs.files.cache import Cache
from apps.drivers.logs.files.port import Entry
from apps.drivers.logs.registry import open_logs
from tests.conformance.log_places import KEYS, needs_duckdb, needs_moto, new_bucket, opened_at, s3, s3_server
from tests.conformance.test_log_stores import START, query, record
from tests.ports import spare_port

pytestmark = [needs_duckdb, needs_moto, pytest.mark.slow(reason="real files, and a bucket that is asked over HTTP")]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Any]:
    with opened_at("bucket", tmp_path / "logs") as opened:
        yield opened


class Slow:
    """Fetches bytes of the right length, and knows how many were on this machine at most."""

    def __init__(self, folder: Path, seconds: float = 0.0) -> None:
        self.folder, self.seconds = folder, seconds
        self.fetched: list[str] = []
        self.most = 0

    def __call__(self, entry: Entry, target: BinaryIO) -> None:
        self.fetched.append(entry.name)
        time.sleep(self.seconds)
        target.write(b"x" * entry.size)
        self.count()

    def count(self) -> None:
        self.most = max(self.most, stored(self.folder))


def stored(folder: Path) -> int:
    """Bytes of copies, those on their way as well, at one moment: nobody removes or reserves while they are counted."""
    found = 0
    with (folder / "cache.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for path in (folder / "cache").rglob("*"):
            with suppress(FileNotFoundError):
                found += path.stat().st_size if path.is_file() else 0
    return found


def entry(number: int, size: int = 100) -> Entry:
    return Entry(f"account=17/{number}.parquet", size, 0.0)


def test_what_was_used_last_stays(tmp_path: Path) -> None:
    fetch = Slow(tmp_path)
    cache = Cache(tmp_path, "bucket", 300, fetch)
    for number in (1, 2, 3, 1, 4, 1, 2):
        with cache.hold([entry(number)], 5.0) as paths:
            assert paths[0].read_bytes() == b"x" * 100
        time.sleep(0.01)
    assert [name[11:12] for name in fetch.fetched] == ["1", "2", "3", "4", "2"]
    assert fetch.most == 300


def test_questions_at_once_never_take_more_than_the_ceiling(tmp_path: Path) -> None:
    fetch = Slow(tmp_path, seconds=0.01)
    cache = Cache(tmp_path, "bucket", 1000, fetch)

    def ask(number: int) -> None:
        with cache.hold([entry(number * 3 % 20 + each) for each in range(4)], 30.0) as paths:
            time.sleep(0.005)
            assert all(path.stat().st_size == 100 for path in paths)
            fetch.count()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(40)))
    assert 800 <= fetch.most <= 1000


def test_what_two_questions_need_is_fetched_once(tmp_path: Path) -> None:
    fetch = Slow(tmp_path, seconds=0.2)
    cache = Cache(tmp_path, "bucket", 1000, fetch)

    def ask(_: int) -> int:
        with cache.hold([entry(1)], 5.0) as paths:
            return paths[0].stat().st_size

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(ask, range(3))) == [100, 100, 100]
    assert len(fetch.fetched) == 1


def test_what_a_question_reads_stays_until_it_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.drivers.logs.files.cache.PATIENCE_S", 0.1)
    cache = Cache(tmp_path, "bucket", 250, Slow(tmp_path))
    with cache.hold([entry(1), entry(2)], 5.0) as paths:
        with pytest.raises(Busy, match="full"), cache.hold([entry(3)], 5.0):
            pass
        assert all(path.exists() for path in paths)
    with cache.hold([entry(3)], 5.0) as paths:
        assert paths[0].exists()
    with pytest.raises(TooLarge, match="shorter time"), cache.hold([entry(4, 251)], 5.0):
        pass


def test_a_process_that_was_killed_keeps_nothing(tmp_path: Path) -> None:
    """It had pinned a copy and begun another."""
    program = """
import os, sys
from pathlib import Path
from apps.drivers.logs.files.cache import Cache
from apps.drivers.logs.files.port import Entry
def fetch(entry, target):
    if entry.size == 101:
        target.write(b"half"); target.flush(); os.kill(os.getpid(), 9)
    target.write(b"x" * entry.size)
with Cache(Path(sys.argv[1]), "bucket", 250, fetch).hold([Entry("account=17/1.parquet", 100, 0.0)], 5.0):
    with Cache(Path(sys.argv[1]), "bucket", 250, fetch).hold([Entry("account=17/2.parquet", 101, 0.0)], 5.0):
        pass
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], env={"PATH": os.environ["PATH"]}, check=False)
    assert done.returncode == -9
    assert stored(tmp_path) == 201
    fetch = Slow(tmp_path)
    with Cache(tmp_path, "bucket", 250, fetch).hold([entry(2, 101), entry(3)], 5.0) as paths:
        assert [path.read_bytes() for path in paths] == [b"x" * 101, b"x" * 100]
    assert fetch.most <= 250


def test_copies_that_nobody_used_for_a_day_go_when_others_come(tmp_path: Path) -> None:
    cache = Cache(tmp_path, "bucket", 1000, Slow(tmp_path))
    with cache.hold([entry(1)], 5.0) as paths:
        (old,) = paths
    os.utime(old, (0, 0))
    with cache.hold([entry(2)], 5.0):
        assert not old.exists()


def test_a_fetch_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail(_: Entry, target: BinaryIO) -> None:
        target.write(b"half")
        raise Unavailable("The bucket is away.")

    with pytest.raises(Unavailable), Cache(tmp_path, "bucket", 1000, fail).hold([entry(1)], 5.0):
        pass
    assert stored(tmp_path) == 0


def test_only_hours_and_counts_that_the_answer_needs_are_fetched(store: Any, tmp_path: Path) -> None:
    for hour in range(3):
        store.store(f"n1-aa-{hour}", [record(hour * 3600 + each) for each in range(5)])
        store.store(f"n1-bb-{hour}", [record(hour * 3600 + each, account=18) for each in range(5)])
    assert len(store.search(17, query(), limit=3).records) == 3
    copies = [path.relative_to(tmp_path).parts for path in (tmp_path / "logs" / "cache").rglob("*.parquet")]
    assert [parts[3:6] for parts in copies] == [("account=17", "day=2026-11-23", "hour=10")]


def test_a_process_that_asks_is_given_files_of_its_account_only(store: Any) -> None:
    from apps.drivers.logs.asking.pipe import Lender

    store.store("n1-aa-1", [record(1), record(1, account=170)])
    with ExitStack() as held:
        lender = Lender(store._files, [17], held)
        others = [entry.name for entry in store._files.entries("account=170/")]
        for names in (others, ["account=17/../account=170/x"], ["../x"], [""], ["/etc/passwd"]):
            for need in (
                {"need": "entries", "given": [names[0], "", ""]},
                {"need": "read", "given": names},
                {"need": "local", "given": [[[names[0], 1, 0.0]]]},
            ):
                assert lender.answer(need, 5.0)["error"] == "Rejected"
        assert len(lender.answer({"need": "entries", "given": ["account=17/", "", ""]}, 5.0)["found"]) == 1


def test_a_bucket_that_is_away_loses_no_line_and_says_so(
    store: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from apps.drivers.logs.files import bucket
    from apps.drivers.logs.parquet import ParquetStore

    store.store("n1-aa-1", [record(1)])
    monkeypatch.setattr(bucket, "ATTEMPTS", 1)
    other = replace(store._files._bucket, endpoint=f"http://127.0.0.1:{spare_port()}")
    away = ParquetStore(bucket.BucketFiles(other))
    for ask in (
        lambda: away.store("n1-aa-2", [record(2)]),
        lambda: away.search(17, query(), limit=9),
        lambda: away.histogram(17, query(), bins=5),
        lambda: away.one(17, record(1).id),
        lambda: away.sql(17, "SELECT 1 FROM requests", start=START, end=START + timedelta(hours=1)),
        lambda: away.export(17, query(), tmp_path / "lines", "jsonl.gz"),
        lambda: away.usage(17),
        lambda: away.delete(17),
        lambda: away.tidy(START),
    ):
        with pytest.raises(Unavailable, match=r"bucket logs-\w+ of the log store cannot be reached"):
            ask()
    away.close()
    assert store.store("n1-aa-2", [record(2)]) == 1
    assert len(store.search(17, query(), limit=9).records) == 2


def test_an_object_that_was_lost_is_an_error_and_not_fewer_rows(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store.store("n1-aa-1", [record(1)])
    store.store("n1-aa-2", [record(2)])
    listed = store._files.entries("account=17/")
    store._files.delete([listed[0].name])
    monkeypatch.setattr(store._files, "entries", lambda *_: listed)
    with pytest.raises(Unavailable):
        store.search(17, query(), limit=9)
    with pytest.raises(Unavailable):
        store.histogram(17, query(), bins=5)


def test_an_object_that_comes_short_is_not_kept(store: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store.store("n1-aa-1", [record(1)])
    (listed,) = store._files.entries("account=17/")
    longer = Entry(listed.name, listed.size + 1, listed.written)
    monkeypatch.setattr(store._files, "entries", lambda *_: [longer])
    with pytest.raises(Unavailable, match=f"{listed.size} of {longer.size} bytes"):
        store.search(17, query(), limit=9)
    assert stored(tmp_path / "logs") == 0


def test_lines_that_are_deleted_are_deleted_here_too(store: Any, tmp_path: Path) -> None:
    store.store("n1-aa-1", [record(1)])
    assert store.search(17, query(), limit=9).records
    assert stored(tmp_path / "logs") > 0
    store.delete(17)
    assert stored(tmp_path / "logs") == 0
    assert store._files.folders() == []


def test_a_url_names_a_bucket_and_credentials_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    bucket = new_bucket()
    url = f"logs+s3://{bucket}/a/b?endpoint={s3_server()}&region=eu-central-1&folder={tmp_path}&cache_megabytes=100"
    store: Any = open_logs(url)
    store.store("n1-aa-1", [record(1)])
    assert len(store.search(17, query(), limit=9).records) == 1
    (found,) = s3().list_objects_v2(Bucket=bucket)["Contents"]
    assert found["Key"].startswith("a/b/account=17/day=2026-11-23/hour=08/b-n1-aa-1.1.parquet")
    store.close()


def test_without_credentials_it_is_said_what_to_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    store: Any = open_logs(f"logs+s3://{new_bucket()}?endpoint={s3_server()}&region=eu-central-1&folder={tmp_path}")
    with pytest.raises(Unavailable, match="AWS_ACCESS_KEY_ID"):
        store.store("n1-aa-1", [record(1)])


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("logs+s3://key:hunter2@bucket", "credentials"),
        ("logs+s3://bucket?endpoint=http://storage.example", "not encrypted"),
        ("logs+s3://bucket?endpoint=storage.example", "no URL"),
        ("logs+s3://bucket?secret=hunter2", "there is no secret"),
        ("logs+s3://bucket?folder=here", "begins with /"),
        ("logs+s3://bucket?cache_megabytes=much", "whole number"),
        ("logs+s3:///no-bucket", "names no log store"),
        ("https://user:hunter2@x", "names no log store"),
        ("clickhouse://x", "ClickHouse"),
    ],
)
def test_a_url_that_is_none_says_what_to_write(url: str, said: str) -> None:
    with pytest.raises(Rejected, match=said) as caught:
        open_logs(url)
    assert "hunter2" not in caught.value.message


def test_http_is_for_this_machine_or_when_said(tmp_path: Path) -> None:
    open_logs(f"logs+s3://bucket?endpoint=http://127.0.0.1:9000&folder={tmp_path}")
    open_logs(f"logs+s3://bucket?endpoint=http://storage.example&http=allowed&folder={tmp_path}")


def test_a_console_without_the_extra_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("apps.drivers.extras._is_there", lambda _: False)
    with pytest.raises(Unavailable, match=r"extra aws: .*requirements-aws\.txt"):
        open_logs(f"logs+s3://bucket-without-extra?folder={tmp_path}")

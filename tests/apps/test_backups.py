"""A backup of the running database, read back into an empty one; what does not fit is refused, and nothing touched."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from django.apps import apps
from django.db import connection
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.definitions.models import Pool
from apps.system.backups import contents, dumps, reading, sealed_file
from apps.system.backups.sealed_file import Unreadable
from apps.system.models import Backup
from controlplane.admin import environment_file, recovery
from controlplane.admin.__main__ import parser
from controlplane.admin.refusal import Refused

WORDS = "correct horse battery staple"
GIVEN = {"environment": {"SPILLWAY_SECRET_KEY": "k" * 40}, "clouds": {"SPILLWAY_CLOUD_MAIN_SECRET_ACCESS_KEY": "s"}}
pytestmark = [
    pytest.mark.both_engines,
    pytest.mark.django_db(transaction=True),
    pytest.mark.slow(reason="pg_dump and psql are started, and write every table"),
]


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sealed_file.COST, "n", 16)


@contextmanager
def another_database(folder: Path) -> Iterator[None]:
    """Django's own connection leads to an empty one."""
    before = dict(connection.settings_dict)
    name = str(folder / "other.sqlite3") if connection.vendor == "sqlite" else f"other_{secrets.token_hex(6)}"
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
    connection.close()
    connection.settings_dict["NAME"] = name
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict.update(before)
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")


def counted() -> dict[str, int]:
    """Rows of every table but that of backups, which is written afterwards."""
    return {model._meta.label: model._default_manager.count() for model in apps.get_models() if model is not Backup}


@pytest.fixture
def made(tutorial_env: Actor, tmp_path: Path, settings: Settings) -> Path:
    """A backup with keys and request lines."""
    pki, lines = tmp_path / "pki", tmp_path / "logs" / "acme" / "2026"
    pki.mkdir()
    lines.mkdir(parents=True)
    (pki / "ca.key").write_bytes(b"of the authority")
    (lines / "one.parquet").write_bytes(b"PAR1" * 1000)
    settings.LOGS_URL = f"logs+file://{tmp_path}/logs"
    file = tmp_path / "backup"
    row = contents.make(file, WORDS, GIVEN, pki, with_request_logs=True)
    row.save()
    assert row.bytes == file.stat().st_size
    assert file.stat().st_mode & 0o777 == 0o600
    return file


def test_what_was_saved_is_back(made: Path, tmp_path: Path, settings: Settings) -> None:
    found, before = reading.read(made, WORDS), counted()
    names = sorted(Pool.objects.values_list("name", flat=True))
    assert found.settings == GIVEN
    assert found.keys == {"ca.key": b"of the authority"}
    with another_database(tmp_path):
        contents.must_fit(found)
        assert dumps.tables() == 0
        contents.restore_database(made, WORDS, replace=False)
        assert counted() == before
        assert sorted(Pool.objects.values_list("name", flat=True)) == names != []
        settings.LOGS_URL = f"logs+file://{tmp_path}/new-logs"
        assert contents.restore_lines(made, WORDS) == 1
        assert (tmp_path / "new-logs/acme/2026/one.parquet").read_bytes() == b"PAR1" * 1000
        contents.note_restored(made, 1.0)
        assert Backup.objects.filter(restored=True).count() == 1, "sequences go on"


def test_settings_and_keys_come_back_to_a_database_that_is_well(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings_file, words = tmp_path / "etc" / "environment", tmp_path / "words"
    words.write_text(WORDS)
    monkeypatch.setenv("SPILLWAY_SECRET_KEY", "lost")
    monkeypatch.setenv("SPILLWAY_AGENT_CA", str(tmp_path / "etc" / "pki" / "ca.pem"))
    asked = ["--environment", str(settings_file), "restore", str(made), "--passphrase-file", str(words)]
    Pool.objects.update(version=77)  # later than the backup
    with pytest.raises(Refused, match="not empty"):
        recovery.restore(parser().parse_args(asked), lambda _: None)
    assert not settings_file.exists()
    recovery.restore(parser().parse_args([*asked, "--settings-only"]), lambda _: None)
    assert environment_file.read(settings_file) == GIVEN["environment"]
    assert (tmp_path / "etc" / "pki" / "ca.key").read_bytes() == b"of the authority"
    assert set(Pool.objects.values_list("version", flat=True)) == {77}


@pytest.mark.parametrize("tables", [2, pytest.param(100, marks=pytest.mark.exhaustive)])
def test_replacing_leaves_nothing_of_what_was_there(made: Path, tmp_path: Path, tables: int) -> None:
    before = counted()
    with another_database(tmp_path):
        if tables > 2:  # an installation of today
            contents.restore_database(made, WORDS, replace=False)
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE of_another_time (id integer PRIMARY KEY)")
            cursor.execute("DROP TABLE IF EXISTS core_keycheck")
            cursor.execute("CREATE TABLE core_keycheck (other integer REFERENCES of_another_time)")
        contents.restore_database(made, WORDS, replace=True)
        assert counted() == before
        assert "of_another_time" not in connection.introspection.table_names()


def test_a_file_that_breaks_off_while_it_is_read_changes_nothing(made: Path, tmp_path: Path) -> None:
    whole = made.read_bytes()
    made.write_bytes(whole[: len(whole) * 2 // 3])
    with another_database(tmp_path):
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE that_was_there (id integer)")
        with pytest.raises(Unreadable):
            contents.restore_database(made, WORDS, replace=True)
        assert connection.introspection.table_names() == ["that_was_there"]


def test_a_broken_file_of_the_database_is_refused_by_the_engine(made: Path, tmp_path: Path) -> None:
    with another_database(tmp_path):
        with pytest.raises((dumps.DumpFailed, sqlite3.DatabaseError)):
            dumps.restore([b"CREATE TABLE half (id integer);\nthis is no SQL;\n"], replace=False)
        assert dumps.tables() == 0


def test_a_file_that_exists_is_kept_and_a_failure_leaves_none(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = made.read_bytes()
    with pytest.raises(FileExistsError):
        contents.make(made, WORDS, GIVEN, None, with_request_logs=False)
    assert made.read_bytes() == before

    def fails() -> Iterator[bytes]:
        yield b"half"
        raise dumps.DumpFailed("the database went away")

    with contents._new(tmp_path / "first") as stream:  # under way in another process
        with pytest.raises(FileExistsError), contents._new(tmp_path / "first"):
            (tmp_path / "first").touch()
        (tmp_path / "first").unlink()
        stream.write(b"whole")
    assert (tmp_path / "first").read_bytes() == b"whole"
    monkeypatch.setattr(dumps, "dump", fails)
    with pytest.raises(dumps.DumpFailed):
        contents.make(tmp_path / "second", WORDS, GIVEN, None, with_request_logs=False)
    assert [path.name for path in tmp_path.glob("second*")] == []
    assert Backup.objects.count() == 1


def test_what_does_not_fit_is_refused_by_name(made: Path) -> None:
    found = reading.read(made, WORDS)
    found.manifest["migrations"].append("observe.9999_of_tomorrow")
    with pytest.raises(Unreadable, match=r"newer version .*observe\.9999_of_tomorrow"):
        contents.must_fit(found)
    found.manifest["engine"] = "oracle"
    with pytest.raises(Unreadable, match="The backup is of oracle"):
        contents.must_fit(found)


def test_names_that_lead_out_of_their_folder_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "evil"
    with file.open("wb") as stream:
        writer = sealed_file.Writer(stream, WORDS)
        writer.member("pki/../../etc/cron", [b"x"])
        writer.close()
    with pytest.raises(Unreadable, match="outside of its folders"):
        reading.read(file, WORDS)


def test_the_dump_is_one_snapshot(made: Path, tmp_path: Path) -> None:
    """What is written while the dump is under way is all in it or not at all."""
    if connection.vendor != "sqlite":
        return
    with closing(sqlite3.connect(str(connection.settings_dict["NAME"]), timeout=30)) as other:
        parts = dumps.dump()
        first = next(parts)
        other.execute("DELETE FROM core_keycheck")
        other.commit()
        copy = tmp_path / "copy.sqlite3"
        copy.write_bytes(first + b"".join(parts))
    with closing(sqlite3.connect(copy)) as database:
        assert database.execute("PRAGMA quick_check").fetchone() == ("ok",)

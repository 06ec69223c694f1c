"""The database as one snapshot: PostgreSQL by its own tools, SQLite by its backup."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Any

from django.db import connection
from psycopg.conninfo import make_conninfo

PIECE = 1 << 18
# What libpq is told beside the password; sessions of ours end after limits that are not those of a whole database.
PASSED = ("host", "hostaddr", "port", "user", "dbname", "sslmode", "sslrootcert", "sslcert", "sslkey", "service",
          "target_session_attrs")  # fmt: skip
EMPTY_AGAIN = b"SET lock_timeout = '30s';\nDROP SCHEMA public CASCADE;\nCREATE SCHEMA public;\n"


class DumpFailed(Exception):
    """A sentence with what the tool said."""


def dump() -> Iterator[bytes]:
    """All of it as of one instant. Raises DumpFailed."""
    return _dump_postgresql() if connection.vendor == "postgresql" else _dump_sqlite()


def tables() -> int:
    """How many there are in the database of the settings; 0 where a file is not there yet. Raises db.Error."""
    if connection.vendor == "sqlite" and not _file().exists():
        return 0
    with connection.cursor() as cursor:
        return len(connection.introspection.table_names(cursor))


def restore(content: Iterable[bytes], *, replace: bool) -> None:
    """Read it back: all of it or nothing. Raises DumpFailed; what `content` raises passes through."""
    connection.close()
    if connection.vendor == "postgresql":
        _restore_postgresql(content, replace=replace)
    else:
        _restore_sqlite(content)


def _tool(name: str, *words: str) -> tuple[list[str], dict[str, str]]:
    given: dict[str, Any] = connection.get_connection_params()
    where = make_conninfo(**{name: str(given[name]) for name in PASSED if given.get(name)})
    environment = os.environ | ({"PGPASSWORD": str(given["password"])} if given.get("password") else {})
    return [name, *words, "--dbname", where], environment


def _dump_postgresql() -> Iterator[bytes]:
    command, environment = _tool("pg_dump", "--format=plain", "--no-owner", "--no-privileges", "--encoding=UTF8")
    with tempfile.TemporaryFile() as said:
        process = _started(command, environment, said, stdout=subprocess.PIPE)
        assert process.stdout is not None, "it was asked for"  # noqa: S101
        try:
            while piece := process.stdout.read(PIECE):
                yield piece
            if process.wait() != 0:
                raise DumpFailed(f"pg_dump failed: {_end(said)}")
        finally:
            _end_it(process)


def _restore_postgresql(content: Iterable[bytes], *, replace: bool) -> None:
    """In one transaction; where the reading fails, psql is killed before it could commit."""
    command, environment = _tool("psql", "-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-f", "-")
    with tempfile.TemporaryFile() as said:
        process = _started(command, environment, said, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        assert process.stdin is not None, "it was asked for"  # noqa: S101
        try:
            with suppress(BrokenPipeError):  # it says why below
                if replace:
                    process.stdin.write(EMPTY_AGAIN)
                for piece in content:
                    process.stdin.write(piece)
                process.stdin.close()
            if process.wait() != 0:
                raise DumpFailed(f"PostgreSQL took nothing: {_end(said)}")
        finally:
            _end_it(process)


def _started(command: list[str], environment: dict[str, str], said: IO[bytes], **pipes: Any) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(command, env=environment, stderr=said, **{"stdin": subprocess.DEVNULL, **pipes})
    except FileNotFoundError:
        raise DumpFailed(f"{command[0]} is missing: apt install postgresql-client") from None


def _end_it(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def _end(said: IO[bytes]) -> str:
    said.seek(max(0, said.seek(0, os.SEEK_END) - 2000))
    lines = [line for line in said.read().decode(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower() or "fatal" in line.lower()]
    return (errors or lines or ["it said nothing"])[0][:300]


def _file() -> Path:
    return Path(str(connection.settings_dict["NAME"]))


def _dump_sqlite() -> Iterator[bytes]:
    with tempfile.TemporaryDirectory(dir=_file().parent, prefix=".backup-") as folder:
        copy = Path(folder) / "copy.sqlite3"
        with closing(sqlite3.connect(_file(), timeout=60)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)  # all pages in one go: nobody's write comes in between
        with copy.open("rb") as stream:
            while piece := stream.read(PIECE):
                yield piece


def _restore_sqlite(content: Iterable[bytes]) -> None:
    """Into a file beside, which takes the place of the old one when it is whole."""
    path = _file()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".restore-")
    fresh = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            for piece in content:
                stream.write(piece)
            stream.flush()
            os.fsync(stream.fileno())
        with closing(sqlite3.connect(fresh)) as database:
            if database.execute("PRAGMA quick_check").fetchone() != ("ok",):
                raise DumpFailed("The SQLite file of the backup is damaged.")
        for ending in ("-wal", "-shm"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
        fresh.replace(path)
    finally:
        for ending in ("", "-wal", "-shm"):
            fresh.with_name(fresh.name + ending).unlink(missing_ok=True)

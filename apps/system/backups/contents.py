"""What a backup holds: the manifest, settings, keys, the database, request lines if wanted, and the list of it all."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from apps.core.clock import database_now, now
from apps.observe import schema
from apps.system.backups import dumps
from apps.system.backups.reading import DATABASE, KEYS, LINES, LIST, MANIFEST, SETTINGS, Found, members, plain
from apps.system.backups.sealed_file import Unreadable, Writer
from apps.system.heartbeat import MISSED
from apps.system.http_times import HERE
from apps.system.models import Backup, Process
from apps.system.version import version

Settings = Mapping[str, Mapping[str, str]]


def make(path: Path, passphrase: str, given: Settings, pki: Path | None, *, with_request_logs: bool) -> Backup:
    """Write the file, for its owner alone; the row that notes it is not saved, which needs the tables of this version.

    Raises FileExistsError, DumpFailed, OSError.
    """
    began = time.monotonic()
    with _new(path) as stream:
        _write(Writer(stream, passphrase), given, pki, with_request_logs=with_request_logs)
        size = stream.tell()
    row = Backup(at=now(), host=HERE, path=str(path.absolute())[:400], bytes=size)
    row.seconds, row.with_request_logs = time.monotonic() - began, with_request_logs
    return row


@contextmanager
def _new(path: Path) -> Iterator[IO[bytes]]:
    """It has its name when it is whole; what was begun is removed where that fails."""
    if path.exists():
        raise FileExistsError(f"{path} exists and is kept.")
    handle, name = tempfile.mkstemp(".part", f"{path.name}.", path.parent)  # another one may be made there just now
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.link(part, path)  # unlike a rename it overwrites nothing
    finally:
        part.unlink(missing_ok=True)


def _write(writer: Writer, given: Settings, pki: Path | None, *, with_request_logs: bool) -> None:
    listed: dict[str, Any] = {}

    def put(name: str, content: Iterable[bytes]) -> None:
        digest, size = writer.member(name, content)
        listed[name] = {"sha256": digest, "size": size}

    put(MANIFEST, [json.dumps(_manifest(with_request_logs=with_request_logs)).encode()])
    put(SETTINGS, [json.dumps(given).encode()])
    for each in sorted(pki.iterdir()) if pki is not None and pki.is_dir() else ():
        if each.suffix in (".pem", ".key", ".crl"):
            put(f"{KEYS}{each.name}", [each.read_bytes()])
    put(DATABASE, dumps.dump())
    if with_request_logs and (folder := lines_folder()) is not None:
        for each in sorted(path for path in folder.rglob("*.parquet") if path.is_file()):
            put(f"{LINES}{each.relative_to(folder)}", _pieces(each))
    writer.member(LIST, [json.dumps(listed).encode()])
    writer.close()


def lines_folder() -> Path | None:
    """Where request lines lie, where that is a folder."""
    parts = urlsplit(settings.LOGS_URL)
    return Path(unquote(parts.path)) if parts.scheme == "logs+file" else None


def _manifest(*, with_request_logs: bool) -> dict[str, Any]:
    applied = MigrationRecorder(connection).applied_migrations()
    return {
        "version": version(),
        "made_at": now().isoformat(timespec="seconds"),
        "host": HERE,
        "engine": connection.vendor,
        "migrations": sorted(f"{app}.{name}" for app, name in applied),
        "request_logs": with_request_logs,
    }


def must_fit(found: Found) -> None:
    """Raise Unreadable where this code or this engine cannot take it."""
    engine = found.manifest.get("engine")
    if engine != connection.vendor:
        raise Unreadable(f"The backup is of {engine}, and SPILLWAY_DATABASE_URL names {connection.vendor}.")
    known = {f"{app}.{name}" for app, name in schema.ever_known()}
    if unknown := sorted(set(found.manifest.get("migrations", [])) - known):
        more = f"it has {unknown[0]}, which is not here"
        raise Unreadable(f"The backup is of a newer version ({found.manifest.get('version')}): {more}.")


def running() -> int:
    """How many processes use the database that would be replaced; 0 where nothing tells. Raises db.Error."""
    with connection.cursor() as cursor:
        if Process._meta.db_table not in connection.introspection.table_names(cursor):
            return 0
    return Process.objects.filter(heard_at__gte=database_now() - MISSED).count()


def restore_database(path: Path, passphrase: str, *, replace: bool) -> None:
    """Raises DumpFailed, Unreadable; then nothing was changed."""
    for name, content in members(path, passphrase):
        if name == DATABASE:
            dumps.restore(content, replace=replace)
            return


def restore_lines(path: Path, passphrase: str) -> int:
    """Request lines into the folder of the settings; how many files. What is there stays."""
    folder, count = lines_folder(), 0
    for name, content in members(path, passphrase):
        if folder is None or not name.startswith(LINES):
            continue
        target = folder.joinpath(*(plain(part) for part in name.removeprefix(LINES).split("/")))
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh = target.with_name(f"{target.name}.restoring")
            with fresh.open("wb") as stream:
                stream.writelines(content)
            fresh.replace(target)
            count += 1
    return count


def note_restored(path: Path, seconds: float) -> None:
    """Forget the processes of the lost console; keep that this database came from a backup."""
    Process.objects.all().delete()
    row = Backup(at=now(), restored=True, host=HERE, path=str(path.absolute())[:400], bytes=path.stat().st_size)
    row.seconds = seconds
    row.save()


def _pieces(path: Path, size: int = 1 << 18) -> Iterator[bytes]:
    try:
        stream = path.open("rb")
    except FileNotFoundError:
        return  # several small files became one meanwhile
    with stream:
        read_piece: Callable[[], bytes] = lambda: stream.read(size)  # noqa: E731
        yield from iter(read_piece, b"")

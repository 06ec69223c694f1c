"""`spillway-admin restore`: settings and keys first, then the database where it was lost as well, then a check."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from apps.system.backups import reading
from apps.system.backups.reading import Found
from apps.system.backups.sealed_file import Unreadable
from controlplane.admin import environment_file, findings, shown
from controlplane.admin.refusal import Refused, secret_line

HEAD = "Settings of this console and its workers, restored from a backup by spillway-admin."
KEY, FALLBACKS = "SPILLWAY_SECRET_KEY", "SPILLWAY_SECRET_KEY_FALLBACKS"
Start = Callable[[Namespace], None]


def restore(options: Namespace, start: Start) -> int:
    """Raises Refused before anything is touched where the file, the passphrase or the place does not fit."""
    began = time.monotonic()
    passphrase = secret_line(options.passphrase_file, "Passphrase of the backup", new=False)
    try:
        found = reading.read(options.file, passphrase)
    except Unreadable as error:
        raise Refused(f"{error} Nothing was touched.") from None
    except OSError as error:
        raise Refused(f"{options.file} cannot be read: {error.strerror}.") from None
    said = found.manifest
    print(f"{options.file} is whole: of {said['made_at']}, from {said['host']}, {said['engine']}, {said['version']}.")
    if options.verify:
        return 0
    wanted = _settings(found, options)
    os.environ.update(wanted)
    start(options)
    if options.settings_only:
        _write_files(options, found)
        print("The database was left as it is. Restart every process.")
    else:
        _restore(options, found, passphrase, began)
    started_later = findings.OF_PROCESSES
    return shown.show([each for each in findings.all_of_them() if each.name not in started_later], as_json=False)


def _settings(found: Found, options: Namespace) -> dict[str, str]:
    """Of the file that is there, else of the backup; changed by --set. Raises Refused."""
    path: Path = options.environment
    kept = environment_file.read(path) if path.exists() else dict(found.settings["environment"])
    for each in options.set:
        name, equals, value = each.partition("=")
        if not equals:
            raise Refused(f"--set {name}: write NAME=VALUE.")
        if path.exists() and kept.get(name) != value:
            raise Refused(f"{path} exists and is kept: change {name} there, or remove the file.")
        kept[name] = value
    theirs, ours = found.settings["environment"].get(KEY), kept.get(KEY, "")
    if theirs and theirs not in (ours, *map(str.strip, kept.get(FALLBACKS, "").split(","))):
        raise Refused(f"{path} has another {KEY} than the backup: what it sealed could not be opened. Remove the file.")
    return kept


def _restore(options: Namespace, found: Found, passphrase: str, began: float) -> None:
    from apps.system.backups import contents
    from apps.system.backups.dumps import DumpFailed, tables
    from controlplane.admin.commands import call

    try:
        contents.must_fit(found)
        if tables() and not options.replace:
            raise Refused("The database is not empty, so nothing was touched. --replace deletes what it holds.")
        if options.replace and (running := contents.running()):
            raise Refused(f"{running} processes use this database: stop them first. Nothing was touched.")
        contents.restore_database(options.file, passphrase, replace=options.replace)
    except (DumpFailed, Unreadable) as error:
        raise Refused(f"{error} Nothing was changed.") from None
    _write_files(options, found)
    call("migrate", verbosity=0)
    contents.note_restored(options.file, time.monotonic() - began)
    lines = 0 if options.without_request_logs else contents.restore_lines(options.file, passphrase)
    kept = f", {lines} files of request lines" if lines else ""
    print(
        f"The database is back{kept}, after {time.monotonic() - began:.1f} s. Start the processes; nodes need nothing."
    )


def _write_files(options: Namespace, found: Found) -> None:
    """Settings and keys where there are none; what is there is kept."""
    path: Path = options.environment
    if not path.exists():
        own = {name: os.environ[name] for name in found.settings["environment"] if name in os.environ}
        added = {each.partition("=")[0]: each.partition("=")[2] for each in options.set}
        environment_file.write_new(path, own | added, HEAD)
        print(f"{path} written.")
    for name, values in found.settings.items():
        if name != "environment" and not (beside := path.with_name(reading.plain(name))).exists():
            environment_file.write_new(beside, values, HEAD)
    authority = os.environ.get("SPILLWAY_AGENT_CA", "")
    if not authority:
        return
    folder = Path(authority).parent
    for name, content in found.keys.items():
        _keep_or_write(folder / name, content)


def _keep_or_write(path: Path, content: bytes) -> None:
    if path.exists():
        if path.read_bytes() != content:
            print(f"{path} is another one than in the backup, and is kept.")
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(content)

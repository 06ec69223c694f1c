"""`spillway-admin backup`: what belongs to a console beside its database, and the file."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

from django import db
from django.conf import settings

from apps.system.backups import contents
from apps.system.backups.dumps import DumpFailed
from apps.system.models import Backup
from controlplane import environment
from controlplane.admin import environment_file
from controlplane.admin.environment_file import CannotRead
from controlplane.admin.refusal import Refused, secret_line

CLOUDS = "clouds"


def backup(options: Namespace) -> int:
    """Exit code 0 with a file that is whole."""
    try:
        make(options.to, options, with_request_logs=options.with_request_logs).save()
    except db.Error as error:
        raise Refused(f"The backup is whole, and could not be noted: {type(error).__name__}.") from None
    return 0


def make(path: Path, options: Namespace, *, with_request_logs: bool) -> Backup:
    """The file, and the row to be saved once the tables are of this version. Raises Refused; then there is no file."""
    if with_request_logs and contents.lines_folder() is None:
        raise Refused("Request lines lie in a bucket: copy it by its own means. Leave --with-request-logs out.")
    passphrase = secret_line(options.passphrase_file, "Passphrase of the backup", new=True)
    try:
        made = contents.make(
            path, passphrase, given(options.environment), _pki(options), with_request_logs=with_request_logs
        )
    except (DumpFailed, FileExistsError) as error:
        raise Refused(str(error)) from None
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror}.") from None
    except db.Error as error:
        raise Refused(f"The database does not answer: {type(error).__name__}.") from None
    print(f"{path}: {made.bytes / 1e6:.1f} MB in {made.seconds:.1f} s. Without its passphrase nobody opens it.")
    return made


def given(path: Path) -> dict[str, dict[str, str]]:
    """The settings by file; those of this process where there is no file."""
    beside = path.with_name(CLOUDS)
    try:
        found = {"environment": environment_file.read(path)} if path.exists() else {"environment": _of_process()}
        return found | ({CLOUDS: environment_file.read(beside)} if beside.exists() else {})
    except CannotRead as error:
        raise Refused(str(error)) from None


def _of_process() -> dict[str, str]:
    names = [name for name in os.environ if name in environment.KNOWN or name.startswith("SPILLWAY_")]
    return {name: os.environ[name] for name in sorted(names)}


def _pki(options: Namespace) -> Path | None:
    named: Path | None = getattr(options, "pki", None)
    if named is not None:
        return named
    return Path(settings.AGENT_CA_FILE).parent if settings.AGENT_CA_FILE else None

"""The subcommands by name; each is given its flags and returns its exit code."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import django
from django.core.exceptions import ImproperlyConfigured

from controlplane.admin import environment_file, findings, initial, shown
from controlplane.admin.refusal import Refused


def start(options: Namespace) -> None:
    """Read the settings as the console's processes do. Raises Refused."""
    environment_file.load(*filter(Path.exists, [options.environment]), *environment_file.PACKAGED)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    os.environ.setdefault("SPILLWAY_LOG_LEVEL", "ERROR")
    try:
        django.setup()
    except ImproperlyConfigured as error:
        raise Refused(f"{error}\nThe settings are read from {options.environment}.") from None


def init(options: Namespace) -> int:
    """Write the settings first, as everything else needs them."""
    made = initial.write_settings(options)
    start(options)
    return initial.found(options, made)


def check(options: Namespace) -> int:
    """0 unless something fails."""
    try:
        start(options)
    except Refused as error:
        wrong = [findings.Finding("Settings", "failed", line, "") for line in str(error).splitlines()]
        return shown.show(wrong, as_json=options.json)
    found = findings.of_settings() if options.settings else findings.all_of_them()
    return shown.show(found, as_json=options.json)


def upgrade(options: Namespace) -> int:
    """Backup, tables, files of pages."""
    start(options)
    from controlplane.admin import upgrading

    return upgrading.upgrade(options)


def backup(options: Namespace) -> int:
    """One file."""
    start(options)
    from controlplane.admin import saving

    return saving.backup(options)


def restore(options: Namespace) -> int:
    """Without settings: they are in the backup."""
    from controlplane.admin import recovery

    return recovery.restore(options, start)


def rotate_keys(options: Namespace) -> int:
    """As manage.py does."""
    start(options)
    return call("rotate_keys")


def support_bundle(options: Namespace) -> int:
    """One file without secrets."""
    start(options)
    from apps.system.support import bundle
    from controlplane.admin.findings import all_of_them, settings_shown

    if options.to.exists():
        raise Refused(f"{options.to} exists and is kept. Name another file with --to.")
    checks = [each.document() for each in all_of_them()]
    bundle.write(options.to, settings_shown(), checks, environment_file.secrets_of(options.environment))
    print(f"{options.to} written. Read it before you send it; `tar tzf` lists what is in it.")
    return 0


def call(*words: str, **options: Any) -> int:
    """A command of manage.py; what it refuses is refused here. Raises Refused."""
    from django.core.management import CommandError, call_command

    try:
        call_command(*words, **options)
    except CommandError as error:
        raise Refused(str(error)) from None
    return 0


def collect_pages() -> None:
    """The files that pages need; a package or an image brings them beside the program, where nobody writes."""
    from django.conf import settings

    if Path(settings.STATIC_ROOT) != settings.BASE_DIR / "static":
        call("collectstatic", interactive=False, verbosity=0)


COMMANDS: dict[str, Callable[[Namespace], int]] = {
    "init": init,
    "check": check,
    "upgrade": upgrade,
    "backup": backup,
    "restore": restore,
    "rotate-keys": rotate_keys,
    "support-bundle": support_bundle,
}

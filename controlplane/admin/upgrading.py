"""From an earlier version to this one: backup, tables, files of pages; and what is to be restarted."""

from __future__ import annotations

from argparse import Namespace

from django.db import connection

from apps.observe import schema
from apps.system.models import Backup
from controlplane.admin import saving, shown
from controlplane.admin.commands import call, collect_pages
from controlplane.admin.findings import OF_PROCESSES, Finding, all_of_them
from controlplane.admin.refusal import Refused, agrees

EXPECTED = OF_PROCESSES | {"Tables"}


def upgrade(options: Namespace) -> int:
    """Raises Refused before anything is changed where the database is of younger code or does not answer."""
    verdict = schema.verdict(connection)
    if verdict.newer:
        raise Refused(f"{verdict.newer} Nothing was changed: run the newer version, or restore an older backup.")
    _no_failures(all_of_them())
    saved = _save(options)
    call("migrate", verbosity=1)
    if saved:
        saved.save()
    collect_pages()
    after = schema.verdict(connection)
    if after.problem:
        raise Refused(f"{after.problem} {after.remedy}")
    print(
        "The database and the files of pages are of this version. Restart every process, one console after the other:"
    )
    print("    systemctl restart spillway.target")
    return 0


def _no_failures(found: list[Finding]) -> None:
    """What the upgrade itself mends, or what it needs nobody for, does not stop it."""
    failed = [each for each in found if each.state == "failed" and each.name not in EXPECTED]
    if failed:
        shown.show(failed, as_json=False)
        raise Refused("Nothing was changed: mend this first.")


def _save(options: Namespace) -> Backup | None:
    """The backup, to be noted once there is certainly a table for it."""
    if options.backup is not None:
        return saving.make(options.backup, options, with_request_logs=False)
    if not options.no_backup and not agrees("There is no way back but a backup. Go on without one?"):
        raise Refused("Nothing was changed. Name a file with --backup, or say --no-backup.")
    return None

"""`manage.py rotate_keys` seals everything with SPILLWAY_SECRET_KEY that a fallback still opens."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.core.secrets.sealed_columns import Progress, seal_anew


class Command(BaseCommand):
    """Exit code 0: nothing needs a fallback any more. 1: some rows open with no key that is known here."""

    help = "Seal secrets at rest again with the newest key, in batches; safe to stop and restart at any time."

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002 - Django's signature
        """Say how far it is after each batch, and the sum."""
        columns: dict[str, Progress] = {}
        for progress in seal_anew():
            columns[progress.column] = progress
            self.stdout.write(
                f"{progress.column}: {progress.looked_at} of {progress.rows}, {progress.sealed} sealed again"
            )
        sealed = sum(each.sealed for each in columns.values())
        if lost := [f"{each.lost} of {each.column}" for each in columns.values() if each.lost]:
            raise CommandError(
                f"{sealed} sealed again. No key opens {', '.join(lost)}: "
                "name the key that they were sealed with in SPILLWAY_SECRET_KEY_FALLBACKS and run this again."
            )
        self.stdout.write(f"{sealed} sealed again. Nothing here needs a fallback anymore.")

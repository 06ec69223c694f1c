"""Prints docs/reference/metrics.md."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from apps.observe.reference import page


class Command(BaseCommand):
    """`manage.py describe_metrics > docs/reference/metrics.md`"""

    help = "Print the page of reference about metrics."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Everything that `/metrics` may say, with labels and meaning."""
        self.stdout.write(page(), ending="")

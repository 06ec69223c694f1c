"""Applies a YAML or JSON document as the platform itself, or prints what that would change."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.accounts.actors import platform_actor
from apps.cli.plans import errors_told, lines
from apps.core.errors import Malformed
from apps.core.secrets import keys
from apps.definitions.reading.texts import read_json, read_yaml
from apps.definitions.services import apply_document, confirming, managing, plan_document


class Command(BaseCommand):
    """`manage.py apply FILE`: the same as `PUT /api/v1/apply` with the operator's token."""

    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="YAML, or JSON if its name ends in .json; - reads YAML from standard input")
        parser.add_argument("--dry-run", action="store_true")
        parser.add_argument("--prune", action="store_true")
        parser.add_argument("--manager", default="")
        parser.add_argument("--reason", default="")
        parser.add_argument(
            "--confirm", action="append", default=[], help="object that this may empty, as named in the rejection"
        )
        parser.add_argument("--take-over", action="append", default=[], help="a limit to set even though a run set it")
        parser.add_argument("--break-glass", action="store_true", help="change what a pipeline manages")

    def handle(self, *_args: Any, **options: Any) -> None:
        text = sys.stdin.buffer.read() if options["file"] == "-" else Path(options["file"]).read_bytes()
        try:
            # YAML reads some numbers of JSON (1e-9) as text, so a file that says that it is JSON is read as JSON.
            document = read_json(text) if options["file"].endswith(".json") else read_yaml(text)
        except Malformed as error:
            raise CommandError(error.detail) from error
        objects = document.get("objects") if isinstance(document, dict) else None
        shared = {"prune": options["prune"], "manager": options["manager"]}
        with (
            errors_told(),
            confirming(options["confirm"]),
            managing(break_glass=options["break_glass"], take_over=options["take_over"]),
        ):
            keys.must_fit()
            if options["dry_run"]:
                plan = plan_document(actor=platform_actor(), objects=objects, **shared)
            else:
                plan = apply_document(actor=platform_actor(), objects=objects, reason=options["reason"], **shared)
        for line in lines(plan):
            self.stdout.write(line)

"""Writes a load balancer so that it leaves: as a plain haproxy.cfg, or in another format that runs without Spillway."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.accounts.actors import platform_actor
from apps.core.errors import SpillwayError
from apps.definitions.selectors import load_balancers
from apps.exporting.contract import NotExportable
from apps.exporting.folders import write_folder
from apps.exporting.services import FORMATS, export


class Command(BaseCommand):
    """Exit code 0: the folder holds all files. 1: there is no such load balancer, or the folder is there already."""

    help = "Write a load balancer as files that go on without Spillway; private keys are readable."

    def add_arguments(self, parser: CommandParser) -> None:
        """The load balancer, the format, the fleet whose servers it gets, and the new folder."""
        parser.add_argument("load_balancer", help="name of the load balancer")
        parser.add_argument("--format", choices=list(FORMATS), default="haproxy", help="default: haproxy")
        parser.add_argument("--fleet", default="", help="fleet that runs it; default: its only one")
        parser.add_argument("--stack", default="", help="stack that it is in (terraform); default: its only one")
        parser.add_argument("--to", required=True, metavar="FOLDER", help="a new folder")

    def handle(self, *_: Any, load_balancer: str, fleet: str, to: str, **options: Any) -> None:
        """Write the files; those with keys can be read by their owner alone."""
        actor = platform_actor()
        balancer = load_balancers(actor).filter(name=load_balancer).first()
        if balancer is None:
            sentence = f"Name the fleet of {load_balancer} with --fleet; there are none, as it is no load balancer."
            raise CommandError(sentence)
        within = options["stack"] if options["format"] == "terraform" else fleet
        try:
            found = export(actor, balancer, options["format"], within=within, with_keys=True)
            write_folder(found, Path(to))
        except NotExportable as error:
            raise CommandError(str(error)) from error
        except SpillwayError as error:
            raise CommandError(error.detail) from error
        except OSError as error:
            raise CommandError(f"Name a new folder: {error}") from error
        for each in found.not_said:
            self.stderr.write(f"not said: {each}")
        check = ": haproxy -c -f haproxy.cfg" if options["format"] == "haproxy" else ", beginning with README.md."
        self.stdout.write(f"Wrote {len(found.files)} files. Check them in {to}{check}")

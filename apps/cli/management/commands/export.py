"""`manage.py export` writes a load balancer as a plain haproxy.cfg with its files, which runs without Spillway."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.compiler.bundle import FOR_NODES_ALONE
from apps.compiler.compile import CompileError
from apps.compiler.portability.standalone import NotAlone, standalone
from apps.definitions.freezing.snapshot import snapshot_of
from apps.fleet.models import Fleet


class Command(BaseCommand):
    """Exit code 0: the folder holds all files. 1: there is no such load balancer, or the folder is there already."""

    help = "Write a load balancer as a plain haproxy.cfg with its maps and certificates; private keys are readable."

    def add_arguments(self, parser: CommandParser) -> None:
        """The load balancer, the fleet whose servers it gets, and the new folder."""
        parser.add_argument("load_balancer", help="name of the load balancer")
        parser.add_argument("--fleet", default="", help="fleet that runs it; default: its only one")
        parser.add_argument("--to", required=True, metavar="FOLDER", help="a new folder")

    def handle(self, *_: Any, load_balancer: str, fleet: str, to: str, **__: Any) -> None:
        """Compile it alone and write the files; those with keys can be read by their owner alone."""
        rows = Fleet.objects.select_related("region").filter(load_balancers__name=load_balancer)
        chosen = [row for row in rows.order_by("name") if fleet in ("", row.name)]
        if len(chosen) != 1:
            known = ", ".join(row.name for row in rows) or "none"
            raise CommandError(f"Name the fleet of {load_balancer} with --fleet; there are {known}.")
        snapshot = snapshot_of(chosen[0])
        ids = [each.id for each in snapshot.load_balancers if each.label.rpartition("/")[2] == load_balancer]
        try:
            compilation = standalone(snapshot, ids[0] if ids else "")
        except (CompileError, NotAlone) as error:
            raise CommandError(str(error)) from error
        for finding in compilation.left_out:
            self.stderr.write(f"left out: {finding.label}: {finding.message}")
        folder = Path(to)
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise CommandError(f"Name a new folder: {error}") from error
        for path, content in compilation.output.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch(mode=0o600 if path.startswith(FOR_NODES_ALONE) else 0o644)
            file.write_bytes(content)
        self.stdout.write(f"Wrote {len(compilation.output)} files. Check them in {to}: haproxy -c -f haproxy.cfg")

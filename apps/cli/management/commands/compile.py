"""`manage.py compile <fleet>` says what its nodes would run, and changes nothing."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.compiler.bundle import FOR_NODES_ALONE, Bundle, for_people
from apps.compiler.compile import Compilation, CompileError, compile_snapshot
from apps.definitions.freezing.snapshot import snapshot_of
from apps.fleet.models import Fleet


class Command(BaseCommand):
    """Exit code 0: it compiles. 1: there is no such fleet or file, or nothing can be compiled."""

    help = "Compile the definitions of a fleet as they are now; print what was left out, the files, or one of them."

    def add_arguments(self, parser: CommandParser) -> None:
        """The fleet, and the file to print instead of the list."""
        parser.add_argument("fleet", help="name of the fleet")
        parser.add_argument(
            "--show", nargs="?", const="haproxy.cfg", default="", metavar="FILE", help="print this file"
        )

    def handle(self, *_: Any, fleet: str, show: str, **__: Any) -> None:
        """Compile; what was left out goes to standard error, so that a file can be piped."""
        row = Fleet.objects.select_related("region").filter(name=fleet).first()
        if row is None:
            known = ", ".join(Fleet.objects.values_list("name", flat=True)) or "none"
            raise CommandError(f"There is no fleet {fleet}; the fleets are {known}.")
        try:
            compilation = compile_snapshot(snapshot_of(row))
        except CompileError as error:
            raise CommandError(str(error)) from error
        for finding in compilation.left_out:
            self.stderr.write(f"left out: {finding.label}: {finding.message}")
        self.stdout.write(_file(compilation.output, show) if show else _summary(compilation))


def _summary(compilation: Compilation[Bundle]) -> str:
    files = [f"{len(content):>9}  {path}" for path, content in sorted(compilation.output.files.items())]
    return "\n".join(["    bytes  file", *files, f"digest {compilation.output.digest}"])


def _file(bundle: Bundle, path: str) -> str:
    """Raises CommandError for a file that is not there or not for people."""
    if path.startswith(FOR_NODES_ALONE):
        raise CommandError(f"Only nodes may read {path}.")
    if path not in bundle.files:
        raise CommandError(f"The bundle has no file {path}; run without --show to list its files.")
    return for_people(bundle.files[path])

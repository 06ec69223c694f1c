# ruff: noqa: N999 - the command is called so
"""`manage.py import FILE` reports what became of each line, and with --apply stores the result as one change."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.accounts.actors import platform_actor
from apps.cli.plans import errors_told, lines
from apps.cli.replaying import replayed, told
from apps.core.errors import SpillwayError
from apps.core.secrets import keys
from apps.definitions.services import apply_document, plan_document
from apps.fleet.models import Fleet
from apps.importing.contract import Import
from apps.importing.folders import TooMuch, texts_below
from apps.importing.formats import (
    FORMATS,
    Format,
    configuration_of,
    divided,
    files_in_words,
    not_recognised,
    recognised,
)
from apps.importing.npm.database import MAGIC, dump_of
from apps.importing.options import ImportOptions
from apps.importing.replay.access_logs import Logged, logged
from apps.importing.replay.contract import NotReplayable
from apps.importing.telling import as_data, report

PAIRS = (
    ("--map-servers", "servers", "OLD=NEW", "where a server is now, such as 127.0.0.1:8080=app-1:8080"),
    ("--certificate", "certificates", "FILE=NAME", "the certificate of Spillway that stands for a file"),
    ("--address", "addresses", "ADDRESS=STATIC_IP", "the static IP that stands for an address of bind"),
    ("--password", "passwords", "USER=PASSWORD", "the password of a user of whom the file has a hash"),
    ("--env", "environment", "NAME=VALUE", "a variable of the file"),
)

# Of a folder that holds other things as well.
MANIFESTS = (".yaml", ".yml", ".json")


class Command(BaseCommand):
    """Exit code 0: it was read, and stored if --apply says so. 1: it cannot be read or stored; nothing was."""

    help = (
        "Read the configuration of a load balancer, report what became of each line, and store the result with --apply."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """The file, names of ours, and answers to open questions."""
        several = ", ".join(each.file for each in FORMATS.values() if each.is_several)
        files = f"{files_in_words()}; several files or a folder of {several}"
        parser.add_argument("file", nargs="+", help=files)
        parser.add_argument("--format", choices=list(FORMATS), help="default: what the file looks like")
        parser.add_argument(
            "--files",
            action="append",
            default=[],
            help="a file or folder with maps, certificates, lists and error pages; default: the folder of the file",
        )
        parser.add_argument("--account", default="", help="account that owns routes and pools; default: the operator")
        parser.add_argument("--fleet", action="append", default=[], help="fleet that runs the load balancers")
        parser.add_argument("--region", default="", help="region of the servers; default: that of the fleet")
        parser.add_argument("--prefix", default="", help="put before every name, such as shop-")
        for option, name, shown, text in PAIRS:
            parser.add_argument(
                option, dest=name, action="append", default=[], metavar=shown, help=f"{text}; repeat for more"
            )
        parser.add_argument("--every-line", action="store_true", help="also report lines that were simply mapped")
        parser.add_argument("--json", action="store_true", help="print objects and report as JSON, and store nothing")
        parser.add_argument(
            "--replay",
            action="store_true",
            help="run the old configuration and the result side by side with stub servers, and compare",
        )
        parser.add_argument(
            "--access-log",
            metavar="FILE",
            help="with --replay: ask the requests of this log of nginx, Apache, Caddy or HAProxy as well",
        )
        parser.add_argument("--apply", action="store_true", help="store the result as one change")
        parser.add_argument("--reason", default="")

    def handle(self, *_: Any, **options: Any) -> None:
        """Read, report, and apply or say what applying would do."""
        path = Path(options["file"][0])
        text, files, form = _given(options)
        if options["replay"] and form.name == "kubernetes":
            raise CommandError("Manifests cannot be replayed: that would need their cluster.")
        log = _logged(options)
        found = form.read(text, files, _options(options))
        if options["json"]:
            self.stdout.write(json.dumps(as_data(found, form.everywhere), indent=2))
            return
        for line in report(found, form.everywhere, every_line=options["every_line"]):
            self.stdout.write(line)
        if options["replay"]:
            self._replay(form, text, files, _options(options), log)
        if found.needs and options["apply"]:
            raise CommandError("Nothing was stored: answer the questions above first.")
        if not found.documents:
            raise CommandError("Nothing of this file can be stored.")
        if not found.needs:
            self._store(found, apply=options["apply"], reason=options["reason"] or f"Import of {path.name}")

    def _replay(
        self, form: Format, text: str, files: Mapping[str, str], options: ImportOptions, log: Sequence[Logged]
    ) -> None:
        """Raises CommandError for a request that is answered otherwise than the report says."""
        try:
            keys.must_fit()
            result = replayed(platform_actor(), text, files, options, form.name, log)
        except NotReplayable as error:
            raise CommandError(f"This file cannot be replayed. {error}") from error
        except SpillwayError as error:
            raise CommandError(f"This file cannot be replayed before it can be stored. {error.detail}") from error
        for line in told(result):
            self.stdout.write(line)
        if result.unexplained:
            raise CommandError("Nothing was stored: some requests are answered otherwise than the report says.")

    def _store(self, found: Import, *, apply: bool, reason: str) -> None:
        """The way of every document: checked, written in one transaction, audited."""
        objects = list(found.documents)
        with errors_told(partial(_named, objects)):
            keys.must_fit()
            if apply:
                plan = apply_document(actor=platform_actor(), objects=objects, reason=reason)
            else:
                plan = plan_document(actor=platform_actor(), objects=objects)
        for line in lines(plan):
            self.stdout.write(line)


def _given(options: Mapping[str, Any]) -> tuple[str, dict[str, str], Format]:
    """The text, the files beside it, and the format. Raises CommandError."""
    paths = [Path(each) for each in options["file"]]
    try:
        if len(paths) == 1 and not paths[0].is_dir():
            text = _text(paths[0])
            form = _format(paths[0], text, options["format"])
            # A neighbour is part of it only where it is named.
            beside = [] if form.is_several else [paths[0].parent]
            files = texts_below([Path(each) for each in options["files"]] or beside)
            if form.is_several and files:
                return *divided(form, options["file"][0], {options["file"][0]: text, **files}), form
            return text, files, form
        return _several(paths, options)
    except (OSError, TooMuch) as error:
        raise CommandError(f"{error}") from error


def _logged(options: Mapping[str, Any]) -> list[Logged]:
    """The requests of the access log, if one is named. Raises CommandError for a file without any."""
    if not options["access_log"]:
        return []
    if not options["replay"]:
        raise CommandError("--access-log belongs to --replay: its requests are asked there.")
    try:
        with Path(options["access_log"]).open(errors="replace") as lines:
            found = logged(lines)
    except OSError as error:
        raise CommandError(f"{error}") from error
    if not found:
        raise CommandError(f'{options["access_log"]} has no request that is understood, such as "GET / HTTP/1.1".')
    return found


def _text(path: Path) -> str:
    """What the file says; of an SQLite file what it would dump. Raises OSError, CommandError."""
    content = path.read_bytes()
    if not content.startswith(MAGIC):
        return content.decode(errors="surrogateescape")
    try:
        return dump_of(path)
    except sqlite3.Error as error:
        raise CommandError(f"{path} cannot be read as an SQLite database: {error}.") from error


def _several(paths: list[Path], options: Mapping[str, Any]) -> tuple[str, dict[str, str], Format]:
    """Files of a format that is read from several, or of a folder. Raises CommandError, OSError, TooMuch."""
    if missing := next((path for path in paths if not path.exists()), None):
        raise CommandError(f"There is no file {missing}.")
    asked = FORMATS[options["format"]] if options["format"] else None
    files = texts_below([*paths, *map(Path, options["files"])], endings=MANIFESTS)
    if not files:
        raise CommandError(f"No file of {', '.join(map(str, paths))} ends in {', '.join(MANIFESTS)}.")
    first = configuration_of(files, asked)
    form = asked or recognised(first, files.get(first, ""))
    if form is None or not form.is_several:
        raise CommandError("Name one file; those that it names are looked for in its folder, or in --files.")
    return *divided(form, first, files), form


def _format(path: Path, text: str, asked: str | None) -> Format:
    """Raises CommandError where nobody knows."""
    found = FORMATS[asked] if asked else recognised(path.name, text)
    if found is None:
        raise CommandError(f"{not_recognised(path.name)} Use --format.")
    return found


def _named(objects: list[dict[str, Any]], pointer: str) -> str:
    """`/objects/3/spec/path` as the object and the field of it."""
    parts = pointer.split("/")
    if len(parts) > 2 and parts[1] == "objects" and parts[2].isdigit() and int(parts[2]) < len(objects):
        found = objects[int(parts[2])]
        return f"{found['kind']} {found['name']} /{'/'.join(parts[3:])}"
    return pointer


def _options(options: Mapping[str, Any]) -> ImportOptions:
    """What was said. Raises CommandError for a fleet that is not there."""
    fleets = list(Fleet.objects.select_related("region").order_by("name"))
    named = options["fleet"] or [fleet.name for fleet in fleets[:1] if len(fleets) == 1]
    chosen = [fleet for fleet in fleets if fleet.name in named]
    if not named or len(chosen) < len(set(named)):
        known = ", ".join(fleet.name for fleet in fleets) or "none"
        raise CommandError(f"Name the fleet that runs the load balancers with --fleet; there are {known}.")
    return ImportOptions(
        account=options["account"],
        fleets=tuple(fleet.name for fleet in chosen),
        region=options["region"] or chosen[0].region.name,
        prefix=options["prefix"],
        local_development=all(fleet.local_development for fleet in chosen),
        **{name: _pairs(options[name], shown) for _, name, shown, _ in PAIRS},
    )


def _pairs(given: list[str], shown: str) -> dict[str, str]:
    """`OLD=NEW`. Raises CommandError."""
    found = {}
    for text in given:
        old, mark, new = text.partition("=")
        if not mark or not old:
            raise CommandError(f"Write {shown}, not {text!r}.")
        found[old] = new
    return found

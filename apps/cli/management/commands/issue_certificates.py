"""Writes an authority and certificates for agents and for the control plane."""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.fleet import pki

CLIENT = "control-plane"
NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")


class Command(BaseCommand):
    """`issue_certificates --out DIR --name us-1 --name eu-1`."""

    help = "Write ca.pem, control-plane.pem and a certificate for each agent; keep an existing authority."

    def add_arguments(self, parser: CommandParser) -> None:
        """Where to, for whom, for how long."""
        parser.add_argument("--out", type=Path, required=True, help="private directory for the PEM files")
        parser.add_argument("--name", nargs="+", action="extend", default=[], help="names of nodes")
        parser.add_argument("--days", type=int, default=365, help="how long the certificates are valid")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Write what is not there yet; never overwrite a key."""
        out: Path = options["out"]
        for name in options["name"]:
            if not NAME.fullmatch(name) or name in ("ca", CLIENT):
                raise CommandError(f"{name!r} is not a node's name: use lowercase letters, digits, dots and dashes.")
        out.mkdir(parents=True, exist_ok=True, mode=0o700)
        now = dt.datetime.now(dt.UTC)
        names = (CLIENT, *options["name"])
        if _is_half(out) and _all_there(out, names):
            self.stdout.write("Everything exists and is kept")
            return
        if _is_half(out):
            raise CommandError(
                f"Nothing was written: {out} has only one of ca.pem and ca.key. Bring the other one back for now, "
                "or make a new authority in an empty folder."
            )
        authority = self._keep_or_write(out, "ca", partial(pki.make_authority, now))
        for name in names:
            issue = partial(pki.issue, authority, name, client=name == CLIENT, now=now, days=options["days"])
            self._keep_or_write(out, name, issue)

    def _keep_or_write(self, out: Path, name: str, make: Callable[[], pki.Pair]) -> pki.Pair:
        certificate, key = _files(out, name)
        if _all_there(out, [name]):
            self.stdout.write(f"{certificate} exists and is kept")
            return pki.Pair(certificate.read_bytes(), key.read_bytes())
        pair = make()
        for path, content in ((certificate, pair.certificate), (key, pair.key)):
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
                stream.write(content)
        self.stdout.write(f"{certificate} written")
        return pair


def _files(out: Path, name: str) -> tuple[Path, Path]:
    """Certificate and key."""
    return out / f"{name}.pem", out / f"{name}.key"


def _all_there(out: Path, names: Iterable[str]) -> bool:
    return all(path.exists() for name in names for path in _files(out, name))


def _is_half(out: Path) -> bool:
    """Whether the key of the authority is kept elsewhere, as it should be; a new one would be believed by nobody."""
    certificate, key = _files(out, "ca")
    return certificate.exists() != key.exists()

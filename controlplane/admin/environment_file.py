"""The file of the settings, as systemd reads it: one NAME=VALUE a line, quotes optional, `#` begins a comment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from apps.core.stores.hosts import split
from controlplane import environment

# Names of any shell; what else a process was given may be a secret of something.
HARMLESS = ("PATH", "HOME", "PWD", "LANG", "LC_", "USER", "SHELL", "TERM")
DEFAULT = Path("/etc/spillway/environment")
# What a package lays down beside the program: where it is installed by one, its units read this file first.
PACKAGED = tuple(filter(Path.exists, [Path(__file__).resolve().parents[2] / "packaged.env"]))
_LINE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)")


class CannotRead(Exception):
    """A sentence with the file and the line."""


def read(path: Path) -> dict[str, str]:
    """All of its variables. Raises CannotRead."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CannotRead(f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is no text'}.") from None
    found = {}
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text[0] in "#;":
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            raise CannotRead(f"{path}, line {number}: write NAME=VALUE.")
        found[match[1]] = _unquoted(match[2].strip())
    return found


def load(*paths: Path) -> None:
    """Take their variables into this process; what is set already goes first. Raises CannotRead."""
    for path in paths:
        for name, value in read(path).items():
            os.environ.setdefault(name, value)


def secrets_of(path: Path) -> list[str]:
    """Every value in which a secret stands or may stand: of the file, of what lies beside it, of this process."""
    found = []
    for each in (path, path.with_name("clouds")):
        if each.exists():
            found += [value for name, value in read(each).items() if _is_secret(name)]
    found += [value for name, value in os.environ.items() if _is_secret(name)]
    return [part for value in found for part in (value, *_passwords(value))]


def _is_secret(name: str) -> bool:
    known = environment.KNOWN.get(name)
    return known.secret if known else not name.startswith(HARMLESS)


def _passwords(value: str) -> list[str]:
    """What stands inside of a value: the password of a URL, entries of a list, numbered peppers."""
    try:
        password = split(value).password
    except ValueError:
        password = None
    entries = [entry.partition(":")[2] or entry for entry in value.split(",")] if "://" not in value else []
    return [*filter(None, [password, unquote(password or "")]), *entries]


def write_new(path: Path, values: Mapping[str, str], head: str) -> None:
    """Write it for its owner alone. Raises FileExistsError: what is there is never overwritten."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    lines = [
        *(f"# {line}" for line in head.splitlines()),
        *(f"{name}={_quoted(each)}" for name, each in values.items()),
    ]
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write("\n".join(lines) + "\n")


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        inner = value[1:-1]
        return re.sub(r"\\(.)", r"\1", inner) if value[0] == '"' else inner
    return value


def _quoted(value: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_.,:;/@%+=~&?*\[\]<>()!|^-]*", value):
        return value
    return '"' + re.sub(r'(["\\$`])', r"\\\1", value) + '"'

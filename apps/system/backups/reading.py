"""A backup read to its end without touching anything; it needs no settings, since they are in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apps.system.backups.sealed_file import Reader, Unreadable

MANIFEST, SETTINGS, DATABASE, LIST = "manifest.json", "settings.json", "database", "list.json"
KEYS, LINES = "pki/", "request-logs/"
SMALL = 4 << 20


@dataclass(slots=True)
class Found:
    """A backup that was read to its end: its manifest, its settings by file, its keys by name, all members by size."""

    manifest: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, dict[str, str]] = field(default_factory=dict)
    keys: dict[str, bytes] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)


def read(path: Path, passphrase: str) -> Found:
    """Read it to its end without touching anything. Raises Unreadable, OSError."""
    found, listed = Found(), {}
    for name, content in members(path, passphrase):
        if name == MANIFEST:
            found.manifest = _json(content)
        elif name == SETTINGS:
            found.settings = _json(content)
        elif name == LIST:
            listed = _json(content)
            continue
        elif name.startswith(KEYS):
            found.keys[plain(name.removeprefix(KEYS))] = _whole(content)
        found.sizes[name] = sum(map(len, content)) if name not in found.sizes else 0
    if {MANIFEST, SETTINGS, DATABASE} - set(found.sizes) or set(listed) != set(found.sizes):
        raise Unreadable("The backup lacks some of what its list names.")
    return found


def members(path: Path, passphrase: str) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Each of them by name, in order. Raises Unreadable, OSError."""
    with path.open("rb") as stream:
        yield from Reader(stream, passphrase).members()


def _json(content: Iterable[bytes]) -> dict[str, Any]:
    found = json.loads(_whole(content))
    if not isinstance(found, dict):
        raise Unreadable("The file was changed.")
    return found


def _whole(content: Iterable[bytes]) -> bytes:
    found = bytearray()
    for piece in content:
        found += piece
        if len(found) > SMALL:
            raise Unreadable("A small part of the backup is not small.")
    return bytes(found)


def plain(name: str) -> str:
    """One name of a file, which leads nowhere else."""
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        raise Unreadable("The backup names files outside of its folders.")
    return name

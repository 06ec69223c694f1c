"""The audit log as files: CSV and JSON lines, a line at a time, safe to open in a spreadsheet or a terminal."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from apps.audit.models import Entry

COLUMNS = (
    *("position", "at", "account", "actor", "token", "action", "kind", "object_id", "object", "version", "reason"),
    *("before", "after", "request_id", "commit", "pipeline_url", "digest"),
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
# Unassigned and private characters are harmless; these steer terminals, hide text or turn its direction.
_STEERING = ("Cc", "Cf", "Cs", "Zl", "Zp")


def fields_of(entry: Entry) -> dict[str, Any]:
    """An entry as machines read it: every column by its public name; times in ISO 8601, UTC."""
    return {
        "position": entry.position,
        "at": entry.at.isoformat(),
        "account": entry.account.name,
        "actor": entry.actor,
        "token": entry.token,
        "action": entry.action,
        "kind": entry.object_kind,
        "object_id": entry.object_id,
        "object": entry.object_label,
        "version": entry.version,
        "reason": entry.reason,
        "before": entry.before,
        "after": entry.after,
        "request_id": entry.request_id,
        "commit": entry.commit,
        "pipeline_url": entry.pipeline_url,
        "digest": entry.digest,
    }


def csv_lines(entries: Iterable[Entry]) -> Iterator[str]:
    """A header and a line per entry, CR LF at the end, as RFC 4180 has it."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(COLUMNS)
    for entry in entries:
        yield _taken(buffer)
        writer.writerow([cell(value) for value in fields_of(entry).values()])
    yield _taken(buffer)


def json_lines(entries: Iterable[Entry]) -> Iterator[str]:
    """One object per line; JSON escapes control characters itself, and everything outside ASCII is escaped too."""
    for entry in entries:
        yield json.dumps(fields_of(entry)) + "\n"


def cell(value: object) -> str:
    """The text of a cell: no spreadsheet takes it for a formula, no terminal obeys it; JSON for what is structured."""
    if value is None:
        return ""
    if isinstance(value, int):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    leading = "'" if text.startswith(_FORMULA) else ""
    return leading + visible(text)


def visible(text: str) -> str:
    """The text with every character that steers a terminal or hides something written out: `\\x1b`, `\\u202e`."""
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if unicodedata.category(character) not in _STEERING:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _taken(buffer: io.StringIO) -> str:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text

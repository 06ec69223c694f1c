"""A unified difference as lines of kind and text, as `components/diff.html` draws them."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, field
from typing import Any

SHOWN_LINES = 2_000
CONTEXT_LINES = 3


@dataclass(slots=True)
class FileDifference:
    """The lines of one file that differ, with their surroundings."""

    name: str
    lines: list[tuple[str, str]] = field(default_factory=list)


def files_of(unified: str) -> list[FileDifference]:
    """Split a unified difference by file; after `SHOWN_LINES` lines a last line says how many are left out."""
    found: list[FileDifference] = []
    lines = unified.splitlines()
    for line in lines[:SHOWN_LINES]:
        if line.startswith("--- "):
            continue
        if line.startswith("+++ "):
            found.append(FileDifference(line[4:].split("\t")[0].removeprefix("wanted/")))
        elif found:
            found[-1].lines.append(_kind(line))
    if found and len(lines) > SHOWN_LINES:
        found[-1].lines.append(("hunk", f"… {len(lines) - SHOWN_LINES} more lines"))
    return found


def of_json(before: Any, after: Any) -> list[tuple[str, str]]:
    """Both as sorted JSON, compared line by line; None is nothing at all."""
    found = list(difflib.unified_diff(_lines(before), _lines(after), n=CONTEXT_LINES, lineterm=""))[2:]
    shown = [_kind(line) for line in found]
    return shown[1:] if sum(kind == "hunk" for kind, _ in shown) == 1 else shown


def as_text(body: Any) -> str:
    """JSON as people read it."""
    return json.dumps(body, indent=2, sort_keys=True, ensure_ascii=False)


def _lines(body: Any) -> list[str]:
    return [] if body is None else as_text(body).splitlines()


def _kind(line: str) -> tuple[str, str]:
    kinds = {"+": "add", "-": "del", "@": "hunk"}
    kind = kinds.get(line[:1], "same")
    return kind, line if kind == "hunk" else line[1:]

"""SHOW: a unified difference as lines of kind and text, as `components/diff.html` draws them."""

from __future__ import annotations

from dataclasses import dataclass, field

SHOWN_LINES = 2_000


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


def _kind(line: str) -> tuple[str, str]:
    kinds = {"+": "add", "-": "del", "@": "hunk"}
    kind = kinds.get(line[:1], "same")
    return kind, line if kind == "hunk" else line[1:]

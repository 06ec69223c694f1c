"""The difference between two bundles as text: file by file, certificates named only, secrets never shown."""

from __future__ import annotations

import difflib

from apps.compiler.bundle import FOR_NODES_ALONE, MANIFEST, Bundle, for_people

_MAX_LINES = 2000


def diff_bundles(before: Bundle, after: Bundle, context: int = 2) -> str:
    """A unified difference of the text files; certificates are named, never shown; long ones are cut with a count.

    `context` is how many lines stand around each change: 0 where the reader may not see what others have there.
    """
    lines: list[str] = []
    for path in sorted((before.files.keys() | after.files.keys()) - {MANIFEST}):
        old, new = before.files.get(path, b""), after.files.get(path, b"")
        if old == new:
            continue
        hidden = path.startswith(FOR_NODES_ALONE)
        lines += [f"{path}: changed (not shown)"] if hidden else _unified(path, old, new, context)
    if len(lines) > _MAX_LINES:
        lines = [*lines[:_MAX_LINES], f"… {len(lines) - _MAX_LINES} more lines"]
    return "\n".join(lines)


def _unified(path: str, old: bytes, new: bytes, context: int) -> list[str]:
    old_lines, new_lines = for_people(old).splitlines(), for_people(new).splitlines()
    if path.startswith("maps/"):
        return _map_difference(path, old_lines, new_lines)
    names = (f"running/{path}", f"wanted/{path}")
    return list(difflib.unified_diff(old_lines, new_lines, *names, lineterm="", n=context))


def _map_difference(path: str, old_lines: list[str], new_lines: list[str]) -> list[str]:
    """Maps are sets of lines, so their difference needs no context and takes no quadratic time."""
    old, new = set(old_lines), set(new_lines)
    changed = sorted([(line, "-") for line in old - new] + [(line, "+") for line in new - old])
    return [f"--- running/{path}", f"+++ wanted/{path}", *(sign + line for line, sign in changed)]

"""Plain values of a document, found and replaced by their JSON pointers."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

Document = dict[str, Any]


def leaves(value: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """Pointer and value of every plain value of a document."""
    if isinstance(value, dict | list) and value:
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        for key, entry in entries:
            yield from leaves(entry, f"{pointer}/{key}")
    elif value is not None:
        yield pointer, value


def without_positions(pointer: str) -> str:
    """`/backends/0/servers/0/port` → `backends/servers/port`."""
    return "/".join(part for part in pointer.strip("/").split("/") if not part.isdecimal())


def with_value(spec: Document, pointer: str, value: Any) -> Document:
    """A copy of the document with one value replaced."""
    changed = copy.deepcopy(spec)
    *parents, last = pointer.strip("/").split("/")
    holder: Any = changed
    for part in parents:
        holder = holder[int(part) if isinstance(holder, list) else part]
    holder[int(last) if isinstance(holder, list) else last] = value
    return changed
